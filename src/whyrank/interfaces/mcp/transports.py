"""How agents reach the server: over standard input and output, or over HTTP."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.routing import Mount

from ..gate import App, Gate, guarded

PATH = "/mcp"
_SECONDS_TO_LEAVE = 3  # for streams that are still open when the server is told to end
_BY_SIGNAL = 128  # what shells add to the number of the signal a process ended by


def log_to_stderr() -> None:
    """Send every log to standard error: standard output is the protocol's."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s: %(message)s")


def over_stdio(server: Server[Any], leave: Callable[[], None]) -> None:
    """Serve one client until it closes our standard input; told to end by a signal, leave and end."""

    def end(number: int, _: object) -> None:
        leave()
        # Whoever waits for a line of standard input cannot be woken, so nobody is waited for.
        os._exit(_BY_SIGNAL + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)

    async def serve() -> None:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    asyncio.run(serve())


def over_http(servers: Sequence[tuple[Gate, Server[Any]]], listening: socket.socket, ready: Callable[[], None]) -> None:
    """Serve over HTTP on a socket until the process is told to end, each server behind its own gate."""
    apps = [(gate, _app(server, gate)) for gate, server in servers]

    @asynccontextmanager
    async def running(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for _gate, app in apps:
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield

    inside = guarded([(gate, cast(App, app)) for gate, app in apps])
    config = uvicorn.Config(
        Starlette(routes=[Mount("/", cast(Any, inside))], lifespan=running),
        log_config=None,  # uvicorn's own would print to standard output
        access_log=False,
        lifespan="on",
        timeout_graceful_shutdown=_SECONDS_TO_LEAVE,
    )
    ready()  # the socket listens: whoever comes now waits for us
    uvicorn.Server(config).run(sockets=[listening])


def _app(server: Server[Any], gate: Gate) -> Starlette:
    names = [f"[{name}]" if ":" in name else name for name in sorted(gate.hosts)]
    security = TransportSecuritySettings(
        allowed_hosts=_with_ports(names),
        allowed_origins=_with_ports([f"{scheme}://{name}" for scheme in ("http", "https") for name in names]),
    )
    return server.streamable_http_app(streamable_http_path=PATH, transport_security=security)


def _with_ports(names: Sequence[str]) -> list[str]:
    return [*names, *(f"{name}:*" for name in names)]
