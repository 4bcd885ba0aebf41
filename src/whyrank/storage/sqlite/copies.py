"""Complete copies of a database: written aside, synced and renamed, so a kill leaves no partial file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from glob import escape
from pathlib import Path

from .database import Connection, Database, connect, make_private, translated
from .disk import unused

_ASIDE = ".part"
# The header of a database, https://www.sqlite.org/fileformat.html: write version and read version.
_MAGIC = b"SQLite format 3\0"
_VERSIONS_AT, _ROLLBACK_JOURNAL = 18, b"\1\1"
_AT_ONCE = 1_000  # pages between two reports of progress: 4 MB

Tick = Callable[[int, int, str], None]


def copy_store(path: Path, to: Path) -> None:
    """Copy a snapshot of a store while others read and write it, for a copy that is only tried out."""
    make_private(to)
    with closing(Database(path)) as database, translated(path), closing(connect(to)) as target:
        database.reader().backup(target)


def back_up(source: Connection, target: Path, tick: Tick = lambda *_: None) -> None:
    """Copy a snapshot of a database to a file: atomically, readable by its owner alone.

    Through SQLite, never through the file system: a plain copy misses the log, and closing it drops SQLite's locks.
    """
    with staged(target) as place:
        copy_into(source, place, tick)


def copy_into(source: Connection, place: Path, tick: Tick = lambda *_: None) -> None:
    """Copy a database into an empty file, which needs no log beside it afterwards.

    A write of another connection between two steps restarts the copy, unless the source holds a snapshot.
    """

    def told(_: int, remaining: int, total: int) -> None:
        tick(total - remaining, total, "pages")

    with translated(place), closing(connect(str(place), isolation_level=None)) as copy:
        copy.execute("PRAGMA synchronous=OFF")  # it is synced as a whole
        source.backup(copy, pages=_AT_ONCE if source.in_transaction else -1, progress=told)
    # Set the header to rollback journal; a pragma would make SQLite read the tables, damaged or not.
    with place.open("r+b") as file:
        if file.read(len(_MAGIC)) == _MAGIC:
            file.seek(_VERSIONS_AT)
            file.write(_ROLLBACK_JOURNAL)


@contextmanager
def staged(target: Path) -> Iterator[Path]:
    """Yield an empty file beside a target; it is synced and renamed to the target at the end of the block."""
    import tempfile  # imported late: a search does not need it

    number, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=_ASIDE, dir=target.parent)
    os.close(number)
    place = Path(name)
    try:
        yield place
        sync(place)
        os.replace(place, target)
        sync(target.parent)
    except BaseException:
        for left in place.parent.glob(f"{escape(place.name)}*"):  # a journal may lie beside it
            left.unlink(missing_ok=True)
        raise


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk; on Windows, folders are left to the system."""
    if path.is_dir() and os.name == "nt":
        return
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def sweep(target: Path) -> None:
    """Delete the partial files of killed copies to this path and to names that begin with it."""
    for left in left_behind(target):
        left.unlink(missing_ok=True)


def left_behind(target: Path) -> list[Path]:
    """Return the partial files of copies that were cut short or are in progress."""
    return sorted(target.parent.glob(f".{escape(target.name)}*{_ASIDE}*"))


def free_name(path: Path, what: str) -> Path:
    """Return an unused name for a copy: an earlier copy may be all that is left, and is never overwritten."""
    return unused(path.with_name(f"{path.name}.{what}"), ".bak")
