"""The postings index: flushes, merges, removals and damage change nothing that is found."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.errors import StoreDamaged
from whyrank.ingest.entries import entry_for
from whyrank.ports import Changes
from whyrank.storage.sqlite.connection import Database
from whyrank.storage.sqlite.indexes import prepare_index
from whyrank.storage.sqlite.postings import writer
from whyrank.storage.sqlite.postings.codec import decode, encode
from whyrank.storage.sqlite.store import SqliteStore
from whyrank.testing.memory_store import MemoryStore
from whyrank.testing.store_contract import NOW, fact
from whyrank.types import Memory, Run, Source, Where

EVERYTHING = Where(now=NOW)
WORDS = ("tea", "green", "pot", "kettle", "boil", "water", "leaves", "cup")


@pytest.fixture(autouse=True)
def _small_flushes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flush every three memories and merge every two flushes, so that small worlds reach every path."""
    monkeypatch.setattr(writer, "FRESH_MEMORIES", 3)
    monkeypatch.setattr(writer, "FLUSHES_PER_MERGE", 2)
    monkeypatch.setattr(writer, "SMALL_LISTS", 2)


def told(run: Run) -> list[tuple[str, float]]:
    return [(candidate.id, candidate.score) for candidate in run.candidates]


@st.composite
def memories(draw: st.DrawFn, number: int) -> Memory:
    text = " ".join(draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6)))
    kind = draw(st.sampled_from(["fact", "chunk", "turn"]))
    path = draw(st.sampled_from(["a.md", "b.md"]))
    source = Source("" if kind == "fact" else path, number, number, str(number))
    session = draw(st.sampled_from(["s1", "s2"])) if kind == "turn" else ""
    shape = "fact" if kind == "fact" else "chunk"
    return fact(f"m_{number}", text, kind=shape, source=source, session=session, position=number)


@st.composite
def histories(draw: st.DrawFn) -> list[Changes]:
    """Writes and removals in any order."""
    changes: list[Changes] = []
    for number in range(draw(st.integers(1, 14))):
        changes.append(Changes(put=[entry_for(draw(memories(number)), "en")]))
        if number and draw(st.booleans()):
            changes.append(Changes(remove=[f"m_{draw(st.integers(0, number))}"]))
    return changes


@given(histories(), st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True))
@settings(max_examples=120, deadline=None)
def test_any_history_gives_what_the_oracle_gives(history: list[Changes], terms: list[str]) -> None:
    with tempfile.TemporaryDirectory() as place:
        real, oracle = SqliteStore(Path(place) / "memory.db", "postings"), MemoryStore()
        for changes in history:
            real.write(changes)
            oracle.write(changes)
        assert told(real.keyword(terms, EVERYTHING, None)) == told(oracle.keyword(terms, EVERYTHING, None))
        assert real.statistics(terms, EVERYTHING.scopes) == oracle.statistics(terms, EVERYTHING.scopes)
        ids = [memory.id for memory in oracle.browse(EVERYTHING, 99)]
        [ours], [theirs] = (store.score(ids, terms, None, "", EVERYTHING) for store in (real, oracle))
        assert ours.values == theirs.values
        assert ours.terms == theirs.terms
        assert ours.coverage == pytest.approx(theirs.coverage)
        real.close()


def filled(path: Path, count: int = 12) -> SqliteStore:
    store = SqliteStore(path, "postings")
    for number in range(count):
        store.write(Changes(put=[entry_for(fact(f"m_{number}", f"tea number{number} green pot"), "en")]))
    return store


def test_small_lists_are_merged(tmp_path: Path) -> None:
    store = filled(tmp_path / "memory.db")
    lists = store._database.reader().execute("SELECT count(*) FROM posting_lists WHERE field = 0 AND term = 'tea'")
    assert lists.fetchone()[0] < 12 // 3
    assert len(store.keyword(["tea"], EVERYTHING, None).candidates) == 12
    store.close()


def test_nothing_of_a_removed_memory_stays_in_the_lists(tmp_path: Path) -> None:
    store = filled(tmp_path / "memory.db")
    store.write(Changes(remove=["m_1"]))
    store.close()
    assert b"number1\x00" not in (tmp_path / "memory.db").read_bytes()
    store = SqliteStore(tmp_path / "memory.db", "postings")
    left = store._database.reader().execute("SELECT count(*) FROM posting_lists WHERE term = 'number1'").fetchone()
    assert left == (0,)
    store.close()


def test_a_store_is_switched_in_place_and_back(tmp_path: Path) -> None:
    store = filled(tmp_path / "memory.db")
    before = told(store.keyword(["green", "number3"], EVERYTHING, None))
    store.close()
    other = SqliteStore(tmp_path / "memory.db", "fts5")
    assert other.status("").keyword_index == "fts5"
    assert other.keyword(["number3"], EVERYTHING, None).candidates[0].id == "m_3"
    other.close()
    again = SqliteStore(tmp_path / "memory.db", "postings")
    assert told(again.keyword(["green", "number3"], EVERYTHING, None)) == before
    again.close()


def test_a_damaged_list_is_named_and_not_read_as_something_else(tmp_path: Path) -> None:
    store = filled(tmp_path / "memory.db")
    with store._database.writing() as connection:
        connection.execute("UPDATE posting_lists SET list = zeroblob(length(list)) WHERE term = 'tea'")
    with pytest.raises(StoreDamaged, match="checksum"):
        store.keyword(["tea"], EVERYTHING, None)
    store.close()


def test_a_list_survives_its_bytes_and_counts_no_further_than_255() -> None:
    postings = decode(encode([3, 70_000], [2, 999]))
    assert (postings.numbers.tolist(), postings.frequencies.tolist()) == ([3, 70_000], [2.0, 255.0])


def test_a_store_that_cannot_be_written_serves_with_the_index_it_has(tmp_path: Path) -> None:
    filled(tmp_path / "memory.db").close()
    database = Database(tmp_path / "memory.db")
    database.read_only = True
    assert prepare_index(database, "fts5").name == "postings"
    database.close()
