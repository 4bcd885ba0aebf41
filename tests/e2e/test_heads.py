"""Heads that are read in two ways by two readers, or never end: one answer each, and nothing of a body is a request."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from .rest import TOKEN, Serving, all_of, ended, request_bytes, searched, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def server(workspace: Path) -> Iterator[Serving]:
    with serving(workspace) as started:
        yield started


def told(server: Serving, *pieces: bytes) -> list[tuple[int, Any]]:
    """Send bytes; return the status and the data of each answer until the server closes."""
    with server.connected() as connection:
        for piece in pieces:
            connection.sendall(piece)
        left = all_of(connection)
    answers = []
    while left:
        head, _, left = left.partition(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        [length] = [int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")]
        answers.append((int(lines[0].split()[1]), json.loads(left[:length])))
        left = left[length:]
    return answers


def codes(answers: list[tuple[int, Any]]) -> list[tuple[int, str]]:
    return [(status, data["error"]["code"]) for status, data in answers]


OFFER = "Connection: Upgrade, HTTP2-Settings, close\nUpgrade: h2c\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA"


def test_an_offer_of_another_protocol_costs_no_body(server: Serving) -> None:
    body = json.dumps({"query": "green tea"}).encode()
    head = f"POST /v1/search HTTP/1.1\nContent-Type: application/json\n{OFFER}\n"
    whole = request_bytes(f"{head}Content-Length: {len(body)}", body)
    chunked = request_bytes(f"{head}Transfer-Encoding: chunked", b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
    for sent in (whole, chunked):
        for pieces in ([sent], [sent[:30], sent[30:]], [sent[:-20], sent[-20:]]):
            [(status, data)] = told(server, *pieces)
            assert status == 200
            assert "green tea" in data["hits"][0]["text"]
    _, log = ended(server)
    assert "pgrade" not in log
    assert "ebsocket" not in log.lower()


def test_a_body_behind_an_offer_is_no_request(server: Serving) -> None:
    hidden = request_bytes("GET /v1/recipes HTTP/1.1")
    offer = "Upgrade: websocket\nConnection: Upgrade"
    smuggling = request_bytes(f"POST /v1/search HTTP/1.1\n{offer}\nContent-Length: {len(hidden)}", hidden)
    last = smuggling.replace(b"Connection: Upgrade", b"Connection: Upgrade, close")
    assert codes(told(server, last)) == [(415, "content-type")]
    # Requests that really follow each other are all answered, in their order.
    after = request_bytes(f"GET /v1/recipes HTTP/1.1\n{offer}") + smuggling + request_bytes("GET /v1/nothing HTTP/1.1")
    statuses = [status for status, _ in told(server, after + request_bytes("GET /health HTTP/1.1\nConnection: close"))]
    assert statuses == [200, 415, 404, 200]
    assert codes(told(server, b"CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n")) == [(400, "bad-http")]


@pytest.mark.parametrize("lines", [
    "Host: evil.example",
    "Host: 127.0.0.1",
    "Authorization: Bearer another-token-here",
    "Origin: http://127.0.0.1\nOrigin: http://evil.example",
])  # fmt: skip
def test_who_says_twice_who_they_are_is_refused(server: Serving, lines: str) -> None:
    for sent in (f"GET /health HTTP/1.1\n{lines}", f"POST /v1/search HTTP/1.1\n{lines}\nContent-Length: 2"):
        assert codes(told(server, request_bytes(sent, b"{}" if "POST" in sent else b""))) == [(400, "bad-http")]


def test_an_address_that_names_another_server_than_its_host_is_refused(server: Serving) -> None:
    for place in ("http://evil.example", "http://127.0.0.1:1", "http://a@127.0.0.1", "HTTP://evil.example"):
        sent = request_bytes(f"GET {place}/v1/recipes HTTP/1.1")
        assert codes(told(server, sent)) == [(400, "bad-http")], place
    for place in ("http://127.0.0.1", "http://127.0.0.1:80", "HTTP://127.0.0.1"):
        [(status, _)] = told(server, request_bytes(f"GET {place}/v1/recipes HTTP/1.1\nConnection: close"))
        assert status == 200, place


def test_what_stands_after_a_body_is_no_header(server: Serving) -> None:
    trailer = f"0\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n".encode()
    head = b"GET /v1/recipes HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert codes(told(server, head + trailer)) == [(401, "token")]


def test_a_head_has_an_end(server: Serving) -> None:
    start = request_bytes("GET /health HTTP/1.1")[:-2] + b"Connection: close\r\n"
    many = b"".join(b"X-%d: a\r\n" % number for number in range(98))  # with Host, Authorization and Connection 101
    for pieces in (
        [start + b"X: " + b"a" * 66_000 + b"\r\n\r\n"],
        [start + many + b"\r\n"],
        [request_bytes(f"GET /health?{'a' * 66_000} HTTP/1.1")],
        [start + b"X: ", *[b"a" * 1_000] * 70],  # it is refused before it has come to an end
    ):
        assert codes(told(server, *pieces)) == [(431, "long-head")]
    fewer = many.removesuffix(b"X-97: a\r\n")
    [(status, _)] = told(server, start + fewer.replace(b"X-0: a", b"X-0: " + b"a" * 60_000) + b"\r\n")
    assert status == 200
    assert searched(server, "green tea").status_code == 200


def test_who_goes_on_sending_still_reads_why_they_are_refused(server: Serving) -> None:
    with server.connected() as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nX: " + b"a" * 70_000)
        for _ in range(3):  # a closed socket answers these with a reset, which takes the answer with it
            time.sleep(0.1)
            connection.sendall(b"a" * 70_000)
        assert all_of(connection).startswith(b"HTTP/1.1 431 long-head")


def test_what_follows_a_request_and_is_none_does_not_take_its_answer(server: Serving) -> None:
    body = json.dumps({"query": "green tea"}).encode()
    head = f"POST /v1/search HTTP/1.1\nContent-Type: application/json\nContent-Length: {len(body)}"
    for nonsense, refused in ((b"\x00\x01\r\n\r\n", 400), (b"GET /" + b"a" * 300_000, 431)):
        [(status, data), (after, _)] = told(server, request_bytes(head, body) + nonsense)
        assert (status, data["format"]) == (200, 1)
        assert after == refused
