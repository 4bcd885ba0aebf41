"""Backups of a store: verified copies of a snapshot, and their restoration into a file that is in use.

A restore replaces the content of the store inside SQLite, in one transaction under the writer lock: the file itself
stays, so that processes which have it open read the restored content with their next snapshot, and a kill leaves the
store wholly old or wholly new. The caches of such processes are keyed by the generation and by counters of scopes; the
restored content gets counters above all that the store ever had.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from contextlib import closing, contextmanager
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...errors import ConfigError, SchemaTooNew, StoreDamaged, StoreError, StoreLocked
from ...formatting import counted
from .check import check_database
from .copies import Tick, back_up, copy_into, free_name, staged, sweep
from .database import (
    LOCK_SECONDS,
    Connection,
    Database,
    SqlError,
    connect,
    is_generation,
    lenient,
    meta_value,
    set_meta,
    translated,
    untouched_address,
)
from .metadata import INDEX_NAMES, index_in
from .recovery import UNREADABLE, select_readable
from .schema import prepare, version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_MARK = "backup"  # key of `meta` that only a backup has
_BEFORE = "before-restore"
_SIDE_FILES = ("", "-wal", "-shm", ".lock")
_HIGHEST = 2**53  # of numbers that were given out: one that is higher was damaged
_UNKNOWN_JUMP = 10**9  # generations: more than a store whose own number is damaged can have had
_LEFT_SECONDS = 86_400.0  # after which the leftovers of an unfinished restore are deleted
_BUSY = (5, 6)  # SQLITE_BUSY and SQLITE_LOCKED
_NAME_A_BACKUP = "name a file that `whyrank backup` wrote, or another whyrank store"


class Backup(NamedTuple):
    """A verified copy of a store: its path, time, schema, number of memories and size."""

    path: str
    created: float
    schema: int
    memories: int
    bytes: int


class Restored(NamedTuple):
    """Result of a restore: the restored memories, and the path of the previous content (empty: not kept)."""

    memories: int
    schema: int  # of the backup; the store has the newest
    created: float | None  # when the backup was made, if it records that
    kept: str


# -- backup ----------------------------------------------------------------------------------------------------------


def write_backup(store: Path, target: Path, tick: Tick) -> Backup:
    """Copy one moment of a store that others may be writing; verify the copy before it takes its place."""
    target = target.resolve()  # a link stays one, and leads to what was written
    _check_target(store, target)
    created = time.time()
    with _as_config_error(target), staged(target) as place:
        with closing(Database(store)) as database, database.reading() as snapshot:
            copy_into(snapshot.connection, place, tick)
            rows = _row_counts(snapshot.connection)
        memories = rows["memories"] + rows["arrivals"]
        with closing(connect(str(place), isolation_level=None)) as copy:
            copy.execute("PRAGMA journal_mode=MEMORY")
            if _row_counts(copy) != rows:
                raise StoreError(f"the copy in {place} differs from the store", "try again")
            set_meta(copy, _MARK, json.dumps({"created": created, "memories": memories}))
        schema = _verify(
            place, tick, f"{store} is damaged", "`whyrank doctor --repair` repairs it; no backup was written"
        )
        size = place.stat().st_size
    return Backup(str(target), created, schema, memories, size)


def _check_target(store: Path, target: Path) -> None:
    """Refuse a path that is not writable, belongs to the store, or holds a file that is no backup of ours."""
    own = {Path(f"{store.resolve()}{end}") for end in _SIDE_FILES}
    if target in own or (target.exists() and store.exists() and target.samefile(store)):
        raise ConfigError(f"{target} belongs to the store itself", "name another file")
    if target.is_dir() or not target.parent.is_dir():
        raise ConfigError(f"{target} cannot be written", "name a file in an existing folder")
    if target.exists() and not is_replaceable(target):
        raise ConfigError(
            f"{target} already exists and is not a backup that whyrank wrote",
            "name another file, or move that one away",
        )


def is_replaceable(file: Path) -> bool:
    """Check that a file is empty, or a backup of ours that was not opened as a store since."""
    if not file.is_file():
        return False
    if not file.stat().st_size:
        return True
    if any(Path(f"{file}{end}").exists() for end in _SIDE_FILES if end):
        return False  # it was opened as a store, and may have been written to
    try:
        version_of(Database(file))
        with closing(connect(untouched_address(file), uri=True)) as connection:
            return _mark(connection) is not None
    except (StoreError, SqlError):
        return False


@contextmanager
def _as_config_error(target: Path) -> Iterator[None]:
    """Convert an OSError while writing the target into a ConfigError with the system's message."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {error.strerror}", "check the folder") from error


def _row_counts(connection: Connection) -> dict[str, int]:
    tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    names = [name for (name,) in connection.execute(tables).fetchall()]
    counts = {name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in names}
    return {"memories": 0, "arrivals": 0, **counts}  # tables that an earlier schema lacks count as empty


def _mark(connection: Connection) -> Mapping[str, float] | None:
    """Return the metadata that a backup carries; None for a file that is no backup."""
    found = meta_value(connection, _MARK)
    try:
        mark = json.loads(found) if found is not None else None
    except (ValueError, TypeError):
        return {}
    return mark if mark is None or isinstance(mark, dict) else {}


def _verify(place: Path, tick: Tick, what: str, hint: str) -> int:
    """Check a copy as `doctor` does, and its count of memories against its metadata; return its schema."""
    with closing(Database(place, forgiving=True)) as database:
        schema = version_of(database)
        # Memories set aside as unreadable are known to be lost, and are reported by every check of the store.
        found = [finding.message for finding in check_database(database, tick) if finding.code != "aside"]
        if found:
            more = f", and {counted(len(found) - 1, 'thing')} more" if len(found) > 1 else ""
            raise StoreDamaged(f"{what}: {found[0]}{more}", hint)
        rows, mark = _row_counts(database.reader()), _mark(database.reader()) or {}
    held = rows["memories"] + rows["arrivals"]
    if held != mark.get("memories", held):
        raise StoreDamaged(f"{what}: it contains {held:,} memories of {mark['memories']:,}", hint)
    return schema


# -- restore ---------------------------------------------------------------------------------------------------------


def restore_backup(
    store: Path, file: Path, open_once: Callable[[Path, str], None], *, keep: bool, tick: Tick
) -> Restored:
    """Replace the content of a store by that of a backup, while other processes have the store open.

    The backup is copied, verified and brought to the newest schema before the store is touched; `open_once` opens the
    copy with its keyword index and closes it, as processes that have the store open do not open it again.
    """
    check_source(store, file)
    with closing(Database(store, forgiving=True)) as database, _scratch(database.file) as place:
        _check_store(database)
        with closing(connect(untouched_address(file), uri=True)) as source, translated(file):
            copy_into(source, place, tick)
        hint = "nothing was changed; `whyrank doctor --repair --store FILE` repairs a copy of it as far as possible"
        schema = _verify(place, tick, f"{file} is damaged", hint)
        with closing(Database(place)) as fresh, translated(place):
            prepare(fresh, keep=False)
            index = (index_in(fresh.reader()) or INDEX_NAMES)[0]
        open_once(place, index)
        with closing(Database(place)) as fresh:
            rows, mark = _row_counts(fresh.reader()), _mark(fresh.reader()) or {}
            kept = _replace(database, fresh, keep)
    return Restored(rows["memories"] + rows["arrivals"], schema, mark.get("created"), kept)


def check_source(store: Path, file: Path) -> None:
    """Refuse, without writing, a missing file, the store itself, another program's file or a newer schema."""
    if not file.is_file():
        raise ConfigError(f"{file} is a folder" if file.is_dir() else f"there is no file {file}", _NAME_A_BACKUP)
    if store.exists() and file.samefile(store):
        raise ConfigError(f"{file} is the store itself", _NAME_A_BACKUP)
    try:
        version = version_of(Database(file))
    except SchemaTooNew:
        raise
    except StoreDamaged as error:
        raise StoreDamaged(error.message, f"{_NAME_A_BACKUP}; nothing was changed") from error
    if not version:
        raise StoreDamaged(f"{file} is empty", f"{_NAME_A_BACKUP}; nothing was changed")


def _check_store(database: Database) -> None:
    """Refuse a file that is no store of ours, or that is too damaged for SQLite to write to."""
    try:
        version_of(database)
    except SchemaTooNew:
        raise
    except StoreDamaged as error:
        hint = "move that file away and restore again, which creates a new store; nothing was changed"
        raise StoreDamaged(error.message, hint) from error


@contextmanager
def _scratch(store: Path) -> Iterator[Path]:
    """Yield a path for a copy on the disk of the store; delete leftovers of killed restores after a day."""
    prefix = f".{store.name}-restore-"
    for left in store.parent.glob(f"{escape(prefix)}*"):
        if left.stat().st_mtime < time.time() - _LEFT_SECONDS:  # a younger one may be in use
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=store.parent) as folder:
        yield Path(folder) / "memory.db"


def _replace(database: Database, fresh: Database, keep: bool) -> str:
    """Overwrite the store with a prepared copy, in one transaction; return the path of the old content."""
    with database.alone() as live:
        lenient(live)
        with fresh.writing() as connection:
            _renumber(connection, live)
        kept = free_name(database.file, _BEFORE) if keep and _holds_anything(live) else None
        if kept is not None:
            sweep(database.file.with_name(f"{database.file.name}.{_BEFORE}"))  # no other restore runs: we have the lock
            back_up(live, kept)
        _lay_over(fresh.reader(), live, database.path)
        live.execute("PRAGMA wal_checkpoint(PASSIVE)")  # a reader of the old content does not block it
    return str(kept or "")


def _holds_anything(live: Connection) -> bool:
    """Check that any table besides `meta` has a row; unreadable tables count as having one."""
    try:
        rows = _row_counts(live)
    except UNREADABLE:
        return True
    return any(count for table, count in rows.items() if table != "meta")


def _renumber(connection: Connection, live: Connection) -> None:
    """Raise the counters of restored content above all earlier ones: other processes key caches by them."""
    generations = [_generation(connection), _generation(live)]
    generation = 1 + (max(generations) if min(generations) >= 0 else max(generations) + _UNKNOWN_JUMP)
    epoch = 1 + max(_numbers(connection, "SELECT epoch FROM scopes") + _numbers(live, "SELECT epoch FROM scopes"))
    connection.execute("UPDATE scopes SET changed = ?, epoch = ?", (generation, epoch))
    connection.execute("UPDATE records SET changed = ?", (generation,))
    for key in ("generation", "keyword-since"):
        set_meta(connection, key, str(generation))
    connection.execute("DELETE FROM meta WHERE key = ?", (_MARK,))
    # Row numbers that were given out are not given again: lazy reads go by them.
    for name, last in select_readable(live, "SELECT name, seq FROM sqlite_sequence"):
        if isinstance(name, str) and isinstance(last, int) and last < _HIGHEST:
            changed = connection.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", (last, name))
            if not changed.rowcount:
                connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (name, last))


def _generation(connection: Connection) -> int:
    """Return the generation of a store: 0 without tables, −1 if it is missing or damaged."""
    tables = select_readable(connection, "SELECT count(*) FROM sqlite_schema")
    found = [value for (value,) in select_readable(connection, "SELECT value FROM meta WHERE key = 'generation'")]
    if found and is_generation(found[0]):
        return int(found[0])
    return 0 if tables == [(0,)] else -1


def _numbers(connection: Connection, query: str) -> list[int]:
    found = (value for (value,) in select_readable(connection, query))
    return [0, *(value for value in found if isinstance(value, int) and value < _HIGHEST)]


def _lay_over(fresh: Connection, live: Connection, path: Path) -> None:
    """Overwrite all pages of a database with another's; wait at most LOCK_SECONDS for SQLite's own lock."""
    deadline = time.monotonic() + LOCK_SECONDS

    def told(status: int, remaining: int, total: int) -> None:
        if status in _BUSY and time.monotonic() > deadline:
            raise StoreLocked(f"{path} is locked by another program", "stop it, and try again; nothing was changed")

    fresh.backup(live, progress=told)


def count_held(store: Path) -> int | None:
    """Count the memories of a store that may be damaged; None if they cannot be counted."""
    if not store.exists() or not store.stat().st_size:
        return 0
    try:
        with closing(connect(untouched_address(store), uri=True)) as connection:
            rows = _row_counts(connection)
    except UNREADABLE:
        return None
    return rows["memories"] + rows["arrivals"]
