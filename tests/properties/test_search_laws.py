"""The laws that need a store (4, 6, 7 and 9), through the whole of search."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.worlds import BOB, NOW, SEEN, WORDS, memories, queries, temporary
from whyrank.analysis.document import entry_for
from whyrank.analysis.query import analyse
from whyrank.protocols import Changes, Store
from whyrank.ranking.recipes import RECIPES
from whyrank.search.calibrator import calibrate
from whyrank.search.confidence import Calibration, Cutoffs, Judgement, coverage_counts, judge
from whyrank.search.searcher import Searcher
from whyrank.storage.sqlite.postings.kernel import NUMPY
from whyrank.storage.store import SqliteStore
from whyrank.testing.fakes import WordDirections
from whyrank.testing.memory_store import MemoryStore
from whyrank.types.memory import Memory
from whyrank.types.query import Query, Where
from whyrank.types.results import Context, Hit, Ranking, Results, Signal

EMBEDDER = WordDirections()
OpenStore = Callable[[Path], Store]
RECIPES_UNDER_LAW = [name for name in RECIPES if name != "openclaw-2026-02"]


def sqlite(folder: Path) -> Store:
    return SqliteStore(temporary(folder) / "memory.db")


def without_kernel(folder: Path) -> Store:
    return SqliteStore(temporary(folder) / "memory.db", kernel=NUMPY)


def dictionaries(folder: Path) -> Store:
    return MemoryStore()


def filled(store: Store, found: Sequence[Memory], without_vector: int = 0) -> Store:
    entries = [entry_for(memory, "en") for memory in found]
    rows = EMBEDDER.documents([entry.embed_text for entry in entries])
    vectors = {entry.embed_hash: row for entry, row in zip(entries, rows, strict=True)}
    kept = dict(list(vectors.items())[without_vector:])
    store.write(Changes(put=entries, space=EMBEDDER.fingerprint, vectors=kept))
    return store


def ask(store: Store, text: str, recipe: str = "default", **fields: object) -> Results:
    where = replace(Where(scopes=SEEN, now=NOW), **fields)  # type: ignore[arg-type]
    return Searcher(store, EMBEDDER, "en").search(Query(text, where, limit=50), RECIPES[recipe])


def told(results: Results) -> list[tuple[str, int, float]]:
    return [(hit.id, hit.tier, hit.score) for hit in results]


@st.composite
def collections(draw: st.DrawFn) -> list[Memory]:
    return [draw(memories(f"m_{i}")) for i in range(draw(st.integers(1, 12)))]


@pytest.mark.parametrize("open_store", [dictionaries, sqlite, without_kernel])
@given(found=collections(), text=queries, recipe=st.sampled_from(RECIPES_UNDER_LAW))
@settings(max_examples=60, deadline=None)
def test_law_6_the_answer_is_that_of_a_store_with_only_what_the_caller_may_see(
    open_store: OpenStore, found: list[Memory], text: str, recipe: str
) -> None:
    # On SQLite the words are scored with the scope's own statistics, but FTS5 pre-selects with those of the whole
    # file: the law holds while what matches fits into twice the pool, as here. The postings index lifts that.
    with tempfile.TemporaryDirectory() as place:
        shared = filled(open_store(Path(place) / "shared"), found)
        alone = filled(open_store(Path(place) / "alone"), [memory for memory in found if memory.scope in SEEN])
        assert told(ask(shared, text, recipe)) == told(ask(alone, text, recipe))
        assert ask(shared, text, recipe).verdict == ask(alone, text, recipe).verdict
        shared.close()
        alone.close()


@given(found=collections(), text=queries, recipe=st.sampled_from(RECIPES_UNDER_LAW))
@settings(max_examples=60, deadline=None)
def test_compiled_loops_change_no_answer(found: list[Memory], text: str, recipe: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        real = filled(sqlite(Path(place) / "compiled"), found)
        plain = filled(without_kernel(Path(place) / "plain"), found)
        assert told(ask(real, text, recipe)) == told(ask(plain, text, recipe))
        real.close()
        plain.close()


@given(found=collections(), text=queries, recipe=st.sampled_from(["default", "default", "openvault"]))
@settings(max_examples=80, deadline=None)
def test_both_stores_give_the_same_answer(found: list[Memory], text: str, recipe: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        real = filled(sqlite(Path(place)), found)
        oracle = filled(MemoryStore(), found)
        assert [hit.id for hit in ask(real, text, recipe)] == [hit.id for hit in ask(oracle, text, recipe)]
        real.close()


@pytest.mark.parametrize("open_store", [dictionaries, sqlite])
@given(found=collections(), text=queries)
@settings(max_examples=50, deadline=None)
def test_law_4_the_order_of_inserts_does_not_matter(open_store: OpenStore, found: list[Memory], text: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        one = filled(open_store(Path(place) / "1"), found)
        two = filled(open_store(Path(place) / "2"), found[::-1])
        assert told(ask(one, text)) == told(ask(two, text))
        one.close()
        two.close()


@given(found=collections(), text=queries, strict=st.booleans(), max_tokens=st.sampled_from([None, 1, 3, 50]))
@settings(max_examples=100, deadline=None)
def test_law_2_nothing_vanishes_from_an_answer(
    found: list[Memory], text: str, strict: bool, max_tokens: int | None
) -> None:
    store = filled(MemoryStore(), found)
    where = Where(scopes=SEEN, now=NOW)
    searcher = Searcher(store, EMBEDDER, "en")

    def candidates(query: Query) -> list[str]:
        results = searcher.search(query, RECIPES["default"])
        assert all(hit.trail[-1].op == "drop" for hit in results.dropped)
        return sorted(hit.id for hit in (*results.hits, *results.dropped))

    everything = candidates(Query(text, where, limit=50))
    assert candidates(Query(text, where, limit=2, strict=strict, max_tokens=max_tokens)) == everything


@st.composite
def foreign_writes(draw: st.DrawFn) -> list[Changes]:
    """What another user may do to a shared store: put, supersede, take out and replace what is theirs."""
    theirs = [draw(memories(f"bob_{i}")) for i in range(draw(st.integers(1, 4)))]
    entries = [entry_for(replace(memory, scope=BOB), "en") for memory in theirs]
    rows = EMBEDDER.documents([entry.embed_text for entry in entries])
    vectors = {entry.embed_hash: row for entry, row in zip(entries, rows, strict=True)}
    changes = [Changes(put=entries, space=EMBEDDER.fingerprint, vectors=vectors)]
    if draw(st.booleans()):
        changes.append(Changes(superseded={entries[0].memory.id: (entries[-1].memory.id, NOW - 1)}))
    if draw(st.booleans()):
        changes.append(Changes(remove=[entries[-1].memory.id]))
    if draw(st.booleans()):
        changes.append(Changes(replace_files=[(BOB, "a.md")]))
    return changes


@pytest.mark.parametrize("open_store", [dictionaries, sqlite])
@given(found=collections(), text=queries, changes=foreign_writes())
@settings(max_examples=50, deadline=None)
def test_law_6_what_others_write_changes_nothing(
    open_store: OpenStore, found: list[Memory], text: str, changes: list[Changes]
) -> None:
    with tempfile.TemporaryDirectory() as place:
        # A memory can be replaced by one of its own scope only, which a random world does not know.
        store = filled(open_store(Path(place)), [replace(memory, superseded_by=None) for memory in found])
        before = told(ask(store, text))
        for change in changes:
            store.write(change)
            assert told(ask(store, text)) == before
        store.close()


@given(
    found=collections(),
    text=queries,
    kind=st.sampled_from(["chunk", "fact"]),
    recipe=st.sampled_from(["default", "openvault"]),
)
@settings(max_examples=150, deadline=None)
def test_law_6_filters_other_than_scope_never_change_word_scores(
    found: list[Memory], text: str, kind: str, recipe: str
) -> None:
    store = filled(MemoryStore(), found)

    def raw(results: Results) -> dict[str, float | None]:
        return {
            hit.id: part.raw
            for hit in (*results.hits, *results.dropped)
            for part in hit.trail[0].parts
            if part.signal == "keyword"
        }

    everything = raw(ask(store, text, recipe))
    filtered = raw(ask(store, text, recipe, kinds=frozenset({kind})))
    assert all(everything[identity] == value for identity, value in filtered.items() if identity in everything)


@given(found=collections(), text=queries, missing=st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_law_3_a_memory_without_a_vector_is_found_by_its_words_with_a_notice(
    found: list[Memory], text: str, missing: int
) -> None:
    results = ask(filled(MemoryStore(), found, without_vector=missing), text)
    for hit in (*results.hits, *results.dropped):
        assert hit.trail[0].op == "set"
    without = [
        hit
        for hit in (*results.hits, *results.dropped)
        if hit.trail[0].parts and not any(part.signal == "vector" for part in hit.trail[0].parts)
    ]
    some_have = any(part.signal == "vector" for hit in results for part in hit.trail[0].parts)
    if without and some_have:
        assert any(notice.code == "vectors-missing" for notice in results.notices)


@given(text=st.text(max_size=200), found=collections())
@settings(max_examples=100, deadline=None)
def test_law_7_no_query_text_raises(text: str, found: list[Memory]) -> None:
    results = ask(filled(MemoryStore(), found), text)
    assert results.verdict in ("found", "weak", "nothing")


@pytest.fixture(scope="module")
def one_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    texts = ("green tea", "c++ api-key", "日本語の検索", "боюсь чая", "don't NOT", "naïve café")
    found = [Memory(f"m_{i}", text, created=NOW - 1) for i, text in enumerate(texts)]
    return filled(sqlite(tmp_path_factory.mktemp("store")), found)


@given(
    text=st.one_of(
        st.text(alphabet=st.characters(), max_size=80),
        st.text(alphabet="\"'()*^:+-#~{}[]\\/.,;!?@&|<>= \x00\ud800\u200f\u202eANDORTeé日ไ🙂", max_size=60),
    )
)
@settings(max_examples=250, deadline=None)
def test_law_7_no_query_text_raises_on_sqlite(one_store: Store, text: str) -> None:
    results = ask(one_store, text)
    assert all(0.0 <= hit.score <= 2.0 for hit in results)


@given(found=collections(), text=queries)
@settings(max_examples=50, deadline=None)
def test_law_9_search_never_writes_and_answers_the_same_twice(found: list[Memory], text: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        store = filled(sqlite(Path(place)), found)
        before = store.status(EMBEDDER.fingerprint)
        assert told(ask(store, text)) == told(ask(store, text))
        assert store.status(EMBEDDER.fingerprint) == before
        store.close()


@st.composite
def notebooks(draw: st.DrawFn) -> list[Memory]:
    """Enough memories of some words each to be calibrated by, in scopes the caller sees and in others."""
    said = st.lists(st.sampled_from(WORDS), min_size=4, max_size=8, unique=True).map(" ".join)
    scopes = st.sampled_from([*sorted(SEEN), BOB])
    count = draw(st.integers(30, 40))
    return [Memory(f"m_{i}", draw(said), scope=draw(scopes) if i >= 25 else min(SEEN)) for i in range(count)]


@given(found=notebooks())
@settings(max_examples=3, deadline=None)  # each asks some three hundred questions of either store
def test_law_6_thresholds_are_those_of_a_store_with_only_what_the_caller_may_see(found: list[Memory]) -> None:
    with tempfile.TemporaryDirectory() as place:
        shared = filled(sqlite(Path(place) / "shared"), found)
        alone = filled(sqlite(Path(place) / "alone"), [memory for memory in found if memory.scope in SEEN][::-1])
        where = Where(scopes=SEEN, now=NOW)
        assert calibrate(shared, EMBEDDER, "en", where) == calibrate(alone, EMBEDDER, "en", where)
        shared.close()
        alone.close()


bars = st.tuples(st.floats(0, 2), st.floats(0.05, 2)).map(lambda pair: Cutoffs(pair[0], pair[0] + pair[1], 1.0, 1.0))


@given(bar=bars, values=st.tuples(st.floats(0, 1), st.floats(0, 1)), words=st.sampled_from((1, 2, 7)))
def test_confidence_rises_with_evidence_and_agrees_with_the_verdict(
    bar: Cutoffs, values: tuple[float, float], words: int
) -> None:
    calibration = Calibration("", ("global",), 100, NOW, 200, 96, ("en",), coverage=bar, words=bar)
    analysis = analyse(" ".join(f"kettle{chr(97 + i)}x" for i in range(words)))
    counts = coverage_counts(analysis)

    def judgement(coverage: float) -> Judgement:
        said = {"keyword": Signal("keyword", {"a": coverage}, {"a": coverage})}
        context = Context(Query(analysis.text), analysis, {}, said)
        return judge(Ranking((Hit(Memory("a", "tea"), 0, 0.5),)), None, context, calibration)

    low, high = (judgement(coverage) for coverage in sorted(values))
    confidences = [one.ranking.hits[0].confidence or 0.0 for one in (low, high)]
    assert 0 <= confidences[0] <= confidences[1] <= 1
    order = ("nothing", "weak", "found")
    assert order.index(low.verdict) <= order.index(high.verdict)
    for coverage, one, confidence in zip(sorted(values), (low, high), confidences, strict=True):
        is_held = len(analysis.terms) == 1 and coverage > 0
        assert (one.verdict == "found") == (counts * coverage >= bar.found)
        assert (one.verdict == "nothing") == (counts * coverage < bar.weak and not is_held)
        assert [one.evidence] == one.weighing.evidence([(None, coverage)])
        assert confidence >= 0.799 if one.verdict == "found" else confidence <= 0.801
