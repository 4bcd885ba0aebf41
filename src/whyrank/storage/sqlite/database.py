"""One SQLite file: connections, a writer lock, snapshots and checksums.

Every thread has a reading connection; one connection writes. All are closed around a fork: SQLite assumes that a child
holds the locks of its parent, and a child that opens the file beside an inherited connection loses its writes. Every
use of the file checks that the file under its name is the one that is open: writes into a file that was deleted or
replaced are lost.
"""

from __future__ import annotations

import os
import stat
import threading
import time
import weakref
import zlib
from bisect import bisect_left
from collections import defaultdict
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import StoreDamaged, StoreError, StoreFull, StoreLocked, StoreTimeout, StoreUnavailable
from .disk import is_full
from .lock import set_log_aside, side_lock

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    "facts may be lost: keep the file, look for a copy of it, and run `whyrank doctor` to see what can be saved "
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


def connect(address: str | Path, **options: Any) -> Connection:
    """Open a connection with SQLite's own settings."""
    return sqlite3.connect(address, factory=_Tracked, **options)


Cursor = sqlite3.Cursor
SqlError = sqlite3.Error
IntegrityError = sqlite3.IntegrityError
version = sqlite3.sqlite_version_info
Row = tuple[Any, ...]


LOCK_SECONDS = 30.0
WRITER_CACHE_KILOBYTES = 65_536  # ids and hashes fall anywhere in their indexes; SQLite's two megabytes would thrash
FORK_SECONDS = 5.0  # a fork waits this long for searches and writes of other threads to end

# Keys of `meta` between the two mark memories that could not be indexed, each with its id.
ASIDE_PREFIX, _PAST_ASIDE = "unindexed ", "unindexed!"
SET_ASIDE = (
    f"SELECT substr(key, {len(ASIDE_PREFIX) + 1}) FROM meta WHERE key > '{ASIDE_PREFIX}' AND key < '{_PAST_ASIDE}'"
)
_DIGITS = 15
# The same as `is_generation`: longer numbers were damaged, and leave no range for later ones.
_IS_GENERATION = f"typeof(value) = 'text' AND value NOT GLOB '*[^0-9]*' AND length(value) BETWEEN 1 AND {_DIGITS}"
# Reads the generation, and whether facts were set aside as unreadable.
MOMENT = (
    f"SELECT value, EXISTS (SELECT 1 FROM arrivals WHERE entry < 0) OR EXISTS ({SET_ASIDE}) FROM meta "
    f"WHERE key = 'generation' AND {_IS_GENERATION}"
)
_OF_OUR_OWN = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

Identity = tuple[int, int]  # device and inode
Asked = tuple[str, "Sequence[Any]"]  # a statement and its parameters


class Database:
    """One SQLite file: one reading connection per thread, one writing connection behind a lock file."""

    def __init__(self, path: Path, *, forgiving: bool = False) -> None:
        self.path = path
        self.file = Path(os.path.realpath(path))  # the same for every name of the file, and so is its lock
        self.forgiving = forgiving  # of damage: reads as much of the file as is readable
        is_writable = os.access(path if path.exists() else path.parent, os.W_OK) and os.access(path.parent, os.W_OK)
        self.read_only = not is_writable
        self._side_file = f"{self.file}.lock"
        self._lock = side_lock(self._side_file)
        self._turn = threading.RLock()  # one writing thread at a time, held while the lock file is waited for
        self._writing = threading.RLock()  # held while the writing connection is in use
        self._opening = threading.RLock()  # held while a connection is opened
        self._local = threading.local()
        self._readers: weakref.WeakSet[_Reader] = weakref.WeakSet()
        self._writer: Connection | None = None
        self._identity: Identity | None = None  # of the file that is open
        self._is_closed = False
        self._suspended: list[threading.RLock] = []  # locks held for the time of a fork
        self._descriptors: list[int] = []  # of the file itself
        key = id(self)
        _DATABASES[key] = weakref.ref(self, lambda _: _DATABASES.pop(key, None))

    def reader(self) -> Connection:
        """Return this thread's reading connection; it is closed when the thread ends."""
        held: _Reader | None = getattr(self._local, "reader", None)
        if held is None or held.is_closed or self._is_closed:
            with self._opening:
                self._check_usable()
                with translated(self.path):
                    connection = self._opened(connect_to_read if self.read_only else connect_to_write)
                    connection.execute("PRAGMA query_only=ON")
                held = self._local.reader = _Reader(connection)
                self._readers.add(held)
        return held.connection

    def _opened(self, connect: Callable[[Path, bool], Connection]) -> Connection:
        """Open a connection and record which file it reads; all connections of a database read one."""
        self.check_identity()  # SQLite would create a deleted file again
        is_missing = self._identity is None and not self.read_only and identity_of(self.path) is None
        if is_missing and not set_log_aside(self.path):  # of a deleted file: SQLite would apply it to the new one
            raise StoreUnavailable(
                f"{self.path} was deleted, and another process still has it open",
                "put it back, or stop that process (a server, an agent) and try again",
            )
        connection = connect(self.path, self.forgiving)
        found = identity_of(self.path)
        if self._identity is None:
            self._identity = found
        elif found != self._identity:
            connection.close()
            self.check_identity()
        return connection

    @property
    def is_current(self) -> bool:
        """Return whether the open file is still the one under its name."""
        return self._identity in (None, identity_of(self.path))

    def check_identity(self) -> None:
        """Raise if the open file is no longer the one under its name."""
        found = identity_of(self.path)
        if self._identity in (None, found):
            return
        if found is None:
            raise StoreUnavailable(
                f"{self.path} was deleted while it was open",
                "put it back; or stop the processes that have it open, and restore a backup with `whyrank restore "
                "FILE`",
            )
        raise StoreUnavailable(
            f"{self.path} was replaced by another file while it was open",
            "open it again; `whyrank restore FILE` replaces the content of a store that is open",
        )

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Lock this thread's reading connection, outside a transaction; a fork or `close` waits for it."""
        while True:
            self.reader()
            held: _Reader = self._local.reader
            held.turn.acquire()
            if not (held.is_closed or self._is_closed):
                break
            held.turn.release()
        try:
            yield held.connection
        finally:
            held.turn.release()

    def reading(self, foreseen: Iterable[Asked] = (), until: float | None = None) -> AbstractContextManager[Snapshot]:
        """Hold one snapshot for all reads of this thread inside the block; blocks may nest.

        Nothing is gained by running foreseen statements earlier than they are needed, and no connection is waited for.
        """
        # A search opens dozens of nested blocks: those must cost nothing.
        held: _Reader | None = getattr(self._local, "reader", None)
        if held is not None and not held.is_closed and held.connection.in_transaction:
            return held.nested
        return self._snapshot()

    @contextmanager
    def _snapshot(self) -> Iterator[Snapshot]:
        """Begin a snapshot, and read its generation."""
        try:
            with self.connection() as connection:
                try:
                    self.check_identity()
                    connection.execute("BEGIN")
                    moment = connection.execute(MOMENT).fetchone()
                    if moment is None:
                        raise generation_unknown()
                    snapshot = Snapshot(connection, int(moment[0]), bool(moment[1]))
                    self._local.reader.nested = nullcontext(snapshot)
                    yield snapshot
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")  # nothing was written, and a COMMIT fails on a damaged page
        except SqlError as error:
            raise translate_error(self.path, error) from error

    @contextmanager
    def writing(self, foreseen: Iterable[Asked] = (), *, alone: bool = True) -> Iterator[Connection]:
        """Run one transaction, always alone; it is durable when the block has ended without an error."""
        self._enter()
        try:
            with translated(self.path):
                try:
                    connection = self._writer or self._write_connection()
                    connection.execute("BEGIN IMMEDIATE")
                    yield connection
                    connection.execute("COMMIT")
                    self.check_identity()  # no write is acknowledged for a file that was replaced meanwhile
                finally:
                    self._undo()
        finally:
            self._leave()

    def _undo(self) -> None:
        """Roll back an open transaction of an interrupted writer; later writes would be lost in it."""
        # On a full disk SQLite has rolled back already.
        if self._writer is not None and self._writer.in_transaction:
            self._writer.execute("ROLLBACK")

    def _enter(self) -> None:
        """Take the writer lock of this file, over all threads and processes."""
        self._check_usable()
        if self.read_only:
            raise StoreError(f"{self.path} cannot be written to", "check the permissions of the file and its folder")
        self._turn.acquire()
        try:
            self._lock.take(LOCK_SECONDS)
        except BaseException as error:
            self._lock.close()
            self._turn.release()
            if isinstance(error, OSError):
                raise self._kept_out(error) from error
            raise
        self._writing.acquire()
        try:
            self._check_usable()  # it may have been closed while we waited
            self.check_identity()
            self._undo()
        except BaseException:
            self._leave()
            raise

    def _leave(self) -> None:
        """Release the writer lock."""
        try:
            self._writing.release()
            self._lock.give_back()
        finally:
            self._turn.release()

    @contextmanager
    def alone(self) -> Iterator[Connection]:
        """Hold the writer lock, outside a transaction."""
        self._enter()
        try:
            with translated(self.path):
                yield self._write_connection()
        finally:
            self._leave()

    def _kept_out(self, error: OSError) -> StoreError:
        """Return the error for a writer lock that could not be acquired."""
        if isinstance(error, TimeoutError):
            return StoreLocked(
                f"{self.path} has been locked by another process for {LOCK_SECONDS:g} s",
                "wait for the other whyrank to finish, or stop it",
            )
        if isinstance(error, PermissionError):
            return StoreError(f"{error.filename} cannot be locked", "check its owner and permissions")
        return StoreError(f"{self._side_file} cannot be locked: {error.strerror}", "check its permissions and limits")

    def _write_connection(self) -> Connection:
        if self._writer is None:
            with self._opening:
                self._writer = self._opened(connect_to_write)
            self._writer.execute("PRAGMA journal_mode=WAL")
            self._writer.execute(f"PRAGMA cache_size=-{WRITER_CACHE_KILOBYTES}")
        return self._writer

    def _check_usable(self) -> None:
        if self._is_closed:
            raise StoreError(f"{self.path} was closed", "open it again")
        if _Fork.is_unsafe:
            raise StoreUnavailable(
                f"{self.path} cannot be opened here: this process was forked during a search or a write",
                "fork when no call is running, or start the process with `multiprocessing`'s spawn",
            )

    def close(self) -> None:
        """Close every connection of every thread, each when its current block has ended."""
        self._is_closed = True
        for held in self._all_readers():
            with held.turn:
                held.connection.close()
                held.is_closed = True
        with self._turn, self._writing:
            if self._writer is not None:
                self._writer.close()
                self._writer = None
            alike = self._alike()
            if not (self.is_current or self.read_only or alike):
                set_log_aside(self.path)
            self._close_descriptors(alike)
            self._lock.close()

    def descriptor(self) -> int:
        """Return a descriptor of the file itself, which stays open as long as connections are.

        Closing one drops the locks that connections of this process hold on the file (POSIX).
        """
        with self._opening:
            if not self._descriptors:
                self._descriptors.append(os.open(self.path, os.O_RDWR | _OF_OUR_OWN))
            return self._descriptors[0]

    def _close_descriptors(self, alike: Sequence[Database]) -> None:
        """Close the descriptors of the file, or hand them to another database whose locks that would drop."""
        if alike:
            alike[0]._descriptors.extend(self._descriptors)
        else:
            for descriptor in self._descriptors:
                os.close(descriptor)
        self._descriptors.clear()

    def _alike(self) -> list[Database]:
        """Return the other databases of this process that have a file by this name open."""
        return [one for one in _databases() if one is not self and one.file == self.file and not one._is_closed]

    def _all_readers(self) -> list[_Reader]:
        with self._opening:
            return list(self._readers)

    def suspend(self, deadline: float) -> None:
        """Close every connection before a fork, each when its current block has ended, and block new ones.

        Connections in use by this thread stay open, and so do those that other threads do not release in time.
        """
        for held in self._all_readers():
            self._suspend_reader(held, deadline)
        if self._hold(self._writing, deadline) and self._writer is not None and not self._writer.in_transaction:
            self._writer.close()
            self._writer = None
        if self._hold(self._opening, deadline):
            for held in [held for held in self._readers if not held.is_closed]:  # opened meanwhile
                self._suspend_reader(held, deadline)

    def _suspend_reader(self, held: _Reader, deadline: float) -> None:
        if self._hold(held.turn, deadline) and not (held.is_closed or held.connection.in_transaction):
            held.connection.close()
            held.is_closed = True

    def _hold(self, lock: threading.RLock, deadline: float) -> bool:
        is_held = lock.acquire(timeout=max(0.0, deadline - time.monotonic()))
        if is_held:
            self._suspended.append(lock)
        return bool(is_held)

    def resume(self) -> None:
        """Allow connections to be opened again after a fork, in the parent and in the child."""
        while self._suspended:
            self._suspended.pop().release()

    def resume_in_child(self) -> None:
        """Resume in the child, where a thread that waited for the lock file does not exist."""
        self._turn = threading.RLock()
        self._close_descriptors(())  # no connection is open here
        self.resume()


class Snapshot(NamedTuple):
    """One moment of the file: a connection inside a read transaction, and the generation it reads."""

    connection: Connection
    generation: int
    has_lost: bool  # facts that were set aside as unreadable


class _Reader:
    """A thread's reading connection, closed when the thread ends."""

    nested: nullcontext[Snapshot]  # for blocks inside the one that holds the snapshot

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.turn = threading.RLock()
        self.is_closed = False  # set before a fork; the next read opens another

    def __del__(self) -> None:
        self.connection.close()


def identity_of(path: Path) -> Identity | None:
    """Return the device and inode of the file under a name; None if it does not exist."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


# By object id: readers copy the values into a list at once, as threads open others meanwhile.
_DATABASES: dict[int, weakref.ref[Database]] = {}


def _databases() -> list[Database]:
    return [database for one in list(_DATABASES.values()) if (database := one()) is not None]


class _Fork:
    """State of a fork in progress, and of this process if it was forked."""

    suspended: tuple[Database, ...] = ()
    is_unsafe = False  # a connection was open when this process was forked off: SQLite would trust locks it has not

    @classmethod
    def begin(cls) -> None:
        """Close all connections."""
        cls.suspended = tuple(_databases())
        deadline = time.monotonic() + FORK_SECONDS
        for database in cls.suspended:
            database.suspend(deadline)

    @classmethod
    def end_in_parent(cls) -> None:
        """Resume the databases; the next read or write opens a connection."""
        for database in cls.suspended:
            database.resume()
        cls.suspended = ()

    @classmethod
    def end_in_child(cls) -> None:
        """Resume with connections of the child's own, unless the parent's were in use."""
        cls.is_unsafe = cls.is_unsafe or bool(_OPEN)
        for database in cls.suspended:
            database.resume_in_child()
        cls.suspended = ()


if hasattr(os, "register_at_fork"):  # absent on platforms without fork
    os.register_at_fork(before=_Fork.begin, after_in_parent=_Fork.end_in_parent, after_in_child=_Fork.end_in_child)


# -- connections -----------------------------------------------------------------------------------------------------


def connect_to_read(path: Path, forgiving: bool) -> Connection:
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


def connect_to_write(path: Path, forgiving: bool) -> Connection:
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


# -- statements ------------------------------------------------------------------------------------------------------


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
        settle_results(connection)
    except BaseException:
        if connection.in_transaction:  # on a full disk SQLite has rolled back already
            with suppress(Exception):  # a server skips every statement until a failure is awaited
                settle_results(connection)
            connection.execute("ROLLBACK TO undoable")
        raise
    finally:
        if connection.in_transaction:
            connection.execute("RELEASE undoable")


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


Key = tuple[str, int]  # of a memory: its scope, and its number there


def rows_at(connection: Connection, statement: str, keys: Iterable[Key], rest: str = "") -> list[Row]:
    """Return the rows of a statement, given without its condition, for the memories with some keys.

    Each scope takes a statement of its own; a server answers them in one round trip.
    """
    numbers: dict[str, list[int]] = defaultdict(list)
    for scope, number in keys:
        numbers[scope].append(number)
    asked: list[Asked] = [
        (f"{statement} WHERE scope = ? AND number IN ({marks}){rest}", (scope, *part))
        for scope, own in numbers.items()
        for part, marks in portions(own)
    ]
    if len(asked) > 1:
        foresee(connection, asked)
    return [row for one in asked for row in rows_of(connection, *one)]


def foresee(connection: Any, asked: Iterable[Asked]) -> None:
    """Fetch the results of statements together, where each would be a round trip to a server.

    They are found when the same statements are executed in the same snapshot. SQLite is asked one by one.
    """
    if not isinstance(connection, Connection):
        connection.foresee(asked)


def settle_results(connection: Any) -> None:
    """Wait for statements that were sent without waiting, so that their errors are raised here."""
    if not isinstance(connection, Connection):
        connection.receive()


# Parsing a statement takes as long as fetching some dozen rows by it; binding a value twice costs next to nothing.
LENGTHS = (1, 8, 32, 64, 500)
_MARKS = {length: ", ".join("?" * length) for length in LENGTHS}


class Portion(NamedTuple):
    """The parameters of one statement and their placeholders."""

    values: Sequence[int | str]
    marks: str


def portions(values: Sequence[int] | Sequence[str]) -> Iterator[Portion]:
    """Yield all values in portions for one statement; the last value is repeated to a known length."""
    for start in range(0, len(values), LENGTHS[-1]):
        part = values[start : start + LENGTHS[-1]]
        length = LENGTHS[bisect_left(LENGTHS, len(part))]
        yield Portion([*part, *[part[-1]] * (length - len(part))], _MARKS[length])


# -- errors ----------------------------------------------------------------------------------------------------------


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Translate SQLite's errors into ours, which carry a remedy."""
    try:
        yield
    except sqlite3.Error as error:
        raise translate_error(path, error) from error


def translate_error(path: Path, error: sqlite3.Error) -> StoreError:
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
            "check the disk and the system's log (a lost network share, a quota, a failing drive), then try again; "
            "no acknowledged write is lost, and `whyrank doctor` checks the store",
        )
    return StoreError(f"{path}: {error}")


# -- the table `meta`, and the generation of the file in it -----------------------------------------------------------

RAISE = (
    "UPDATE meta SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT) "
    f"WHERE key = 'generation' AND {_IS_GENERATION} RETURNING value"
)


META_VALUE = "SELECT value FROM meta WHERE key = ?"


def meta_value(connection: Connection, key: str) -> Any:
    """Return the value of a key in `meta`, if there is one."""
    row = connection.execute(META_VALUE, (key,)).fetchone()
    return row[0] if row else None


def set_meta(connection: Connection, key: str, value: str) -> None:
    """Set the value of a key in `meta`, inside the current transaction."""
    connection.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", (key, value))


def raise_generation(connection: Connection) -> int:
    """Raise the generation of the file, inside the current transaction; return the new one."""
    raised = connection.execute(RAISE).fetchone()
    if raised is None:
        raise generation_unknown()
    return int(raised[0])


def is_generation(value: object) -> bool:
    """Check the format of a generation; longer numbers were damaged, and leave no range for later ones."""
    return isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= _DIGITS


def generation_unknown() -> StoreDamaged:
    """Return the error of a store whose generation is damaged, so that no cache can be trusted."""
    return StoreDamaged("the store does not say which generation it is of", SAVE)


# -- checksums in front of bytes: derived data is never used unchecked ------------------------------------------------

_CHECKSUM_BYTES = 4


class ChecksumError(Exception):
    """Checksum mismatch of stored bytes; the reader derives them again from the texts."""


def add_checksum(body: bytes, *place: object) -> bytes:
    """Prepend a checksum; with a place given, it fails at any other place."""
    return (zlib.crc32(body) ^ _mask(place)).to_bytes(_CHECKSUM_BYTES, "little") + body


def _mask(place: tuple[object, ...]) -> int:
    return zlib.crc32(repr(place).encode("utf-8", errors="replace")) if place else 0


def checksum_of(blob: bytes) -> int:
    """Return the checksum in front of a blob."""
    return int.from_bytes(blob[:_CHECKSUM_BYTES], "little")


def check_body(blob: object, *place: object) -> memoryview:
    """Return the body of a checksummed blob, sealed for its place or, as in earlier versions, for any."""
    if not isinstance(blob, bytes):
        raise ChecksumError
    body = memoryview(blob)[_CHECKSUM_BYTES:]
    # An empty body is never sealed: its checksum is zero, which an emptied blob would pass.
    if not body or zlib.crc32(body) ^ checksum_of(blob) not in (0, _mask(place)):
        raise ChecksumError
    return body


_MASK_BITS, _SPREAD = 0xFFFF_FFFF, 0x9E37_79B1  # a prime near the golden ratio: neighbours differ in many bits


def place_mask(scope: object, number: object) -> int:
    """Return what a checksum is combined with by XOR, so that it fails at another place; the mask of 0 is a scope's."""
    begin = scope if isinstance(scope, int) else zlib.crc32(str(scope).encode("utf-8", errors="replace"))
    return (begin + _SPREAD * number) & _MASK_BITS if isinstance(number, int) else begin


def mask_between(scope: str, old: int, new: int) -> int:
    """Return what moves a checksum from one place of a scope to another, by XOR."""
    return place_mask(scope, old) ^ place_mask(scope, new)
