"""Connections to PostgreSQL with the interface that the index uses, and their errors in our words."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ...errors import MissingExtra, StoreDamaged, StoreError, StoreFull, StoreLocked, StoreTimeout, StoreUnavailable
from .dialect import translate

try:
    import psycopg
    from psycopg.adapt import Loader
    from psycopg.pq import TransactionStatus
except ImportError as error:
    raise MissingExtra(
        "a store in PostgreSQL needs psycopg, which is not installed", "pip install 'whyrank[postgres]'"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Parameters = "Sequence[Any] | Mapping[str, Any]"
_LOST = ("08", "57P01", "57P02", "57P03")  # SQLSTATEs (or their beginnings) of connections that are gone
_CONFLICTS = ("40001", "40P01")  # serialization failure, deadlock
_FULL = "53100"
# Errors of connecting have no SQLSTATE in psycopg: they are told by their text.
_REFUSALS = (
    (re.compile(r"password authentication failed|no password supplied"), "check user and password"),
    (re.compile(r"database \".*\" does not exist"), "create it (`createdb NAME`), or name another in the address"),
    (re.compile(r"role \".*\" does not exist"), "check the user in the address"),
    (re.compile(r"too many (clients|connections)|remaining connection slots"), "close some, or raise max_connections"),
    (re.compile(r"does not support SSL"), "leave sslmode away, or turn TLS on at the server"),
    (re.compile(r"certificate|SSL error"), "check sslmode and sslrootcert in the address"),
    (re.compile(r"could not translate host name|resolve"), "check the host in the address"),
    (re.compile(r"timeout|timed out"), "check that the server can be reached from here"),
)


class NumericLoader(Loader):
    """Reads sums of integers as integers, not as decimals."""

    def load(self, data: Any) -> int | float:
        """Return the number."""
        written = bytes(data)
        return int(written) if written.lstrip(b"-").isdigit() else float(written)


class Cursor:
    """The rows of one statement."""

    def __init__(self, cursor: psycopg.Cursor[Any], lastrowid: int | None = None) -> None:
        self._cursor = cursor
        self.lastrowid = lastrowid

    @property
    def rowcount(self) -> int:
        """Return how many rows were changed or found."""
        return self._cursor.rowcount

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""
        return self._cursor.fetchall()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._cursor)


class Connection:
    """One connection, which takes the statements of the index; a transaction is begun and ended by its database."""

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self.raw = raw
        self.text_factory: object = str  # PostgreSQL stores no text that is not UTF-8
        self.statements = 0  # sent, for counts of round trips

    @property
    def in_transaction(self) -> bool:
        """Return whether a transaction is open."""
        return self.raw.info.transaction_status != TransactionStatus.IDLE

    def execute(self, statement: str, parameters: Any = ()) -> Cursor:
        """Run one statement."""
        self.statements += 1
        asked = translate(statement)
        cursor = self.raw.execute(asked.text, asked.bind(parameters))
        row = cursor.fetchone() if asked.returns_id else None
        return Cursor(cursor, row[0] if row is not None else None)

    def executemany(self, statement: str, rows: Iterable[Any]) -> Cursor:
        """Run one statement for every row of parameters, in one pipeline."""
        asked, cursor = translate(statement), self.raw.cursor()
        bound = [asked.bind(row) for row in rows]
        if bound:
            self.statements += 1
            cursor.executemany(asked.text, bound)
        return Cursor(cursor)

    def set_progress_handler(self, handler: object, steps: int) -> None:
        """Do nothing: the server's `statement_timeout` ends statements that take too long."""


def is_lost(error: psycopg.Error) -> bool:
    """Return whether the connection, not the statement, has failed."""
    state = error.sqlstate
    return state.startswith(_LOST) if state else isinstance(error, psycopg.OperationalError)


def is_conflict(error: psycopg.Error) -> bool:
    """Return whether a transaction met another and may be tried again."""
    return error.sqlstate in _CONFLICTS


@contextmanager
def translated(location: str) -> Iterator[None]:
    """Translate psycopg's errors into ours, which carry a remedy."""
    try:
        yield
    except psycopg.Error as error:
        raise translate_error(location, error) from error


def translate_error(location: str, error: psycopg.Error) -> StoreError:
    """Return our error for one of psycopg's, with a remedy."""
    state, told = error.sqlstate or "", " ".join(str(error).split())
    if state == _FULL:
        return StoreFull(f"no room left on the disk of {location}", "free space on the server; nothing was lost")
    if state == "57014":
        return StoreTimeout(f"reading {location} was aborted: {told}", "give a larger timeout_ms")
    if state == "55P03" or state in _CONFLICTS:
        return StoreLocked(f"{location} is busy: {told}", "try again")
    if state in ("25006", "42501"):
        return StoreError(f"{location} cannot be written to: {told}", "name the primary, and a role that may write")
    if state in ("42P01", "42703", "42883") or state.startswith("XX"):
        return StoreDamaged(f"{location} is no whyrank store, or is damaged: {told}", "restore it from a backup")
    if is_lost(error) or state.startswith("53"):
        hint = next((hint for found, hint in _REFUSALS if found.search(told)), "start the server, or check the address")
        return StoreUnavailable(f"{location} cannot be reached: {told}", hint)
    return StoreError(f"{location}: {told}", "look into the server's log")
