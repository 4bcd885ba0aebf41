"""One SQLite file: a reading connection per thread, one writing connection, one lock in front of writers."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from types import TracebackType

from ...errors import StoreError, StoreLocked
from .connection import (
    BUSY_MILLISECONDS,
    Connection,
    Cursor,
    Row,
    SqlError,
    connected,
    connected_to_read,
    is_writable,
    told,
    translated,
)
from .locking import side_lock
from .notes import generation_unknown, is_generation
from .restating import IS_MARKED, IS_SET_ASIDE

LOCK_SECONDS = 30.0
# How long a reader waits for other writers before it answers without what has just arrived, and how long it then
# leaves them alone: a person notices a second, and most writers are done in a few hundredths of one.
INDEXING_SECONDS = 0.5
FOREVER = -1.0  # as `RLock.acquire` has it
PAUSE_SECONDS = 2.0
WRITER_CACHE_KILOBYTES = 65_536  # ids and hashes fall anywhere in their indexes; SQLite's two megabytes would thrash

_MOMENT = (
    "SELECT value, coalesce((SELECT max(entry) FROM arrivals), -1), coalesce((SELECT min(entry) FROM arrivals), 0), "
    f"{IS_MARKED}, {IS_SET_ASIDE} FROM meta WHERE key = 'generation'"
)
_NESTED = nullcontext()  # a block inside another, which holds the snapshot


class _Forks:
    """Counts how often this process was forked off another: what was opened before that is another's."""

    count = 0

    @classmethod
    def add(cls) -> None:
        """Count one more, in the child."""
        cls.count += 1


# Asking the system which process this is costs a call, and a search would ask twenty times. Who forks without telling
# Python is not seen.
if hasattr(os, "register_at_fork"):  # where it is not, nobody forks
    os.register_at_fork(after_in_child=_Forks.add)


class Database:
    """One SQLite file: a reading connection per thread, one writing connection behind a lock file."""

    def __init__(self, path: Path, *, forgiving: bool = False) -> None:
        self.path = path
        self.file = Path(os.path.realpath(path))  # one, by whatever name it is opened; so its lock is one too
        self.forgiving = forgiving  # of damage: what can be read of the file is read
        self.read_only = not is_writable(path)
        self._side_file = f"{self.file}.lock"
        self._lock = side_lock(self._side_file)
        self._turn = threading.RLock()
        self._local = threading.local()
        self._held: weakref.WeakSet[_Held] = weakref.WeakSet()
        self._writer: Connection | None = None
        self._is_closed = False
        self._busy_until = 0.0
        self._forks = _Forks.count
        # Whoever opens the file says how arrivals are indexed, inside the transaction at hand.
        self.index_arrivals: Callable[[Connection], None] = lambda connection: None

    def reader(self) -> Connection:
        """Return this thread's reading connection; it is closed when the thread ends."""
        self._check_usable()
        held: _Held | None = getattr(self._local, "held", None)
        if held is None:
            with translated(self.path):
                held = _Held(self._connected_to_read())
                held.connection.execute("PRAGMA query_only=ON")
            self._local.held = held
            self._held.add(held)
        return held.connection

    def _connected_to_read(self) -> Connection:
        if self.read_only:
            return connected_to_read(self.path, self.forgiving)
        return connected(self.path, self.forgiving)

    def reading(self, latest: bool = True) -> AbstractContextManager[None]:
        """Hold one snapshot for all reads of this thread inside the block; blocks may nest.

        If it shall be the latest, what has arrived is indexed first, as far as this process may write now.
        """
        # A search opens dozens of blocks inside its own: those must cost nothing.
        return _NESTED if self.reader().in_transaction else _Snapshot(self, self._local.held, latest)

    def look(self, held: _Held, latest: bool) -> None:
        """Begin a snapshot, behind the turn of its connection."""
        self._check_usable()  # it may have been closed while we waited
        held.look()
        if held.is_behind and latest:
            held.connection.execute("COMMIT")
            self._catch_up(held)

    def _catch_up(self, held: _Held) -> None:
        """Index what has arrived and look at that very moment; who may not write, or not soon, sees what is indexed."""
        if not self.read_only:
            with suppress(StoreError):
                self.index_now(held.look)  # behind the lock, where nothing can arrive in between
        if not held.connection.in_transaction:
            held.look()

    def index_now(self, then: Callable[[], None] = lambda: None) -> None:
        """Index what has arrived, do something else before others may write, and give up soon where others do."""
        if time.monotonic() < self._busy_until:
            raise StoreLocked(f"{self.path} was locked a moment ago", "wait for the other process, or stop it")
        try:
            self._enter(INDEXING_SECONDS, INDEXING_SECONDS)
            try:
                with translated(self.path), _indexing(self._write_connection()) as connection:
                    self.index_arrivals(connection)
                then()
            finally:
                self.leave()
        except StoreError:
            self._busy_until = time.monotonic() + PAUSE_SECONDS
            raise

    @property
    def is_behind(self) -> bool:
        """Tell whether something has arrived that is not indexed in the moment this thread reads."""
        held: _Held = self._local.held
        return held.is_behind

    @property
    def has_lost(self) -> bool:
        """Tell whether something that arrived, or was changed, could not be read any more."""
        held: _Held = self._local.held
        return held.has_lost

    def generation(self) -> int:
        """Return which generation this thread is reading; only inside `reading`."""
        held: _Held = self._local.held
        return held.generation

    def writing(self) -> AbstractContextManager[Connection]:
        """Run one transaction; it is durable when the block has ended without an error."""
        return _Transaction(self)

    def run(self, statement: str, parameters: Row) -> Cursor:
        """Run one statement as a transaction of its own; it is durable on return."""
        self._enter(FOREVER, LOCK_SECONDS)
        try:
            done = (self._writer or self._write_connection()).execute(statement, parameters)
            self._busy_until = 0.0
            return done
        except SqlError as error:
            raise told(self.path, error) from error
        finally:
            self.leave()

    def begin(self) -> Connection:
        """Become the only writer and begin a transaction; whoever does so leaves when it has ended."""
        self._enter(FOREVER, LOCK_SECONDS)
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
        """Undo what an interrupted writer has left open: what others then write would be part of it, and never kept."""
        if self._writer is not None and self._writer.in_transaction:
            self._writer.execute("ROLLBACK")

    def end(self, connection: Connection, is_well: bool) -> None:
        """Make a transaction durable, or undo it."""
        try:
            if is_well:
                connection.execute("COMMIT")
                self._busy_until = 0.0
        finally:
            # On a full disk SQLite has rolled back already.
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _enter(self, patience: float, seconds: float) -> None:
        """Become the only writer: wait so long for other threads, and so long for processes."""
        self._check_usable()
        if self.read_only:
            raise StoreError(f"{self.path} cannot be written to", "check the permissions of the file and its folder")
        if not self._turn.acquire(timeout=patience):
            raise self._locked_out(patience)
        try:
            self._lock.take(seconds)
        except BaseException as error:
            self._lock.close()
            self._turn.release()
            if isinstance(error, OSError):
                raise self._kept_out(error, seconds) from error
            raise
        if self._is_closed:  # while we waited
            self.leave()
            self._check_usable()
        self._undo()

    def leave(self) -> None:
        """Let others write."""
        try:
            self._lock.give_back()
        finally:
            self._turn.release()

    def rewrite(self) -> bool:
        """Write the whole file anew, without free pages and without a log; tell whether no reader was in the way."""
        self._enter(FOREVER, LOCK_SECONDS)
        try:
            with translated(self.path):
                connection = self._write_connection()
                # A copy of all that is kept is made on the way: not in memory, as other temporary things are.
                connection.execute("PRAGMA temp_store=FILE")
                connection.execute("VACUUM")
                connection.execute("PRAGMA temp_store=MEMORY")
                busy: int = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
                return not busy
        finally:
            self.leave()

    @contextmanager
    def alone(self) -> Iterator[Connection]:
        """Be the only writer, in no transaction yet."""
        self._enter(FOREVER, LOCK_SECONDS)
        try:
            with translated(self.path):
                yield self._write_connection()
        finally:
            self.leave()

    def _kept_out(self, error: OSError, seconds: float) -> StoreError:
        """Say why the lock was not to be had."""
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
            self._writer = connected(self.path, self.forgiving)
            self._writer.execute("PRAGMA journal_mode=WAL")
            self._writer.execute(f"PRAGMA cache_size=-{WRITER_CACHE_KILOBYTES}")
        return self._writer

    def _check_usable(self) -> None:
        if self._is_closed:
            raise StoreError(f"{self.path} was closed", "open it again")
        if _Forks.count != self._forks:
            raise StoreError("this store was opened before a fork", "open it again in the child process")

    def close(self) -> None:
        """Close every connection of every thread, each when what it is doing is done."""
        self._is_closed = True
        for held in list(self._held):
            with held.turn:
                held.connection.close()
        with self._turn:
            if self._writer is not None:
                self._writer.close()
                self._writer = None
            self._lock.close()


class _Snapshot:
    """One moment as a block: a class, because every search holds one, and a generator costs as much as looking does."""

    __slots__ = ("_database", "_held", "_latest")

    def __init__(self, database: Database, held: _Held, latest: bool) -> None:
        self._database = database
        self._held = held
        self._latest = latest

    def __enter__(self) -> None:
        self._held.turn.acquire()
        try:
            self._database.look(self._held, self._latest)
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._held.connection.in_transaction:
                self._held.connection.execute("ROLLBACK")  # of what was only read; of a damaged page no COMMIT gets rid
        except SqlError as failure:
            raise told(self._database.path, failure) from failure
        finally:
            self._held.turn.release()
        if isinstance(error, SqlError):
            raise told(self._database.path, error) from error


class _Transaction:
    """One transaction as a block: a class, because a fact is stored in the time a few generators take."""

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
    """A thread's connection, closed with the thread that held it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.turn = threading.RLock()
        self.generation = 0
        self.is_behind = False
        self.has_lost = False

    def look(self) -> None:
        """Begin a snapshot: which generation it is, and whether something has arrived that it does not index."""
        self.connection.execute("BEGIN")
        moment = self.connection.execute(_MOMENT).fetchone()
        if moment is None or not is_generation(moment[0]):
            raise generation_unknown()
        generation, newest, oldest, is_marked, is_aside = moment
        self.generation, self.is_behind = int(generation), newest >= 0 or bool(is_marked)
        self.has_lost = oldest < 0 or bool(is_aside)

    def __del__(self) -> None:
        self.connection.close()


@contextmanager
def _indexing(connection: Connection) -> Iterator[Connection]:
    """Run a transaction of what can be done again: nobody need wait for the disk, nor long for others."""
    try:
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(f"PRAGMA busy_timeout={INDEXING_SECONDS * 1000:.0f}")
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("COMMIT")
    finally:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        finally:  # whatever came in between: what is acknowledged later must be on the disk
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")
