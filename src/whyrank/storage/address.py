"""Addresses of stores on a server, without a connection: their parts, and what of them may be shown.

The parts are those that libpq finds: user and password end at the first `@`, which may not stand behind a `/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

from ..errors import ConfigError

SCHEMES = ("postgresql://", "postgres://")
SCHEMA = "whyrank"  # unless the address has `?schema=NAME`
OWN = ("schema", "pool_size", "replicas", "max_staleness")  # parameters of an address that are not libpq's
HINT = "check it, and percent-encode special characters of user, password and values (@ as %40, = as %3D)"
# Parameters that may be shown. Of any other one not even the name is: it may be a part of a password.
_NAMES = """
schema pool_size replicas max_staleness host hostaddr port dbname user application_name fallback_application_name
client_encoding connect_timeout tcp_user_timeout keepalives keepalives_idle keepalives_interval keepalives_count options
target_session_attrs load_balance_hosts channel_binding require_auth gssencmode gssdelegation gsslib krbsrvname
sslmode sslnegotiation sslcompression sslcert sslkey sslrootcert sslcrl sslcrldir sslsni sslcertmode
ssl_min_protocol_version ssl_max_protocol_version min_protocol_version max_protocol_version requirepeer service
passfile replication oauth_issuer oauth_client_id oauth_scope
"""
_SHOWN = frozenset(_NAMES.split())
_PATHS = re.compile(r"[^\w-]")  # replaced in names of files
_SECRET = frozenset({"password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"})


class Parts(NamedTuple):
    """Parts of an address as they are written: `place` holds the hosts and the database."""

    scheme: str
    user: str
    password: str
    place: str
    parameters: tuple[tuple[str, str], ...] = ()

    @property
    def has_secret(self) -> bool:
        """Return whether the address holds a password or another secret."""
        return bool(self.password) or any(unquote(name) in _SECRET for name, _ in self.parameters)

    @property
    def shown(self) -> str:
        """Return the address without its password and without secret or unknown parameters."""
        user = f"{self.user}@" if self.user else ""
        return f"{self.scheme}{user}{self.place}{_query(one for one in self.parameters if unquote(one[0]) in _SHOWN)}"

    @property
    def dsn(self) -> str:
        """Return the address as libpq reads it, without the parameters of our own."""
        password = f":{self.password}" if self.password else ""
        account = f"{self.user}{password}@" if self.user or password else ""
        return f"{self.scheme}{account}{self.place}{_query(one for one in self.parameters if one[0] not in OWN)}"

    @property
    def own(self) -> dict[str, str]:
        """Return the parameters of our own that are given."""
        return {name: unquote(value) for name, value in self.parameters if name in OWN}

    @property
    def file_name(self) -> str:
        """Return a name for files that belong to the store: DATABASE.SCHEMA, without characters of paths."""
        given = dict(self.parameters)
        database = unquote(given.get("dbname") or self.place.partition("/")[2] or self.user or "postgres")
        return ".".join(_PATHS.sub("_", name) for name in (database, given.get("schema", SCHEMA).lower()))


def parts_of(url: str) -> Parts:
    """Split an address; one with an unescaped @ or without a port's number is refused, and not quoted."""
    found = _split(url)
    if found is None:
        raise ConfigError(f"{shown(url)} is no address of a store: its hosts and ports cannot be read", HINT)
    return found


def shown(url: str) -> str:
    """Return an address without its secrets; of one that cannot be split only the scheme."""
    found = _split(url)
    return f"{url.partition('://')[0]}://…" if found is None else found.shown


def _split(url: str) -> Parts | None:
    scheme, mark, rest = url.partition("://")
    ahead = rest.partition("/")[0]
    account, at, behind = ahead.partition("@")
    rest = behind + rest[len(ahead) :] if at else rest
    user, _, password = account.partition(":") if at else ("", "", "")
    place, _, query = rest.partition("?")
    parameters = tuple(part.partition("=")[::2] for part in query.split("&") if part)
    known = all(unquote(name) in _SHOWN | _SECRET for name, _ in parameters)
    if "@" in place or ("@" in query and not known) or not all(map(_is_port, _ports(place))):
        return None
    return Parts(scheme + mark, user, password, place, parameters)


def _ports(place: str) -> Iterator[str]:
    """Yield the port of each host; an IPv6 address stands in brackets."""
    for host in place.partition("/")[0].split(","):
        yield host.rpartition("]")[2].partition(":")[2]


def _is_port(written: str) -> bool:
    return not written or (written.isascii() and written.isdigit())


def _query(parameters: Iterator[tuple[str, str]]) -> str:
    written = "&".join(f"{name}={value}" for name, value in parameters)
    return f"?{written}" if written else ""
