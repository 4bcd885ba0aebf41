"""What a door costs: the same searches through the library, through HTTP and through MCP, in turns, in milliseconds.

The tenth percentile is what it takes when nobody else wants the machine. It needs the extras `mcp` and `serve`.
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

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

import whyrank
from whyrank.interfaces import shapes

FACTS, QUESTIONS, SEED = 2_000, 200, 1
TOKEN = "a-token-for-this-benchmark"
SYLLABLES = ["ba", "ko", "ri", "ta", "nu", "sel", "mor", "vin", "dra", "pe"]
SERVER = [sys.executable, "-m", "whyrank", "mcp"]


def word(chance: random.Random) -> str:
    return "".join(chance.choices(SYLLABLES, k=chance.randint(2, 4)))


async def measured(place: Path, url: str, page: str) -> None:
    connection = HTTPConnection(page.removeprefix("http://"))
    asking = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    chance = random.Random(SEED)
    vocabulary = [word(chance) for _ in range(800)]
    engine = whyrank.open(place / "memory.db", workspace=place)
    for _ in range(FACTS):
        engine.add(" ".join(chance.choices(vocabulary, k=30)))
    questions = [" ".join(chance.choices(vocabulary, k=5)) for _ in range(QUESTIONS)]
    start = StdioServerParameters(command=SERVER[0], args=[*SERVER[1:], "--store", str(place / "memory.db")], cwd=place)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(start) as stdio,
        Client(streamable_http_client(url, http_client=http)) as remote,
    ):

        async def library(question: str) -> object:
            return shapes.results(engine.search(question))

        async def rest(question: str) -> object:
            connection.request("POST", "/v1/search", json.dumps({"query": question}), asking)
            return json.loads(connection.getresponse().read())

        async def over_stdio(question: str) -> object:
            return await stdio.call_tool("memory_search", {"query": question})

        async def over_http(question: str) -> object:
            return await remote.call_tool("memory_search", {"query": question})

        doors: dict[str, Callable[[str], Awaitable[object]]] = {
            "library": library, "HTTP": rest, "MCP over stdio": over_stdio, "MCP over HTTP": over_http,
        }  # fmt: skip
        times: dict[str, list[float]] = {name: [] for name in doors}
        for question in questions[:10] + questions:
            for name, ask in doors.items():
                began = time.perf_counter()
                await ask(question)
                times[name].append((time.perf_counter() - began) * 1000)
    engine.close()
    own = statistics.quantiles(times["library"][10:], n=10)
    for name, spent in times.items():
        tenths = statistics.quantiles(spent[10:], n=10)
        print(f"{name:16}", *(f"p{10 * at + 10} {tenths[at]:6.2f} ms ({tenths[at] - own[at]:+.2f})" for at in (0, 4)))


@contextmanager
def listening(place: Path, *verb: str) -> Iterator[str]:
    command = [*SERVER[:-1], *verb, "--port", "0", "--json", "--store", str(place / "memory.db")]
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
