"""Replicas that answer searches: which of them is recent enough, and which has failed.

A mark is a position in the write-ahead log that the primary had at a moment of our own clock. A replica that has
replayed it holds every change that was committed before that moment, however long the primary has been idle, whatever
the clocks of the servers say, and also if it has lost its primary meanwhile. Lag by the timestamp of the last replayed
transaction knows none of these three.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg

from ...errors import StoreError, StoreUnavailable
from ...types.memory import Notice
from .connection import Connection, is_conflict, is_lost, translate_error
from .pool import Host, PoolBusy, ServerConnections, end_snapshot, give_back

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from ..backend import Asked
    from .connection import ServerConnection, Traffic
    from .pool import Address

AWAY, BEHIND, REFUSED, ALONE = "replica-away", "replica-behind", "replica-refused", "primary-away"  # notices
# A replica that failed is tried again by a thread, so no search waits for it; a restart takes some seconds.
RETRY_SECONDS = 5.0
# One that lags is asked again so late, because each time costs a search a round trip.
BEHIND_SECONDS = 0.25
CATCH_UP_SECONDS = 0.02  # the same for one that lacks a write of our own, which it replays within milliseconds
# The beginning of a snapshot reads some rows by their keys: who is silent for so long is stopped or cut off.
BEGIN_SECONDS = 1.0
SILENCE_SECONDS = 10.0  # for any other statement, during which a replica may send nothing
CONNECT_SECONDS = 2  # where another server may answer: libpq allows no less
SILENT_PRIMARY_SECONDS = 2.0  # after which searches do without it; nobody waits for its marks
_MARKS_PER_BOUND = 4  # so that a replica may lag for three quarters of the bound, or more
# An asynchronous commit is acknowledged before its record is written.
_POSITION = (
    "pg_wal_lsn_diff(CASE current_setting('synchronous_commit') WHEN 'off' THEN pg_current_wal_insert_lsn() "
    "ELSE pg_current_wal_lsn() END, '0/0')::bigint"
)
COMMITTED = f"SELECT {_POSITION}, value::bigint FROM meta WHERE key = 'generation'"
MARK = f"SELECT {_POSITION}, system_identifier::text FROM pg_control_system()"
IDENTITY = "SELECT pg_is_in_recovery(), system_identifier::text FROM pg_control_system()"
REPLAYED = "SELECT pg_is_in_recovery(), pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint"
LAG = (
    "SELECT pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint, "
    "extract(epoch FROM now() - pg_last_xact_replay_timestamp())::float8 WHERE pg_is_in_recovery()"
)


class LogMark(NamedTuple):
    """A position in the log that the primary had reached at a moment, by `time.monotonic()`."""

    moment: float
    position: int


class Begun(NamedTuple):
    """A read transaction that was begun, the pool of its connection, and the replica, if it is one."""

    connection: Connection
    pool: ServerConnections
    replica: Replica | None = None


class Refused(StoreError):
    """A host that is no replica of the primary."""

    is_expected = False


class Replica:
    """One host with its connections, and why it is not asked at present."""

    def __init__(self, host: Host, pool: ServerConnections) -> None:
        self.host, self.pool = host, pool
        self.notice: Notice | None = None
        self.answered = 0
        self._paused_until = 0.0

    @property
    def has_failed(self) -> bool:
        """Return whether it could not be asked, or was refused, when it was last tried."""
        return self.notice is not None and self.notice.code != BEHIND

    @property
    def is_due(self) -> bool:
        """Return whether its pause is over."""
        return time.monotonic() >= self._paused_until

    def pause(self, seconds: float, notice: Notice | None) -> None:
        """Ask it no more for so long; the notice, if there is one, is for answers that it did not give."""
        self._paused_until = time.monotonic() + seconds
        self.notice = notice

    def fail(self, error: Exception) -> None:
        """Pause after an error."""
        if isinstance(error, Refused):
            told = f"{error.message}, so the primary answered; {error.hint}"
            # After a fail-over it may be the primary, which the address names as one of its hosts.
            self.pause(RETRY_SECONDS, None if error.is_expected else Notice(REFUSED, told))
        else:
            told = error.message if isinstance(error, StoreError) else " ".join(str(error).split())
            advice = "start it, or take it out of replicas= in the address"
            told = f"the replica {self.host} failed, so the primary answered: {told}; {advice}"
            self.pause(RETRY_SECONDS, Notice(AWAY, told))


class Replicas:
    """The replicas of one address, and what this process knows of its primary."""

    def __init__(
        self, address: Address, ask_primary: Callable[[], AbstractContextManager[Connection]], traffic: Traffic
    ) -> None:
        self._address = address
        self._ask_primary = ask_primary
        self._traffic = traffic
        self._replicas = [
            Replica(host, ServerConnections(address.of_replica(host), self._check, BEGIN_SECONDS))
            for host in address.replicas
        ]
        self._turn = itertools.count()
        self._marks: deque[LogMark] = deque(maxlen=2 * _MARKS_PER_BOUND)
        self._heard, self._system = 0.0, ""  # of the primary: when it last told its position, and its identifier
        self._committed = self._generation = 0  # by this process, so that it reads its own writes
        self._is_lost = False  # the primary did not answer
        self._asked_at: float | None = None  # since when the answer to a request for a mark is awaited
        self._is_refreshing = False
        self._lock = threading.Lock()
        self._refreshing = ThreadPoolExecutor(1, "whyrank-replicas")

    # -- what the primary has committed ----------------------------------------------------------------------

    def record_commit(self, position: int, generation: int) -> None:
        """Record a commit of this process; a replica that has not replayed it is not read."""
        with self._lock:
            self._committed = max(self._committed, position)
            self._generation = max(self._generation, generation)

    def mark(self) -> None:
        """Ask the primary for its position, which replicas are compared with."""
        moment = time.monotonic()
        with self._ask_primary() as connection, connection.raw.bounded(SILENT_PRIMARY_SECONDS):
            position, system = connection.raw.execute(MARK).fetchone() or (0, "")
        with self._lock:
            if not self._marks or moment >= self._marks[-1].moment + self._address.max_staleness / _MARKS_PER_BOUND:
                self._marks.append(LogMark(moment, position))
            self._heard, self._system, self._is_lost = moment, system, False

    def _refresh(self) -> None:
        """Get a mark, and try the replicas again that failed: in a thread, for the searches to come."""
        self._asked_at = time.monotonic()
        try:
            self.mark()
        except StoreError as error:
            if isinstance(error.__cause__, psycopg.Error):  # else all connections of this process are in use
                self._is_lost = True
        finally:
            self._asked_at = None
        for replica in self._replicas:
            if replica.has_failed and replica.is_due:
                try:
                    replica.pool.give_back(replica.pool.take(within=CONNECT_SECONDS))
                    replica.notice = None
                except (psycopg.Error, StoreError) as error:
                    replica.fail(error)
        self._is_refreshing = False

    def _refresh_later(self, now: float) -> None:
        with self._lock:
            pause = min(RETRY_SECONDS, self._address.max_staleness / _MARKS_PER_BOUND)
            if self._is_refreshing or now < self._heard + pause:
                return
            self._is_refreshing = True
        with suppress(RuntimeError):  # the store is being closed
            self._refreshing.submit(self._refresh)

    def _is_alone(self, now: float) -> bool:
        """Return whether the primary is lost, or has been silent for too long."""
        asked = self._asked_at
        return self._is_lost or (asked is not None and now > asked + SILENT_PRIMARY_SECONDS)

    def _mark_for(self, moment: float) -> LogMark | None:
        """Return the mark from which a read at a moment is recent enough; None if there is none within the bound."""
        return next((one for one in self._marks if one.moment >= moment - self._address.max_staleness), None)

    # -- snapshots -------------------------------------------------------------------------------------------

    def begin(
        self, statement: str, moment: Asked, foreseen: Sequence[Asked], *, is_alone: bool = False
    ) -> Begun | None:
        """Begin a snapshot on a replica that is recent enough, in one round trip; None: the primary has to be asked.

        Without the primary, recent enough is what would have been when it was last heard of.
        """
        now = time.monotonic()
        self._refresh_later(now)
        is_alone = is_alone or self._is_alone(now)
        with self._lock:
            least = self._mark_for(self._heard if is_alone else now)
        first = next(self._turn)
        for place in range(len(self._replicas)):
            replica = self._replicas[(first + place) % len(self._replicas)]
            if least is None or replica.has_failed or not replica.is_due:
                continue
            begun = self._begin_on(replica, statement, moment, foreseen, least)
            if begun is not None:
                if is_alone:
                    begun.connection.notices = (self._alone_notice(replica, now - self._heard),)
                return begun
        return None

    def _begin_on(
        self, replica: Replica, statement: str, moment: Asked, foreseen: Sequence[Asked], least: LogMark
    ) -> Begun | None:
        try:
            raw = replica.pool.take(0.0, CONNECT_SECONDS)
        except PoolBusy:
            return None  # all of its connections are in use
        except (psycopg.Error, StoreError) as error:
            replica.fail(error)
            return None
        connection = Connection(raw, self._traffic)
        try:
            with connection.raw.bounded(BEGIN_SECONDS):
                connection.begin(statement, [(REPLAYED, ()), moment, *foreseen])
            is_replica, position = connection.execute(REPLAYED).fetchone()
            generation = connection.execute(*moment).fetchone()
        except BaseException as error:
            connection.is_spoilt = True
            give_back(connection, replica.pool)
            if not isinstance(error, psycopg.Error):
                raise
            if isinstance(error, psycopg.errors.UndefinedTable):  # it has not replayed yet how the tables were made
                replica.pause(BEHIND_SECONDS, None)
            else:
                replica.fail(error)
            return None
        if not is_replica:
            replica.fail(self._refusal(*replica.host))
        elif position < least.position:
            replica.pause(BEHIND_SECONDS, self._behind_notice(replica, time.monotonic() - least.moment))
        elif position < self._committed:  # a moment after a write of our own, which it will have soon
            replica.pause(CATCH_UP_SECONDS, None)
        # The position is read after the snapshot was taken, so the log may have gone on between the two. The
        # generation is of the snapshot itself.
        elif generation is not None and int(generation[0]) >= self._generation:
            replica.notice, replica.answered = None, replica.answered + 1
            raw.silence = SILENCE_SECONDS
            return Begun(connection, replica.pool, replica)
        end_snapshot(connection, replica.pool)
        return None

    def drop(self, replica: Replica, error: Exception) -> None:
        """Ask a replica no more for a while if it failed in the middle of a read, which is made again elsewhere."""
        cause = error.__cause__ if isinstance(error, StoreError) else error
        if isinstance(cause, psycopg.Error) and (is_lost(cause) or is_conflict(cause)):
            replica.fail(cause)
            told = translate_error(f"the replica {replica.host}", cause)
            raise StoreUnavailable(told.message, told.hint, may_pass=True) from error

    # -- what is told of them --------------------------------------------------------------------------------

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Return why the replicas did not answer, for an answer of the primary."""
        return tuple(one.notice for one in self._replicas if one.notice is not None)

    def _behind_notice(self, replica: Replica, seconds: float) -> Notice | None:
        """Return the notice that a replica lags; none if all that is known is that it lags a little."""
        bound = self._address.max_staleness
        if seconds < bound / 2:  # this process has just begun to ask: later there are older marks
            return None
        told = f"the replica {replica.host} is more than {seconds:.1f} s behind, so the primary answered"
        return Notice(BEHIND, f"{told}; look into its log, or raise max_staleness ({bound:g} s) in the address")

    def _alone_notice(self, replica: Replica, seconds: float) -> Notice:
        told = f"the primary of {self._address} cannot be reached, so the replica {replica.host} answered"
        known = f"it may lack changes of the last {seconds + self._address.max_staleness:.0f} s"
        return Notice(ALONE, f"{told}; {known}, and writes fail until the primary is back or a replica is promoted")

    def _refusal(self, host: str, port: str) -> Refused:
        refused = Refused(
            f"{Host(host, port)} is no replica: it accepts writes", "take it out of replicas= in the address"
        )
        refused.is_expected = any((one.host, one.port) == (host.lower(), port) for one in self._address.tables())
        return refused

    def _check(self, raw: ServerConnection) -> None:
        """Refuse a host that is no replica of the primary."""
        host = Host(raw.info.host, str(raw.info.port))
        is_replica, system = raw.execute(IDENTITY).fetchone() or (False, "")
        if self._system and system != self._system:
            raise Refused(
                f"{host} is no replica of this primary: its system identifier is {system}, not {self._system}",
                "check replicas= in the address",
            )
        if not is_replica:
            raise self._refusal(*host)

    def describe(self) -> list[dict[str, Any]]:
        """Return the state and the lag of each replica at this moment."""
        with suppress(psycopg.Error, StoreError):
            self.mark()
        return [self._described(one) for one in self._replicas]

    def _described(self, replica: Replica) -> dict[str, Any]:
        told: dict[str, Any] = {"host": str(replica.host), "state": "", "answered": replica.answered}
        told |= {"behind_bytes": None, "behind_seconds": None}
        if not replica.has_failed or replica.is_due:
            try:
                raw = replica.pool.take(BEGIN_SECONDS, CONNECT_SECONDS)
                try:
                    found = raw.execute(LAG).fetchone()
                finally:
                    replica.pool.give_back(raw)
                if found is None:
                    raise self._refusal(*replica.host)
                position, seconds = found
                missing = max(0, self._marks[-1].position - (position or 0)) if self._marks else 0
                lag = round(max(0.0, seconds or 0.0), 1) if missing else 0.0
                told |= {"state": "streaming", "behind_bytes": missing, "behind_seconds": lag}
            except Refused as error:
                replica.fail(error)
                told["state"] = "primary"
            except (psycopg.Error, StoreError) as error:
                replica.fail(error)
        if replica.notice is not None:
            told |= {"state": replica.notice.code, "reason": replica.notice.message}
        return told

    def close(self) -> None:
        """Close the connections to all replicas."""
        self._refreshing.shutdown(wait=True, cancel_futures=True)
        for replica in self._replicas:
            replica.pool.close()
