"""The lock in front of writers: one at a time, over all processes that have the file open."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from filelock import FileLock, Timeout

try:
    import fcntl
except ImportError:  # Windows has no flock; filelock knows its ways
    HAS_FLOCK = False
else:
    HAS_FLOCK = True
    _OPENED = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    _AT_ONCE = fcntl.LOCK_EX | fcntl.LOCK_NB

_POLL_SECONDS = 0.01


@contextmanager
def locked(path: Path | str, seconds: float) -> Iterator[None]:
    """Hold the lock of a side file inside the block; raise `Timeout` if others hold it for so many seconds."""
    give_back = take(path, seconds)
    try:
        yield
    finally:
        give_back()


def _file_locked(path: Path | str, seconds: float) -> Callable[[], None]:
    lock = FileLock(path, timeout=seconds)
    lock.acquire()
    return lock.release


def _flocked(path: Path | str, seconds: float) -> Callable[[], None]:
    """Ask the system itself: that takes microseconds, where filelock takes a tenth of what storing a fact does.

    The file is opened each time, so that a process forked between two writes does not hold the lock with us.
    """
    file = os.open(path, _OPENED, 0o644)
    try:
        fcntl.flock(file, _AT_ONCE)
    except BlockingIOError:
        try:
            _wait(file, path, time.monotonic() + seconds)
        except BaseException:
            os.close(file)
            raise
    except BaseException:
        os.close(file)
        raise
    return partial(os.close, file)  # which gives the lock back


def _wait(file: int, path: Path | str, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(file, _AT_ONCE)
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                raise Timeout(str(path)) from error
            time.sleep(_POLL_SECONDS)
        else:
            return


# Takes the lock of a side file, and returns what gives it back; `Timeout` if others hold it for so many seconds.
take: Callable[[Path | str, float], Callable[[], None]] = _flocked if HAS_FLOCK else _file_locked
