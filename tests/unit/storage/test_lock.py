"""The lock in front of writers keeps others out, for a while, and not what was forked before."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import pytest
from filelock import Timeout

from tests.processes import started
from whyrank.storage.sqlite import lock as lock_module
from whyrank.storage.sqlite.database import Database, connect
from whyrank.storage.sqlite.lock import locked, side_lock
from whyrank.storage.store import SqliteStore

if TYPE_CHECKING:
    from pathlib import Path

HOLDER = """
import sys
from pathlib import Path
from whyrank.storage.sqlite.lock import locked
with locked(Path(sys.argv[1]), 1.0):
    print("held", flush=True)
    sys.stdin.readline()
"""

# Takes the lock once, forks a child that waits, and takes it again.
FORKING = """
import os, sys
from whyrank.storage.sqlite.lock import side_lock
lock = side_lock(sys.argv[1])
lock.take(1.0)
lock.give_back()
if os.fork():
    lock.take(1.0)
    print("held", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("has_flock", [True, False])
def test_another_process_is_waited_for_and_then_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_flock: bool
) -> None:
    monkeypatch.setattr(lock_module, "HAS_FLOCK", has_flock)
    path = tmp_path / "memory.db.lock"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(Timeout, match=r"memory\.db\.lock"), locked(path, 0.05):
            pass
        holder.kill()
    with locked(path, 5.0):  # the system gives the lock of the dead back
        pass


def test_two_in_one_process_exclude_each_other(tmp_path: Path) -> None:
    path = tmp_path / "memory.db.lock"
    with locked(path, 1.0), pytest.raises(Timeout), locked(path, 0.0):
        pass


def test_a_lock_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), locked(tmp_path / "nowhere" / "memory.db.lock", 1.0):
        pass


def test_a_lock_given_back_is_free_while_its_file_stays_open(tmp_path: Path) -> None:
    path = tmp_path / "memory.db.lock"
    lock = side_lock(path)
    for _ in range(2):
        lock.take(1.0)
        with pytest.raises(Timeout), locked(path, 0.0):
            pass
        lock.give_back()
        with locked(path, 0.0):
            pass
    lock.close()


@pytest.mark.skipif(not lock_module.HAS_FLOCK, reason="filelock opens the file each time")
def test_a_file_that_was_deleted_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_module, "_LOOK_SECONDS", 0.0)
    path = tmp_path / "memory.db.lock"
    lock = side_lock(path)
    lock.take(1.0)
    lock.give_back()
    path.unlink()
    lock.take(1.0)
    with pytest.raises(Timeout), locked(path, 0.0):
        pass
    lock.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
def test_a_child_that_was_forked_does_not_hold_the_lock_of_a_parent_that_died(tmp_path: Path) -> None:
    path = tmp_path / "memory.db.lock"
    with started([sys.executable, "-c", FORKING, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "held\n"
        with pytest.raises(Timeout), locked(path, 0.0):
            pass
        parent.kill()
        with locked(path, 5.0):  # the child lives on until its input ends
            pass


class Interrupted(BaseException):
    """What a signal may raise between any two steps."""


def test_what_is_written_after_an_interrupt_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    SqliteStore(path).close()
    database = Database(path)
    with database.alone() as connection:
        connection.execute("CREATE TABLE words (word TEXT)")
    with suppress(Interrupted), database.alone() as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO words VALUES ('interrupted')")
        raise Interrupted
    with database.writing() as connection:
        connection.execute("INSERT INTO words VALUES ('kept')")
    database.close()
    with closing(connect(path)) as stranger:
        assert stranger.execute("SELECT word FROM words").fetchall() == [("kept",)]


# Takes the lock and gives it back again and again, with a pause in between that is a tenth of the time it holds it.
GREEDY = """
import sys, time
from pathlib import Path
from whyrank.storage.sqlite.lock import side_lock
lock, rounds = side_lock(Path(sys.argv[1])), open(sys.argv[2], "ab", buffering=0)
print("begun", flush=True)
while True:
    lock.take(30.0)
    rounds.write(b".")
    time.sleep(0.002)
    lock.give_back()
    time.sleep(0.0002)
"""


@pytest.mark.skipif(not lock_module.HAS_FLOCK, reason="filelock polls")
def test_a_writer_waits_for_one_turn_of_a_greedy_one_not_for_hundreds(tmp_path: Path) -> None:
    path, rounds = tmp_path / "lock", tmp_path / "rounds"
    with started([sys.executable, "-c", GREEDY, str(path), str(rounds)], stdout=subprocess.PIPE) as greedy:
        assert greedy.stdout is not None
        greedy.stdout.readline()
        lock, waited = side_lock(path), 0
        for _ in range(20):
            began = rounds.stat().st_size
            while (before := rounds.stat().st_size) < began + 2:  # until the greedy one has it again
                time.sleep(0.001)
            lock.take(30.0)
            waited += rounds.stat().st_size - before
            lock.give_back()
        lock.close()
    assert waited <= 20 * 3
