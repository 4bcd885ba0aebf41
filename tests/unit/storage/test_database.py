"""A store survives a fork, and notices that its file is no longer the one under its name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import whyrank
from tests.processes import started
from whyrank.errors import StoreUnavailable
from whyrank.storage.sqlite import database as databases
from whyrank.storage.sqlite.database import Database, connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from whyrank.engine.engine import Engine

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
SECONDS = 20.0  # that a child may take


def opened(path: Path) -> Engine:
    return whyrank.open(path, workspace=path.parent, embedding="none", calibration="manual")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def engine(path: Path) -> Iterator[Engine]:
    with opened(path) as engine:
        yield engine


def forked(work: Callable[[], None]) -> int:
    """Run something in a child that has no part in the tests; return its process."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    finally:
        os._exit(status)


def ended_well(child: int) -> bool:
    """Wait for a child, not for ever."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return False


def add(engine: Engine, text: str) -> None:
    engine.add(text)


def forget(engine: Engine, identity: str) -> None:
    engine.forget(identity, purge=True)


def texts(path: Path) -> set[str]:
    with opened(path) as engine:
        return {memory.text for memory in engine.list(limit=10_000)}


@needs_fork
def test_what_a_child_stores_is_kept_though_the_parent_closes_first(path: Path) -> None:
    parent = opened(path)
    parent.add("before the fork")
    read, write = os.pipe()

    def work() -> None:
        with opened(path) as own:
            own.add("first of the child")
            os.read(read, 1)  # until the parent has closed
            for number in range(3):
                own.add(f"number {number} of the child")

    child = forked(work)
    parent.close()
    os.write(write, b".")
    assert ended_well(child)
    assert len(texts(path)) == 5
    with opened(path) as engine:
        assert engine.doctor().is_sound


@needs_fork
def test_an_engine_goes_on_in_parent_and_child(path: Path, engine: Engine) -> None:
    engine.add("before the fork")

    def work() -> None:
        assert [hit.memory.text for hit in engine.search("fork")] == ["before the fork"]
        engine.add("of the child")

    child = forked(work)
    engine.add("of the parent")
    assert ended_well(child)
    assert texts(path) == {"before the fork", "of the child", "of the parent"}
    assert {hit.memory.text for hit in engine.search("parent child")} == {"of the child", "of the parent"}


@needs_fork
def test_a_child_forked_while_a_thread_writes_and_another_reads_hangs_nowhere(path: Path, engine: Engine) -> None:
    stop, stored = threading.Event(), list[str]()

    def write() -> None:
        while not stop.is_set():
            stored.append(engine.add(f"written {len(stored)}").text)

    def read() -> None:
        while not stop.is_set():
            engine.search("written")

    threads = [threading.Thread(target=work) for work in (write, read)]
    for thread in threads:
        thread.start()
    children = [forked(partial(add, engine, f"of child {number}")) for number in range(8)]
    assert all(map(ended_well, children))
    stop.set()
    for thread in threads:
        thread.join()
    assert texts(path) == {*stored, *(f"of child {number}" for number in range(8))}


@needs_fork
def test_a_thread_that_waits_for_the_lock_keeps_nobody_from_forking(path: Path, engine: Engine) -> None:
    engine.add("before the fork")
    with closing(Database(path)) as other, other.alone():
        waiting = threading.Thread(target=lambda: engine.add("when the lock is free"))
        waiting.start()
        time.sleep(0.05)
        began = time.monotonic()
        child = forked(lambda: None)
        assert ended_well(child)
        assert time.monotonic() - began < databases.LOCK_SECONDS / 2
    waiting.join()
    assert texts(path) == {"before the fork", "when the lock is free"}


@needs_fork
def test_a_process_forked_in_the_middle_of_a_search_uses_no_store(path: Path, engine: Engine) -> None:
    engine.add("before the fork")

    def work() -> None:
        with pytest.raises(StoreUnavailable, match="forked during a search"):
            engine.add("lost")
        with pytest.raises(StoreUnavailable, match="forked during a search"):
            opened(path)

    with engine._store.reading():
        child = forked(work)
        assert ended_well(child)
    assert texts(path) == {"before the fork"}
    engine.add("after the fork")
    assert engine.search("after")


def replaced(path: Path, tmp_path: Path) -> None:
    """Put another store under the name of one that is open, as `mv` does."""
    other = tmp_path / "other" / "memory.db"
    other.parent.mkdir()
    with opened(other) as engine:
        engine.add("of the other file")
    os.replace(other, path)


def test_nothing_is_stored_into_a_file_that_was_deleted(path: Path, engine: Engine) -> None:
    engine.add("kept with its file")
    path.unlink()
    for use in (lambda: engine.add("lost"), lambda: engine.search("kept"), engine.status):
        with pytest.raises(StoreUnavailable, match="was deleted while it was open"):
            use()
    assert not path.exists()


def test_nothing_is_stored_into_a_file_that_was_replaced(path: Path, engine: Engine, tmp_path: Path) -> None:
    engine.add("of the first file")
    replaced(path, tmp_path)
    for use in (lambda: engine.add("lost"), lambda: engine.search("kept"), engine.status):
        with pytest.raises(StoreUnavailable, match="was replaced by another file"):
            use()
    engine.close()
    assert texts(path) == {"of the other file"}


def test_a_file_that_is_replaced_in_the_middle_of_a_write_acknowledges_nothing(path: Path, tmp_path: Path) -> None:
    opened(path).close()

    def replaced_meanwhile(database: Database) -> None:
        with database.writing() as connection:
            connection.execute("INSERT INTO meta VALUES ('note:a', 'b')")
            replaced(path, tmp_path)

    with closing(Database(path)) as database, pytest.raises(StoreUnavailable, match="was replaced"):
        replaced_meanwhile(database)


@needs_fork
def test_a_fork_waits_for_a_search_of_a_store_that_is_being_closed(path: Path, engine: Engine) -> None:
    engine.add("before the fork")
    inside, leave = threading.Event(), threading.Event()

    def search() -> None:
        with engine._store.reading():
            inside.set()
            leave.wait(SECONDS)

    searching, closing_it = threading.Thread(target=search), threading.Thread(target=engine.close)
    searching.start()
    inside.wait(SECONDS)
    closing_it.start()
    threading.Timer(0.3, leave.set).start()
    assert ended_well(forked(lambda: opened(path).close()))
    searching.join()
    closing_it.join()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="nobody lists descriptors here")
def test_purged_stores_leave_no_descriptors(tmp_path: Path) -> None:
    def purged(number: int) -> None:
        with opened(tmp_path / f"{number}.db") as engine:
            engine.forget(engine.add("secret").id, purge=True)

    purged(0)
    before = len(os.listdir("/proc/self/fd"))
    for number in range(1, 6):
        purged(number)
    assert len(os.listdir("/proc/self/fd")) == before


@needs_fork
def test_parent_and_child_purge_after_a_fork(path: Path, engine: Engine) -> None:
    facts = [engine.add(f"secret number {number}") for number in range(3)]
    engine.forget(facts[0].id, purge=True)
    child = forked(partial(forget, engine, facts[1].id))
    engine.forget(facts[2].id, purge=True)
    assert ended_well(child)
    assert engine.doctor(deep=True).is_sound
    assert engine.list() == []


def test_the_log_of_a_file_that_was_replaced_is_not_applied_to_the_new_one(
    path: Path, engine: Engine, tmp_path: Path
) -> None:
    engine.add("of the first file")  # only in the log yet
    assert path.with_name(path.name + "-wal").stat().st_size
    replaced(path, tmp_path)
    engine.close()
    assert path.with_name(path.name + "-wal.orphaned").stat().st_size
    assert texts(path) == {"of the other file"}
    with opened(path) as again:
        assert again.doctor().is_sound


def test_the_log_stays_while_somebody_has_it_open(path: Path, engine: Engine, tmp_path: Path) -> None:
    other = opened(path)
    engine.add("of the first file")
    other.search("first")
    replaced(path, tmp_path)
    engine.close()
    # Locks are a process's own here, so the second engine of this one is not seen: what counts is that nothing is lost.
    log = [file for file in path.parent.glob("memory.db-wal*") if file.stat().st_size]
    assert log
    other.close()


HOLDER = """
import sys, whyrank
engine = whyrank.open(sys.argv[1], embedding="none", calibration="manual")
engine.add("of the first file")
print("open", flush=True)
sys.stdin.readline()
"""


def test_no_store_is_made_in_place_of_a_deleted_one_that_another_process_has_open(path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(path)]
    with started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        path.unlink()
        with pytest.raises(StoreUnavailable, match="another process still has it open"):
            opened(path)
        assert not path.exists()
        assert path.with_name(path.name + "-wal").stat().st_size
    with opened(path) as engine:
        engine.add("of the second file")
    assert texts(path) == {"of the second file"}
    assert path.with_name(path.name + "-wal.orphaned").stat().st_size


def test_a_store_that_was_moved_away_with_its_log_is_whole(path: Path, engine: Engine, tmp_path: Path) -> None:
    engine.add("moved along")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("memory.db", "memory.db-wal"):
        shutil.move(tmp_path / name, elsewhere / name)
    engine.close()
    with closing(connect(elsewhere / "memory.db")) as stranger:
        assert stranger.execute("SELECT text FROM memories").fetchall() == [("moved along",)]
