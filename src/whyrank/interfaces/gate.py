"""Who may come in over HTTP: by a name we answer to, from a page we know, with the token."""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ConfigError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_EVERYWHERE = frozenset({"", "0.0.0.0", "::"})  # addresses to listen on, but not names anybody asks for
_TOKEN_BYTES = 32
_PLACE = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::(?P<port>\d{1,5}))?", re.ASCII)
_PORTS = {"http": 80, "https": 443}  # that a browser leaves out of Host and Origin
_ONCE = (b"host", b"origin", b"authorization")  # headers that say who asks, and by which name
LEAST_TOKEN_CHARACTERS = 16  # below that it can be tried out

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class Refusal(NamedTuple):
    """Why a request is not let in, and what to do."""

    status: int
    code: str
    message: str
    hint: str


@dataclass(frozen=True)
class Gate:
    """The names a server answers to, and the token it asks for."""

    hosts: frozenset[str]
    token: str | None

    def refusal(self, host: str | None, origin: str | None, authorization: str | None) -> Refusal | None:
        """Say why a request with these headers is not let in, if it is not."""
        return self.foreign(host, origin) or self.stranger(authorization)

    def foreign(self, host: str | None, origin: str | None) -> Refusal | None:
        """Say why nobody who asks by this name, or from this page, is heard, if so."""
        if _name(host or "") not in self.hosts:
            return Refusal(421, "foreign-host", "this server does not answer to that Host", "ask for it by its address")
        if origin is not None and not self._is_own(origin, host or ""):
            return Refusal(403, "foreign-origin", "pages of that Origin may not ask this server", "leave Origin out")
        return None

    def stranger(self, authorization: str | None) -> Refusal | None:
        """Say why this is nobody who may ask, if so; a server without a token lets everybody ask."""
        if self.token is None:
            return None
        kind, _, given = (authorization or "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.token.encode()):
            return Refusal(401, "token", "the token is missing or wrong", "send Authorization: Bearer TOKEN")
        return None

    def _is_own(self, origin: str, host: str) -> bool:
        """Compare scheme, name and port of a page to those it asks: another port is another program's page.

        The server speaks http; https is a proxy's before it, under a name that is not this machine's own.
        """
        scheme, _, place = origin.partition("://")
        name = _name(host)
        if scheme not in _PORTS or (scheme == "https" and name in LOOPBACK):
            return False
        return _name(place) == name and _port(place, scheme) == _port(host, scheme)


def gate_for(host: str, others: Iterable[str], token: str | None) -> Gate:
    """Return the gate of a server that listens on a host and is also called by other names."""
    names = {name.lower().strip("[]") for name in (host, *others)} - _EVERYWHERE
    return Gate(frozenset(names | set(LOOPBACK)), token)


def repeated(headers: Iterable[tuple[bytes, bytes]]) -> Refusal | None:
    """Refuse a head that says twice who asks: one reader would take the first, another the last."""
    names = [name.lower() for name, _ in headers]
    for name in _ONCE:
        if names.count(name) > 1:
            called = name.decode().title()
            return Refusal(400, "bad-http", f"the request has several headers {called}", "send one")
    return None


def guarded(apps: Sequence[tuple[Gate, App]]) -> App:
    """Return an application that passes whoever a gate lets in on to what stands behind it, and nobody else."""

    async def ask(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        asked = (headers.get("host"), headers.get("origin"), headers.get("authorization"))
        if (ambiguous := repeated(scope["headers"])) is not None:
            await refuse(ambiguous, send)
            return
        # Every gate is asked, so that the time it takes does not tell which of the tokens is nearly right.
        refusals = [gate.refusal(*asked) for gate, _ in apps]
        if None in refusals:
            await apps[refusals.index(None)][1](scope, receive, send)
        else:
            await refuse(next(refusal for refusal in refusals if refusal is not None), send)

    return ask


async def refuse(refusal: Refusal, send: Send) -> None:
    """Answer that a request is not let in, why, and what to do."""
    error = {"code": refusal.code, "message": refusal.message, "hint": refusal.hint}
    body = json.dumps({"error": error, "format": 1}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _name(place: str) -> str | None:
    """Return the name in `name:port`; nothing but a name and a port may stand there."""
    found = _PLACE.fullmatch(place)
    return found["name"].strip("[]").lower() if found else None


def _port(place: str, scheme: str) -> int:
    found = _PLACE.fullmatch(place)
    return int(found["port"]) if found and found["port"] else _PORTS[scheme]


class Token(NamedTuple):
    """A token, and whether it was made just now, so that somebody must be told."""

    text: str
    is_new: bool


def token_from(file: str | None, given: str | None) -> Token:
    """Return the token of a file, else the one given, else a new one."""
    if file is None and given is None:
        return Token(secrets.token_urlsafe(_TOKEN_BYTES), True)
    text = given or ""
    if file is not None:
        try:
            text = Path(file).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError, ValueError, RuntimeError) as error:
            said = getattr(error, "strerror", None) or error
            raise ConfigError(f"the token file {file} cannot be read: {said}", "name a file that holds it") from error
    if len(text) < LEAST_TOKEN_CHARACTERS or not text.isascii() or not text.isprintable() or " " in text:
        raise ConfigError(
            "the token is no token", f"give {LEAST_TOKEN_CHARACTERS} letters and digits or more, without spaces"
        )
    return Token(text, False)
