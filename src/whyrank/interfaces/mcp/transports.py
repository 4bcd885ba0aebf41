"""How agents reach the server: over standard input and output, or over HTTP."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, MutableMapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette

from ..connections import fault_in, host_for
from ..gate import App, Gate, Receive, Refusal, Send, guarded, refuse
from .messages import Understood, understood
from .sessions import Sessions
from .unanswered import Answering, Unanswered

PATH = "/mcp"
_SECONDS_TO_LEAVE = 3  # for streams that are still open when the server is told to end
_ELSEWHERE = Refusal(404, "not-found", "there is nothing at this address", f"the server is at {PATH}")
_OPEN = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # our own gate looks at Host and Origin first
_BY_SIGNAL = 128  # what shells add to the number of the signal a process ended by


def log_to_stderr() -> None:
    """Send every log to standard error: standard output is the protocol's."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s: %(message)s")


def over_stdio(server: Server[Any], leave: Callable[[], None]) -> None:
    """Serve one client until it closes our standard input and is answered; told to end by a signal, leave and end."""

    def end(number: int, _: object) -> None:
        leave()
        # Whoever waits for a line of standard input cannot be woken, so nobody is waited for.
        os._exit(_BY_SIGNAL + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)

    async def serve() -> None:
        async with stdio_server() as (reading, writing):
            unanswered = Unanswered()
            answering = Answering(writing, unanswered)
            messages = Understood(reading, answering, unanswered)
            await server.run(messages, answering, server.create_initialization_options())

    asyncio.run(serve())


def over_http(servers: Sequence[tuple[Gate, Server[Any]]], listening: socket.socket, ready: Callable[[], None]) -> None:
    """Serve over HTTP on a socket until the process is told to end, each server behind its own gate."""
    sessions = [(gate, Sessions(server, security_settings=_OPEN)) for gate, server in servers]

    @asynccontextmanager
    async def running(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for _gate, kept in sessions:
                await stack.enter_async_context(kept.run())
            yield

    lifetime = Starlette(lifespan=running)
    inside = guarded([(gate, _at_path(understood(cast(App, kept.asgi_app)))) for gate, kept in sessions])

    async def app(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await lifetime(scope, receive, send)
        elif (fault := fault_in(scope)) is not None:
            await refuse(fault, send)
        else:
            await inside(scope, receive, send)

    ready()  # the socket listens: whoever comes now waits for us
    host_for(app, lambda: None, leave_seconds=_SECONDS_TO_LEAVE, has_lifespan=True).run(sockets=[listening])


def _at_path(app: App) -> App:
    async def ask(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["path"] == PATH:
            await app(scope, receive, send)
        else:
            await refuse(_ELSEWHERE, send)

    return ask
