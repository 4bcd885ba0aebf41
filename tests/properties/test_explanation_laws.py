"""Law 1 through the JSON of every answer: terms add up to the raw score, parts to the step, the trail to the key.

The worlds are made so that one word stands in several fields and contexts: four letters are a word and a gram, `may`
is a word and a month, a quoted phrase is a term and a pair, files have several chunks and conversations windows.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.worlds import DAY, NOW, SEEN, memories, queries, scopes
from tests.sums import faults, faults_of_hits, shared_names
from whyrank.analysis.document import content_hash, entry_for
from whyrank.interfaces import serialize
from whyrank.protocols import Changes, Store
from whyrank.ranking.recipes import RECIPES
from whyrank.search.searcher import Searcher
from whyrank.storage.sqlite.postings.kernel import NUMPY
from whyrank.storage.store import SqliteStore
from whyrank.testing.fakes import WordDirections
from whyrank.testing.memory_store import MemoryStore
from whyrank.types.memory import Entry, Memory, Source
from whyrank.types.query import Query, Where

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

EMBEDDER = WordDirections()
VOCABULARY = (
    "tea", "green", "haus", "hausboot", "teehaus", "boot", "café", "cafe", "müller", "may", "2023", "suzi",
    "night-shift",
)  # fmt: skip
QUESTIONS = (
    '"green tea" haus', "what did Ann say about tea in May 2023?", "hausboot haus boot", "cafe mueller",
    "Suzi's night shift", "tea tea green tea", "1 May 2023", "haus* tea", "teehaus", "did Bob drink green tea?",
)  # fmt: skip
STORES: dict[str, Callable[[Path], Store]] = {
    "dictionaries": lambda _: MemoryStore(),
    "postings": lambda folder: SqliteStore(folder / "memory.db"),
    "postings without kernel": lambda folder: SqliteStore(folder / "memory.db", kernel=NUMPY),
    "fts5": lambda folder: SqliteStore(folder / "memory.db", "fts5"),
}

texts = st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=8).map(" ".join)


@st.composite
def entries(draw: st.DrawFn, number: int) -> Entry:
    """Return a fact, a chunk of one of two files, or a turn of a conversation; German texts have grams."""
    if draw(st.integers(0, 3)) == 0:
        return entry_for(draw(memories(f"m_{number}")), "en")
    text = draw(texts)
    kind = draw(st.sampled_from(["fact", "chunk", "chunk", "turn", "turn"]))
    path = {"fact": "", "chunk": draw(st.sampled_from(["a.md", "b.md"])), "turn": "log.jsonl"}[kind]
    memory = Memory(
        f"m_{number}",
        text,
        "fact" if kind == "fact" else "chunk",
        scope=draw(scopes),
        source=Source(path, number + 1, number + 1, content_hash(text)) if path else None,
        created=NOW - DAY,
        date=draw(st.sampled_from([None, 1_682_942_400.0, NOW - 3 * DAY])),  # the first is 1 May 2023
        session="s" if kind == "turn" else "",
        speaker=draw(st.sampled_from(["Ann", "Bob"])) if kind == "turn" else "",
        position=number,
        entities=draw(st.sampled_from([(), ("Suzi",), ("green tea",)])),
    )
    return entry_for(memory, draw(st.sampled_from(["en", "de"])))


@st.composite
def stored(draw: st.DrawFn) -> list[Entry]:
    return [draw(entries(number)) for number in range(draw(st.integers(1, 12)))]


def fill(store: Store, found: Sequence[Entry]) -> None:
    rows = EMBEDDER.documents([entry.embed_text for entry in found])
    vectors = {entry.embed_hash: row for entry, row in zip(found, rows, strict=True)}
    store.write(Changes(put=list(found), space=EMBEDDER.fingerprint, vectors=vectors))


def explained(store: Store, text: str, recipe: str, limit: int = 3) -> dict[str, Any]:
    """Return a search as its JSON says it, read again from the text."""
    query = Query(text, Where(scopes=SEEN, now=NOW), limit=limit)
    results = Searcher(store, EMBEDDER, "en").search(query, RECIPES[recipe])
    data: dict[str, Any] = json.loads(json.dumps(serialize.results(results, explain=True)))
    return data


@pytest.mark.parametrize("kind", STORES)
@given(found=stored(), text=st.sampled_from(QUESTIONS) | texts | queries)
@settings(max_examples=15, deadline=None)
def test_law_1_holds_in_the_json_of_every_recipe(kind: str, found: list[Entry], text: str) -> None:
    with tempfile.TemporaryDirectory() as folder, closing(STORES[kind](Path(folder))) as store:
        fill(store, found)
        for recipe in RECIPES:
            assert faults_of_hits(explained(store, text, recipe)) == []


def turn(position: int, speaker: str, text: str) -> Memory:
    source = Source("log.jsonl", position, position, content_hash(text))
    memory = Memory(f"t_{position}", text, "chunk", source=source, created=NOW, date=1_682_942_400.0)
    return replace(memory, session="s", speaker=speaker, position=position)


def chunk(line: int, text: str) -> Memory:
    return Memory(f"c_{line}", text, "chunk", source=Source("a.md", line, line, content_hash(text)), created=NOW)


COINCIDING = (
    chunk(1, "haus am see, green tea im haus"),
    chunk(2, "das teehaus und das hausboot"),
    turn(1, "Ann", "green tea im haus"),
    turn(2, "Bob", "may be tea, café müller"),
    turn(3, "Ann", "haus haus cafe"),
    Memory("f_1", "suzi drinks green tea in may", created=NOW, entities=("suzi",)),
)


@pytest.mark.parametrize("recipe", [name for name, recipe in RECIPES.items() if "keyword" in recipe.plan.runs])
@pytest.mark.parametrize("kind", ["dictionaries", "postings", "postings without kernel"])
def test_words_that_coincide_across_fields_and_contexts_keep_their_own_records(
    kind: str, recipe: str, tmp_path: Path
) -> None:
    with closing(STORES[kind](tmp_path)) as store:
        fill(store, [entry_for(memory, "de") for memory in COINCIDING])
        answers = [explained(store, text, recipe) for text in QUESTIONS]
    assert [fault for answer in answers for fault in faults_of_hits(answer)] == []
    terms = Counter(
        (term["field"], term["context"])
        for answer in answers
        for hit in (*answer["hits"], *answer["dropped"])
        for part in hit["trail"][0]["parts"]
        for term in part["terms"]
    )
    # Every field in every context that it is scored in; dates and speakers count for the memory itself alone.
    around = {(field, context) for field in ("words", "pairs", "grams") for context in ("own", "file", "window")}
    if RECIPES[recipe].plan.join == "or":
        assert set(terms) == {*around, ("dates", "own"), ("speakers", "own")}
        assert sum(map(shared_names, answers)) > 10


def test_terms_of_one_name_are_told_apart_by_field_and_context(tmp_path: Path) -> None:
    with closing(STORES["postings"](tmp_path)) as store:
        fill(store, [entry_for(memory, "de") for memory in COINCIDING])
        [hit] = [hit for hit in explained(store, "haus", "keyword", 9)["hits"] if hit["id"] == "t_3"]
    [part] = hit["trail"][0]["parts"]
    assert [(term["term"], term["field"], term["context"]) for term in part["terms"]] == [
        ("haus", "words", "own"),
        ("haus", "words", "window"),
        ("haus", "grams", "own"),
        ("haus", "grams", "window"),
    ]
    assert [*faults(hit["trail"])] == []
