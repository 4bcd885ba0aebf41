"""Writer lock: one writer at a time, over all processes that have the file open."""

from __future__ import annotations

import os
import threading
import time
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...formatting import on_one_line
from .disk import unused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows has no flock; filelock is used instead
    HAS_FLOCK = False
else:
    HAS_FLOCK = True
    _OPENED = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    _AT_ONCE = fcntl.LOCK_EX | fcntl.LOCK_NB

# The byte of SQLite's shared memory that every connection to a file in WAL mode holds a lock on (`UNIX_SHM_DMS`).
_SHARED_BY_ALL = 128
_LOOK_SECONDS = 1.0  # between two checks that the file still exists; meanwhile SQLite's own lock protects


class FlockedFile:
    """Lock of a side file by flock, whose file stays open between two writes.

    That takes a microsecond, where opening it each time takes several and filelock a tenth of what storing a fact does.
    The owner must ensure that one thread at a time takes it.
    """

    __slots__ = ("__weakref__", "_file", "_looked", "_path")

    def __init__(self, path: Path | str) -> None:
        self._path = path
        self._file = -1
        self._looked = 0.0
        _OPEN.add(self)

    def take(self, seconds: float) -> None:
        """Take the lock; raise `Timeout` if others hold it for so many seconds."""
        if self._file < 0:
            self._file = os.open(self._path, _OPENED, 0o600)
        try:
            fcntl.flock(self._file, _AT_ONCE)
        except BlockingIOError:
            if seconds <= 0.0:
                raise _timeout(self._path) from None
            self._wait(seconds)
        now = time.monotonic()
        if now > self._looked + _LOOK_SECONDS:
            self._looked = now
            if not os.fstat(self._file).st_nlink:  # it was deleted: others lock another file by its name
                self.close()
                self.take(seconds)

    def _wait(self, seconds: float) -> None:
        """Wait in the system's queue, in an abandonable thread: polling may starve among busy writers.

        The thread has a descriptor of its own to the same lock, which is released when all are closed.
        """
        failed: list[OSError] = []
        file = os.dup(self._file)
        _WAITED_FOR.add(file)
        waiting = threading.Thread(target=_lock, args=(file, failed), name="whyrank-lock", daemon=True)
        waiting.start()
        waiting.join(seconds)
        if failed:
            raise failed[0]
        if waiting.is_alive():
            self.close()
            raise _timeout(self._path)

    def give_back(self) -> None:
        """Release the lock."""
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file, which releases the lock too; the next `take` opens it again."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def __del__(self) -> None:
        self.close()


class FilelockedFile:
    """Lock of a side file by filelock, for systems without flock."""

    __slots__ = ("_lock",)

    def __init__(self, path: Path | str) -> None:
        from filelock import FileLock

        self._lock = FileLock(path)

    def take(self, seconds: float) -> None:
        """Take the lock; raise `Timeout` if others hold it for so many seconds."""
        self._lock.acquire(timeout=seconds)

    def give_back(self) -> None:
        """Release the lock."""
        self._lock.release()

    def close(self) -> None:
        """Release the lock if it is held."""
        self._lock.release(force=True)


def _timeout(path: Path | str) -> Exception:
    from filelock import Timeout  # imported late: needed only after a timeout

    return Timeout(str(path))


def _lock(file: int, failed: list[OSError]) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError as error:
        failed.append(error)
    finally:
        _WAITED_FOR.discard(file)
        os.close(file)


_WAITED_FOR: set[int] = set()  # descriptors of threads that wait
_OPEN: weakref.WeakSet[FlockedFile] = weakref.WeakSet()


def _let_go() -> None:
    """Close the inherited files in a forked child, which would hold their locks after the parent has died."""
    for one in _OPEN:
        one.close()
    for file in _WAITED_FOR:
        os.close(file)
    _WAITED_FOR.clear()


if HAS_FLOCK:
    os.register_at_fork(after_in_child=_let_go)


def side_lock(path: Path | str) -> FlockedFile | FilelockedFile:
    """Return the lock of a side file, not yet acquired."""
    return FlockedFile(path) if HAS_FLOCK else FilelockedFile(path)


@contextmanager
def locked(path: Path | str, seconds: float) -> Iterator[None]:
    """Hold the lock of a side file inside the block; raise `Timeout` after so many seconds."""
    lock = side_lock(path)
    lock.take(seconds)
    try:
        yield
    finally:
        lock.close()


def set_log_aside(path: Path) -> bool:
    """Rename the WAL of a file that is no longer under its name, unless another process has it open.

    SQLite would apply it to the file that takes the name. Return whether it is out of the way.
    """
    log, shared = path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")
    if not HAS_FLOCK:
        return not log.exists()
    file = -1
    try:
        if shared.exists():
            file = os.open(shared, os.O_RDWR | os.O_CLOEXEC)
            fcntl.lockf(file, _AT_ONCE, 1, _SHARED_BY_ALL)
        if log.exists() and log.stat().st_size:
            kept = log.rename(unused(path.with_name(path.name + "-wal.orphaned")))
            import logging  # imported late: seldom needed

            told = "%s was deleted or replaced while it was open; what was only in its log is kept in %s"
            logging.getLogger(__name__).warning(told, on_one_line(str(path)), on_one_line(str(kept)))
        log.unlink(missing_ok=True)
        shared.unlink(missing_ok=True)
    except OSError:
        return False
    finally:
        if file >= 0:
            os.close(file)
    return True
