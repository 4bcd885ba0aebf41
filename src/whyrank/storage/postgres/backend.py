"""PostgreSQL beneath the index: schema, purge, and what `status` shows of it."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg

from ...errors import ConfigError
from ..backend import Description
from ..sqlite import purge
from ..sqlite.database import MOMENT
from ..sqlite.metadata import scopes_to_purge
from .connection import translated
from .database import STANDBYS, PostgresDatabase
from .pool import Address
from .schema import NEWEST, prepare, version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...types.memory import Notice
    from ..backend import Channel, Scrub
    from .connection import Connection

Done = TypeVar("Done")
INDEX = "postings"  # the only keyword index there is on PostgreSQL
_TABLES = """
    SELECT string_agg(format('%I.%I', current_schema(), relname), ', ') FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
"""
_DESCRIBED = f"""
    SELECT (SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class AS c
            WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'),
        pg_is_in_recovery(), (SELECT sum(numbackends)::bigint FROM pg_stat_database),
        current_setting('max_connections')::bigint, ({STANDBYS}), current_setting('synchronous_standby_names')
"""
REMAINS = (
    "the server's write-ahead log, replicas and backups, the free space of its files, and rows that a transaction "
    "which is still open elsewhere can read may hold what was removed, until they are recycled"
)


def is_store(url: str) -> bool:
    """Return whether the schema of an address holds a store, without making one."""
    database = PostgresDatabase(Address.parse(url), MOMENT)
    try:
        with translated(database.location), database.connection() as connection:
            return version_of(connection, database.address.schema) > 0
    finally:
        database.close()


_MAX_NAME = 63  # characters of a channel
_LOOK_SECONDS = 0.5  # between two looks of a listener whether it should end
_RECONNECT_SECONDS = 2.0


class PostgresChannel:
    """Messages by NOTIFY, on a channel named after the schema."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._name = f"whyrank_{address.schema}"[:_MAX_NAME]

    def notify(self, connection: Connection) -> None:
        """Send a message when the transaction of this connection commits; several of one transaction are one."""
        connection.execute("SELECT pg_notify(?, '')", (self._name,))

    @contextmanager
    def listening(self, wake: Callable[[], None]) -> Iterator[None]:
        """Call `wake` in a thread for each message, and whenever a connection was made."""
        ended = threading.Event()
        listener = threading.Thread(target=self._listen, args=(wake, ended), name="whyrank-listener", daemon=True)
        listener.start()
        try:
            yield
        finally:
            ended.set()
            listener.join()

    def _listen(self, wake: Callable[[], None], ended: threading.Event) -> None:
        while not ended.is_set():
            with suppress(psycopg.Error):  # the worker polls, too, and tells what is wrong
                self._hear(wake, ended)
            ended.wait(_RECONNECT_SECONDS)

    def _hear(self, wake: Callable[[], None], ended: threading.Event) -> None:
        """Listen on a connection of its own until the end, or until it is lost."""
        with psycopg.connect(**self._address.parameters(), autocommit=True) as raw:
            raw.execute(f'LISTEN "{self._name}"')
            wake()  # messages may have been sent before
            while not ended.is_set():
                for _ in raw.notifies(timeout=_LOOK_SECONDS):
                    wake()


class PostgresBackend:
    """One schema of a PostgreSQL database."""

    def __init__(self, url: str) -> None:
        self.database = PostgresDatabase(Address.parse(url), MOMENT)
        self.location = self.database.location
        self.read_only = False
        self.is_current = True
        self.reading = self.database.reading
        self.searching = self.database.searching
        self.writing = self.database.writing
        self.connection = self.database.connection
        self.channel: Channel | None = PostgresChannel(self.database.address)
        self.attempt = self.database.attempt
        self.close = self.database.close

    def prepare(self, keyword: str) -> None:
        """Create the tables, or bring them to the newest schema."""
        if keyword != INDEX:
            raise ConfigError(f"the keyword index {keyword!r} is not for PostgreSQL", f"set keyword to {INDEX}")
        prepare(self.database)
        if self.database.replicas is not None:
            with translated(self.location):
                self.database.replicas.mark()

    def notices(self, connection: Connection) -> tuple[Notice, ...]:
        """Return why a replica did not answer, or that the primary is away."""
        return connection.notices

    def keep(self) -> None:
        """Do nothing: the server looks after its files."""

    @contextmanager
    def aborting(self, connection: Connection, moment: float) -> Iterator[None]:
        """Let the server end statements of the transaction that run past a deadline."""
        left = max(1, int(1_000 * (moment - time.monotonic())))
        before, connection.deadline = connection.deadline, moment  # the server bounds each statement, this their sum
        # A statement that fails would end the transaction, and with it all further reads of the snapshot.
        connection.put_first("SAVEPOINT deadline", f"SET LOCAL statement_timeout = {left}")
        try:
            with translated(self.location):
                yield
        finally:
            connection.deadline = before
            connection.put_first("ROLLBACK TO SAVEPOINT deadline", "RELEASE SAVEPOINT deadline")

    def purge(self, scrub: Scrub) -> tuple[str, ...]:
        """Remove deleted memories from the index and let the server free their rows; tell what it cannot reach."""
        with self.reading() as (connection, *_):
            scopes = scopes_to_purge(connection) or []
        purge.scrub_index(self.writing, scopes, scrub)
        with self.writing() as connection:
            purge.end(connection)
        with translated(self.location), self.connection() as connection:
            [(tables,)] = connection.raw.execute(_TABLES).fetchall()
            # By default the entries of few dead rows stay in the indexes, and with them keys and names.
            connection.raw.execute(f"VACUUM (INDEX_CLEANUP ON) {tables}")
        return (REMAINS,)

    def describe(self) -> Description:
        """Return the version of the schema, the size of its tables, and facts of the server and of our pool."""
        with self.reading() as (connection, *_):
            [size, is_replica, used, most, standbys, names] = connection.raw.execute(_DESCRIBED).fetchone()
            server = connection.raw.info.server_version
        pool = self.database.pool
        facts: dict[str, Any] = {
            "role": "replica" if is_replica else "primary",
            "connections": used,
            "max_connections": most,
            "standbys": standbys,
            "synchronous_standby_names": names or "none",
            "pool_size": pool.size,
            "pool_open": pool.open,
            "pool_in_use": pool.in_use,
            "pool_waiting": pool.waiting,
            "retries": self.database.retries,
        }
        if self.database.replicas is not None:
            facts["replicas"] = self.database.replicas.describe()
        engine = f"PostgreSQL {server // 10_000}.{server % 10_000}"
        return Description(NEWEST, engine, int(size or 0), server=facts)
