"""One SQLite file: a reading connection per thread, one writing connection, and a writer lock.

Connections are closed around a fork: SQLite assumes that a child holds the locks of its parent, and a child that
opens the file beside an inherited connection loses its writes. Every use of the file checks that the file under its
name is the one that is open: writes into a file that was deleted or replaced are lost.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import StoreError, StoreLocked, StoreUnavailable
from .connection import Connection, SqlError, connected, connected_to_read, is_any_open, is_writable, told, translated
from .lock import set_log_aside, side_lock
from .notes import generation_unknown, is_generation
from .pending import IS_SET_ASIDE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

LOCK_SECONDS = 30.0
WRITER_CACHE_KILOBYTES = 65_536  # ids and hashes fall anywhere in their indexes; SQLite's two megabytes would thrash
FORK_SECONDS = 5.0  # a fork waits this long for searches and writes of other threads to end

_MOMENT = (
    f"SELECT value, EXISTS (SELECT 1 FROM arrivals WHERE entry < 0) OR {IS_SET_ASIDE} FROM meta "
    "WHERE key = 'generation'"
)
_OF_OUR_OWN = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NESTED = nullcontext()  # a block inside another, which holds the snapshot

Identity = tuple[int, int]  # device and inode


class Database:
    """One SQLite file: a reading connection per thread, one writing connection behind a lock file."""

    def __init__(self, path: Path, *, forgiving: bool = False) -> None:
        self.path = path
        self.file = Path(os.path.realpath(path))  # the same for every name of the file, and so is its lock
        self.forgiving = forgiving  # of damage: reads as much of the file as is readable
        self.read_only = not is_writable(path)
        self._side_file = f"{self.file}.lock"
        self._lock = side_lock(self._side_file)
        self._turn = threading.RLock()  # one writing thread at a time, held while the lock file is waited for
        self._writing = threading.RLock()  # held while the writing connection is in use
        self._opening = threading.RLock()  # held while a connection is opened
        self._local = threading.local()
        self._held: weakref.WeakSet[_Held] = weakref.WeakSet()
        self._writer: Connection | None = None
        self._identity: Identity | None = None  # of the file that is open
        self._is_closed = False
        self._suspended: list[threading.RLock] = []  # locks held for the time of a fork
        self._descriptors: list[int] = []  # of the file itself
        key = id(self)
        _DATABASES[key] = weakref.ref(self, lambda _: _DATABASES.pop(key, None))

    def reader(self) -> Connection:
        """Return this thread's reading connection; it is closed when the thread ends."""
        held: _Held | None = getattr(self._local, "held", None)
        if held is None or held.is_closed or self._is_closed:
            held = self._new_reader()
        return held.connection

    def _new_reader(self) -> _Held:
        with self._opening:
            self._check_usable()
            with translated(self.path):
                connection = self._opened(self._connect_to_read)
                connection.execute("PRAGMA query_only=ON")
            held = self._local.held = _Held(connection)
            self._held.add(held)
        return held

    def _connect_to_read(self) -> Connection:
        if self.read_only:
            return connected_to_read(self.path, self.forgiving)
        return connected(self.path, self.forgiving)

    def _opened(self, connect: Callable[[], Connection]) -> Connection:
        """Open a connection and record which file it reads; all connections of a database read one."""
        self.check_identity()  # SQLite would create a deleted file again
        if self._identity is None and not self.read_only and identity_of(self.path) is None:
            self._make_way()
        connection = connect()
        found = identity_of(self.path)
        if self._identity is None:
            self._identity = found
        elif found != self._identity:
            connection.close()
            self.check_identity()
        return connection

    def _make_way(self) -> None:
        """Set the log of a deleted file aside before a new one is made; refuse while a process has it open."""
        if not set_log_aside(self.path):
            raise StoreUnavailable(
                f"{self.path} was deleted, and another process has it open still",
                "put it back, or stop that process (a server, an agent) and try again",
            )

    @property
    def is_current(self) -> bool:
        """Return whether the open file is still the one under its name."""
        return self._identity in (None, identity_of(self.path))

    def check_identity(self) -> None:
        """Raise if the open file is no longer the one under its name."""
        if self.is_current:
            return
        if identity_of(self.path) is None:
            raise StoreUnavailable(
                f"{self.path} was deleted while it was open",
                "put it back; or stop whatever has it open, and restore a backup by `whyrank restore FILE`",
            )
        raise StoreUnavailable(
            f"{self.path} was replaced by another file while it was open",
            "open it again; `whyrank restore FILE` replaces the content of a store that is open",
        )

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Hold this thread's reading connection, outside a transaction."""
        held = self._take_turn()
        try:
            yield held.connection
        finally:
            held.turn.release()

    def reading(self) -> AbstractContextManager[None]:
        """Hold one snapshot for all reads of this thread inside the block; blocks may nest."""
        # A search opens dozens of nested blocks: those must cost nothing.
        return _NESTED if self.reader().in_transaction else _Snapshot(self)

    def enter_snapshot(self) -> _Held:
        """Lock this thread's connection and begin a snapshot."""
        held = self._take_turn()
        try:
            self.check_identity()
            held.begin()
        except BaseException:
            held.end()
            raise
        return held

    def _take_turn(self) -> _Held:
        """Lock this thread's connection, and open another if a fork or `close` has closed it."""
        while True:
            self.reader()
            held: _Held = self._local.held
            held.turn.acquire()
            if not (held.is_closed or self._is_closed):
                return held
            held.turn.release()

    def generation(self) -> int:
        """Return the generation of this thread's snapshot; only inside `reading`."""
        held: _Held = self._local.held
        return held.generation

    @property
    def has_lost(self) -> bool:
        """Return whether this thread's snapshot has facts that were set aside as unreadable."""
        held: _Held = self._local.held
        return held.has_lost

    def writing(self) -> AbstractContextManager[Connection]:
        """Run one transaction; it is durable when the block has ended without an error."""
        return _Transaction(self)

    def begin(self) -> Connection:
        """Take the writer lock and begin a transaction; the caller must `leave` when it has ended."""
        self._enter()
        try:
            connection = self._writer or self._write_connection()
            connection.execute("BEGIN IMMEDIATE")
        except BaseException as error:
            self._undo()  # an interrupt may come when it has begun
            self.leave()
            if isinstance(error, SqlError):
                raise told(self.path, error) from error
            raise
        return connection

    def _undo(self) -> None:
        """Roll back the open transaction of an interrupted writer: later writes would join it and be lost."""
        if self._writer is not None and self._writer.in_transaction:
            self._writer.execute("ROLLBACK")

    def end(self, connection: Connection, is_well: bool) -> None:
        """Commit a transaction, or roll it back."""
        try:
            if is_well:
                connection.execute("COMMIT")
                self.check_identity()  # no write is acknowledged for a file that was replaced meanwhile
        finally:
            # On a full disk SQLite has rolled back already.
            if connection.in_transaction:
                connection.execute("ROLLBACK")

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
                raise self._kept_out(error, LOCK_SECONDS) from error
            raise
        self._writing.acquire()
        try:
            self._check_usable()  # it may have been closed while we waited
            self.check_identity()
            self._undo()
        except BaseException:
            self.leave()
            raise

    def leave(self) -> None:
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
            self.leave()

    def _kept_out(self, error: OSError, seconds: float) -> StoreError:
        """Return the error for a writer lock that could not be taken."""
        if isinstance(error, TimeoutError):
            return self._locked_out(seconds)
        if isinstance(error, PermissionError):
            return StoreError(f"{error.filename} cannot be locked", "check its owner and permissions")
        return StoreError(f"{self._side_file} cannot be locked: {error.strerror}", "see what it lacks")

    def _locked_out(self, seconds: float) -> StoreLocked:
        return StoreLocked(
            f"{self.path} has been locked by another process for {seconds:g} s",
            "wait for the other whyrank to finish, or stop it",
        )

    def _write_connection(self) -> Connection:
        if self._writer is None:
            with self._opening:
                self._writer = self._opened(lambda: connected(self.path, self.forgiving))
            self._writer.execute("PRAGMA journal_mode=WAL")
            self._writer.execute(f"PRAGMA cache_size=-{WRITER_CACHE_KILOBYTES}")
        return self._writer

    def _check_usable(self) -> None:
        if self._is_closed:
            raise StoreError(f"{self.path} was closed", "open it again")
        if _Fork.is_unsafe:
            raise StoreUnavailable(
                f"{self.path} cannot be opened here: this process was forked in the middle of a search or a write",
                "fork when no call is running, or start the process by `multiprocessing`'s spawn",
            )

    def close(self) -> None:
        """Close every connection of every thread, each when its current block has ended."""
        self._is_closed = True
        for held in self._all_held():
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

    def _all_held(self) -> list[_Held]:
        with self._opening:
            return list(self._held)

    def suspend(self, deadline: float) -> None:
        """Close every connection before a fork, each when its current block has ended, and block new ones.

        Connections in use by this thread stay open, and so do those that other threads do not release in time.
        """
        for held in self._all_held():
            self._suspend_reader(held, deadline)
        if self._hold(self._writing, deadline) and self._writer is not None and not self._writer.in_transaction:
            self._writer.close()
            self._writer = None
        if self._hold(self._opening, deadline):
            for held in [held for held in self._held if not held.is_closed]:  # opened meanwhile
                self._suspend_reader(held, deadline)

    def _suspend_reader(self, held: _Held, deadline: float) -> None:
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


class _Snapshot:
    """A snapshot as a context manager: a class, as the cost of a generator would show in every search."""

    __slots__ = ("_database", "_held")

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> None:
        try:
            self._held = self._database.enter_snapshot()
        except SqlError as error:
            raise told(self._database.path, error) from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._held.end()
        except SqlError as failure:
            raise told(self._database.path, failure) from failure
        if isinstance(error, SqlError):
            raise told(self._database.path, error) from error


class _Transaction:
    """A transaction as a context manager: a class, as a fact is stored in the time of a few generators."""

    __slots__ = ("_connection", "_database")

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> Connection:
        self._connection = self._database.begin()
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._database.end(self._connection, error is None)
        except SqlError as failure:
            raise told(self._database.path, failure) from failure
        finally:
            self._database.leave()
        if isinstance(error, SqlError):
            raise told(self._database.path, error) from error


class _Held:
    """A thread's connection, closed when the thread ends."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.turn = threading.RLock()
        self.is_closed = False  # set before a fork; the next read opens another
        self.generation = 0
        self.has_lost = False

    def begin(self) -> None:
        """Begin a snapshot, and read its generation."""
        self.connection.execute("BEGIN")
        moment = self.connection.execute(_MOMENT).fetchone()
        if moment is None or not is_generation(moment[0]):
            raise generation_unknown()
        self.generation, self.has_lost = int(moment[0]), bool(moment[1])

    def end(self) -> None:
        """End a snapshot, and unlock the connection."""
        try:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")  # nothing was written, and a COMMIT fails on a damaged page
        finally:
            self.turn.release()

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
        cls.is_unsafe = cls.is_unsafe or is_any_open()
        for database in cls.suspended:
            database.resume_in_child()
        cls.suspended = ()


if hasattr(os, "register_at_fork"):  # absent on platforms without fork
    os.register_at_fork(before=_Fork.begin, after_in_parent=_Fork.end_in_parent, after_in_child=_Fork.end_in_child)
