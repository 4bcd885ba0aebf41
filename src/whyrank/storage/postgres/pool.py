"""Connections of one process to its server: how they are made, reused and counted.

Who needs a connection opens it, and so learns at once why the server does not answer: a pool that connects in the
background can only say that none was free.
"""

from __future__ import annotations

import os
import re
import threading
import time
from contextlib import nullcontext, suppress
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo, TransactionStatus

from ...errors import ConfigError, StoreUnavailable
from ..address import HINT, SCHEMA, parts_of, shown
from .connection import NumericLoader, ServerConnection

if TYPE_CHECKING:
    from collections.abc import Callable

    from .connection import Connection

DEFAULT_PORT = "5432"
POOL_SIZE = 10  # connections of one process at most, unless the address has `?pool_size=N`
_MOST = 1_000  # connections that may be asked for
_SCHEMA_NAME = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")
WAIT_SECONDS = 30.0  # for a connection of the pool, or for the lock of writers
IDLE_SECONDS = 300.0  # after which a connection is not used again: firewalls forget quiet ones without a word
END_SECONDS = 1.0  # for the end of a snapshot on a replica: others wait for the thread that ends them
# Unless the address says otherwise. A host that has lost its power sends nothing: it is given up after half a minute.
_PARAMETERS = {
    "connect_timeout": "10", "application_name": "whyrank", "keepalives_idle": "15", "keepalives_interval": "5",
    "keepalives_count": "3", "tcp_user_timeout": "30000",
}  # fmt: skip
_WRITABLE = "read-write"
MAX_STALENESS = 5.0  # seconds, unless the address has `?max_staleness=SECONDS`
_MOST_STALENESS = 86_400.0
_HOST = re.compile(r"(\[[^\[\]]+\]|[^:,\[\]\s]+)(?::(\d{1,5}))?")
_WRONG = re.compile(r'^(?:invalid|extra key/value separator "=" in) URI query parameter: "(.*)"')


class Host(NamedTuple):
    """Host of a replica, and its port."""

    name: str
    port: str = DEFAULT_PORT

    def __str__(self) -> str:
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"


class Address(NamedTuple):
    """Address of a store: for libpq, the schema of our tables, how many connections a process may have, replicas."""

    dsn: str
    schema: str
    pool_size: int = POOL_SIZE
    replicas: tuple[Host, ...] = ()
    max_staleness: float = MAX_STALENESS  # seconds that an answer of a replica may be behind the primary
    replica: Host | None = None  # the one that is connected to, in place of the hosts in `dsn`

    @classmethod
    def parse(cls, url: str) -> Address:
        """Read `postgresql://user@host/database?schema=NAME`; other parameters are libpq's."""
        parts = parts_of(url)
        own = {"schema": SCHEMA, "pool_size": str(POOL_SIZE), **parts.own}
        schema, size = own["schema"].lower(), own["pool_size"]
        if not _SCHEMA_NAME.fullmatch(schema) or schema == "information_schema":
            raise ConfigError(
                f"{own['schema']!r} is no name of a schema",
                "use letters from a to z, digits and _, at most 63, and no name that begins with pg_ or a digit",
            )
        if not size.isdecimal() or not 1 <= int(size) <= _MOST:
            raise ConfigError(f"pool_size={size} is no number of connections", f"give one from 1 to {_MOST}")
        replicas = _read_hosts(own["replicas"]) if "replicas" in own else ()
        address = cls(parts.dsn, schema, int(size), replicas, _read_staleness(own))
        address.parameters()
        return address

    def of_replica(self, host: Host) -> Address:
        """Return the address of the same store on one of its replicas."""
        return self._replace(replicas=(), replica=host)

    def parameters(self) -> dict[str, Any]:
        """Return the parameters for libpq; of several hosts, one that accepts writes is asked for."""
        try:
            given = conninfo_to_dict(self.dsn)
        except psycopg.Error as error:
            found = _WRONG.search(str(error))  # any other reason may quote the password
            told = f"the parameter {found[1]!r} cannot be read" if found else "a part of it cannot be read"
            raise ConfigError(f"{self} is no address of a store: {told}", HINT) from None
        if any("@" in host[1:] for host in str(given.get("host", "")).split(",")):  # an abstract socket begins with it
            raise ConfigError("an address of a store has an @ in its host: a part of the password, perhaps", HINT)
        several = {"target_session_attrs": _WRITABLE} if "," in str(given.get("host", "")) else {}
        if self.replica is None:
            return {**_PARAMETERS, **several, **given}
        given.pop("hostaddr", None)
        host = {"host": self.replica.name, "port": self.replica.port, "target_session_attrs": "any"}
        return {**_PARAMETERS, **given, **host}

    def __str__(self) -> str:
        if self.replica is not None:
            return f"the replica {self.replica}"
        safe = shown(self.dsn)
        return safe if self.schema == SCHEMA else f"{safe}{'&' if '?' in safe else '?'}schema={self.schema}"

    def tables(self) -> frozenset[Tables]:
        """Return where the tables may be: for each host its port, database and schema, with libpq's defaults.

        Other names of a host are not looked up; addresses with a host in common lead to the same tables.
        """
        usual = {one.keyword.decode(): (one.val or b"").decode() for one in Conninfo.get_defaults()}
        given = {**{name: value for name, value in usual.items() if value}, **self.parameters()}
        hosts = str(given.get("hostaddr") or given.get("host") or "").lower().split(",")
        ports = str(given.get("port", DEFAULT_PORT)).split(",")
        database = str(given.get("dbname") or given.get("user") or "")
        several = ports * len(hosts) if len(ports) == 1 else ports
        places = zip_longest(hosts, several[: len(hosts)], fillvalue="")
        return frozenset(Tables(host, port or DEFAULT_PORT, database, self.schema) for host, port in places)


def _read_hosts(written: str) -> tuple[Host, ...]:
    """Read the hosts of `replicas=host1:5433,host2`; an IPv6 address stands in brackets."""
    hosts: list[Host] = []
    for one in written.split(","):
        found = _HOST.fullmatch(one)
        port = found[2] or DEFAULT_PORT if found else "0"
        if found is None or not 1 <= int(port) <= 65_535:
            raise ConfigError(
                f"replicas={written} names no hosts: {one!r} is not HOST or HOST:PORT",
                "give them as replicas=HOST1:PORT1,HOST2:PORT2",
            )
        hosts.append(Host(found[1].strip("[]"), port))
    return tuple(dict.fromkeys(hosts))


def _read_staleness(own: dict[str, str]) -> float:
    written = own.get("max_staleness")
    if written is None:
        return MAX_STALENESS
    if "replicas" not in own:
        raise ConfigError("max_staleness is given without replicas", "add replicas=HOST:PORT to the address")
    try:
        seconds = float(written)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= _MOST_STALENESS:
        raise ConfigError(
            f"max_staleness={written} is no number of seconds", f"give one above 0, up to {_MOST_STALENESS:g}"
        )
    return seconds


class Tables(NamedTuple):
    """Place of the tables of a store: addresses that lead to the same one name the same store."""

    host: str
    port: str
    database: str
    schema: str


class PoolBusy(StoreUnavailable):
    """All connections of a pool were in use for as long as a caller waits."""


class PoolStatus(NamedTuple):
    """Counts of a pool: the most connections, those that are open, those in use, and callers that wait for one."""

    size: int
    open: int
    in_use: int
    waiting: int


class ServerConnections:
    """At most so many connections; the one that was used last is used next."""

    def __init__(
        self,
        address: Address,
        check: Callable[[ServerConnection], None] | None = None,
        silence: float | None = None,
    ) -> None:
        self._address = address
        self._check = check  # of a new connection, which it refuses by an error
        self._silence = silence  # seconds without a byte after which a server is given up
        self._idle: list[tuple[float, ServerConnection]] = []
        self._changed = threading.Condition()
        self._in_use = 0
        self._waiting = 0
        self._is_closed = False
        self._process = os.getpid()

    @property
    def status(self) -> PoolStatus:
        """Return the counts of this moment."""
        return PoolStatus(self._address.pool_size, self._in_use + len(self._idle), self._in_use, self._waiting)

    def connect(self, within: int | None = None) -> ServerConnection:
        """Open a connection, ready for the statements of the index; give each host so many seconds."""
        limit = {} if within is None else {"connect_timeout": str(within)}
        raw = ServerConnection.connect(**{**self._address.parameters(), **limit}, autocommit=True)
        raw.silence = self._silence
        try:
            raw.adapters.register_loader("numeric", NumericLoader)
            raw.execute(
                f'SET search_path = "{self._address.schema}", pg_catalog; '
                f"SET lock_timeout = {int(WAIT_SECONDS * 1_000)}"
            )
            if self._check is not None:
                self._check(raw)
        except BaseException:
            raw.close()
            raise
        return raw

    def take(self, patience: float | None = None, within: int | None = None) -> ServerConnection:
        """Take a connection, waiting for one if all are in use, up to 30 s or so long; who takes it gives it back."""
        raw = self._reserve(WAIT_SECONDS if patience is None else patience)
        if raw is not None:
            return raw
        try:
            return self.connect(within)
        except BaseException:
            self.give_back(None)
            raise

    def _reserve(self, patience: float) -> ServerConnection | None:
        """Take a place of the pool, and its connection if one is idle."""
        until = time.monotonic() + patience
        with self._changed:
            self._waiting += 1
            try:
                while self._in_use >= self._address.pool_size:
                    if not self._changed.wait(until - time.monotonic()):
                        raise PoolBusy(
                            f"{self._address}: all {self._in_use} connections of this process were in use for "
                            f"{patience:g} s",
                            "ask less at a time, or add pool_size=N to the address",
                        )
            finally:
                self._waiting -= 1
            self._in_use += 1
            oldest = time.monotonic() - IDLE_SECONDS
            stale = [raw for used, raw in self._idle if used < oldest or raw.closed]
            self._idle = [one for one in self._idle if one[1] not in stale]
            found = self._idle.pop()[1] if self._idle else None
        for raw in stale:
            raw.close()
        return found

    def give_back(self, raw: ServerConnection | None) -> None:
        """Give back a connection, or only its place; a lost one takes the idle ones with it."""
        is_sound = raw is not None and not raw.closed and raw.info.transaction_status == TransactionStatus.IDLE
        with self._changed:
            self._in_use -= 1
            if raw is not None and is_sound and not self._is_closed:
                self._idle.append((time.monotonic(), raw))
                raw = None
            self._changed.notify()
        if raw is not None:
            is_lost = raw.broken or raw.closed  # the server was restarted, or another one has taken over
            with suppress(psycopg.Error):
                raw.close()
            if is_lost:
                self._drop_idle()

    def _drop_idle(self) -> None:
        with self._changed:
            idle, self._idle = self._idle, []
        for _, raw in idle:
            raw.close()

    def close(self) -> None:
        """Close idle connections now, and those in use when they are given back; a child leaves its parent's open."""
        self._is_closed = True
        if self._process == os.getpid():
            self._drop_idle()

    def __del__(self) -> None:
        self.close()


def end_snapshot(connection: Connection, pool: ServerConnections) -> None:
    """Return a connection to its pool; nothing was written in its transaction."""
    with suppress(psycopg.Error):
        if not connection.is_spoilt:
            with connection.raw.bounded(END_SECONDS) if connection.raw.silence else nullcontext():
                connection.raw.execute("ROLLBACK")
    give_back(connection, pool)


def give_back(connection: Connection, pool: ServerConnections) -> None:
    """Return a connection to its pool, or only its place if it must not be used again."""
    if connection.is_spoilt and not connection.raw.broken:
        connection.raw.close()
        pool.give_back(None)
    else:
        pool.give_back(connection.raw)
