"""Connections that are one too many or too slow are told so, or let go; a signal to end is heard at any time."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from whyrank.interfaces.asgi_server import Connection, check_head, server_config, stop_signals

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

    from whyrank.interfaces.auth import Receive, Send

ANSWER_BYTES = 50_000_000  # more than two sockets of one machine hold


class Short(Connection):
    head_seconds = 0.3
    write_seconds = 0.5
    max_connections = 2


class App:
    """Answers, and knows when it was told that the server stops."""

    def __init__(self) -> None:
        self.stopping = threading.Event()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            scope["state"]["stopping"] = self.stopping
            for kind in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{kind}.complete"})
        else:
            await answer(scope, send)


async def answer(scope: MutableMapping[str, Any], send: Send) -> None:
    body = b"a" * ANSWER_BYTES if scope["path"] == "/long" else b"ok"
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def port() -> Iterator[int]:
    listening = socket.create_server(("127.0.0.1", 0))
    config = server_config(App())
    config.http = Short
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join(30)
    assert not thread.is_alive()


def ended(connection: socket.socket) -> tuple[bytes, Any]:
    said = b""
    while part := connection.recv(4_096):
        said += part
    head, _, body = said.partition(b"\r\n\r\n")
    return head.split(b"\r\n")[0], json.loads(body)["error"]


def test_one_too_many_is_told_to_come_later(port: int) -> None:
    with (
        socket.create_connection(("127.0.0.1", port)) as first,
        socket.create_connection(("127.0.0.1", port)) as second,
    ):
        for connection in (first, second):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert connection.recv(4_096).startswith(b"HTTP/1.1 200")
        with socket.create_connection(("127.0.0.1", port)) as third:
            line, error = ended(third)
    assert line == b"HTTP/1.1 503 busy"
    assert error["hint"] == "try again in a moment"


@pytest.mark.parametrize("length", ["Content-Length: 1000", "Transfer-Encoding: chunked"])
def test_a_body_that_never_ends_is_not_waited_for_after_its_answer(port: int, length: str) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(f"POST / HTTP/1.1\r\nHost: a\r\n{length}\r\n\r\n".encode())
        assert connection.recv(4_096).startswith(b"HTTP/1.1 200")
        connection.sendall(b"3\r\nab")
        said = b""
        while part := connection.recv(4_096):  # until it is closed
            said += part
    assert said.startswith(b"HTTP/1.1 408 slow")


def test_two_lengths_of_one_body_are_refused() -> None:
    headers = [(b"host", b"a"), (b"content-length", b"4"), (b"transfer-encoding", b"chunked")]
    scope = {"method": "POST", "raw_path": b"/", "path": "/", "query_string": b"", "headers": headers}
    refusal = check_head(scope)
    assert refusal is not None
    assert refusal.status == 400
    assert check_head({**scope, "headers": headers[:2]}) is None


def test_a_head_that_does_not_come_is_not_waited_for(port: int) -> None:
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        said = b""
        while not said.endswith(b"ok"):
            said += connection.recv(4_096)
        time.sleep(0.5)  # it may rest between two requests
        connection.sendall(b"GET / HTT")
        line, error = ended(connection)
    assert (line, error["code"]) == (b"HTTP/1.1 408 slow", "slow")
    assert time.monotonic() - began > 0.8


def test_what_is_no_http_is_told_so(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"\x00\x01\r\n\r\n")
        line, error = ended(connection)
    assert (line, error["code"]) == (b"HTTP/1.1 400 bad-http", "bad-http")


@pytest.mark.parametrize("last", ["close", "keep-alive"])
def test_who_takes_no_answer_is_let_go(port: int, last: str) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(f"GET /long HTTP/1.1\r\nHost: a\r\nConnection: {last}\r\n\r\n".encode())
        time.sleep(1.5)  # three times what one has
        got = 0
        with suppress(ConnectionResetError):
            while part := connection.recv(1_000_000):
                got += len(part)
    assert got < ANSWER_BYTES


def test_who_takes_an_answer_gets_all_of_it(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for _ in range(2):
        connection.request("GET", "/long")
        assert len(connection.getresponse().read()) == ANSWER_BYTES
    held = connection.sock
    time.sleep(0.7)  # nothing is held against them afterwards
    connection.request("GET", "/")
    assert connection.getresponse().read() == b"ok"
    assert connection.sock is held
    connection.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_told_to_end_before_it_begins_a_server_begins_and_ends(number: signal.Signals) -> None:
    outside = signal.signal(number, signal.SIG_DFL)  # nohup ignores SIGHUP, and so would the server
    try:
        server = uvicorn.Server(server_config(App()))
        with socket.create_server(("127.0.0.1", 0)) as listening, stop_signals(server.handle_exit):
            signal.raise_signal(number)  # it interrupts nothing
            server.run(sockets=[listening])
            assert server.started
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, outside)


def test_an_application_hears_that_its_server_stops_while_a_client_is_connected() -> None:
    app = App()
    server = uvicorn.Server(server_config(app))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        with socket.create_connection(listening.getsockname()[:2]) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert connection.recv(4_096).startswith(b"HTTP/1.1 200")
            assert not app.stopping.is_set()
            server.should_exit = True
            assert app.stopping.wait(30)
        thread.join(30)
        assert not thread.is_alive()
