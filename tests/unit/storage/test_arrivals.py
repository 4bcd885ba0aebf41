"""A new fact is one row that waits; whoever comes next indexes it, and who cannot says what is missing."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import whyrank
from tests.processes import started
from whyrank import config
from whyrank.engine import Engine
from whyrank.ingest.entries import entry_for
from whyrank.ports import Arrival, Changes, sorting_key
from whyrank.storage.sqlite import arrivals
from whyrank.storage.sqlite import database as databases
from whyrank.storage.sqlite.arrivals import BATCH
from whyrank.storage.sqlite.connection import BUSY_MILLISECONDS, connect
from whyrank.storage.sqlite.locking import locked
from whyrank.storage.sqlite.store import SqliteStore
from whyrank.testing.embedder import WordDirections
from whyrank.types import GLOBAL, Memory, Order, Scope, Where

EVERYTHING = Where(frozenset({GLOBAL}))
SECRET = "Xyzzyplugh drinks quinoa lemonade"


def counted(path: Path, table: str = "arrivals") -> int:
    """Count rows as they stand in the file."""
    # By the same library: another one in this process would give up the locks of the first.
    other = connect(path)
    found: int = other.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    other.close()
    return found


def arrival(number: int, scope: Scope = GLOBAL) -> Arrival:
    return Arrival(Memory(f"m_{number}", f"tea number {number}", scope=scope, created=1.0, date=1.0), "en")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


def opened(path: Path) -> Engine:
    return whyrank.open(path, workspace=path.parent, embedding="none")


def unwritable(path: Path) -> SqliteStore:
    """Return a store as a process has it that may not write."""
    store = SqliteStore(path)
    store._database.read_only = True
    return store


def test_a_new_fact_is_one_row_until_somebody_reads(path: Path) -> None:
    with opened(path) as engine:
        fact = engine.add("Robin prefers tea")
        assert (counted(path), counted(path, "memories")) == (1, 0)
        assert engine.search("tea")[0].id == fact.id
        assert (counted(path), counted(path, "memories")) == (0, 1)


def test_a_fact_with_a_vector_waits_with_it(path: Path) -> None:
    with whyrank.open(path, workspace=path.parent) as engine:
        engine.add("the first of a space is written whole")
        fact = engine.add("Robin prefers tea")
        assert (counted(path), counted(path, "vectors")) == (1, 1)
        assert engine.status().without_vector == 0
        assert engine.search("what does Robin drink", recipe="vector")[0].id == fact.id


def test_a_full_batch_indexes_itself(path: Path) -> None:
    store = SqliteStore(path)
    for number in range(BATCH - 1):
        assert store.take_in(arrival(number))
    assert counted(path) == BATCH - 1
    assert store.take_in(arrival(BATCH))
    assert (counted(path), counted(path, "memories")) == (0, BATCH)
    assert store.take_in(arrival(BATCH + 1))
    assert counted(path) == 1
    store.close()


def test_a_store_that_is_closed_leaves_nothing_waiting(path: Path) -> None:
    store = SqliteStore(path)
    store.take_in(arrival(1))
    store.close()
    assert (counted(path), counted(path, "memories")) == (0, 1)
    store.close()


def test_every_other_write_finds_it_indexed(path: Path) -> None:
    store = SqliteStore(path)
    for change in (Changes(remove=["m_1"]), Changes(clear=[GLOBAL]), Changes(remove=["m_1"], purge=True)):
        store.take_in(arrival(1))
        store.write(change)
        assert counted(path) == counted(path, "memories") == 0
    store.take_in(arrival(1))
    store.settle([GLOBAL])
    assert (counted(path), counted(path, "memories")) == (0, 1)
    store.take_in(arrival(2))
    store.drop_space("testing")
    assert (counted(path), counted(path, "memories")) == (0, 2)
    store.close()


def test_notes_are_read_and_written_without_it(path: Path) -> None:
    store = SqliteStore(path)
    store.take_in(arrival(1))
    store.put_note("a", "b")
    assert (store.note("a"), store.failures("x"), store.dimensions("x")) == ("b", [], None)
    assert counted(path) == 1
    store.close()


@pytest.mark.parametrize(("old", "new"), [("postings", "fts5"), ("fts5", "postings")])
def test_an_index_that_takes_over_has_it(path: Path, old: str, new: str) -> None:
    store = SqliteStore(path, old)
    store.take_in(arrival(1))
    store._database.close()  # as one who is killed
    store = SqliteStore(path, new)
    assert list(store.keyword(["tea"], EVERYTHING, 5).ids) == ["m_1"]
    assert list(store._read("SELECT count(*) FROM arrivals")) == [(0,)]
    store.close()


def test_what_is_kept_in_memory_of_the_time_before_does_not_answer(path: Path) -> None:
    one, other = SqliteStore(path), SqliteStore(path)
    for number in range(5):
        assert one.take_in(arrival(number))
        assert len(other.keyword(["tea"], EVERYTHING, 10).ids) == number + 1
        assert len(one.keyword(["tea"], EVERYTHING, 10).ids) == number + 1
    one.close()
    other.close()


def test_who_may_not_write_answers_from_what_is_indexed_and_says_so(path: Path) -> None:
    writer = SqliteStore(path)
    writer.take_in(arrival(1))
    assert len(writer.keyword(["tea"], EVERYTHING, 5).ids) == 1
    writer.take_in(arrival(2))
    reader = unwritable(path)
    for run in (reader.keyword(["tea"], EVERYTHING, 5), reader.keyword(["tea"], EVERYTHING, 5, "and")):
        assert list(run.ids) == ["m_1"]
        [notice] = run.notices
        assert notice.code == "not-indexed-yet"
        assert notice.message.startswith("1 fact is stored but not indexed yet")
    assert set(reader.get(["m_1", "m_2", "m_3"], EVERYTHING.scopes)) == {"m_1", "m_2"}
    assert reader.get(["m_2"], frozenset({Scope("user", "1")})) == {}
    assert counted(path) == 1
    writer.get([], EVERYTHING.scopes)
    assert reader.keyword(["tea"], EVERYTHING, 5).notices == ()
    reader.close()
    writer.close()


def test_lists_and_counts_are_the_same_before_and_after_indexing(path: Path) -> None:
    writer = SqliteStore(path)
    for number in (5, 1, 4):
        writer.take_in(arrival(number))
    writer.get([], EVERYTHING.scopes)
    late = [replace(arrival(number).memory, created=float(number), importance=number) for number in (2, 5, 3)]
    late = [replace(memory, id=f"m_late{memory.importance}", text=f"late {memory.importance}") for memory in late]
    gone = replace(arrival(7).memory, expires=5.0)
    for memory in (*late, gone, arrival(8, Scope("user", "2")).memory):
        assert writer.take_in(Arrival(memory, "en"))
    reader, where = unwritable(path), replace(EVERYTHING, now=9.0)
    orders: tuple[Order, ...] = ("place", "created", "date", "importance", "recalls")
    places = [None, *(sorting_key(memory, "importance") for memory in late)]
    pages = [(limit, offset) for limit in (0, 1, 2, 9) for offset in (0, 1, 4, 9)]
    weighty = replace(where, min_importance=4)

    def told() -> list[object]:
        status = reader.status("", EVERYTHING.scopes)
        return [
            *(reader.browse(one, *page, order) for one in (where, weighty) for page in pages for order in orders),
            *(reader.browse(where, *page, "importance", place) for page in pages for place in places),
            list(reader.each(where)), list(reader.each(replace(where, include_expired=True))),
            status.memories, status.scopes, reader.status("").scopes,
        ]  # fmt: skip

    waiting = told()
    assert counted(path) == 5
    writer.get([], EVERYTHING.scopes)
    assert counted(path) == 0
    assert told() == waiting
    assert reader.status("", EVERYTHING.scopes).memories == 7
    assert len(reader.browse(where, 9)) == 6
    reader.close()
    writer.close()


def _counted_on(counter: Iterator[int]) -> int:
    return 0 * next(counter)  # anything else would stop the statement


def test_what_a_change_costs_does_not_grow_with_the_store(path: Path) -> None:
    store = SqliteStore(path)
    steps: list[int] = []
    for many in (100, 2_000):
        memories = [Memory(f"m_{many}_{number}", f"tea number {number}") for number in range(many)]
        store.write(Changes(put=[entry_for(memory, "en") for memory in memories]))
        counter = itertools.count()
        connection = store._database._write_connection()
        connection.set_progress_handler(partial(_counted_on, counter), 1)  # asked at every step
        store.write(Changes(revised=[replace(memories[7], importance=5)], basis={memories[7].id: memories[7]}))
        connection.set_progress_handler(None, 1)
        steps.append(next(counter))
    assert steps[0] > 100
    assert steps[1] < 1.2 * steps[0]
    store.close()


def test_vectors_that_wait_are_counted_in_their_space(path: Path) -> None:
    embedder = WordDirections()
    with Engine(SqliteStore(path), embedder, config.load({"calibration": "manual"}, workspace=path.parent)) as engine:
        for text in ("green tea", "black tea", "oat milk"):
            engine.add(text)
        assert counted(path) == 2  # the first of a space is written whole
        reader = unwritable(path)
        waiting = [reader.status(space) for space in (embedder.fingerprint, "another")]
        assert [(one.spaces, one.without_vector) for one in waiting] == [
            ({embedder.fingerprint: 3}, 0),
            ({embedder.fingerprint: 3}, 3),
        ]
        engine.status()
        assert [reader.status(space) for space in (embedder.fingerprint, "another")] == [
            replace(one, bytes=reader.status("").bytes) for one in waiting
        ]
        reader.close()


def test_nobody_hears_of_what_others_have_waiting(path: Path) -> None:
    writer = SqliteStore(path)
    writer.take_in(arrival(1, Scope("user", "2")))
    reader = unwritable(path)
    assert reader.keyword(["tea"], EVERYTHING, 5).notices == ()
    reader.close()
    writer.close()


def test_the_notice_is_in_the_answer_once(path: Path) -> None:
    with opened(path) as engine:
        engine.add("Robin prefers tea")
        assert isinstance(engine._store, SqliteStore)
        engine._store._database.read_only = True
        notices = [notice.code for notice in engine.search("Robin tea").notices]
        assert notices == ["not-indexed-yet"]  # once, and not that nothing is stored
        engine._store._database.read_only = False
        assert "not-indexed-yet" not in [notice.code for notice in engine.search("Robin tea").notices]


def test_a_reader_does_not_wait_for_a_writer_who_takes_long(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "INDEXING_SECONDS", 2.0)
    monkeypatch.setattr(databases, "PAUSE_SECONDS", 60.0)
    store = SqliteStore(path)
    store.take_in(arrival(1))
    with locked(Path(f"{path}.lock"), 1.0):
        begun = time.monotonic()
        assert [notice.code for notice in store.keyword(["tea"], EVERYTHING, 5).notices] == ["not-indexed-yet"]
        waited = time.monotonic()
        assert store.keyword(["tea"], EVERYTHING, 5).notices  # at once: it was locked a moment ago
        assert time.monotonic() - waited < waited - begun
    monkeypatch.setattr(store._database, "_busy_until", time.monotonic())
    assert store.keyword(["tea"], EVERYTHING, 5).ids == ["m_1"]
    store.close()


def test_a_stranger_who_holds_the_file_keeps_no_reader_waiting(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "INDEXING_SECONDS", 0.05)
    monkeypatch.setattr(databases, "PAUSE_SECONDS", 0.0)
    store = SqliteStore(path)
    store.take_in(arrival(1))
    stranger = connect(path, isolation_level=None)
    stranger.execute("BEGIN IMMEDIATE")
    assert [notice.code for notice in store.keyword(["tea"], EVERYTHING, 5).notices] == ["not-indexed-yet"]
    stranger.execute("ROLLBACK")
    stranger.close()
    assert list(store.keyword(["tea"], EVERYTHING, 5).ids) == ["m_1"]
    with store._database.writing() as connection:  # and writers are as patient, and as careful, as before
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (BUSY_MILLISECONDS,)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    store.close()


@pytest.mark.parametrize(
    "damage", ["rest = '{'", "rest = '[1]'", "rest = '7'", """rest = '{"name": 5}'""", "text = x'ff'"]
)
def test_a_row_that_cannot_be_read_is_set_aside_and_keeps_nobody_from_the_others(path: Path, damage: str) -> None:
    store = SqliteStore(path)
    store.take_in(arrival(1))
    store.take_in(arrival(2))
    with store._database.writing() as connection:
        connection.execute(f"UPDATE arrivals SET {damage} WHERE id = 'm_1'")
    for _ in range(2):  # when it is met, and from then on
        run = store.keyword(["tea"], EVERYTHING, 5)
        assert list(run.ids) == ["m_2"]
        assert [notice.code for notice in run.notices] == ["facts-damaged"]
    assert store.take_in(arrival(3))
    assert list(store.keyword(["tea"], EVERYTHING, 5).ids) == ["m_2", "m_3"]
    store.write(Changes(remove=["m_1"]))
    assert store.keyword(["tea"], EVERYTHING, 5).notices == ()
    assert counted(path) == 0
    store.close()


def test_a_list_says_what_it_cannot_show_before_and_after_that_was_set_aside(path: Path) -> None:
    with opened(path) as engine:
        for text in ("tea is green", "coffee is black"):
            engine.add(text)
        other = connect(path)
        assert other.execute("UPDATE arrivals SET rest = '{' WHERE text LIKE 'tea%'").rowcount == 1
        other.commit()
        other.close()
        assert isinstance(engine._store, SqliteStore)
        engine._store._database.read_only = True  # so that it waits, and is met by lists alone
        for _ in range(2):
            assert [one.text for one in engine.list()] == ["coffee is black"]
            [notice] = engine.unlisted()
            assert (notice.code, notice.message[:33]) == ("facts-damaged", "1 fact cannot be read any more, b")
            assert engine.unlisted(scope="user:1") == (notice,)  # it is global
            engine._store._database.read_only = False


@pytest.mark.parametrize("vector", [b"abc", b"", bytes(12), np.ones(3, "<f4").tobytes()])
def test_a_vector_that_does_not_fit_any_more_is_made_again(path: Path, vector: bytes) -> None:
    with whyrank.open(path, workspace=path.parent, calibration="manual") as engine:
        engine.add("the first of a space is written whole")
        engine.add("tea is green")
        other = connect(path)
        assert other.execute("UPDATE arrivals SET vector = ?", (vector,)).rowcount == 1
        other.commit()
        other.close()
        assert engine.search("tea")[0].memory.text == "tea is green"
        assert engine.backlog().waiting == 1


def test_what_waits_is_not_stored_twice_by_who_cannot_index_it_yet(path: Path) -> None:
    with whyrank.open(path, workspace=path.parent, calibration="manual") as engine:
        engine.add("the first of a space is written whole")
        fact = engine.add("tea is green")
        with locked(f"{path}.lock", 5):
            assert [notice.code for notice in engine.search("tea").notices].count("not-indexed-yet") == 1
        assert engine.add("Tea is  GREEN") == fact
        engine.add("coffee is black", supersedes="tea is green")
        assert engine.get(fact.id).superseded_by is not None


def test_who_could_not_look_at_what_waits_says_so_when_a_fact_is_remembered(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "PAUSE_SECONDS", 60.0)
    with whyrank.open(path, workspace=path.parent, calibration="manual") as engine:
        engine.add("the first of a space is written whole")
        engine.add("tea is green")
        with locked(f"{path}.lock", 5):
            engine.search("tea")  # in vain, so that no reader tries again for a while
        done = engine.remember("tea is really green")
        assert (done.outcome, [notice.code for notice in done.notices]) == ("stored", ["not-indexed-yet"])
        assert engine.remember("tea is quite green").notices == ()


def test_what_waits_is_counted_when_a_scope_is_forgotten(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "PAUSE_SECONDS", 60.0)
    with whyrank.open(path, workspace=path.parent, calibration="manual") as engine:
        engine.add("the first of a space is written whole", scope="user:1")
        engine.add("tea is green", scope="user:1")
        with locked(f"{path}.lock", 5):
            engine.search("tea", scope="user:1")  # in vain, so that no reader tries again for a while
        assert engine.forget_scope("user:1").memories == 2
        assert engine.list(scope="user:1") == []


def test_a_duplicate_is_not_embedded_where_that_takes_time(path: Path) -> None:
    asked: list[str] = []

    class Slow(WordDirections):
        def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
            asked.extend(texts)
            time.sleep(0.002)
            return super().documents(texts)

    with Engine(SqliteStore(path), Slow(), config.load({"calibration": "manual"}, workspace=path.parent)) as engine:
        for _ in range(3):
            engine.add("the first of a space is written whole")
            engine.add("tea is green")
        assert sorted(asked) == ["tea is green", "the first of a space is written whole"]


def test_who_adds_keeps_house_after_readers_that_index(path: Path) -> None:
    with whyrank.open(path, workspace=path.parent, calibration="manual", embedding="none") as engine:
        for number in range(700):
            engine.add(f"tea number {number}")
            if number % 10 == 0:
                engine.search("tea")
        assert counted(path, "posting_segments") <= 6  # of sixty-four each there would be eleven


def test_a_fact_that_comes_after_one_was_set_aside_is_found_and_counted(path: Path) -> None:
    store = SqliteStore(path)
    store.take_in(arrival(1))
    store._database.run("UPDATE arrivals SET rest = 'no JSON'", ())
    with store.reading():
        assert (store._database.is_behind, store._database.has_lost) == (False, True)
    for number in (2, 3):
        assert store.take_in(arrival(number))
        assert store.status("").memories == number - 1
    assert sorted(store.keyword(["tea"], EVERYTHING, 5).ids) == ["m_2", "m_3"]
    store.close()


def test_a_fact_is_found_also_where_the_first_of_those_set_aside_is_gone(path: Path) -> None:
    store = SqliteStore(path)
    for number in (1, 2):
        store.take_in(arrival(number))
    store._database.run("UPDATE arrivals SET rest = 'no JSON'", ())
    with store.reading():
        assert store._database.has_lost
    store.write(Changes(remove=["m_1"]))  # what is left has the number -2, and the one after it is taken for set aside
    assert store.take_in(arrival(3))
    assert list(store.keyword(["tea"], EVERYTHING, 5).ids) == ["m_3"]
    store.close()


def test_what_another_version_has_stored_meanwhile_is_not_stored_twice(path: Path) -> None:
    store = SqliteStore(path)
    store.take_in(arrival(1))
    store.get([], EVERYTHING.scopes)
    arrivals.put(store._database, arrival(2))
    store._database.run("UPDATE arrivals SET id = 'm_1'", ())
    assert list(store.keyword(["tea"], EVERYTHING, 5).ids) == ["m_1"]
    assert counted(path) == 0
    store.close()


def test_a_fact_purged_while_it_waits_leaves_no_byte(path: Path) -> None:
    with whyrank.open(path, workspace=path.parent, calibration="manual") as engine:
        engine.add("the first of a space is written whole")
        fact = engine.add(SECRET)
        assert counted(path) == 1
        assert SECRET.encode() in b"".join(file.read_bytes() for file in path.parent.glob("memory.db*"))
        engine.forget(fact.id, purge=True)
    assert b"xyzzyplugh" not in b"".join(file.read_bytes().lower() for file in path.parent.glob("memory.db*"))


def test_a_key_is_kept_with_a_fact_that_waits(path: Path) -> None:
    with opened(path) as engine:
        fact = engine.add("Robin prefers tea", key="k")
        assert counted(path) == 1
        assert engine.add("Robin prefers tea", key="k") == fact
        with pytest.raises(whyrank.errors.Conflict, match="used for another write"):
            engine.add("Robin prefers milk", key="k")


ADD = """
import sys, whyrank
engine = whyrank.open(sys.argv[1], workspace=sys.argv[2], embedding="none")
for line in sys.stdin:
    print(engine.add(line.strip()).id, flush=True)
"""


def test_another_process_finds_it_at_once(path: Path) -> None:
    command = [sys.executable, "-c", ADD, str(path), str(path.parent)]
    with (
        opened(path) as engine,
        started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer,
    ):
        assert writer.stdin is not None
        assert writer.stdout is not None
        for number in range(5):
            writer.stdin.write(f"Robin prefers tea number{number}\n")
            writer.stdin.flush()
            identity = writer.stdout.readline().strip()
            assert counted(path) == 1
            assert engine.search(f"number{number}")[0].id == identity
        writer.stdin.write("Robin prefers milk\n")
        writer.stdin.flush()
        identity = writer.stdout.readline().strip()
        writer.kill()
        writer.wait()
        assert counted(path) == 1
        assert engine.add("robin  prefers MILK").id == identity  # it waits, and is known all the same
