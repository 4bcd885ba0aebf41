"""Ways to reach a real server with the SDK's real client."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from .. import processes
from .conftest import COMMAND, SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

TOKEN = "a-token-for-these-tests"
Done = TypeVar("Done")


class Told(NamedTuple):
    """What a tool answered."""

    data: Any
    text: str
    failed: bool


@asynccontextmanager
async def over_stdio(folder: Path, *options: str, mode: str = "auto") -> AsyncIterator[Client]:
    """Start `whyrank mcp` as a client would, and talk to it over its standard input and output."""
    environment = {
        key: value for key, value in os.environ.items() if key.startswith(("XDG_", "WHYRANK_", "PYTHONPATH"))
    }
    start = StdioServerParameters(command=str(COMMAND), args=["mcp", *options], cwd=folder, env=environment)
    async with Client(start, mode=mode, read_timeout_seconds=SECONDS) as client:
        yield client


class Listening(NamedTuple):
    """A server that listens."""

    url: str
    process: subprocess.Popen[str]


@contextmanager
def listening(folder: Path, *options: str, **variables: str) -> Iterator[Listening]:
    """Start `whyrank mcp --http` on a free port; it says where, and is told to end afterwards."""
    with processes.serving(
        [COMMAND, "mcp", "--http", "--port", "0", "--json", *options],
        cwd=folder,
        env={**os.environ, "WHYRANK_TOKEN": TOKEN, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        yield Listening(json.loads(process.stdout.readline())["url"], process)


@asynccontextmanager
async def over_http(url: str, token: str = TOKEN, mode: str = "auto") -> AsyncIterator[Client]:
    """Talk to a server that listens."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=SECONDS) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=mode, read_timeout_seconds=SECONDS) as client:
            yield client


async def told(client: Client, tool: str, **arguments: Any) -> Told:
    """Call a tool."""
    answer = await client.call_tool(tool, arguments)
    [content] = answer.content
    assert content.type == "text"
    return Told(answer.structured_content, content.text, answer.is_error)


def run(story: Callable[[], Awaitable[Done]]) -> Done:
    """Run a story to its end, with a limit."""

    async def limited() -> Done:
        return await asyncio.wait_for(story(), 2 * SECONDS)

    return asyncio.run(limited())
