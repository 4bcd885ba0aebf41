"""A real server of `whyrank serve`, and ways to ask it that no client library would allow."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx

from .. import processes
from .conftest import COMMAND, SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOKEN = "a-token-for-these-tests"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


class Serving(NamedTuple):
    """A server that listens, and a client that stays connected to it."""

    url: str
    process: subprocess.Popen[str]
    client: httpx.Client
    log: Path

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def connected(self) -> socket.socket:
        """Return a connection that says nothing by itself."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS)


@contextmanager
def serving(folder: Path, *options: str, token: str = TOKEN, **variables: str) -> Iterator[Serving]:
    """Start `whyrank serve` on a free port; it says where, and is told to end afterwards."""
    log = folder / "server.log"
    with (
        log.open("w", encoding="utf-8") as stderr,
        processes.serving(
            [COMMAND, "serve", "--port", "0", "--json", *options],
            cwd=folder,
            env={**os.environ, "WHYRANK_TOKEN": token, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,  # a file: nobody would empty a pipe
        ) as process,
    ):
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=SECONDS) as client:
            yield Serving(url, process, client, log)


def ended(server: Serving) -> tuple[str, str]:
    """Tell a server to end; return what it printed."""
    server.process.terminate()
    out, _ = server.process.communicate(timeout=SECONDS)
    return out, server.log.read_text(encoding="utf-8")


def searched(server: Serving, query: str, **arguments: Any) -> httpx.Response:
    return server.client.post("/v1/search", json={"query": query, **arguments})


def code_of(answer: httpx.Response) -> str:
    """Return the code of a refusal, which must have all that its schema wants."""
    data = answer.json()
    assert set(data) == {"error", "format"}, data
    assert set(data["error"]) == {"code", "message", "hint", "request_id"}, data
    assert data["error"]["hint"], data
    assert data["error"]["request_id"] == answer.headers["x-request-id"]
    return str(data["error"]["code"])


def request_bytes(head: str, body: bytes = b"") -> bytes:
    """Return a request as it goes over the wire; its head without the lines that all have."""
    own = f"Host: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
    return head.replace("\n", "\r\n").encode() + b"\r\n" + own.encode() + b"\r\n" + body


def all_of(connection: socket.socket) -> bytes:
    """Return what comes until the other side closes."""
    parts = []
    while part := connection.recv(65_536):
        parts.append(part)
    return b"".join(parts)
