"""Host × Origin × method × route × token, every row by a raw socket against a real server: who is let in, and who not.

The expected status is worked out here from four plain rules, in the order in which they are checked.
"""

from __future__ import annotations

import json
import socket
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import pytest

from .agents import listening
from .conftest import SECONDS
from .rest import TOKEN, Serving, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OWN = "127.0.0.1:{port}"
HOSTS = {
    OWN: True,
    "localhost:{port}": True,
    "[::1]:{port}": True,
    "LOCALHOST:{port}": True,
    "evil.example:{port}": False,
    "127.0.0.1.evil.example:{port}": False,
    "localhost:{port}@evil.example": False,
    "127.0.0.1:{port}/evil": False,
    "0.0.0.0:{port}": False,
    "": False,
}
# An origin, and whether it is the origin of a page of this server that was asked for by the given Host.
SAME = "http://{host}"
ORIGINS = (
    None,
    SAME,
    "http://127.0.0.1:{other}",
    "http://localhost:{other}",
    "http://127.0.0.1",
    "https://{host}",
    "http://evil.example:{port}",
    "http://evil.example",
    "http://{host}.evil.example",
    "null",
    "file://",
    "chrome-extension://abcdefghijklmnop",
    "",
)
# A route, and whether it is open to who has no token.
ROUTES = {
    "/": True,
    "/page/main.js": True,
    "/health": True,
    "/openapi.json": True,
    "/v1/status": False,
    "/v1/recipes": False,
    "/v1/memories": False,
    "/metrics": False,
    "/v1/nothing": False,
}
TOKENS = {"right": f"Bearer {TOKEN}", "wrong": "Bearer not-the-token-at-all", "none": None}
METHODS = ("GET", "POST", "OPTIONS")
# What routes themselves answer by method, once somebody was let in; 415 is a body without a type.
ANSWERS = {
    **{(method, route): 405 for method in ("POST",) for route in ROUTES},
    **{("GET", route): 200 for route in ROUTES},
    **{("OPTIONS", route): 204 for route in ROUTES},
    ("POST", "/v1/memories"): 415,
    **{(method, "/v1/nothing"): 404 for method in METHODS},
}


class Row(NamedTuple):
    """One request."""

    host: str
    origin: str | None
    method: str
    route: str
    token: str

    def expected(self) -> int:
        """Return the status: of the name it is asked by, then the page it comes from, the token, the route."""
        if not HOSTS[self.host]:
            return 421
        if self.origin not in (None, SAME):
            return 403
        if not ROUTES[self.route] and self.token != "right":
            return 401
        return ANSWERS[self.method, self.route]


def rows() -> Iterator[Row]:
    """Yield every Host with every Origin, and for the server's own Host every Origin, method, route and token."""
    for host, origin in product(HOSTS, ORIGINS):
        yield Row(host, origin, "GET", "/v1/status", "right")
    for origin, method, route, token in product((None, SAME, ORIGINS[3], ORIGINS[6]), METHODS, ROUTES, TOKENS):
        yield Row(OWN, origin, method, route, token)
    for host, method, route, token in product(["evil.example:{port}"], METHODS, ROUTES, TOKENS):
        yield Row(host, None, method, route, token)


def answered(connection: socket.socket, row: Row, port: int) -> tuple[int, dict[str, str], bytes]:
    """Send one request as it is; return status, headers and body of what comes back."""
    host = row.host.format(port=port)
    lines = [f"{row.method} {row.route} HTTP/1.1", f"Host: {host}", "Content-Length: 0"]
    if row.origin is not None:
        lines.append(f"Origin: {row.origin.format(host=host, port=port, other=port % 65_535 + 1)}")
    if TOKENS[row.token] is not None:
        lines.append(f"Authorization: {TOKENS[row.token]}")
    connection.sendall("\r\n".join([*lines, "", ""]).encode())
    read = b""
    while b"\r\n\r\n" not in read:
        part = connection.recv(65_536)
        assert part, (row, read)
        read += part
    head, _, body = read.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest)}
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.recv(65_536)
    return int(first.split()[1]), headers, body


@pytest.fixture(scope="module")
def server(template: Path) -> Iterator[Serving]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CONFIG_HOME", str(template / "no-config"))
        with serving(template) as server:
            yield server


def test_every_row_is_let_in_or_refused_as_the_rules_say(server: Serving) -> None:
    wrong, count = [], 0
    with server.connected() as connection:
        for row in rows():
            count += 1
            status, headers, body = answered(connection, row, server.port)
            if status != row.expected():
                wrong.append((row, status, row.expected()))
            # No page of another origin is ever allowed to read an answer.
            assert not [name for name in headers if name.startswith("access-control-")], row
            if status in (401, 403, 421):
                assert set(json.loads(body)["error"]) == {"code", "message", "hint", "request_id"}
                assert TOKEN not in body.decode()
    assert not wrong, wrong[:10]
    assert count == len(HOSTS) * len(ORIGINS) + (4 + 1) * len(METHODS) * len(ROUTES) * len(TOKENS)  # 535


def test_agents_are_let_in_by_the_same_rules(workspace: Path) -> None:
    with listening(workspace) as served:
        port = int(served.url.rpartition(":")[2].partition("/")[0])
        address = ("127.0.0.1", port)
        for host, origin, token in product(HOSTS, ORIGINS, TOKENS):
            row = Row(host, origin, "GET", "/mcp", token)
            expected = 421 if not HOSTS[host] else 403 if origin not in (None, SAME) else 401 if token != "right" else 0
            if not expected and origin is not None and host != OWN:
                continue  # an open stream for each of these says nothing new
            with socket.create_connection(address, timeout=SECONDS) as connection:
                status, headers, _ = answered(connection, row, port)
            assert not [name for name in headers if name.startswith("access-control-")], row
            assert status == expected if expected else status not in (401, 403, 421), (row, status)
