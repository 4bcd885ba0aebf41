"""Heads of requests: how long they may be, and that they say one thing to everybody who reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .gate import Refusal, repeated

MAX_HEAD_BYTES = 65_536  # several times what browsers, proxies and tokens make of it
MAX_HEADERS = 100
TOO_LONG = Refusal(
    431,
    "long-head",
    f"the head of the request has more than {MAX_HEAD_BYTES:,} bytes or {MAX_HEADERS} headers",
    "send fewer and shorter headers; long questions go into the body of a POST",
)
_AROUND = 4  # bytes of a header besides its name and value: ": " and the end of the line
_ABSOLUTE = re.compile(rb"(?P<scheme>https?)://(?P<authority>[^/?#]*)", re.IGNORECASE)
_PORTS = {b"http": b":80", b"https": b":443"}  # that go without saying

Headers = Sequence[tuple[bytes, bytes]]


def fault_of(target: bytes, headers: Headers) -> Refusal | None:
    """Say what is wrong with a head that came whole, if something is."""
    size = len(target) + sum(len(name) + len(value) + _AROUND for name, value in headers)
    if size > MAX_HEAD_BYTES or len(headers) > MAX_HEADERS:
        return TOO_LONG
    return repeated(headers) or _two_hosts(target, headers)


def _two_hosts(target: bytes, headers: Headers) -> Refusal | None:
    """Refuse a target that names another server than Host does: who stands before us may have gone by either."""
    found = _ABSOLUTE.match(target)
    if found is None:
        return None
    port = _PORTS[found["scheme"].lower()]
    hosts = {value.lower().removesuffix(port) for name, value in headers if name == b"host"}
    if hosts == {found["authority"].lower().removesuffix(port)}:
        return None
    return Refusal(400, "bad-http", "the address of the request and its Host differ", "send the path alone, and Host")


def without_upgrade(method: bytes, target: bytes, version: str, headers: Headers) -> bytes:
    """Return a head as bytes, as if nobody had offered another protocol; nobody has to take such an offer up."""
    lines = [b"%s %s HTTP/%s" % (method, target, version.encode())]
    lines += [b"%s: %s" % header for header in headers if header[0] != b"upgrade"]
    return b"\r\n".join([*lines, b"", b""])
