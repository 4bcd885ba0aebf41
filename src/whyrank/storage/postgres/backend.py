"""PostgreSQL beneath the index: schema, purge, and what `status` shows of it."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from ...errors import ConfigError
from ..backend import Description
from ..sqlite import purge
from ..sqlite.database import MOMENT
from .connection import translated
from .database import Address, PostgresDatabase
from .schema import NEWEST, prepare, version_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..backend import Scrub
    from .connection import Connection

Done = TypeVar("Done")
INDEX = "postings"  # the only keyword index there is on PostgreSQL
_TABLES = ("memories", "vectors", "posting_pages", "posting_tokens", "records", "sign_blocks", "names", "history")
_SIZE = (
    "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class AS c "
    "WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'"
)
REMAINS = "the server's write-ahead log, its replicas and backups may hold what was removed, until they are recycled"


def is_store(url: str) -> bool:
    """Return whether the schema of an address holds a store, without making one."""
    database = PostgresDatabase(Address.parse(url), MOMENT)
    try:
        with translated(database.location), database.connection() as connection:
            return version_of(connection) > 0
    finally:
        database.close()


class PostgresBackend:
    """One schema of a PostgreSQL database."""

    def __init__(self, url: str) -> None:
        self.database = PostgresDatabase(Address.parse(url), MOMENT)
        self.location = self.database.location
        self.read_only = False
        self.is_current = True
        self.reading = self.database.reading
        self.writing = self.database.writing
        self.connection = self.database.connection
        self.attempt = self.database.attempt
        self.close = self.database.close

    def prepare(self, keyword: str) -> None:
        """Create the tables, or bring them to the newest schema."""
        if keyword != INDEX:
            raise ConfigError(f"the keyword index {keyword!r} is not for PostgreSQL", f"set keyword to {INDEX}")
        prepare(self.database)

    def keep(self) -> None:
        """Do nothing: the server looks after its files."""

    @contextmanager
    def aborting(self, connection: Connection, moment: float) -> Iterator[None]:
        """Let the server end statements of the transaction that run past a deadline."""
        left = max(1, int(1_000 * (moment - time.monotonic())))
        with translated(self.location):
            connection.execute(f"SET LOCAL statement_timeout = {left}")
            yield
            connection.execute("SET LOCAL statement_timeout = 0")

    def purge(self, scrub: Scrub) -> tuple[str, ...]:
        """Remove deleted memories from the index and let the server free their rows; tell what it cannot reach."""
        with self.reading() as (connection, *_):
            scopes = purge.due_scopes(connection) or []
        purge.scrub_index(self.writing, scopes, scrub)
        with self.writing() as connection:
            purge.end(connection)
        with translated(self.location), self.connection() as connection:
            connection.execute(f"VACUUM {', '.join(_TABLES)}")
        return (REMAINS,)

    def describe(self) -> Description:
        """Return the version of the schema, the size of its tables, and the server."""
        with self.reading() as (connection, *_):
            [size] = connection.execute(_SIZE).fetchone()
            server = connection.raw.info.server_version
        return Description(NEWEST, f"PostgreSQL {server // 10_000}.{server % 10_000}", int(size or 0))
