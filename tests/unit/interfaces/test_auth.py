"""Over HTTP nobody comes in by a foreign name, from a foreign page, or without the token."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from whyrank.errors import ConfigError
from whyrank.interfaces.auth import App, AuthPolicy, Receive, Send, auth_policy, authenticated, token_from

if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from pathlib import Path

TOKEN = "a-token-of-some-length"
GATE = auth_policy("127.0.0.1", ["memory.example"], TOKEN)
BEARER = f"Bearer {TOKEN}"


def status(host: str | None = "127.0.0.1:8642", origin: str | None = None, bearer: str | None = BEARER) -> int:
    refusal = GATE.refusal(host, origin, bearer)
    return 200 if refusal is None else refusal.status


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:1", "localhost:9", "LOCALHOST", "[::1]:8642", "memory.example"]
)
def test_it_answers_to_its_own_names(host: str) -> None:
    assert status(host) == 200


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "evil@localhost",
        "localhost/evil",
        "localhost:x",
        "[::1",
        "a b",
    ],
)
def test_it_does_not_answer_to_others(host: str | None) -> None:
    assert status(host) == 421


@pytest.mark.parametrize(("host", "origin"), [
    ("127.0.0.1:8642", "http://127.0.0.1:8642"), ("localhost:8642", "http://LOCALHOST:8642"),
    ("[::1]:8642", "http://[::1]:8642"), ("localhost", "http://localhost"), ("localhost", "http://localhost:80"),
    ("localhost:80", "http://localhost"), ("memory.example", "https://memory.example"),
    ("memory.example:443", "https://memory.example"), ("memory.example:8443", "https://memory.example:8443"),
])  # fmt: skip
def test_its_own_pages_may_ask(host: str, origin: str) -> None:
    assert status(host, origin) == 200


@pytest.mark.parametrize("origin", [
    "http://localhost:3000",  # another program on this machine
    "http://localhost", "https://localhost:8642", "http://127.0.0.1:8642", "http://[::1]:8642",
    "http://memory.example:8642", "http://evil.example:8642", "null", "", "file://localhost:8642",
    "http://localhost.evil.example:8642", "http://[", "http://evil@localhost:8642", "javascript://localhost:8642",
    "http://localhost:8642/", "http://localhost:8642#", "http://localhost:8642 ",
    "HTTP://localhost:8642", "http:localhost:8642", "ws://localhost:8642", "http://localhost:864200",
])  # fmt: skip
def test_pages_of_another_scheme_name_or_port_may_not(origin: str) -> None:
    assert status("localhost:8642", origin) == 403


def test_a_page_of_another_port_may_not_ask_through_a_proxy_either() -> None:
    assert status("memory.example", "https://memory.example:8443") == 403


@pytest.mark.parametrize(
    "bearer", [None, "", "Bearer", "Bearer ", f"Basic {TOKEN}", f"{BEARER}x", TOKEN, "Bearer ключ"]
)
def test_without_the_token_nobody_comes_in(bearer: str | None) -> None:
    assert status(bearer=bearer) == 401


def test_the_word_bearer_may_be_written_in_any_case() -> None:
    assert status(bearer=f"bearer  {TOKEN}") == 200


def test_an_address_to_listen_on_is_no_name_to_be_asked_by() -> None:
    assert auth_policy("0.0.0.0", [], TOKEN).hosts == {"127.0.0.1", "localhost", "::1"}


def answered(policy: AuthPolicy, headers: list[tuple[bytes, bytes]]) -> tuple[int, dict[bytes, bytes], Any]:
    """Ask a guarded application, and return status, headers and body."""
    sent: list[MutableMapping[str, Any]] = []

    async def app(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b'"inside"'})

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    async def ask() -> None:
        await authenticated([(policy, app)])({"type": "http", "headers": headers, "path": "/anything"}, receive, send)

    asyncio.run(ask())
    return sent[0]["status"], dict(sent[0]["headers"]), json.loads(sent[1]["body"])


def test_a_guarded_application_is_reached_with_the_token_alone() -> None:
    host = (b"host", b"localhost")
    assert answered(GATE, [host, (b"authorization", BEARER.encode())])[2] == "inside"
    code, headers, body = answered(GATE, [host])
    assert (code, headers[b"www-authenticate"], body["error"]["code"]) == (401, b"Bearer", "token")
    assert body["error"]["hint"] == "send Authorization: Bearer TOKEN"


def test_a_guarded_application_is_not_reached_by_who_says_twice_who_they_are() -> None:
    once = [(b"host", b"localhost"), (b"authorization", BEARER.encode())]
    for name, value in ((b"Host", b"localhost"), (b"authorization", BEARER.encode())):
        code, _, body = answered(GATE, [*once, (name, value)])
        assert (code, body["error"]["code"], body["error"]["hint"]) == (400, "bad-http", "send one")
    assert answered(GATE, [*once, (b"accept", b"a"), (b"accept", b"b")])[2] == "inside"


def test_the_token_says_whose_application_is_reached() -> None:
    other = auth_policy("127.0.0.1", [], "another-token-of-some-length")
    asked: list[str] = []

    def named(name: str) -> App:
        async def app(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
            asked.append(name)

        return app

    async def receive() -> MutableMapping[str, Any]:
        return {}

    async def send(message: MutableMapping[str, Any]) -> None:
        asked.append(str(message.get("status", "")))

    app = authenticated([(GATE, named("first")), (other, named("second"))])
    for token in (BEARER, "Bearer another-token-of-some-length", "Bearer a-third-token-of-some-length"):
        headers = [(b"host", b"localhost"), (b"authorization", token.encode())]
        asyncio.run(app({"type": "http", "headers": headers}, receive, send))  # type: ignore[arg-type]
    assert asked == ["first", "second", "401", ""]


def test_a_foreign_host_learns_nothing_about_the_token() -> None:
    assert answered(GATE, [(b"host", b"evil.example")])[0] == 421


def test_a_token_comes_from_the_file_then_the_environment_then_is_new(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n", encoding="utf-8")
    assert token_from(str(file), "another-token-entirely") == (TOKEN, False)
    assert token_from(None, TOKEN) == (TOKEN, False)
    first, second = token_from(None, None), token_from(None, None)
    assert first.is_new
    assert first.text != second.text
    assert len(first.text) == 43  # 32 bytes, six bits to a letter


@pytest.mark.parametrize("text", ["", "short", "with some spaces in it", "ключ-ключ-ключ-ключ", "line\nline-line-line"])
def test_what_can_be_guessed_or_cannot_be_sent_is_no_token(tmp_path: Path, text: str) -> None:
    file = tmp_path / "token"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="the token is not valid"):
        token_from(str(file), None)


def test_a_token_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="missing"):
        token_from(str(tmp_path / "missing"), None)
