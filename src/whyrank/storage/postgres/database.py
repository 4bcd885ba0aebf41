"""A store in PostgreSQL: its address, a pool of connections, snapshots and transactions."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool, PoolTimeout

from ...errors import ConfigError, StoreError, StoreUnavailable
from .connection import Connection, NumericLoader, Traffic, is_conflict, is_lost, translated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..backend import Asked

Done = TypeVar("Done")
SCHEMES = ("postgresql", "postgres")
SCHEMA = "whyrank"  # unless the address has `?schema=NAME`
CONNECTIONS = 10  # of one process at most
WAIT_SECONDS = 30.0  # for a connection of the pool, or for the lock of writers
ATTEMPTS = 5  # of a transaction that met another, or whose connection was lost before its commit
FIRST_PAUSE_SECONDS = 0.05  # before the second attempt; each later one waits twice as long
CONNECT_SECONDS = 10
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_LOCK = "SELECT pg_advisory_xact_lock(hashtext('{schema}'))"  # one writer at a time, over all hosts


class Address(NamedTuple):
    """Address of a store: for libpq, and the schema of our tables."""

    dsn: str
    schema: str

    @classmethod
    def parse(cls, url: str) -> Address:
        """Read `postgresql://user@host/database?schema=NAME`; other parameters are libpq's."""
        parts = urlsplit(url)
        given = parse_qsl(parts.query)
        schema = next((value for name, value in given if name == "schema"), SCHEMA)
        if parts.scheme not in SCHEMES or not schema.replace("_", "").isalnum() or not schema[0].isalpha():
            raise ConfigError(
                f"{masked(url)} is no address of a store", "write postgresql://USER@HOST/DATABASE?schema=NAME"
            )
        kept = urlencode([(name, value) for name, value in given if name != "schema"])
        address = cls(urlunsplit(parts._replace(query=kept)), schema.lower())
        try:
            conninfo_to_dict(address.dsn)
        except psycopg.Error as error:
            raise ConfigError(f"{masked(url)} is no address: {str(error).strip()}", "check its parameters") from error
        return address

    def __str__(self) -> str:
        return masked(self.dsn) + (f"?schema={self.schema}" if self.schema != SCHEMA else "")


def masked(url: str) -> str:
    """Return an address without its password and its parameters."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}{at}{host}", query=""))


class _CommitLost(StoreUnavailable):
    """Nobody knows whether a transaction was committed, so it must not be tried again unasked."""


class Snapshot(NamedTuple):
    """One moment of the store: a connection inside a read transaction, and the generation it reads."""

    connection: Any
    generation: int
    has_lost: bool


class PostgresDatabase:
    """Connections to one schema; searches read snapshots, and writers take turns over all hosts."""

    def __init__(self, address: Address, moment: str) -> None:
        self.address = address
        self.location = str(address)
        self.read_only = False
        self._lock = _LOCK.format(schema=address.schema)
        self._moment = moment  # the statement that reads the generation
        self._local = threading.local()
        self._pool: ConnectionPool[Any] | None = None
        self._ending: ThreadPoolExecutor | None = None  # ends snapshots, as nobody needs to wait for that
        self._process = 0
        self._turn = threading.Lock()
        self.traffic = Traffic()

    def _connections(self) -> ConnectionPool[Any]:
        """Return the pool of this process: connections of a parent are not its child's."""
        with self._turn:
            if self._pool is None or self._process != os.getpid():
                self._check()
                self._pool = ConnectionPool(
                    self.address.dsn,
                    min_size=0,
                    max_size=CONNECTIONS,
                    kwargs={"autocommit": True, "connect_timeout": CONNECT_SECONDS, "application_name": "whyrank"},
                    configure=self._configure,
                    timeout=WAIT_SECONDS,
                    reconnect_timeout=CONNECT_SECONDS,
                    open=False,
                )
                self._ending = ThreadPoolExecutor(1, "whyrank-snapshots")
                self._process = os.getpid()
                self._pool.open()
            return self._pool

    def _check(self) -> None:
        """Connect once outside the pool, which would hide why the server cannot be reached."""
        with translated(self.location), psycopg.connect(self.address.dsn, connect_timeout=CONNECT_SECONDS):
            pass

    def _configure(self, raw: psycopg.Connection[Any]) -> None:
        raw.adapters.register_loader("numeric", NumericLoader)
        raw.execute(f'SET search_path = "{self.address.schema}", pg_catalog')

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Hold a connection of the pool, outside a transaction."""
        raw = self._take()
        try:
            yield Connection(raw, self.traffic)
        finally:
            self._connections().putconn(raw)

    def _take(self) -> psycopg.Connection[Any]:
        try:
            taken: psycopg.Connection[Any] = self._connections().getconn()
            return taken
        except PoolTimeout as error:
            raise StoreUnavailable(
                f"{self.location}: no connection was free for {WAIT_SECONDS:g} s",
                "ask less at a time, or check that the server can be reached",
            ) from error

    @contextmanager
    def reading(self, foreseen: Iterable[Asked] = ()) -> Iterator[Snapshot]:
        """Hold one snapshot for all reads of this thread inside the block; blocks may nest.

        Foreseen statements are sent with its beginning, in one round trip.
        """
        held: Snapshot | None = getattr(self._local, "snapshot", None)
        if held is not None:
            held.connection.foresee(foreseen)
            yield held
            return
        with translated(self.location), self._begun([(self._moment, ()), *foreseen]) as connection:
            try:
                generation, has_lost = connection.execute(self._moment).fetchone()
                self._local.snapshot = Snapshot(connection, int(generation), bool(has_lost))
                yield self._local.snapshot
            finally:
                self._local.snapshot = None

    @contextmanager
    def _begun(self, foreseen: Sequence[Asked]) -> Iterator[Connection]:
        """Hold a connection in a read transaction; one that the server has closed meanwhile is replaced."""
        connection = self._begin(foreseen)
        try:
            yield connection
        finally:
            pool, ending = self._connections(), self._ending
            assert ending is not None
            ending.submit(_end_snapshot, connection.raw, pool)

    def _begin(self, foreseen: Sequence[Asked]) -> Connection:
        for attempt in range(ATTEMPTS):
            connection = Connection(self._take(), self.traffic)
            try:
                connection.begin(_SNAPSHOT, foreseen)
            except BaseException as error:
                connection.raw.close()
                self._connections().putconn(connection.raw)
                if not (isinstance(error, psycopg.Error) and is_lost(error)) or attempt == ATTEMPTS - 1:
                    raise
            else:
                return connection
        raise AssertionError("the last attempt returns or raises")

    @contextmanager
    def writing(self, foreseen: Iterable[Asked] = (), *, alone: bool = True) -> Iterator[Any]:
        """Run one transaction; it is durable when the block has ended without an error.

        Foreseen statements are sent with its beginning, in one round trip. Unless `alone`, other writers run at the
        same time, and the caller locks the rows that it changes.
        """
        with translated(self.location), self.connection() as connection, connection.pipelined():
            try:
                connection.execute("BEGIN")
                if alone:
                    connection.execute(self._lock)
                connection.foresee(foreseen)
                yield connection
            except BaseException:
                _roll_back(connection)
                raise
            self._commit(connection)

    @contextmanager
    def migrating(self) -> Iterator[Connection]:
        """Run one transaction of scripts, which no pipeline can take."""
        with translated(self.location), self.connection() as connection, connection.raw.transaction():
            connection.execute(self._lock)
            yield connection

    def _commit(self, connection: Connection) -> None:
        try:
            connection.execute("COMMIT")
            connection.receive()
        except psycopg.Error as error:
            if not is_lost(error):
                _roll_back(connection)  # a statement before it has failed
                raise
            raise _CommitLost(
                f"the connection to {self.location} was lost while a change was committed, so it may be stored or not",
                "make the change again: facts are not stored twice, and a write with a key happens once",
            ) from error

    def attempt(self, work: Callable[[], Done], *, frees: bool = False) -> Done:
        """Run a transaction again that met another, or whose connection was lost while nothing was committed."""
        pause = FIRST_PAUSE_SECONDS
        for _ in range(ATTEMPTS - 1):
            try:
                return work()
            except StoreError as error:
                cause = error.__cause__
                is_open = isinstance(cause, psycopg.Error) and (is_conflict(cause) or is_lost(cause))
                if not is_open or isinstance(error, _CommitLost):
                    raise
            time.sleep(pause)
            pause *= 2
        return work()

    def close(self) -> None:
        """Close the pool."""
        with self._turn:
            if self._pool is not None and self._ending is not None and self._process == os.getpid():
                self._ending.shutdown()
                self._pool.close()
            self._pool = None


def _roll_back(connection: Connection) -> None:
    """Roll a transaction back; its statements may have failed, or the connection was lost."""
    with suppress(psycopg.Error):
        connection.receive()
    with suppress(psycopg.Error):
        connection.execute("ROLLBACK")
        connection.receive()


def _end_snapshot(raw: psycopg.Connection[Any], pool: ConnectionPool[Any]) -> None:
    """Return a connection to its pool; nothing was written in its transaction."""
    with suppress(psycopg.Error):
        raw.execute("ROLLBACK")
    with suppress(ValueError):  # the pool was closed meanwhile
        pool.putconn(raw)
