"""What a door costs: the same searches through the library and through each door, in turns, in milliseconds.

MCP is asked twice: by a bare client that only writes and reads messages, which shows what the server adds, and by the
SDK's own client, which checks every answer and takes its time for that. The tenth percentile is what it takes when
nobody else wants the machine. It needs the extras `mcp` and `serve`.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

import whyrank
from whyrank.interfaces import serialize

FACTS, QUESTIONS, WARM, SEED = 2_000, 200, 10, 1
TOKEN = "a-token-for-this-benchmark"
SYLLABLES = ["ba", "ko", "ri", "ta", "nu", "sel", "mor", "vin", "dra", "pe"]
WHYRANK = [sys.executable, "-m", "whyrank"]
ASKING = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
HELLO = {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bare", "version": "1"},
}  # fmt: skip

Ask = Callable[[str], Awaitable[object]]


def word(chance: random.Random) -> str:
    return "".join(chance.choices(SYLLABLES, k=chance.randint(2, 4)))


def message(method: str, params: dict[str, Any] | None = None, number: int | None = None) -> str:
    said: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    return json.dumps(
        {**said, **({} if params is None else {"params": params}), **({} if number is None else {"id": number})}
    )


def call(question: str) -> str:
    return message("tools/call", {"name": "memory_search", "arguments": {"query": question}}, 1)


@contextmanager
def bare_stdio(place: Path) -> Iterator[Ask]:
    command = [*WHYRANK, "mcp", "--store", str(place / "memory.db")]
    with subprocess.Popen(command, cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        writing, reading = process.stdin, process.stdout

        def tell(said: str) -> None:
            writing.write(said + "\n")
            writing.flush()

        async def ask(question: str) -> object:
            tell(call(question))
            return json.loads(reading.readline())["result"]["structuredContent"]["hits"]

        tell(message("initialize", HELLO, 0))
        reading.readline()
        tell(message("notifications/initialized"))
        yield ask
        process.terminate()


def bare_http(url: str) -> Ask:
    connection = HTTPConnection(url.split("/")[2])
    headers = {**ASKING, "Accept": "application/json, text/event-stream"}

    def tell(said: str) -> str:
        connection.request("POST", "/mcp", said, headers)
        answer = connection.getresponse()
        headers.setdefault("Mcp-Session-Id", answer.getheader("mcp-session-id") or "")
        return answer.read().decode()

    async def ask(question: str) -> object:
        return json.loads(tell(call(question)))["result"]["structuredContent"]["hits"]

    tell(message("initialize", HELLO, 0))
    tell(message("notifications/initialized"))
    return ask


def rest(url: str) -> Ask:
    connection = HTTPConnection(url.split("/")[2])

    async def ask(question: str) -> object:
        connection.request("POST", "/v1/search", json.dumps({"query": question}), ASKING)
        return json.loads(connection.getresponse().read())["hits"]

    return ask


def library(engine: whyrank.Engine) -> Ask:
    async def ask(question: str) -> object:
        return serialize.results(engine.search(question))["hits"]

    return ask


def by_the_sdk(client: Client) -> Ask:
    async def ask(question: str) -> object:
        return await client.call_tool("memory_search", {"query": question})

    return ask


async def measured(place: Path, url: str, page: str) -> None:
    chance = random.Random(SEED)
    vocabulary = [word(chance) for _ in range(800)]
    start = StdioServerParameters(command=WHYRANK[0], args=[*WHYRANK[1:], "mcp"], cwd=place)
    start.args += ["--store", str(place / "memory.db")]
    with whyrank.open(place / "memory.db", workspace=place) as engine:
        for _ in range(FACTS):
            engine.add(" ".join(chance.choices(vocabulary, k=30)))
        questions = [" ".join(chance.choices(vocabulary, k=5)) for _ in range(QUESTIONS)]
        with bare_stdio(place) as stdio:
            async with (
                httpx2.AsyncClient(headers={"Authorization": ASKING["Authorization"]}) as http,
                Client(start) as local,
                Client(streamable_http_client(url, http_client=http)) as remote,
            ):
                doors = {
                    "library": library(engine),
                    "HTTP": rest(page),
                    "MCP over stdio": stdio,
                    "MCP over HTTP": bare_http(url),
                    "the SDK's client, stdio": by_the_sdk(local),
                    "the SDK's client, HTTP": by_the_sdk(remote),
                }
                report({name: times[WARM:] for name, times in (await in_turns(doors, questions)).items()})


async def in_turns(doors: dict[str, Ask], questions: list[str]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in doors}
    for question in questions[:WARM] + questions:
        for name, ask in doors.items():
            began = time.perf_counter()
            await ask(question)
            times[name].append((time.perf_counter() - began) * 1000)
    return times


def report(times: dict[str, list[float]]) -> None:
    own = statistics.quantiles(times["library"], n=10)
    for name, spent in times.items():
        tenths = statistics.quantiles(spent, n=10)
        print(f"{name:24}", *(f"p{10 * at + 10} {tenths[at]:6.2f} ms ({tenths[at] - own[at]:+.2f})" for at in (0, 4)))


@contextmanager
def listening(place: Path, *verb: str) -> Iterator[str]:
    command = [*WHYRANK, *verb, "--port", "0", "--json", "--store", str(place / "memory.db")]
    environment = {**os.environ, "WHYRANK_TOKEN": TOKEN}
    with subprocess.Popen(
        command, cwd=place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
        process.terminate()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="whyrank-bench-") as folder:
        place = Path(folder)
        with listening(place, "mcp", "--http") as url, listening(place, "serve") as page:
            asyncio.run(measured(place, url, page))


if __name__ == "__main__":
    main()
