"""Connections to PostgreSQL with the interface that the index uses, and their errors in our words."""

from __future__ import annotations

import logging
import re
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import MissingExtra, StoreDamaged, StoreError, StoreFull, StoreLocked, StoreTimeout, StoreUnavailable
from .dialect import plain, translate

try:
    import psycopg
    from psycopg.pq import TransactionStatus
    from psycopg.types.numeric import NumericBinaryLoader
except ImportError as error:
    raise MissingExtra(
        "a store in PostgreSQL needs psycopg, which is not installed", "pip install 'whyrank[postgres]'"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from ...types.memory import Notice
    from ..backend import Asked

logging.getLogger("psycopg").setLevel(logging.ERROR)  # it warns of each lost connection, which our errors tell of
_LOST = ("08", "57P01", "57P02", "57P03")  # SQLSTATEs (or their beginnings) of connections that are gone
_CONFLICTS = ("40001", "40P01")  # serialization failure, deadlock
_FULL = "53100"
_WRITTEN = re.compile(r"\s*(?:INSERT INTO|UPDATE|DELETE FROM) (\w+)")
LEAST_COPIED = 200  # rows: a COPY within a transaction takes two round trips


class _Refusal(NamedTuple):
    """A reason for which a server takes no connection, a remedy, and whether it may pass by itself."""

    said: re.Pattern[str]
    hint: str
    may_pass: bool = False


# Errors of connecting have no SQLSTATE in psycopg: they are told by their text, the first that fits.
_REFUSALS = (
    _Refusal(re.compile(r"password authentication failed|no password supplied"), "check user and password"),
    _Refusal(re.compile(r"no pg_hba.conf entry|authentication failed"), "let this user and host in by pg_hba.conf"),
    _Refusal(
        re.compile(r"database \".*\" does not exist"),
        "create it (`createdb NAME`), or name another in the address",
    ),
    _Refusal(re.compile(r"database \".*\" is not currently accepting"), "allow connections to it (ALTER DATABASE)"),
    _Refusal(re.compile(r"role \".*\" (does not exist|is not permitted)"), "check the user in the address"),
    _Refusal(
        re.compile(r"too many (clients|connections)|remaining connection slots"),
        "close some, raise max_connections, or add a smaller pool_size=N to the addresses",
        may_pass=True,
    ),
    _Refusal(re.compile(r"does not support SSL|no SSL|SSL off"), "leave sslmode away, or turn TLS on at the server"),
    _Refusal(
        re.compile(r"certificate|SSL error|sslmode|ALPN"), "check sslmode, sslrootcert and the host in the address"
    ),
    _Refusal(
        re.compile(r"starting up|shutting down|recovery mode|not yet accepting"), "wait until it is up", may_pass=True
    ),
    _Refusal(
        re.compile(r"session is read-only|server is in hot standby mode|session is not read-only"),
        "name the primary, promote a replica, or change target_session_attrs in the address",
        may_pass=True,
    ),
    _Refusal(re.compile(r"could not translate host name|resolve"), "check the host in the address", may_pass=True),
    _Refusal(re.compile(r"timeout|timed out"), "check that the server can be reached from here", may_pass=True),
)
_STOPPED = _Refusal(re.compile(""), "start the server, or check the address", may_pass=True)


@dataclass
class Traffic:
    """Count of the round trips of a process to its server, for measurements."""

    trips: int = 0


class NumericLoader(NumericBinaryLoader):
    """Reads sums of integers as integers, not as decimals."""

    def load(self, data: Any) -> Any:
        """Return the number."""
        number = super().load(data)
        return int(number) if number == number.to_integral_value() else float(number)


class ServerConnection(psycopg.Connection[Any]):
    """A connection that gives up a server which sends nothing; a keepalive finds no process that is stopped."""

    silence: float | None = None  # seconds without a byte; None: as long as TCP believes in the server

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Wait for the server; psycopg calls this for every statement."""
        limit = {} if timeout is None else {"timeout": timeout}  # not all versions of psycopg have it
        return super().wait(gen if self.silence is None else self._bounded(gen, self.silence), interval, **limit)

    def _bounded(self, steps: Generator[Any, Any, Any], silence: float) -> Generator[Any, Any, Any]:
        """Pass on what psycopg waits for, until the server has been silent for too long."""
        heard = time.monotonic()
        try:
            wanted = next(steps)
            while True:
                ready = yield wanted
                if ready:
                    heard = time.monotonic()
                elif time.monotonic() > heard + silence:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"no answer for {silence:g} s (timeout)")
                wanted = steps.send(ready)
        except StopIteration as ended:
            return ended.value

    @contextmanager
    def bounded(self, silence: float) -> Iterator[None]:
        """Give the server up inside the block if it sends nothing for so long."""
        before, self.silence = self.silence, silence
        try:
            yield
        finally:
            self.silence = before


class Foreseen:
    """The rows of a statement that was sent ahead of its turn."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self._rows = iter(rows)
        self.rowcount = len(rows)

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""
        return [*self._rows]

    def __iter__(self) -> Iterator[Any]:
        return self._rows


class Cursor:
    """The rows of one statement; in a transaction that writes, they are awaited when they are read."""

    def __init__(self, cursor: psycopg.Cursor[Any], connection: Connection) -> None:
        self._cursor = cursor
        self._connection = connection
        self._place = connection.sent

    @property
    def answer(self) -> str | None:
        """Return what the server calls the outcome: COMMIT, ROLLBACK, INSERT 0 1."""
        self._connection.receive(self._place)
        return self._cursor.statusmessage

    @property
    def rowcount(self) -> int:
        """Return how many rows were changed or found."""
        self._connection.receive(self._place)
        return self._cursor.rowcount

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        self._connection.receive(self._place)
        return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""
        self._connection.receive(self._place)
        return self._cursor.fetchall()

    def __iter__(self) -> Iterator[Any]:
        self._connection.receive(self._place)
        return iter(self._cursor)


class Connection:
    """One connection, which takes the statements of the index; a transaction is begun and ended by its database.

    A transaction that writes is one pipeline: statements are sent without waiting until a result is read.
    """

    def __init__(self, raw: ServerConnection, traffic: Traffic) -> None:
        self.raw = raw
        self.notices: tuple[Notice, ...] = ()  # for answers that are read through it
        self.text_factory: object = str  # PostgreSQL stores no text that is not UTF-8
        self.sent = 0  # statements, and how many of these were answered
        self._answered = 0
        self._traffic = traffic
        self._pipeline: psycopg.Pipeline | None = None
        self._piping = ExitStack()  # holds the pipeline while it is open
        # A statement of a pipeline has failed: psycopg takes those behind it, which the server skipped, for prepared.
        self.is_spoilt = False
        self.deadline: float | None = None  # by `time.monotonic()`, after which no statement is begun
        self._first: list[str] = []
        self._foreseen: dict[Asked, Sequence[Any]] = {}
        self._ahead: dict[Asked, Cursor] = {}

    @property
    def in_transaction(self) -> bool:
        """Return whether a transaction is open."""
        return self.raw.info.transaction_status != TransactionStatus.IDLE

    def begin(self, statement: str, foreseen: Iterable[Asked] = ()) -> None:
        """Begin a transaction that reads, and get the results of statements in the same round trip."""
        with self._watched(), self.raw.pipeline():
            self.raw.execute(statement)
            cursors = {one: self._send(*one) for one in map(_as_key, foreseen)}
        self._traffic.trips += 1
        self._foreseen.update((asked, cursor.fetchall()) for asked, cursor in cursors.items())

    @contextmanager
    def pipelined(self) -> Iterator[None]:
        """Send statements inside the block without waiting for their results."""
        with self._piping:
            self._pipeline = self._piping.enter_context(self.raw.pipeline())
            try:
                yield
            finally:
                self._ahead.clear()
                self._pipeline = None

    def receive(self, place: int | None = None) -> None:
        """Wait for the results of the statements sent so far, unless the one at this place was answered."""
        if self._pipeline is not None and (self.sent if place is None else place) > self._answered:
            self._traffic.trips += 1
            with self._watched():
                self._pipeline.sync()
            self._answered = self.sent

    @contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error:
            self.is_spoilt = True
            raise

    def foresee(self, asked: Iterable[Asked]) -> None:
        """Send statements together, for when they are executed.

        The results of a snapshot serve as often as they are asked for, those of a transaction that writes once, and
        only until it writes a table that they read.
        """
        if self._pipeline is not None:
            for one in map(_as_key, asked):
                self._ahead[one] = self._issue(*one)
            return
        wanted = [one for one in dict.fromkeys(map(_as_key, asked)) if one not in self._foreseen]
        if len(wanted) > 1:
            with self._watched(), self.raw.pipeline():
                self._send_first()
                cursors = {one: self._send(*one) for one in wanted}
            self._traffic.trips += 1
            self._foreseen.update((asked, cursor.fetchall()) for asked, cursor in cursors.items())

    def put_first(self, *statements: str) -> None:
        """Send statements that have no results together with the next one that has some."""
        self._first += statements

    def _send_first(self) -> None:
        for statement in self._first:
            self.raw.execute(statement.encode())
        self._first.clear()

    def _send(self, statement: str, parameters: Any) -> psycopg.Cursor[Any]:
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise StoreTimeout("reading was aborted at the deadline", "give a larger timeout_ms")
        asked = translate(statement)
        return self.raw.execute(asked.text, asked.bind(parameters), binary=True)

    def _issue(self, statement: str, parameters: Any) -> Cursor:
        self._forget_ahead(statement)
        cursor = self._send(statement, parameters)
        self.sent += 1
        return Cursor(cursor, self)

    def _forget_ahead(self, statement: str) -> None:
        """Drop the foreseen reads of a table that a statement writes."""
        written = _WRITTEN.match(statement) if self._ahead else None
        if written:
            reads = re.compile(rf"\b(?:FROM|JOIN|UPDATE) {written[1]}\b")
            self._ahead = {asked: cursor for asked, cursor in self._ahead.items() if not reads.search(asked[0])}

    def execute(self, statement: str, parameters: Any = ()) -> Cursor | Foreseen:
        """Run one statement, or return the foreseen result of it."""
        if (self._foreseen or self._ahead) and not hasattr(parameters, "keys"):
            asked = _as_key((statement, parameters))
            known = self._foreseen.get(asked)
            if known is not None:
                return Foreseen(known)
            if asked in self._ahead:
                return self._ahead.pop(asked)
        if self._pipeline is None:
            self._traffic.trips += 1
        if self._first:
            with self._watched(), self.raw.pipeline():
                self._send_first()
                return self._issue(statement, parameters)
        return self._issue(statement, parameters)

    def commit(self, question: str = "") -> tuple[str | None, Any]:
        """Commit; return what the server calls the outcome, ROLLBACK if a statement had failed, and a row.

        The row answers a question that is sent with the commit, in the same round trip.
        """
        committed = self._issue("COMMIT", ())
        asked = self._issue(question, ()) if question else None
        return committed.answer, asked and asked.fetchone()

    def executemany(self, statement: str, rows: Iterable[Any]) -> Cursor:
        """Run one statement for every row of parameters: plain inserts by COPY, the others in one pipeline."""
        asked, cursor = translate(statement), self.raw.cursor()
        given = [*rows]
        if given:
            self._forget_ahead(statement)
        if asked.copied and len(given) >= LEAST_COPIED:
            with self._unpiped(), cursor.copy(asked.copied) as copy:
                for row in given:
                    copy.write_row([*map(plain, row)])
        elif given:
            if self._pipeline is None:
                self._traffic.trips += 1
            self.sent += 1
            cursor.executemany(asked.text, [asked.bind(row) for row in given])
        return Cursor(cursor, self)

    @contextmanager
    def _unpiped(self) -> Iterator[None]:
        """Leave the pipeline, which takes no COPY, for the length of the block; what was sent before is answered."""
        is_piped = self._pipeline is not None
        self._pipeline = None
        self._piping.close()
        self._answered = self.sent
        self._traffic.trips += 1 + is_piped
        try:
            yield
        finally:
            if is_piped:
                self._pipeline = self._piping.enter_context(self.raw.pipeline())

    def set_progress_handler(self, handler: object, steps: int) -> None:
        """Do nothing: the server's `statement_timeout` ends statements that take too long."""


def _as_key(asked: Asked) -> Asked:
    return asked[0], (*asked[1],)


def is_lost(error: psycopg.Error) -> bool:
    """Return whether the connection, not the statement, has failed."""
    state = error.sqlstate
    return state.startswith(_LOST) if state else isinstance(error, psycopg.OperationalError)


def is_conflict(error: psycopg.Error) -> bool:
    """Return whether a transaction met another and may be tried again."""
    return error.sqlstate in _CONFLICTS


def _refusal(error: psycopg.Error) -> _Refusal:
    return next((one for one in _REFUSALS if one.said.search(str(error))), _STOPPED)


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
        return StoreFull(
            f"no room left on the disk of {location}: {told}", "free space on the server; what was stored is kept"
        )
    if state == "57014":
        hint = "give a larger timeout_ms, or raise statement_timeout of the role at the server"
        return StoreTimeout(f"a statement of {location} was aborted: {told}", hint)
    if state == "55P03" or state in _CONFLICTS:
        return StoreLocked(f"{location} is busy: {told}", "try again")
    if state == "25006":
        hint = "name the primary in the address, or several hosts, of which the one that accepts writes is used"
        return StoreError(f"{location} is read-only: {told}", hint)
    if state == "42501":
        return StoreError(f"{location} refuses this role: {told}", "grant it what is missing, or name another role")
    if state in ("42P01", "42703", "42883") or state.startswith(("XX", "58")):
        return StoreDamaged(f"{location} is no whyrank store, or is damaged: {told}", "restore it from a backup")
    if is_lost(error) or state.startswith("53"):
        refusal = _refusal(error)
        return StoreUnavailable(f"{location} cannot be reached: {told}", refusal.hint, may_pass=refusal.may_pass)
    return StoreError(f"{location}: {told}", "look into the server's log")
