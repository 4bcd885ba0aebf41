"""Words of an earlier reader: said in every answer, read anew a few at a time, and never in anybody's way."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from whyrank.analysis.document import READER_VERSION, entry_for
from whyrank.config.load import load
from whyrank.engine.engine import Engine
from whyrank.errors import StoreChanged, StoreFull
from whyrank.protocols import Changes, Store
from whyrank.storage.store import SqliteStore
from whyrank.testing.memory_store import MemoryStore
from whyrank.types.memory import GLOBAL, Memory, Scope

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

USER = Scope.parse("user:1")
_KILLED = """
import os, signal, sys
from pathlib import Path
from whyrank.config.load import load
from whyrank.engine.engine import Engine
from whyrank.storage.store import SqliteStore
with Engine(SqliteStore(Path(sys.argv[1])), None, load()) as engine:
    engine.maintenance.reindex(lambda done, total, label: os.kill(os.getpid(), signal.SIGKILL))
"""


def filled(store: Store, count: int, reader: int = 0, scope: Scope = GLOBAL) -> Engine:
    """Return an engine over so many memories that a reader has read by whole words alone."""
    memories = [Memory(f"m_{i}", f"parcel {i} in bay-{i}", scope=scope, created=1.0) for i in range(count)]
    entries = [entry_for(memory, "en") for memory in memories]
    old = [replace(entry, tokens=tuple(entry.memory.text.split()), reader=reader) for entry in entries]
    store.write(Changes(put=old))
    return Engine(store, None, load())


def said(engine: Engine, scope: Scope = GLOBAL) -> list[str]:
    return [notice.message for notice in engine.search("parcel", scope=scope).notices if "-words" in notice.code]


def test_a_write_takes_some_old_words_along_and_answers_say_how_many_are_left() -> None:
    engine = filled(MemoryStore(), 100)
    assert [message.split(",")[0] for message in said(engine)] == [
        "100 of these memories were indexed by an earlier whyrank"
    ]
    engine.add("Robin prefers tea")
    assert engine.maintenance.stale_count() == 100 - 64
    assert "36 of these" in said(engine)[0]
    assert len(engine.search("bay3", syntax="advanced")) == 1  # read anew
    assert len(engine.search("bay70", syntax="advanced")) == 0  # not yet
    engine.add("Suzy drinks coffee")
    assert (engine.maintenance.stale_count(), said(engine)) == (0, [])
    assert len(engine.search("bay70", syntax="advanced")) == 1


def test_nobody_hears_of_old_words_in_what_others_keep() -> None:
    engine = filled(MemoryStore(), 3, scope=USER)
    engine._store.write(Changes(put=[entry_for(Memory("m_new", "a parcel"), "en")]))
    assert said(engine) == []
    assert "3 of these" in said(engine, USER)[0]


def test_words_of_a_later_reader_are_left_alone_and_it_is_said() -> None:
    engine = filled(MemoryStore(), 2, READER_VERSION + 1)
    assert "by a later whyrank than this one" in said(engine)[0]
    assert (engine.maintenance.stale_count(), engine.maintenance.reindex()) == (0, 0)
    assert engine._store.readers(frozenset({GLOBAL})) == {READER_VERSION + 1: 2}


def test_killed_in_the_middle_it_goes_on_where_it_was(tmp_path: Path) -> None:
    place = tmp_path / "memory.db"
    with filled(SqliteStore(place), 300):
        pass
    ended = subprocess.run([sys.executable, "-c", _KILLED, str(place)], check=False, timeout=120)
    assert ended.returncode == -signal.SIGKILL
    with Engine(SqliteStore(place), None, load()) as engine:
        assert engine.maintenance.stale_count() == 300 - 256
        assert "44 of these" in said(engine)[0]
        assert [len(engine.search(f"bay{i}", syntax="advanced")) for i in (0, 255, 256, 299)] == [1, 1, 0, 0]
        steps: list[tuple[int, int]] = []
        assert engine.maintenance.reindex(lambda done, total, label: steps.append((done, total))) == 44
        assert (steps, said(engine)) == ([(44, 44)], [])
        assert [len(engine.search(f"bay{i}", syntax="advanced")) for i in (0, 299)] == [1, 1]


class Contested(MemoryStore):
    """Somebody changes the first memory between reading and writing, so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def read_before(self, reader: int, limit: int) -> list[Memory]:
        found = super().read_before(reader, limit)
        if self.times:
            self.times -= 1
            changed = replace(entry_for(replace(found[0], importance=1 + self.times % 5), "en"), reader=0)
            self.write(Changes(put=[changed]))
        return found


def test_what_changes_meanwhile_is_read_as_it_is_then() -> None:
    engine = filled(Contested(2), 3)
    assert engine.maintenance.reindex() == 3
    assert engine.get("m_0").importance == 1  # the last change, with times at 0
    engine = filled(Contested(100), 3)
    with pytest.raises(StoreChanged, match="keep changing"):
        engine.maintenance.reindex()


class Full(MemoryStore):
    """Takes one memory at a time."""

    def write(self, changes: Changes) -> None:
        if len(changes.put) > 1 and self._entries:
            raise StoreFull("no room", "make some")
        super().write(changes)


def test_a_fact_is_stored_even_if_nothing_can_be_read_anew() -> None:
    engine = filled(Full(), 3)
    memory = engine.add("Robin prefers tea")
    assert engine.get(memory.id).text == "Robin prefers tea"
    assert engine.maintenance.stale_count() == 3
    assert "3 of these" in said(engine)[0]


def test_what_cannot_be_made_out_any_more_keeps_nothing_from_being_read(tmp_path: Path) -> None:
    with filled(SqliteStore(tmp_path / "memory.db"), 5) as engine:
        store = engine._store
        assert isinstance(store, SqliteStore)
        with store._database.writing() as connection:
            connection.execute("UPDATE memories SET tags = '[' WHERE id = 'm_1'")
        assert engine.maintenance.reindex() == 4
        assert [memory.id for memory in store.read_before(READER_VERSION, 9)] == []
        assert store.readers(frozenset({GLOBAL})) == {0: 1, READER_VERSION: 4}


def stretches(store: SqliteStore) -> Sequence[object]:
    return store._read("SELECT readers FROM scopes")


def test_what_is_written_down_stays_as_short_as_what_it_tells(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memory.db")
    with filled(store, 2, 3) as engine:
        assert stretches(store) == [("[[0, 3]]",)]
        entry = entry_for(Memory("m_new", "tea"), "en")
        for reader in (4, 5, 4):
            store.write(Changes(put=[replace(entry, reader=reader)]))
        # m_new has moved behind: numbers 2 (reader 4) and 3 (reader 5) hold nothing any more.
        assert stretches(store) == [("[[0, 3], [4, 4]]",)]
        store.write(Changes(remove=["m_0", "m_1"]))
        store.write(Changes(put=[replace(entry, reader=4)]))
        assert stretches(store) == [("[[0, 4]]",)]
        with store._database.writing() as connection:
            connection.execute("UPDATE scopes SET readers = 'what?', changed = changed + 1")
            connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
        assert store.readers(frozenset({GLOBAL})) == {0: 1}
        assert engine.maintenance.reindex() == 1
        assert stretches(store) == [(f"[[0, {READER_VERSION}]]",)]
