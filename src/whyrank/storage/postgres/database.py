"""A store in PostgreSQL: its address, a pool of connections, snapshots and transactions."""

from __future__ import annotations

import math
import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from uuid import uuid4

import psycopg

from ...errors import StoreError, StoreLocked, StoreTimeout, StoreUnavailable
from ..sqlite.database import generation_unknown
from .connection import Connection, Traffic, is_conflict, is_lost, translated
from .pool import WAIT_SECONDS, Address, PoolBusy, PoolStatus, ServerConnections, end_snapshot, give_back
from .replicas import BEGIN_SECONDS, COMMITTED, CONNECT_SECONDS, Begun, Replicas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from ..backend import Asked

Done = TypeVar("Done")
# How long to try again what met another transaction, or a server that does not answer. A restart after a crash and the
# promotion of a replica take seconds; who searches waits less.
WRITE_AGAIN_SECONDS = 30.0
READ_AGAIN_SECONDS = 1.0
FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 0.5
STANDBYS = "SELECT count(*) FROM pg_stat_replication"
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"  # a snapshot per statement: none is older than the lock
# One writer at a time, over all hosts. The server ends the transaction of a host that is silent in the middle of one.
_LOCK = (
    "SELECT pg_advisory_xact_lock(hashtext('{schema}')), set_config('idle_in_transaction_session_timeout', '60s', true)"
)
_END_BACKEND = (
    "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE pid = %s AND usename = current_user "
    "AND application_name = current_setting('application_name') AND datname = current_database()"
)
_SETTLE = "INSERT INTO commits (token) VALUES (%s) ON CONFLICT (token) DO UPDATE SET made = now() RETURNING xmax <> 0"
_TRACE = (
    "WITH old AS (DELETE FROM commits WHERE made < now() - interval '1 hour'), "
    "mark AS (INSERT INTO commits (token) VALUES (?)) "
)


class _CommitLost(StoreUnavailable):
    """Nobody knows whether a transaction was committed, so it must not be tried again unasked."""


class _Tries:
    """Pauses between tries of something that may go well later, as long as the outage of the server allows."""

    def __init__(self, database: PostgresDatabase, seconds: float) -> None:
        self._database = database
        self._seconds = seconds
        self._began = time.monotonic()
        self._pause = FIRST_PAUSE_SECONDS

    def wait_after(self, error: StoreError) -> None:
        """Wait a little longer than last time; raise the error if it will not pass, or it is too late."""
        now, pause = time.monotonic(), self._pause * random.uniform(0.5, 1.0)  # writers that met shall not meet again
        is_away, is_met = isinstance(error, StoreUnavailable) and error.may_pass, isinstance(error, StoreLocked)
        away = self._database.away_since
        if is_away and away is None:
            away = self._database.away_since = now
        until = max(self._began + READ_AGAIN_SECONDS, (self._began if away is None else away) + self._seconds)
        if not (is_away or (is_met and _is_conflict(error))) or now + pause > until:
            if isinstance(error, StoreUnavailable) and away is not None:
                error.may_pass = error.may_pass and now < away + WRITE_AGAIN_SECONDS
            raise error
        self._database.retries += 1
        time.sleep(pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)


def _is_conflict(error: StoreError) -> bool:
    return isinstance(error.__cause__, psycopg.Error) and is_conflict(error.__cause__)


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
        self._pool: ServerConnections | None = None
        self._replicas: Replicas | None = None
        self.away_since: float | None = -math.inf  # when the server was found not to answer; None if it does
        self.retries = 0
        self._ending: ThreadPoolExecutor | None = None  # ends snapshots, as nobody needs to wait for that
        self._process = 0
        self._writers = threading.Lock()  # only one of them could go on anyway
        self._turn = threading.Lock()
        self.traffic = Traffic()

    def _connections(self) -> ServerConnections:
        """Return the pool of this process: connections of a parent are not its child's."""
        with self._turn:
            if self._pool is None or self._process != os.getpid():
                self._pool, self._process = ServerConnections(self.address), os.getpid()
                self._ending = ThreadPoolExecutor(1, "whyrank-snapshots")
                self._writers = threading.Lock()
                primary = partial(self.connection, 0.0, CONNECT_SECONDS)
                self._replicas = Replicas(self.address, primary, self.traffic) if self.address.replicas else None
            return self._pool

    @property
    def replicas(self) -> Replicas | None:
        """Return the replicas that the address names, if it names some."""
        self._connections()
        return self._replicas

    @property
    def pool(self) -> PoolStatus:
        """Return the counts of the pool of this process."""
        return self._connections().status

    @contextmanager
    def connection(self, patience: float | None = None, within: int | None = None) -> Iterator[Connection]:
        """Hold a connection of the pool, outside a transaction; wait so long for one, and for the server."""
        with translated(self.location):
            pool = self._connections()
            connection = Connection(pool.take(patience, within), self.traffic)
            try:
                yield connection
            finally:
                give_back(connection, pool)

    @contextmanager
    def reading(
        self, foreseen: Iterable[Asked] = (), *, may_lag: bool = False, until: float | None = None
    ) -> Iterator[Snapshot]:
        """Hold one snapshot for all reads of this thread inside the block; blocks may nest.

        Foreseen statements are sent with its beginning, in one round trip. One that may lag is of a replica if the
        address names some and one is recent enough.
        """
        held: Snapshot | None = getattr(self._local, "snapshot", None)
        if held is not None:
            if self._local.process != os.getpid():
                raise StoreUnavailable(
                    f"{self.location} cannot be read here: this process was forked during a search or a write",
                    "fork when no call is running, or start the process with `multiprocessing`'s spawn",
                )
            held.connection.foresee(foreseen)
            yield held
            return
        with translated(self.location), self._begun(list(foreseen), may_lag, until) as connection:
            try:
                moment = connection.execute(self._moment).fetchone()
                if moment is None:
                    raise generation_unknown()
                self._local.snapshot, self._local.process = (
                    Snapshot(connection, int(moment[0]), bool(moment[1])),
                    os.getpid(),
                )
                yield self._local.snapshot
            finally:
                self._local.snapshot = None

    def searching(self, foreseen: Iterable[Asked] = (), until: float | None = None) -> AbstractContextManager[Snapshot]:
        """Hold a snapshot that may lag; raise StoreTimeout if no connection is free until a moment."""
        return self.reading(foreseen, may_lag=True, until=until)

    @contextmanager
    def _begun(self, foreseen: Sequence[Asked], may_lag: bool, until: float | None) -> Iterator[Connection]:
        """Hold a connection in a read transaction; one that the server has closed meanwhile is replaced."""
        begun = self._begin(foreseen, self.replicas if may_lag else None, until)
        try:
            yield begun.connection
        except (psycopg.Error, StoreError) as error:
            if begun.replica is not None and self._replicas is not None:
                self._replicas.drop(begun.replica, error)
            raise
        finally:
            self._connections()
            assert self._ending is not None
            self._ending.submit(end_snapshot, begun.connection, begun.pool)

    def _begin(self, foreseen: Sequence[Asked], replicas: Replicas | None, until: float | None) -> Begun:
        tries, moment = _Tries(self, READ_AGAIN_SECONDS), (self._moment, ())
        begun = replicas.begin(_SNAPSHOT, moment, foreseen) if replicas is not None else None
        while begun is None:
            try:
                with translated(self.location):
                    begun = self._begin_once([moment, *foreseen], replicas, until)
            except PoolBusy as error:
                if until is None or time.monotonic() < until:
                    raise
                raise StoreTimeout(error.message, error.hint) from error
            except StoreError as error:
                is_away = isinstance(error, StoreUnavailable) and error.may_pass
                if replicas is not None and is_away:
                    begun = replicas.begin(_SNAPSHOT, moment, foreseen, is_alone=True)
                if begun is None:
                    tries.wait_after(error)
        return begun

    def _begin_once(self, foreseen: Sequence[Asked], replicas: Replicas | None, until: float | None) -> Begun:
        pool = self._connections()
        within = None if replicas is None else CONNECT_SECONDS  # else searches would not go on without the primary
        patience = None if until is None else min(WAIT_SECONDS, max(0.0, until - time.monotonic()))
        connection = Connection(pool.take(patience, within), self.traffic)
        try:
            with nullcontext() if replicas is None else connection.raw.bounded(BEGIN_SECONDS):
                connection.begin(_SNAPSHOT, foreseen)
        except BaseException:
            connection.is_spoilt = True
            give_back(connection, pool)
            raise
        self.away_since = None
        connection.notices = () if replicas is None else replicas.notices
        return Begun(connection, pool)

    @contextmanager
    def writing(self, foreseen: Iterable[Asked] = (), *, alone: bool = True) -> Iterator[Any]:
        """Run one transaction; it is durable when the block has ended without an error.

        Foreseen statements are sent with its beginning, in one round trip. Unless `alone`, other writers run at the
        same time, and the caller locks the rows that it changes. It leaves a token, so that a commit can be told from a
        rollback if the connection is lost in between.
        """
        token, is_committed = uuid4().hex, False
        with self._taking_turns(alone), self.connection() as connection:
            backend = connection.raw.info.backend_pid
            try:
                with connection.pipelined():
                    try:
                        connection.execute(_BEGIN)
                        connection.execute(_TRACE + (self._lock if alone else "SELECT 1"), (token,))
                        connection.foresee(foreseen)
                        yield connection
                    except BaseException as error:
                        _roll_back(connection)
                        if isinstance(error, psycopg.Error) and is_lost(error):
                            self._end_backend(backend)
                        raise
                    self._commit(connection, token, backend)
                    is_committed = True
            except psycopg.Error:
                if not is_committed:  # else only the end of the pipeline has failed
                    raise

    @contextmanager
    def _taking_turns(self, alone: bool) -> Iterator[None]:
        """Wait for the writers of this process before a connection is taken: readers need connections too."""
        if not alone:
            yield
            return
        self._connections()
        writers = self._writers
        if not writers.acquire(timeout=WAIT_SECONDS):
            raise StoreLocked(
                f"{self.location} is busy: another thread has been writing for {WAIT_SECONDS:g} s", "try again"
            )
        try:
            yield
        finally:
            writers.release()

    @contextmanager
    def migrating(self) -> Iterator[Connection]:
        """Run one transaction of scripts, which no pipeline can take."""
        with self.connection() as connection, connection.raw.transaction():
            connection.execute(self._lock)
            yield connection

    def _end_backend(self, backend: int) -> None:
        """End a transaction whose connection was lost: a server that has not noticed holds its lock for a minute."""
        with suppress(psycopg.Error), closing(self._connections().connect()) as raw:
            raw.execute(_END_BACKEND, (backend,))

    def _commit(self, connection: Connection, token: str, backend: int) -> None:
        try:
            answer, row = connection.commit(COMMITTED if self._replicas is not None else "")
        except psycopg.Error as error:
            if not is_lost(error):
                _roll_back(connection)  # a statement before it has failed
                raise
            self._end_backend(backend)
            if not self._is_committed(token, error):
                raise
            answer, row = "COMMIT", None
        if row is not None and self._replicas is not None:
            self._replicas.record_commit(*row)
        if answer != "COMMIT":
            raise StoreError(
                f"a change of {self.location} was rolled back, because a statement in it had failed",
                "nothing was stored; please report this with the log of the server",
            )
        self.away_since = None

    def _is_committed(self, token: str, lost: psycopg.Error) -> bool:
        """Return whether a transaction whose connection was lost at its commit was committed.

        To write the same token waits until that transaction has ended. A token that is there is changed, so that a
        synchronous replica has both when this has been committed; one that was not is not left behind.
        """
        tries = _Tries(self, WRITE_AGAIN_SECONDS)
        while True:
            try:
                with translated(self.location), closing(self._connections().connect()) as raw:
                    raw.execute(_BEGIN)
                    is_there = raw.execute(_SETTLE, (token,)).fetchone() == (True,)
                    raw.execute("COMMIT" if is_there else "ROLLBACK")
                    if is_there and self._replicas is not None:
                        self._replicas.record_commit(*(raw.execute(COMMITTED).fetchone() or (0, 0)))
                    return is_there
            except StoreError as error:
                try:
                    tries.wait_after(error)
                except StoreError as last:
                    raise _CommitLost(
                        f"the connection to {self.location} was lost while a change was committed, "
                        "so it may be stored or not",
                        "make the change again when the server is back: facts are not stored twice, "
                        "and a write with a key happens once",
                    ) from (last.__cause__ or lost)

    def attempt(self, work: Callable[[], Done], *, frees: bool = False) -> Done:
        """Run a transaction again that met another, or whose connection was lost while nothing was committed.

        A server that has answered before may take a while to restart, or another to take its place.
        """
        tries = _Tries(self, WRITE_AGAIN_SECONDS)
        while True:
            try:
                return work()
            except StoreError as error:
                tries.wait_after(error)

    def close(self) -> None:
        """Close the pool."""
        with self._turn:
            if self._pool is not None and self._ending is not None and self._process == os.getpid():
                self._ending.shutdown()
                self._pool.close()
                if self._replicas is not None:
                    self._replicas.close()
            self._pool = self._replicas = None


def _roll_back(connection: Connection) -> None:
    """Roll a transaction back; its statements may have failed, or the connection was lost."""
    with suppress(psycopg.Error):
        connection.receive()
    with suppress(psycopg.Error):
        connection.execute("ROLLBACK")
        connection.receive()
