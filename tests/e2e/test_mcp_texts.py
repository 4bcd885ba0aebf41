"""Calls whose text is damaged or huge: each is answered under its own id, over both transports."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from .agents import TOKEN, listening
from .conftest import COMMAND, SECONDS

if TYPE_CHECKING:
    from pathlib import Path

HELLO = (
    '{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",'
    ' "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}}'
)
READY = '{"jsonrpc": "2.0", "method": "notifications/initialized"}'


def call(number: int, tool: str, arguments: str) -> str:
    """Return a call as a client writes it; the arguments are JSON already."""
    params = f'{{"name": "{tool}", "arguments": {arguments}}}'
    return f'{{"jsonrpc": "2.0", "id": {number}, "method": "tools/call", "params": {params}}}'


def over_stdio(folder: Path, *lines: str) -> dict[int | None, dict[str, Any]]:
    done = subprocess.run(
        [COMMAND, "mcp"], cwd=folder, input="\n".join([HELLO, READY, *lines, ""]), capture_output=True, text=True,
        timeout=SECONDS, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}


def over_http(folder: Path, *bodies: str) -> dict[int | None, dict[str, Any]]:
    headers = {
        "Authorization": f"Bearer {TOKEN}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
    }
    with listening(folder) as server, httpx.Client(headers=headers, timeout=SECONDS) as client:
        session = client.post(server.url, content=HELLO).headers["mcp-session-id"]
        client.headers["mcp-session-id"] = session
        client.post(server.url, content=READY)
        answers = [client.post(server.url, content=body) for body in bodies]
        assert all(answer.status_code in (200, 400) for answer in answers)
        return {answer["id"]: answer for answer in map(data_of, answers)}


def data_of(answer: httpx.Response) -> dict[str, Any]:
    """Return the message of an answer: the event of a stream, or the body of a refusal."""
    [text] = re.findall(r"^data: ({.*)$", answer.text, re.MULTILINE) or [answer.text]
    data: dict[str, Any] = json.loads(text)
    return data


BY = {"stdio": over_stdio, "http": over_http}
NESTED = "[" * 300 + "]" * 300  # the SDK's parser gives up at 200 levels


@pytest.mark.parametrize("transport", BY)
def test_every_call_is_answered_under_its_own_id(workspace: Path, transport: str) -> None:
    answers = BY[transport](
        workspace,
        call(1, "memory_search", r'{"query": "green tea \ud83d"}'),
        call(2, "memory_add", r'{"text": "the tin is blue \ud83d"}'),
        call(3, "memory_forget", r'{"ids": ["m_\udfff"]}'),
        call(4, "memory_search", r'"{\"query\": \"green tea \\ud83d\"}"'),  # arguments as text
        call(5, "memory_search", r'{"query": "green tea", "\ud83d": 1}'),
        call(6, "memory_search", f'{{"query": "tea", "tags": {NESTED}}}'),
        call(7, "memory_search", '{"query": "tea", "limit": ' + "9" * 5_000 + "}"),
        call(8, "memory_search", '{"query": "tea", "limit": NaN}'),
        call(9, "memory_search", '{"query": "green\\u0000tea"}'),
        call(10, "memory_add", '{"text": "a\\u0000b"}'),
        call(11, "memory_search", '{"query": "green tea", "query": "green tea"}'),
        call(12, "memory_get", r'{"id": "\ud83d"}'),
    )
    assert sorted(answers, key=str) == sorted(({*range(1, 13), *({0} if transport == "stdio" else set())}), key=str)
    for number in (1, 4):
        found = answers[number]["result"]
        assert found["structuredContent"]["hits"][0]["path"] == "notes/tea.md"
        assert "text-repaired" in [notice["code"] for notice in found["structuredContent"]["notices"]]
        assert "U+FFFD" in found["content"][0]["text"]
    for number in (2, 3):
        refused = answers[number]["result"]
        assert refused["isError"]
        assert "surrogate" in refused["structuredContent"]["error"]["message"]
    assert {answers[number]["error"]["code"] for number in (6, 7)} == {-32700}
    for number in (8, 10, 12):
        assert answers[number]["result"]["isError"], answers[number]
    for number in (5, 9, 11):
        assert answers[number]["result"]["structuredContent"]["hits"][0]["path"] == "notes/tea.md"
