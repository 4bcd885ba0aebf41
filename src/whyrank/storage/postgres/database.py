"""A store in PostgreSQL: its address, a pool of connections, snapshots and transactions."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool, PoolTimeout

from ...errors import ConfigError, StoreError, StoreUnavailable
from .connection import Connection, NumericLoader, is_conflict, is_lost, translated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Done = TypeVar("Done")
SCHEMES = ("postgresql", "postgres")
SCHEMA = "whyrank"  # unless the address has `?schema=NAME`
CONNECTIONS = 10  # of one process at most
WAIT_SECONDS = 30.0  # for a connection of the pool, or for the lock of writers
ATTEMPTS = 5  # of a transaction that met another, or whose connection was lost before its commit
FIRST_PAUSE_SECONDS = 0.05  # before the second attempt; each later one waits twice as long
CONNECT_SECONDS = 10
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_LOCK = "SELECT pg_advisory_xact_lock(hashtext(current_schema()))"  # one writer at a time, over all hosts


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
        self._moment = moment  # the statement that reads the generation
        self._local = threading.local()
        self._pool: ConnectionPool[Any] | None = None
        self._process = 0
        self._turn = threading.Lock()

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
        try:
            with self._connections().connection() as raw:
                yield Connection(raw)
        except PoolTimeout as error:
            raise StoreUnavailable(
                f"{self.location}: no connection was free for {WAIT_SECONDS:g} s",
                "ask less at a time, or check that the server can be reached",
            ) from error

    @contextmanager
    def reading(self) -> Iterator[Snapshot]:
        """Hold one snapshot for all reads of this thread inside the block; blocks may nest."""
        held: Snapshot | None = getattr(self._local, "snapshot", None)
        if held is not None:
            yield held
            return
        with translated(self.location), self._begun() as connection:
            try:
                generation, has_lost = connection.execute(self._moment).fetchone()
                self._local.snapshot = Snapshot(connection, int(generation), bool(has_lost))
                yield self._local.snapshot
            finally:
                self._local.snapshot = None

    @contextmanager
    def _begun(self) -> Iterator[Connection]:
        """Hold a connection in a read transaction; one that the server has closed meanwhile is replaced."""
        for attempt in range(ATTEMPTS):
            with self.connection() as connection:
                try:
                    connection.execute(_SNAPSHOT)
                except psycopg.Error as error:
                    connection.raw.close()
                    if not is_lost(error) or attempt == ATTEMPTS - 1:
                        raise
                    continue
                try:
                    yield connection
                finally:
                    if not connection.raw.closed:
                        connection.execute("ROLLBACK")  # nothing was written
                return

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """Run one transaction; it is durable when the block has ended without an error."""
        with translated(self.location), self.connection() as connection:
            connection.execute("BEGIN")
            try:
                connection.execute(_LOCK)
                yield connection
            except BaseException:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
                raise
            self._commit(connection)

    def _commit(self, connection: Connection) -> None:
        try:
            connection.execute("COMMIT")
        except psycopg.Error as error:
            if not is_lost(error):
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
            if self._pool is not None and self._process == os.getpid():
                self._pool.close()
            self._pool = None
