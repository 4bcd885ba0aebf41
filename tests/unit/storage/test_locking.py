"""The lock in front of writers keeps others out, for a while, and not what was forked before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from filelock import Timeout

from tests.processes import started
from whyrank.storage.sqlite import locking
from whyrank.storage.sqlite.locking import locked

HOLDER = """
import sys
from pathlib import Path
from whyrank.storage.sqlite.locking import locked
with locked(Path(sys.argv[1]), 1.0):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("has_flock", [True, False])
def test_another_process_is_waited_for_and_then_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_flock: bool
) -> None:
    monkeypatch.setattr(locking, "HAS_FLOCK", has_flock)
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
