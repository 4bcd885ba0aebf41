"""Expressions and beginnings against brute force over the texts, on every store; and a parser that knows one error."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.test_search_laws import EMBEDDER, filled, told
from tests.properties.worlds import BOB, NOW, SEEN, memories, temporary
from whyrank.analysis.document import entry_for
from whyrank.analysis.query import asked_for
from whyrank.analysis.tokenizer import stem
from whyrank.errors import BadQuery
from whyrank.protocols import Changes, Store
from whyrank.ranking.recipes import RECIPES
from whyrank.search.searcher import Searcher, parse
from whyrank.storage.query_resolution import resolve_expression
from whyrank.storage.sqlite.postings import segments, terms
from whyrank.storage.store import SqliteStore
from whyrank.testing.memory_store import MemoryStore
from whyrank.types.memory import Memory
from whyrank.types.query import Query, Where
from whyrank.types.trail import replay

if TYPE_CHECKING:
    from whyrank.types.results import Results

# No two have a stem in common, so that what a reader sees and what the index holds are the same.
WORDS = ("tea", "teapot", "milk", "mill", "green", "greed", "pot", "engine", "engrave", "note")
# Words whose stems are shorter than what people type of them.
DERIVED = ("operation", "operating", "running", "configuration", "happily", "cities", "deployment", "activated")

OpenStore = Callable[[Path], Store]
STORES: list[OpenStore] = [
    lambda folder: MemoryStore(),
    lambda folder: SqliteStore(temporary(folder) / "memory.db", "postings"),
    lambda folder: SqliteStore(temporary(folder) / "memory.db", "fts5"),
]


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flush, merge and cut in tiny pieces, so that small worlds reach every path."""
    monkeypatch.setattr(segments, "FRESH_MEMORIES", 3)
    monkeypatch.setattr(segments, "POSTINGS_PER_STEP", 5)
    monkeypatch.setattr(terms, "PAGE_WORDS", 2)
    monkeypatch.setattr(terms, "PAGES_PER_STEP", 2)


@dataclass(frozen=True)
class Wish:
    """An expression as it is typed, and whether a reader would say that it is true of some words."""

    text: str
    is_true: Callable[[list[str]], bool]


@st.composite
def leaves(draw: st.DrawFn) -> Wish:
    word = draw(st.sampled_from(WORDS))
    match draw(st.sampled_from(["word", "beginning", "phrase"])):
        case "word":
            return Wish(word, lambda said: word in said)
        case "beginning":
            start = word[: draw(st.integers(2, len(word)))]
            return Wish(f"{start}*", lambda said: any(one.startswith(start) for one in said))
        case _:
            other = draw(st.sampled_from(WORDS))
            return Wish(f'"{word} {other}"', lambda said: (word, other) in pairwise(said))


def combined(parts: st.SearchStrategy[Wish]) -> st.SearchStrategy[Wish]:
    pairs = st.tuples(parts, parts)
    return st.one_of(
        pairs.map(lambda two: Wish(f"({two[0].text} AND {two[1].text})", _both(*two))),
        pairs.map(lambda two: Wish(f"({two[0].text} {two[1].text})", _both(*two))),
        pairs.map(lambda two: Wish(f"({two[0].text} OR {two[1].text})", _either(*two))),
        parts.map(lambda one: Wish(f"NOT {one.text}", lambda said: not one.is_true(said))),
        parts.map(lambda one: Wish(f"-{one.text}", lambda said: not one.is_true(said))),
    )


def _both(one: Wish, other: Wish) -> Callable[[list[str]], bool]:
    return lambda said: one.is_true(said) and other.is_true(said)


def _either(one: Wish, other: Wish) -> Callable[[list[str]], bool]:
    return lambda said: one.is_true(said) or other.is_true(said)


wishes = st.recursive(leaves(), combined, max_leaves=6)
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)


@st.composite
def worlds(draw: st.DrawFn) -> list[Memory]:
    found = [draw(memories(f"m_{i}")) for i in range(draw(st.integers(1, 12)))]
    bare = [replace(memory, name="", title="", slug="", summary="", superseded_by=None) for memory in found]
    return [replace(memory, text=draw(texts)) for memory in bare]


def ask(store: Store, text: str, recipe: str = "default") -> Results:
    query = Query(text, Where(scopes=SEEN, now=NOW), limit=50, syntax="advanced")
    return Searcher(store, EMBEDDER, "en").search(query, RECIPES[recipe])


def candidates(results: Results) -> set[str]:
    return {hit.id for hit in (*results.hits, *results.dropped)}


def written(open_store: OpenStore, folder: Path, found: Sequence[Memory], gone: int) -> Store:
    """Write memories one by one, and take the first ones out again."""
    store = open_store(folder)
    for memory in found:
        filled(store, [memory])
    store.write(Changes(remove=[memory.id for memory in found[:gone]]))
    return store


@pytest.mark.parametrize("open_store", STORES, ids=["dictionaries", "postings", "fts5"])
@given(found=worlds(), wish=wishes, gone=st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_what_passes_is_what_a_reader_of_the_texts_would_pick(
    open_store: OpenStore, found: list[Memory], wish: Wish, gone: int
) -> None:
    where = Where(scopes=SEEN, now=NOW)
    expected = {m.id for m in found[gone:] if where.allows(m) and wish.is_true(m.text.split())}
    with tempfile.TemporaryDirectory() as place:
        store = written(open_store, Path(place), found, gone)
        asked = resolve_expression(parse(Query(wish.text, where, syntax="advanced"), "en"), store, "en")
        assert store.passing([memory.id for memory in found], asked.query.where) == expected
        results = ask(store, wish.text)
        assert candidates(results) <= expected
        # Whatever is expected and holds a word that ranks is a candidate: the pool is larger than the world.
        ranked = store.keyword(asked.analysis.terms, where, None).ids if asked.analysis.terms else ()
        assert {identity for identity in ranked if identity in expected} <= candidates(results)
        for hit in (*results.hits, *results.dropped):
            assert replay(hit.trail) == (hit.tier, hit.score)
        store.close()


@pytest.mark.parametrize("open_store", STORES, ids=["dictionaries", "postings", "fts5"])
@given(found=worlds(), wish=wishes, recipe=st.sampled_from(["default", "rrf", "keyword"]))
@settings(max_examples=40, deadline=None)
def test_law_6_expressions_and_beginnings_see_only_what_the_caller_may_see(
    open_store: OpenStore, found: list[Memory], wish: Wish, recipe: str
) -> None:
    with tempfile.TemporaryDirectory() as place:
        shared = filled(open_store(Path(place) / "shared"), found)
        shared.write(Changes(put=[entry_for(Memory("bob_1", "teapots greenish milky", scope=BOB), "en")]))
        alone = filled(open_store(Path(place) / "alone"), [memory for memory in found if memory.scope in SEEN])
        assert told(ask(shared, wish.text, recipe)) == told(ask(alone, wish.text, recipe))
        assert ask(shared, wish.text).notices == ask(alone, wish.text).notices
        shared.close()
        alone.close()


@given(found=worlds(), wish=wishes)
@settings(max_examples=60, deadline=None)
def test_all_stores_give_the_same_answer(found: list[Memory], wish: Wish) -> None:
    with tempfile.TemporaryDirectory() as place:
        stores = [filled(open_store(Path(place) / str(i)), found) for i, open_store in enumerate(STORES[:2])]
        oracle, real = (told(ask(store, wish.text)) for store in stores)
        assert [identity for identity, _, _ in real] == [identity for identity, _, _ in oracle]
        stores[1].close()


@given(word=st.sampled_from(DERIVED), letters=st.integers(3, 13), other=st.sampled_from(DERIVED))
def test_a_word_is_found_by_every_beginning_of_it(word: str, letters: int, other: str) -> None:
    start = word[:letters]
    store = filled(MemoryStore(), [Memory("m_1", f"{word} tea"), Memory("m_2", "milk")])
    assert candidates(ask(store, f"{start}*")) == {"m_1"}
    # and no other word is, unless it begins so or has the stem of one that does
    if not other.startswith(start) and stem(other, "en") != stem(word, "en"):
        assert candidates(ask(filled(MemoryStore(), [Memory("m_1", other)]), f"{start}*")) == set()


SIGNS = "\"'()*^:+-#~|=\\/.,“”„«» \x00\ud800\u200fANDORNOTtag:path:teéß日ไ🙂＊｜"


@given(text=st.one_of(st.text(max_size=80), st.text(alphabet=SIGNS, max_size=40), wishes.map(lambda wish: wish.text)))
@settings(max_examples=300, deadline=None)
def test_no_text_raises_anything_but_bad_query(text: str) -> None:
    store = filled(MemoryStore(), [Memory("m_1", "green tea"), Memory("m_2", "日本語 tag path")])
    answer = answered(store, text)
    if isinstance(answer, BadQuery):
        assert "at character" in answer.message
        assert answer.hint
    else:
        assert answer.verdict in ("found", "weak", "nothing")


def answered(store: Store, text: str) -> Results | BadQuery:
    try:
        return ask(store, text)
    except BadQuery as error:
        return error


@given(text=st.text(alphabet=SIGNS, max_size=40))
@settings(max_examples=150, deadline=None)
def test_no_text_raises_anything_but_bad_query_on_sqlite(text: str, one_store: Store, fts5_store: Store) -> None:
    one, other = (answered(store, text) for store in (one_store, fts5_store))
    assert isinstance(one, BadQuery) == isinstance(other, BadQuery)


@pytest.fixture(scope="module")
def one_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return filled(SqliteStore(tmp_path_factory.mktemp("postings") / "m.db"), [Memory("m_1", "green tea a|b c++ 日本")])


@pytest.fixture(scope="module")
def fts5_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return filled(
        SqliteStore(tmp_path_factory.mktemp("fts5") / "m.db", "fts5"), [Memory("m_1", "green tea a|b c++ 日")]
    )


@given(wish=wishes)
def test_what_was_understood_is_printed_so_that_it_is_understood_again(wish: Wish) -> None:
    expression = asked_for(wish.text).expression
    assert expression is not None
    assert asked_for(str(expression)).expression == expression
