"""A store whose words an earlier reader has read answers, says so, and is read anew."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import whyrank
from whyrank.analysis.document import READER_VERSION, content_hash
from whyrank.analysis.tokenizer import tokens_of
from whyrank.providers.wordllama import WordLlama
from whyrank.types.memory import GLOBAL, Scope
from whyrank.types.query import Where
from whyrank.types.trail import part_of

STORES = Path(__file__).parent / "readers"
USER = "user:42"
SCOPES = frozenset({GLOBAL, Scope.parse(USER)})
# Written joined, with a symbol, in the plural; in a file that is gone, in facts, in one that was changed.
FOUND_BY = {
    "nightshift": "The night-shift begins at ten in the evening.",
    "tgfbeta": "Signalling by TGF-β slows down with age",
    "handover": "The hand-over takes ten minutes",
    "GPU": "Three GPUs hang in the cellar",
}
# What the words of this text are in each reader: a reader that reads them otherwise is another one.
SAMPLE = (
    "Suzy's night-shift on the GPUs begins; TGF-β2 and NF-κB, getHTTPUrl v1.2.3 snake_case a.b.c l'avion don't C++ "
    "über die Häuser боюсь котлы 東京タワー 한국어 ความรู้ 10:30 user@example.org e-mail 1-10"
)
WORDS_BY_READER = dict.fromkeys((4, 5), "7f4e977dcf31a632b83134f5b243a80a")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return Path(shutil.copy(STORES / "reader3.db", tmp_path / "memory.db"))


def found(engine: whyrank.Engine, word: str) -> list[str]:
    return [hit.memory.text.splitlines()[-1] for hit in engine.search(word, scope=USER, syntax="advanced")]


def codes(engine: whyrank.Engine, scope: str = USER) -> set[str]:
    return {notice.code for notice in engine.search("tea", scope=scope).notices}


def test_words_are_found_when_they_are_read_anew(store: Path) -> None:
    with whyrank.open(store, workspace=store.parent) as engine:
        assert "old-words" in codes(engine)
        assert [found(engine, word) for word in FOUND_BY] == [[]] * len(FOUND_BY)
        assert (engine.maintenance.stale_count(), engine.maintenance.reindex(), engine.maintenance.stale_count()) == (
            6,
            6,
            0,
        )
        assert {word: found(engine, word) for word in FOUND_BY} == {word: [text] for word, text in FOUND_BY.items()}
        assert "old-words" not in codes(engine)
        assert engine.maintenance.reindex() == 0
    with whyrank.open(store, workspace=store.parent) as engine:
        assert engine.maintenance.stale_count() == 0


def test_nothing_but_words_changes(store: Path) -> None:
    with whyrank.open(store, workspace=store.parent) as engine:

        def all_there_is() -> tuple[object, ...]:
            memories = engine._store.browse(Where(SCOPES, include_superseded=True, now=0.0), 100)
            kept = engine._store.vectors([memory.id for memory in memories], engine.models.space, SCOPES)
            tables = ("history", "write_keys", "files", "embedding_failures")
            read = ["SELECT scope, space, hash, vector FROM vectors", *(f"SELECT * FROM {table}" for table in tables)]
            rows = [engine._store._read(f"{statement} ORDER BY 1, 2, 3") for statement in read]  # type: ignore[attr-defined]
            return memories, {key: np.asarray(vector).tolist() for key, vector in kept.items()}, rows

        before = all_there_is()
        assert engine.maintenance.reindex() == 6
        assert all_there_is() == before
        assert len(before[0]) == 6  # type: ignore[arg-type]
        assert engine.status().without_vector == 0


def test_a_write_takes_some_along_and_an_ingest_all(store: Path, tmp_path: Path) -> None:
    with whyrank.open(store, workspace=store.parent) as engine:
        engine.add("Robin waters the plants")
        assert engine.maintenance.stale_count() == 0  # there are fewer than a write takes along
    shutil.copy(STORES / "reader3.db", store)
    (tmp_path / "new.md").write_text("# New\n\nA file.\n", encoding="utf-8")
    with whyrank.open(store, workspace=store.parent) as engine:
        report = engine.ingest(tmp_path / "new.md")
        assert ("words", "6 memories that were stored before were reindexed") in report.remarks
        assert engine.maintenance.stale_count() == 0


UNTITLED = "They hang in the cellar behind the bicycles."
ASKED = "winter tyres"


@pytest.fixture
def untitled(tmp_path: Path) -> Path:
    """Return a store of a reader that did not embed the name of a file without a title."""
    return Path(shutil.copy(STORES / "reader4.db", tmp_path / "memory.db"))


def cosine(engine: whyrank.Engine) -> float:
    """Return the cosine of the untitled note and the question for its file's name."""
    [hit] = [hit for hit in engine.search(ASKED, recipe="vector", limit=50) if hit.memory.text == UNTITLED]
    part = part_of(hit.trail, "vector")
    assert part is not None
    assert part.raw is not None
    return part.raw


def embedded(text: str) -> float:
    model = WordLlama()
    return float(model.documents([text])[0] @ model.query(ASKED))


def test_the_name_of_an_untitled_file_is_embedded_when_it_is_read_anew(untitled: Path) -> None:
    with whyrank.open(untitled, workspace=untitled.parent) as engine:
        assert "old-words" in codes(engine)
        assert cosine(engine) == pytest.approx(embedded(UNTITLED), abs=1e-3)  # it goes on answering
        assert engine.doctor().findings == ()
        texts = engine.status().spaces[engine.models.space]
        engine.add("Robin waters the plants")
        assert cosine(engine) == pytest.approx(embedded(f"winter-tyres\n{UNTITLED}"), abs=1e-3)
        assert embedded(f"winter-tyres\n{UNTITLED}") > embedded(UNTITLED) + 0.2
        assert "old-words" not in codes(engine)
        assert engine.status().without_vector == 0
        assert engine.status().spaces[engine.models.space] == texts + 1  # the fact's
        assert engine.doctor(deep=True).findings == ()


def test_a_file_that_is_there_gets_a_title_that_can_be_read(untitled: Path) -> None:
    (untitled.parent / "winter-tyres.md").write_text(f"{UNTITLED}\n", encoding="utf-8")
    with whyrank.open(untitled, workspace=untitled.parent) as engine:
        before = engine.search(ASKED)[0].memory.title
        engine.ingest(untitled.parent)
        [found] = [hit.memory for hit in engine.search(ASKED) if hit.memory.text == UNTITLED]
        assert (before, found.title) == ("winter-tyres", "winter tyres")
        assert cosine(engine) == pytest.approx(embedded(f"winter tyres\n{UNTITLED}"), abs=1e-3)


def test_a_reader_that_reads_otherwise_is_another_version() -> None:
    words = content_hash(" ".join(tokens_of(SAMPLE)))
    assert words == WORDS_BY_READER.get(READER_VERSION), "raise READER_VERSION, so that old words are read anew"
