"""Purge: removal of every byte of deleted memories from the file and its log, without a rewrite.

Deleted rows and freed pages are overwritten with zeros at once (`secure_delete`). That leaves three places, which are
cleaned here in short transactions: pages derived from many memories (postings, words, signs), the write-ahead log, and
the unallocated areas of b-tree pages, where SQLite leaves copies of cells that it moved when it split a page. A mark in
the file names the scopes to be scrubbed until all of that is done: after a kill, or if a reader blocks it, the next
process does the rest.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from glob import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import StoreError
from .copies import left_behind
from .database import BUSY_MILLISECONDS, Connection
from .metadata import PURGE_MARK, scopes_to_purge

if TYPE_CHECKING:
    from pathlib import Path

    from .database import Database

_READERS_MILLISECONDS = 500  # wait for readers, with the writer lock held
_SCANS = 3  # of the file without the lock; if others write all the while, the last is made with it
_PAGES_AT_ONCE = 1_024
_HEADER_BYTES = 100  # of the file, in front of its first b-tree page
# Size of the header of a b-tree page by its first byte: of indexes and tables, interior and leaf.
_HEADERS = {2: 12, 5: 12, 10: 8, 13: 8}
# Overflow pages begin with a page number: from here on its first byte may be that of a b-tree page.
_MOST_PAGES = 2 << 24
_LOCK_BYTE = 0x40000000  # SQLite keeps nothing on the page that holds it

Scrub = Callable[[Connection, str], bool]


class Area(NamedTuple):
    """A byte range of a file."""

    begin: int
    size: int


def purge(database: Database, scrub: Scrub) -> tuple[str, ...]:
    """Finish a purge; return messages on files that may still hold deleted data (a log in use, copies).

    `scrub` removes the remains of deleted memories from the derived pages of a scope, a bounded part in each
    transaction, and returns whether more may be left.
    """
    with database.connection() as connection:
        scopes = scopes_to_purge(connection) or []
    scrub_index(database.writing, scopes, scrub)
    return (*_copies(database.file), *_scrub_file(database))


def scrub_index(writing: Callable[[], AbstractContextManager[Any]], scopes: Iterable[str], scrub: Scrub) -> None:
    """Remove the remains of deleted memories from the index, scope by scope, in short transactions."""
    for scope in scopes:
        is_left = True
        while is_left:
            with writing() as connection:
                is_left = scrub(connection, scope)


def end(connection: Connection) -> None:
    """Delete the mark of a purge that is done."""
    connection.execute("DELETE FROM meta WHERE key = ?", (PURGE_MARK,))


def _copies(file: Path) -> Iterator[str]:
    """Yield messages on older copies of a store that may hold deleted data."""
    name, folder = escape(file.name), file.parent
    for pattern, what in (
        (f"{name}.schema*.bak", "an upgrade"),
        (f"{name}.damaged*.bak", "a repair"),
        (f"{name}.before-restore*.bak", "a restore"),
    ):
        for copy in sorted(folder.glob(pattern)):
            yield f"{copy} is a copy from before {what}: delete it if it is not needed"
    for log in sorted(folder.glob(f"{name}-wal.orphaned*")):
        yield f"{log} is the log of a file that was replaced: delete it if it is not needed"
    for left in sorted(folder.glob(f".{name}-anew-*")):
        yield f"{left} is left over from an interrupted repair: delete it"
    for left in (*sorted(folder.glob(f".{name}-restore-*")), *left_behind(file)):
        yield f"{left} is an unfinished copy: delete it unless a copy is running"


def _scrub_file(database: Database) -> tuple[str, ...]:
    """Empty the log, overwrite remains of moved cells, and delete the mark; return a message if blocked.

    Reading the file takes a while, so it is done without the writer lock as long as no other process writes meanwhile.
    """
    for scan in range(_SCANS):
        with ExitStack() as lock:
            connection = lock.enter_context(database.alone())
            if not _empty_log(connection):
                break
            moment = _moment(connection)
            if scan < _SCANS - 1:
                lock.close()
            areas = _residues(database.descriptor())
            if scan < _SCANS - 1:
                connection = lock.enter_context(database.alone())
            if _overwrite(connection, database.descriptor(), areas, moment):
                return ()
    told = "is in use by another process and may hold what was removed"
    return (f"{database.path}-wal {told}: it is emptied by one of the next writes, or when the store is opened",)


def _empty_log(connection: Connection) -> bool:
    """Checkpoint and truncate the log; return whether no reader blocked it."""
    connection.execute(f"PRAGMA busy_timeout={_READERS_MILLISECONDS}")
    try:
        busy: int = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        return not busy
    finally:
        connection.execute(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")


def _moment(connection: Connection) -> tuple[object, ...]:
    """Return a value that changes with every commit, of another connection or of this one."""
    return connection, connection.execute("PRAGMA data_version").fetchone()[0], connection.total_changes


def _overwrite(connection: Connection, file: int, areas: Sequence[Area], moment: tuple[object, ...]) -> bool:
    """Zero areas of the file and delete the mark, unless something was committed since a moment.

    The log is empty, so the pages of the file are the newest; and unallocated bytes are not in use, so that a crash in
    the middle leaves every page as good as before. Copies of those bytes in page caches would be written back: this
    connection drops its cache, and others drop theirs because something was committed.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _moment(connection) != moment:
            return False
        _zero(file, areas)
        connection.execute("PRAGMA shrink_memory")
        connection.execute("DELETE FROM meta WHERE key = ?", (PURGE_MARK,))
        connection.execute("COMMIT")
        return True
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _zero(file: int, areas: Sequence[Area]) -> None:
    """Overwrite areas of a file with zeros, and sync it."""
    try:
        for begin, size in areas:
            _write(file, begin, bytes(size))
        if areas:
            os.fsync(file)
    except OSError as error:  # on a copy-on-write file system the disk may be full
        told = f"what was removed could not be overwritten: {error.strerror}"
        raise StoreError(told, "free space on the disk; the next opening tries again") from error


def _residues(file: int) -> list[Area]:
    """Return the nonzero unallocated areas of b-tree pages, where copies of moved cells remain."""
    head = _read(file, 0, _HEADER_BYTES)
    page_bytes = int.from_bytes(head[16:18], "big")
    page_bytes = 65_536 if page_bytes == 1 else page_bytes
    is_vacuumed = any(head[52:56])  # pointer-map pages, which only such a file has, may resemble b-tree pages
    size = os.fstat(file).st_size
    if len(head) < _HEADER_BYTES or is_vacuumed or size // page_bytes >= _MOST_PAGES:
        return []
    found: list[Area] = []
    for start in range(0, size, _PAGES_AT_ONCE * page_bytes):
        found += _residues_in(_read(file, start, _PAGES_AT_ONCE * page_bytes), start, page_bytes)
    return found


def _residues_in(pages: bytes, start: int, page_bytes: int) -> Iterator[Area]:
    """Yield the nonzero unallocated areas of pages read from an offset of the file."""
    nothing = bytes(page_bytes)
    for page in range(0, len(pages), page_bytes):
        head = page if page or start else _HEADER_BYTES
        header = _HEADERS.get(pages[head])
        if header is None or start + page == _LOCK_BYTE:
            continue
        cells = int.from_bytes(pages[head + 3 : head + 5], "big")
        begin, end = head + header + 2 * cells, page + (int.from_bytes(pages[head + 5 : head + 7], "big") or 65_536)
        if begin < end <= page + page_bytes and pages[begin:end] != nothing[: end - begin]:
            yield Area(start + begin, end - begin)


# A descriptor has one position, shared by threads and forked processes: where pread exists, it is not used.
if hasattr(os, "pread"):

    def _read(file: int, start: int, size: int) -> bytes:
        return os.pread(file, size, start)

    def _write(file: int, start: int, content: bytes) -> None:
        os.pwrite(file, content, start)

else:
    _POSITION = threading.Lock()

    def _read(file: int, start: int, size: int) -> bytes:
        with _POSITION:
            os.lseek(file, start, os.SEEK_SET)
            return os.read(file, size)

    def _write(file: int, start: int, content: bytes) -> None:
        with _POSITION:
            os.lseek(file, start, os.SEEK_SET)
            os.write(file, content)
