"""The compiled loops and numpy give the same answers to the last bit, over any history and any question."""

from __future__ import annotations

import tempfile
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.worlds import ANN, BOB, NOW
from whyrank.analysis.document import entry_for
from whyrank.protocols import Changes
from whyrank.storage.bm25 import DATES, PAIRS, WORDS
from whyrank.storage.sqlite import top_k
from whyrank.storage.sqlite.database import ChecksumError, add_checksum
from whyrank.storage.sqlite.indexes import PostingsIndex
from whyrank.storage.sqlite.postings import format, scorer, segments
from whyrank.storage.sqlite.postings.format import (
    Inverted,
    Part,
    PostingList,
    Text,
    Wide,
    find_list,
    invert,
    joined,
    key_of,
    one_page,
    read,
)
from whyrank.storage.sqlite.postings.kernel import COMPILED, KERNEL, NUMPY, FieldTerms
from whyrank.storage.sqlite.postings.reader import Postings
from whyrank.storage.store import SqliteStore
from whyrank.testing.store_contract import fact
from whyrank.types.memory import GLOBAL, Memory, Source
from whyrank.types.query import Join, Where, several, spelled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from whyrank.storage.sqlite.doc_values import Flags, Floats
    from whyrank.storage.sqlite.top_k import View

pytestmark = pytest.mark.skipif(COMPILED is None, reason="the package was built without a C compiler")

VOCABULARY = ("tea", "green", "pot", "kettle", "boil", "water", "leaves")
SCOPES = (GLOBAL, ANN, BOB)


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flush, merge and cut in tiny pieces, so that small worlds reach every path."""
    monkeypatch.setattr(segments, "FRESH_MEMORIES", 3)
    monkeypatch.setattr(segments, "POSTINGS_PER_STEP", 5)
    monkeypatch.setattr(format, "PAGE_BYTES", 64)


@st.composite
def memories(draw: st.DrawFn, number: int) -> Memory:
    text = " ".join(draw(st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=6)))
    kind = draw(st.sampled_from(["fact", "fact", "chunk", "turn"]))
    path = "" if kind == "fact" else draw(st.sampled_from(["a.md", "b.md", f"{number}.md"]))
    return fact(
        f"m_{number}",
        text,
        kind="fact" if kind == "fact" else "chunk",
        source=Source(path, number, number, str(number)),
        session=draw(st.sampled_from(["s1", "s2"])) if kind == "turn" else "",
        position=number,
        scope=SCOPES[number % 3],
        expires=draw(st.sampled_from([None, None, NOW - 5, NOW + 5])),
    )


@st.composite
def histories(draw: st.DrawFn) -> list[Changes]:
    """Memories written, written again, superseded and removed, in several scopes."""
    changes: list[Changes] = []
    there: dict[int, None] = {}
    for number in range(draw(st.integers(1, 16))):
        memory = draw(memories(draw(st.integers(0, number))))
        marks = draw(st.sampled_from([(), ("day=1", "month=5"), ("day=2", "month=5", "by=ann"), ("by=bob",)]))
        entry = replace(entry_for(memory, "en"), letters=draw(st.booleans()), marks=marks)
        changes.append(Changes(put=[entry]))
        known = memory.position
        there[known] = None
        earlier = [f"m_{other}" for other in there if other < known and other % 3 == known % 3]  # of the same scope
        further = draw(st.sampled_from(["supersede", "supersede", "remove", "nothing"]))
        if earlier and further == "supersede":
            changes.append(Changes(superseded={draw(st.sampled_from(earlier)): (memory.id, NOW - 1)}))
        elif further == "remove":
            changes.append(Changes(remove=[f"m_{there.popitem()[0]}"]))
    return changes


class Question(NamedTuple):
    """What is asked of an index."""

    terms: Sequence[str]
    repeats: dict[str, int]
    where: Where
    join: Join
    limit: int | None


@st.composite
def questions(draw: st.DrawFn) -> Question:
    phrases = st.lists(st.sampled_from(VOCABULARY), min_size=2, max_size=3, unique=True)
    word = st.sampled_from(VOCABULARY)
    beginnings = st.lists(word | phrases.map(" ".join), min_size=1, max_size=3, unique=True)
    marks = st.sampled_from(["day=1", "month=5", "by=ann", "by=bob", "by=nobody"])
    spellings = st.builds(spelled, word | phrases.map(" ".join), beginnings, st.booleans())
    term = word | phrases.map(" ".join) | marks | spellings | beginnings.map(lambda words: several("t*", words))
    where = Where(
        frozenset(draw(st.sets(st.sampled_from(SCOPES), min_size=1))),
        kinds=frozenset(draw(st.sets(st.sampled_from(["fact", "chunk"]), max_size=1))),
        include_superseded=draw(st.booleans()),
        now=NOW,
    )
    return Question(
        draw(st.lists(term, min_size=1, max_size=5, unique=True)),
        draw(st.dictionaries(word, st.integers(1, 17), max_size=2)),
        where,
        draw(st.sampled_from(["or", "or", "and"])),
        draw(st.sampled_from([None, 1, 2, 4, 50])),
    )


def answers(index: PostingsIndex, view: View, asked: Question) -> tuple[object, ...]:
    """Everything an index can be asked: the run, what it scores, what each term adds, and the counts behind it."""
    found = index.run(view, asked.terms, asked.where, asked.join, asked.limit, asked.repeats)
    shelves = view.shelves(asked.where.scopes)
    keys = [(shelf.scope, place) for shelf in shelves for place in np.flatnonzero(shelf.alive).tolist()]
    ids = [f"{scope} {number}" for scope, number in keys]
    signal = index.score(view, ids, keys, asked.terms, asked.where.scopes, asked.repeats)
    words = [term for term in asked.terms if "=" not in term]
    added = {key: tuple(signal.terms[key]) for key in ids}
    for key in ids:  # law 1: the score is the fold of what its terms add
        total = 0.0
        for found_term in added[key]:
            total += found_term.value
        assert signal.values[key] == total
    counts = index.statistics(view, words, asked.where.scopes)
    return tuple(found.rows), dict(signal.values), dict(signal.coverage), added, counts


def asked_of_both(store: SqliteStore, asked: Question) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """Return what is answered with the kernel and without."""
    with store.view() as view:
        return answers(PostingsIndex(kernel=KERNEL), view, asked), answers(PostingsIndex(kernel=NUMPY), view, asked)


@given(histories(), questions())
@settings(max_examples=150, deadline=None)
def test_a_question_is_answered_alike_with_and_without_the_kernel(history: list[Changes], asked: Question) -> None:
    with tempfile.TemporaryDirectory() as place, closing(SqliteStore(Path(place) / "memory.db")) as store:
        for changes in history:
            store.write(changes)
        compiled, plain = asked_of_both(store, asked)
        assert compiled == plain


@given(histories(), questions())
@settings(max_examples=80, deadline=None)
def test_so_it_is_where_numpy_leaves_long_lists_for_later(history: list[Changes], asked: Question) -> None:
    with (
        tempfile.TemporaryDirectory() as place,
        pytest.MonkeyPatch.context() as patch,
        closing(SqliteStore(Path(place) / "memory.db")) as store,
    ):
        for changes in history:
            store.write(changes)
        patch.setattr(scorer, "LONG_FROM", 0)
        patch.setattr(scorer, "LONG_SHARE", 0.3)
        patch.setattr(scorer, "LATER_SHARE", 1e9)
        patch.setattr(scorer, "ENOUGH", 0)
        patch.setattr(top_k, "MORE", 0)
        compiled, plain = asked_of_both(store, asked)
        assert compiled == plain


# -- many places, without a store ------------------------------------------------------------------------------


def lists_of(random: np.random.Generator, places: int, count: int) -> tuple[Part, ...]:
    """Return the lists of one term: in two segments of a shelf, and some fresh places behind them."""
    half = places // 2
    held = np.sort(random.choice(places, count, replace=False))
    fresh = held[held >= places - 20]
    parts: list[Part] = []
    for first, end in ((0, half), (half, places - 20)):
        numbers = held[(held >= first) & (held < end)].astype(np.int64)
        keys, often = np.full(len(numbers), 7, np.int64), random.integers(1, 6, len(numbers)).astype(np.uint8)
        listed = find_list(one_page(Inverted(keys, numbers, often, np.zeros(0, np.uint32)), first), 7, first)
        parts += [listed] if listed is not None else []
    return (*parts, Wide(fresh.astype(np.int64), np.full(len(fresh), 2.0)))


def summed(given: Sequence[FieldTerms], places: int) -> Floats:
    """Add up, list by list, by the formula."""
    totals = np.zeros(places)
    for kind in given:
        for idf, parts in kind.terms:
            found = joined(parts) if kind.wanted is None else joined(parts).only(kind.wanted)
            own = kind.own if isinstance(kind.own, float) else kind.own[found.places]
            k = kind.lengths[found.places] * kind.per_term + kind.base
            np.add.at(totals, found.places, found.frequencies / (k + found.frequencies) * idf * kind.weight * own)
    return totals


@pytest.mark.parametrize("places", [40, 2_047, 2_048, 2_049, 30_011])
@pytest.mark.parametrize("is_masked", [False, True])
@pytest.mark.parametrize("wanted", [1, 50, 5_000, 10**9])
def test_the_best_of_many_places_are_those_of_their_sums(places: int, is_masked: bool, wanted: int) -> None:
    assert COMPILED is not None
    random = np.random.default_rng(places + wanted)
    lengths, alive = random.integers(0, 4, places).astype(np.uint32), random.random(places) < 0.9  # so that many tie
    terms = [tuple((idf, lists_of(random, places, places // share)) for idf, share in ((2.5, 3), (0.5, 2), (4.0, 40)))]
    terms += [((1.25, lists_of(random, places, places // 5)),)]
    kinds = (
        FieldTerms(lengths, 0.03, 0.9, 1.0, 1.5, None, terms[0]),
        FieldTerms(lengths.astype(np.float64), 0.05, 0.8, 0.3, random.random(places), alive, terms[1]),
    )
    mask = random.random(places) < 0.5 if is_masked else None
    sums, totals = summed(kinds, places), np.zeros(places)
    COMPILED.sums(totals, kinds)
    assert totals.tolist() == sums.tolist()
    allowed = sums if mask is None else sums * mask
    found, values = COMPILED.best(places, kinds, mask, wanted)
    assert NUMPY.best(places, kinds, mask, wanted) == (found, values)
    there = np.frombuffer(found, np.int64)
    lowest = np.sort(allowed)[-wanted] if wanted <= places else 0.0
    assert there.tolist() == np.flatnonzero((allowed >= lowest) & (allowed > 0.0)).tolist()
    assert np.frombuffer(values).tolist() == sums[there].tolist()
    looked_up = np.zeros((3, len(there)))
    COMPILED.given(kinds[:1], there.copy(), looked_up)
    first = [summed([kinds[0]._replace(terms=(term,))], places)[there] for term in kinds[0].terms]
    assert looked_up.tolist() == [row.tolist() for row in first]
    assert Postings(terms[1][0][1], alive).size == np.count_nonzero(alive[joined(terms[1][0][1]).places])


@st.composite
def belongings(draw: st.DrawFn, places: int) -> NDArray[np.int64]:
    """Return to which groups places belong: nearly in order, as files and windows are, or anyhow."""
    steps = draw(st.lists(st.integers(-2, 3), min_size=1, max_size=5))
    wobble = draw(st.sampled_from([0, 0, 1, 30]))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    nearly: NDArray[np.int64] = np.arange(places) // draw(st.integers(1, 4)) + np.array(steps)[:, np.newaxis]
    return nearly + random.integers(0, wobble + 1, nearly.shape)


@given(st.data(), st.integers(60, 200), st.integers(0, 9))
@settings(max_examples=150, deadline=None)
def test_groups_of_places_are_gathered_alike(data: st.DataObject, places: int, seed: int) -> None:
    parts = lists_of(np.random.default_rng(seed), places, places // 3)
    belonging, groups = data.draw(belongings(places)), data.draw(st.integers(0, places))
    found = [Postings(parts).gathered(belonging, groups, kernel).joined for kernel in (KERNEL, NUMPY)]
    expected = np.zeros(groups)
    for row in belonging:  # a group counts a place once for every row that says so
        for place, often in zip(*joined(parts), strict=True):
            if 0 <= row[place] < groups:
                expected[row[place]] += often
    for wide in found:
        assert wide.places.tolist() == np.flatnonzero(expected).tolist()
        assert wide.frequencies.tolist() == expected[expected > 0].tolist()


# -- pages that are damaged and bear a checksum ------------------------------------------------------------------

TEXTS = [Text(number, [VOCABULARY[number % 3], "tea", VOCABULARY[number % 5], "tea"]) for number in range(40)]


def page_of(numbers: Sequence[tuple[int, int]]) -> bytes:
    """Return the page of some texts with bytes changed, sealed as if it had been written so."""
    body = bytearray(one_page(invert(TEXTS)[WORDS], 0).blob[4:])
    for place, byte in numbers:
        body[place % len(body)] = byte
    return add_checksum(bytes(body))


@given(st.lists(st.tuples(st.integers(0, 1_500), st.integers(0, 255)), max_size=12), st.integers(1, 80))
@settings(max_examples=200, deadline=None)
def test_no_page_reaches_beyond_its_bytes_or_the_places_there_are(changed: list[tuple[int, int]], places: int) -> None:
    assert COMPILED is not None
    try:
        page = read(page_of(changed))
    except ChecksumError:
        return
    alive, lengths = np.ones(places, np.bool_), np.ones(places, np.uint32)
    for word in (*VOCABULARY, "nothing"):
        told = refusal(partial(find_list, page, key_of(word), 0))
        assert told in ("", "a page is shorter than it says")
        listed = None if told else find_list(page, key_of(word), 0)
        if listed is not None:
            all_asked_for(listed, alive, lengths)


def refusal(ask: Callable[[], object]) -> str:
    """Return why something is refused, if it is."""
    try:
        ask()
    except (IndexError, ValueError) as refused:
        return str(refused)
    return ""


def all_asked_for(listed: PostingList, alive: Flags, lengths: NDArray[np.uint32]) -> None:
    assert COMPILED is not None
    kinds = (FieldTerms(lengths, 0.1, 0.5, 1.0, 1.0, alive, ((1.0, (listed,)),)),)
    places, totals, table = len(alive), np.zeros(len(alive)), np.zeros((1, len(alive)))
    for ask in (
        partial(COMPILED.gathered, (listed,), np.arange(places)[np.newaxis], 1, places),
        partial(COMPILED.sums, totals, kinds),
        partial(COMPILED.best, places, kinds, None, 5),
        partial(COMPILED.given, kinds, np.arange(places), table),
        partial(COMPILED.pairs, listed, key_of("tea") & 0xFFFFFFFF),
    ):
        told = refusal(ask)
        assert not told or "not there" in told or "fewer followers" in told


some_texts = st.lists(st.lists(st.sampled_from(VOCABULARY), max_size=8), min_size=1, max_size=30)


@given(some_texts, st.sampled_from(VOCABULARY))
@settings(max_examples=100, deadline=None)
def test_lists_and_their_followers_are_found_alike(texts: list[list[str]], word: str) -> None:
    page = one_page(invert([Text(number, tokens) for number, tokens in enumerate(texts)])[WORDS], 0)
    listed = find_list(page, key_of(word), 0)
    if listed is None:
        return
    for other in VOCABULARY:
        compiled, plain = (kernel.pairs(listed, key_of(other) & 0xFFFFFFFF) for kernel in (KERNEL, NUMPY))
        assert compiled == plain


def test_a_page_of_nothing_holds_no_list() -> None:
    nobody = np.zeros(0, np.int64)
    empty = one_page(Inverted(nobody, nobody, np.zeros(0, np.uint8), np.zeros(0, np.uint32)), 0)
    assert find_list(empty, key_of("tea"), 0) is None


def test_every_field_is_asked_with_and_without_the_kernel(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "memory.db")) as store:
        for number in range(7):
            entry = entry_for(fact(f"m_{number}", "green tea" if number % 2 else "tea green"), "en")
            store.write(Changes(put=[replace(entry, marks=("day=1",))]))
        asked = Question(["green", "tea", "day=1"], {}, Where(now=NOW), "or", 5)
        compiled, plain = asked_of_both(store, asked)
        assert compiled == plain
        with store.view() as view:
            for kernel in (KERNEL, NUMPY):
                index = PostingsIndex(fields=(WORDS, PAIRS, DATES), kernel=kernel)
                index.run(view, asked.terms, asked.where, "or", 5)
                keys = [("green", "words"), ("tea", "words"), ("green tea", "pairs"), ("day=1", "dates")]
                assert [key[:2] for key in index._last[1].keys] == keys  # type: ignore[index]
