"""Authentication over HTTP: Host, Origin and token of a request."""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ConfigError

BODY_SECONDS = 10.0  # for the body of a request to arrive whole

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_EVERYWHERE = frozenset({"", "0.0.0.0", "::"})  # addresses to listen on that no client uses as Host
_TOKEN_BYTES = 32
_PLACE = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::(?P<port>\d{1,5}))?", re.ASCII)
_PORTS = {"http": 80, "https": 443}  # that a browser leaves out of Host and Origin
_ONCE = (b"host", b"origin", b"authorization")  # headers that identify the client and the server name
LEAST_TOKEN_CHARACTERS = 16  # a shorter token can be guessed by brute force

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class Refusal(NamedTuple):
    """Refusal of a request: status, code, message and hint."""

    status: int
    code: str
    message: str
    hint: str


SLOW_BODY = Refusal(408, "slow", f"the body did not arrive within {BODY_SECONDS:.0f} seconds", "send it at once")


class Left(Exception):
    """The client has disconnected."""


async def body_of(receive: Receive, length: str | None, most: int) -> bytes | None:
    """Return the body; None if it is too long, by its declared length before it arrives."""
    if length is not None and length.isdecimal() and int(length[:20]) > most:
        return None
    parts, size, more = list[bytes](), 0, True
    async with asyncio.timeout(BODY_SECONDS):
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Left
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                return None
            more = message.get("more_body", False)
    return b"".join(parts)


@dataclass(frozen=True)
class AuthPolicy:
    """Host names of a server, and the token it requires."""

    hosts: frozenset[str]
    token: str | None

    def refusal(self, host: str | None, origin: str | None, authorization: str | None) -> Refusal | None:
        """Return the refusal of a request with these headers; None if it is admitted."""
        return self.foreign(host, origin) or self.stranger(authorization)

    def foreign(self, host: str | None, origin: str | None) -> Refusal | None:
        """Return the refusal of a foreign Host or Origin; None if both are the server's own."""
        if _name(host or "") not in self.hosts:
            return Refusal(
                421, "foreign-host", "this server does not answer to that Host", "use the address that it listens on"
            )
        if origin is not None and not self._is_own(origin, host or ""):
            return Refusal(403, "foreign-origin", "pages of that Origin may not call this server", "omit Origin")
        return None

    def stranger(self, authorization: str | None) -> Refusal | None:
        """Return the refusal of a missing or wrong token; a server without a token admits every request."""
        if self.token is None:
            return None
        kind, _, given = (authorization or "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.token.encode()):
            return Refusal(401, "token", "the token is missing or wrong", "send Authorization: Bearer TOKEN")
        return None

    def _is_own(self, origin: str, host: str) -> bool:
        """Compare scheme, name and port of Origin and Host: another port is another program's page.

        The server itself speaks http; https comes from a proxy in front of it, under a name that is not loopback.
        """
        scheme, _, place = origin.partition("://")
        name = _name(host)
        if scheme not in _PORTS or (scheme == "https" and name in LOOPBACK):
            return False
        return _name(place) == name and _port(place, scheme) == _port(host, scheme)


def auth_policy(host: str, others: Iterable[str], token: str | None) -> AuthPolicy:
    """Return the policy of a server that listens on a host and has other names too."""
    names = {name.lower().strip("[]") for name in (host, *others)} - _EVERYWHERE
    return AuthPolicy(frozenset(names | set(LOOPBACK)), token)


def repeated(headers: Iterable[tuple[bytes, bytes]]) -> Refusal | None:
    """Refuse repeated Host, Origin or Authorization headers: parsers differ in which one they take."""
    names = [name.lower() for name, _ in headers]
    for name in _ONCE:
        if names.count(name) > 1:
            called = name.decode().title()
            return Refusal(400, "bad-http", f"the request has several headers {called}", "send one")
    return None


def authenticated(apps: Sequence[tuple[AuthPolicy, App]]) -> App:
    """Return an application that passes a request on to the first application whose policy admits it."""

    async def ask(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        asked = (headers.get("host"), headers.get("origin"), headers.get("authorization"))
        if (ambiguous := repeated(scope["headers"])) is not None:
            await refuse(ambiguous, send)
            return
        # Every policy is checked, so that the response time does not reveal which of the tokens is nearly right.
        refusals = [policy.refusal(*asked) for policy, _ in apps]
        if None in refusals:
            await apps[refusals.index(None)][1](scope, receive, send)
        else:
            await refuse(next(refusal for refusal in refusals if refusal is not None), send)

    return ask


async def refuse(refusal: Refusal, send: Send) -> None:
    """Send a refusal as JSON."""
    error = {"code": refusal.code, "message": refusal.message, "hint": refusal.hint}
    body = json.dumps({"error": error, "format": 1}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _name(place: str) -> str | None:
    """Return the name in `name:port`; None if the text has any other form."""
    found = _PLACE.fullmatch(place)
    return found["name"].strip("[]").lower() if found else None


def _port(place: str, scheme: str) -> int:
    found = _PLACE.fullmatch(place)
    return int(found["port"]) if found and found["port"] else _PORTS[scheme]


class AccessToken(NamedTuple):
    """A token, and whether it is newly generated and therefore has to be printed."""

    text: str
    is_new: bool


def token_from(file: str | None, given: str | None) -> AccessToken:
    """Return the token of a file, else the one given, else a new one."""
    if file is None and given is None:
        return AccessToken(secrets.token_urlsafe(_TOKEN_BYTES), True)
    text = given or ""
    if file is not None:
        try:
            text = Path(file).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError, ValueError, RuntimeError) as error:
            said = getattr(error, "strerror", None) or error
            raise ConfigError(f"the token file {file} cannot be read: {said}", "name a file that holds it") from error
    if len(text) < LEAST_TOKEN_CHARACTERS or not text.isascii() or not text.isprintable() or " " in text:
        hint = f"give {LEAST_TOKEN_CHARACTERS} letters and digits or more, without spaces"
        raise ConfigError("the token is not valid", hint)
    return AccessToken(text, False)
