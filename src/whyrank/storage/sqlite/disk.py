"""Room on the disk of a store: how much is left, and a ballast that is given up so that deletes go through.

A delete writes before it frees anything, so on a full disk it fails like every other write. The ballast is a file of
allocated blocks beside the store; when a delete, or opening the store, meets a full disk, it is removed and the delete
is tried again. It is made again, as large as half of the room that is left, when the store is opened or written to.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from ...checkups import Finding

MEGABYTE = 1024 * 1024
BALLAST_MEGABYTES = 8  # a delete writes some hundred kilobytes; a purge rewrites up to four megabytes of postings
SMALLEST_STORE = MEGABYTE  # one that is smaller is not what fills a disk, and is spared a file beside it
FULL_BYTES = MEGABYTE // 4  # with less room than that, an I/O error is one of a full disk
LOW_BYTES = 64 * MEGABYTE  # with less, `doctor` says so: a log may grow to that size
_LEAST_BYTES = MEGABYTE // 4  # a smaller ballast would help nobody


def free_bytes(path: Path) -> int | None:
    """Return how many bytes are left on the disk that a file is on, or would be; None where that cannot be told."""
    try:
        return shutil.disk_usage(path.parent).free
    except OSError:
        return None


def is_full(path: Path) -> bool:
    """Tell whether next to nothing is left on the disk of a file."""
    free = free_bytes(path)
    return free is not None and free < FULL_BYTES


def findings(path: Path) -> list[Finding]:
    """Say that little room is left on the disk of a store, if so."""
    free = free_bytes(path)
    if free is None or free >= LOW_BYTES:
        return []
    told = f"{free / MEGABYTE:,.1f} MB are free on the disk of {path}, less than {LOW_BYTES // MEGABYTE} MB"
    hint = (
        "free space on the disk; `whyrank forget` and `whyrank prune` work on a full disk as long as a ballast is left"
    )
    return [Finding("disk", told, hint, derived=False)]


class Ballast:
    """A file of allocated blocks beside a store, as large as the store is and at most as large as it may be."""

    def __init__(self, store: Path, most_bytes: int) -> None:
        self._store = store
        self._most_bytes = most_bytes
        self.path = store.with_name(f"{store.name}.ballast")

    @property
    def size(self) -> int:
        """Return how many bytes it holds."""
        try:
            return self.path.stat(follow_symlinks=False).st_size
        except OSError:
            return 0

    def keep(self) -> None:
        """Make it, or let it grow, into at most half of the room that is left; remove what is not wanted any more."""
        with suppress(OSError):  # nothing that was asked for depends on it
            size, stored = self.size, self._store.stat().st_size
            wanted = min(self._most_bytes, stored) if stored >= SMALLEST_STORE else 0
            if not self._most_bytes and size:
                self.release()
            free = free_bytes(self._store)
            grown = min(wanted, size + (free or 0) // 2)
            if size < wanted // 2 and grown - size >= _LEAST_BYTES:
                self._allocate(size, grown)

    def _allocate(self, size: int, grown: int) -> None:
        """Let the file grow by blocks that are really there; a hole would give no room back."""
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
        """Remove it; tell whether that gave room."""
        size = self.size
        with suppress(OSError):
            self.path.unlink()
            return size > 0
        return False
