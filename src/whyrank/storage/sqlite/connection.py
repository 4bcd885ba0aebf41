"""SQLite connections: the only module that opens them, with one configuration and translated errors."""

from __future__ import annotations

import os
import stat
import weakref
from bisect import bisect_left
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import StoreDamaged, StoreError, StoreFull, StoreLocked, StoreTimeout
from .disk import is_full

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
else:
    # pysqlite3 carries a SQLite without the WAL-reset bug of 3.7.0 to 3.51.2; where it has no wheel, the stdlib serves.
    try:
        import pysqlite3.dbapi2 as sqlite3
    except ImportError:
        import sqlite3
    else:
        # For a type without an adapter, pysqlite3 searches one for every value, which takes a microsecond: register
        # identities. In the stdlib's module, which others use as well, it takes a third of that, and is left alone.
        sqlite3.register_adapter(type(None), {None: None}.get)
        sqlite3.register_adapter(bytes, bytes)

LIBRARY = f"SQLite {sqlite3.sqlite_version}"
BUSY_MILLISECONDS = 30_000
WAL_BYTES_KEPT = 64 * 1024 * 1024

SAVE = (
    "facts may be lost: keep the file, look for a copy of it, and let `whyrank doctor` say what can be saved "
    "(`whyrank doctor --repair` saves it)"
)

_DAMAGE = (  # SQLite's messages for files that are no databases, or that lack a part of our schema
    "not a database", "malformed", "encrypted", "vtable constructor", "no such table", "no such column",
    "no such index", "has no column", "already exists", "duplicate column", "on conflict clause does not match",
)  # fmt: skip

Connection = sqlite3.Connection


class _Tracked(Connection):
    """A connection registered while it is open: none may be when the process forks."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _OPEN.add(self)

    def close(self) -> None:
        """Close the connection."""
        super().close()
        _OPEN.discard(self)


_OPEN: weakref.WeakSet[_Tracked] = weakref.WeakSet()


def is_any_open() -> bool:
    """Return whether a connection of this process is open."""
    return bool(_OPEN)


def connect(address: str | Path, **options: Any) -> Connection:
    """Open a connection with SQLite's own settings."""
    return sqlite3.connect(address, factory=_Tracked, **options)


Cursor = sqlite3.Cursor
SqlError = sqlite3.Error
IntegrityError = sqlite3.IntegrityError
version = sqlite3.sqlite_version_info
Row = tuple[Any, ...]


def run_script(connection: Connection, script: str) -> None:
    """Run statements one by one in the current transaction; executescript() would commit first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


@contextmanager
def undoable(connection: Connection) -> Iterator[None]:
    """Roll back the block alone, not the whole transaction, if it ends with an error."""
    connection.execute("SAVEPOINT undoable")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # on a full disk SQLite has rolled back already
            connection.execute("ROLLBACK TO undoable")
        raise
    finally:
        if connection.in_transaction:
            connection.execute("RELEASE undoable")


def is_writable(path: Path) -> bool:
    """Check write permission on a file and its folder."""
    return os.access(path if path.exists() else path.parent, os.W_OK) and os.access(path.parent, os.W_OK)


def connected_to_read(path: Path, forgiving: bool) -> Connection:
    """Open a read-only file: shared with its writers, or as immutable where the WAL cannot be shared."""
    try:
        connection = _connect(f"{path.absolute().as_uri()}?mode=ro", forgiving)
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.OperationalError:
        # WAL needs shared memory beside the file, which a read-only disk does not give.
        return _connect(untouched_address(path), forgiving)
    return connection


def make_private(path: Path) -> None:
    """Create a missing file that only its owner may read; SQLite gives its log the same permissions."""
    with suppress(FileExistsError, PermissionError, FileNotFoundError):  # opening the file raises the precise error
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600))


def tighten(path: Path, mode: int) -> None:
    """Remove read permission for others, if the file is ours and no other user may write it."""
    with suppress(OSError):
        known = path.stat(follow_symlinks=False)
        is_ours = hasattr(os, "getuid") and known.st_uid == os.getuid() and not stat.S_ISLNK(known.st_mode)
        if is_ours and known.st_mode & 0o055 and not known.st_mode & 0o022:
            path.chmod(mode)


def connected(path: Path, forgiving: bool) -> Connection:
    """Open a writable file."""
    make_private(path)
    return _connect(path.absolute().as_uri(), forgiving)


def _connect(address: str, forgiving: bool) -> Connection:
    connection = connect(address, uri=True, isolation_level=None, check_same_thread=False, cached_statements=256)
    if forgiving:
        forgive(connection)
    connection.execute(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")
    for setting in (
        "synchronous=FULL",
        "foreign_keys=ON",
        "secure_delete=ON",
        "trusted_schema=OFF",
        # With one damaged row on a page, the other rows are still wanted.
        f"cell_size_check={'OFF' if forgiving else 'ON'}",
        "temp_store=MEMORY",
        "mmap_size=0",
        f"journal_size_limit={WAL_BYTES_KEPT}",
    ):
        connection.execute(f"PRAGMA {setting}")
    return connection


def forgive(connection: Connection) -> None:
    """Let a connection read a file that is shorter than its header states, or whose schema is incomplete."""
    connection.execute("PRAGMA writable_schema=ON")


def untouched_address(path: Path) -> str:
    """Return a read-only URI that leaves no files behind; with a live WAL beside the file, it is shared."""
    wal = path.with_name(path.name + "-wal")
    is_shared = wal.exists() and wal.stat().st_size > 0
    return path.absolute().as_uri() + ("?mode=ro" if is_shared else "?mode=ro&immutable=1")


def lenient(connection: Connection) -> None:
    """Let a connection return texts that are invalid UTF-8 as bytes."""
    connection.text_factory = _text


def _text(stored: bytes) -> str | bytes:
    try:
        return stored.decode("utf-8")
    except UnicodeDecodeError:
        return stored


@contextmanager
def leniently(connection: Connection) -> Iterator[Connection]:
    """Make a connection lenient for the block, around reads that cannot be repeated."""
    before = connection.text_factory
    lenient(connection)
    try:
        yield connection
    finally:
        connection.text_factory = before


def rows_of(
    connection: Connection, statement: str, parameters: Sequence[object] | Mapping[str, object] = ()
) -> list[Row]:
    """Return all rows of a statement; after a damaged text, the connection returns damaged texts as bytes.

    Damage is rare, and checking every text takes as long as reading it.
    """
    try:
        return connection.execute(statement, parameters).fetchall()
    except sqlite3.OperationalError as error:
        if "decode" not in str(error):
            raise
    lenient(connection)
    return connection.execute(statement, parameters).fetchall()


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Translate SQLite's errors into ours, which carry a remedy."""
    try:
        yield
    except sqlite3.Error as error:
        raise told(path, error) from error


def told(path: Path, error: sqlite3.Error) -> StoreError:
    """Return our error for an error of SQLite, with a remedy."""
    text = str(error).lower()
    if "interrupted" in text:
        return StoreTimeout(f"reading {path} was aborted", "give a larger timeout_ms")
    if "locked" in text or "busy" in text:
        return StoreLocked(f"{path} is locked: {error}", "wait for the other process, or stop it")
    if "full" in text or ("i/o error" in text and is_full(path)):
        return StoreFull(f"no room left to write {path}", "free space on the disk; nothing was lost")
    if any(word in text for word in _DAMAGE):
        return StoreDamaged(
            f"{path} is not a whyrank store, or is damaged: {error}",
            f"name another file with --store; if this is your store, {SAVE}",
        )
    if "readonly" in text or "unable to open" in text:
        return StoreError(
            f"{path} cannot be opened for this: {error}", "check the permissions of the file and its folder"
        )
    if "i/o error" in text:
        return StoreError(
            f"{path} could not be read or written: {error}",
            "look at the disk and what the system's log says of it (a network share that is gone, a quota, a failing "
            "drive), then try again; nothing that was acknowledged is lost, and `whyrank doctor` looks at the store",
        )
    return StoreError(f"{path}: {error}")


# Parsing a statement takes as long as fetching some dozen rows by it; binding a value twice costs next to nothing.
LENGTHS = (1, 8, 32, 64, 500)
_MARKS = {length: ", ".join("?" * length) for length in LENGTHS}


class Portion(NamedTuple):
    """The parameters of one statement and their placeholders."""

    values: Sequence[int | str]
    marks: str


def portions(values: Sequence[int] | Sequence[str]) -> Iterator[Portion]:
    """Yield all values, as many at a time as one statement takes; the last is repeated up to a known length."""
    for start in range(0, len(values), LENGTHS[-1]):
        part = values[start : start + LENGTHS[-1]]
        length = LENGTHS[bisect_left(LENGTHS, len(part))]
        yield Portion([*part, *[part[-1]] * (length - len(part))], _MARKS[length])
