"""Free space on the disk of a store, and a ballast file that is removed so that deletes go through.

A delete writes before it frees anything, so on a full disk it fails like every other write. The ballast is a file of
allocated blocks beside the store; when a delete, or opening the store, meets a full disk, it is removed and the delete
is tried again. It is made again, as large as half of the free space, when the store is opened or written to.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from itertools import chain, count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MEGABYTE = 1024 * 1024
BALLAST_MEGABYTES = 8  # a delete writes some hundred kilobytes; a purge rewrites up to four megabytes of postings
SMALLEST_STORE = MEGABYTE  # a smaller store does not fill a disk, and gets no ballast
FULL_BYTES = MEGABYTE // 4  # with less free space than that, an I/O error counts as a full disk
LOW_BYTES = 64 * MEGABYTE  # with less, `doctor` reports it: a log may grow to that size
_LEAST_BYTES = MEGABYTE // 4  # a smaller ballast would not help


def free_bytes(path: Path) -> int | None:
    """Return the free bytes on the disk that a file is on, or would be; None if they are unknown."""
    try:
        return shutil.disk_usage(path.parent).free
    except OSError:
        return None


def is_full(path: Path) -> bool:
    """Check that the free space on the disk of a file is below FULL_BYTES."""
    free = free_bytes(path)
    return free is not None and free < FULL_BYTES


def unused(path: Path, suffix: str = "") -> Path:
    """Return a path, with a number if it is taken, and a suffix."""
    numbers = chain([""], (f".{number}" for number in count(1)))
    names = (path.with_name(f"{path.name}{number}{suffix}") for number in numbers)
    return next(name for name in names if not name.exists())


class Ballast:
    """A file of allocated blocks beside a store, as large as the store, up to a maximum."""

    def __init__(self, store: Path, most_bytes: int) -> None:
        self._store = store
        self._most_bytes = most_bytes
        self.path = store.with_name(f"{store.name}.ballast")

    @property
    def size(self) -> int:
        """Return the size of the file in bytes, 0 without one."""
        try:
            return self.path.stat(follow_symlinks=False).st_size
        except OSError:
            return 0

    def keep(self) -> None:
        """Create or grow the file within half of the free space; remove it if the maximum is 0."""
        with suppress(OSError):  # best effort: the caller's operation does not depend on it
            size, stored = self.size, self._store.stat().st_size
            wanted = min(self._most_bytes, stored) if stored >= SMALLEST_STORE else 0
            if not self._most_bytes and size:
                self.release()
            free = free_bytes(self._store)
            grown = min(wanted, size + (free or 0) // 2)
            if size < wanted // 2 and grown - size >= _LEAST_BYTES:
                self._allocate(size, grown)

    def _allocate(self, size: int, grown: int) -> None:
        """Grow the file by allocated blocks; a sparse file would free no space."""
        flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        file = os.open(self.path, flags | getattr(os, "O_BINARY", 0), 0o600)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file, size, grown - size)
            else:
                os.lseek(file, size, os.SEEK_SET)
                os.write(file, bytes(grown - size))
        except OSError:
            os.ftruncate(file, size)
            raise
        finally:
            os.close(file)

    def release(self) -> bool:
        """Remove the file; return whether that freed space."""
        size = self.size
        with suppress(OSError):
            self.path.unlink()
            return size > 0
        return False
