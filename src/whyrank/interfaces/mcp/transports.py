"""Transports of the MCP server: stdio and HTTP."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, MutableMapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Any, BinaryIO, Protocol, Self, cast

import anyio
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, RequestId
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect

from ..asgi_server import check_head, server_config, stop_signals
from ..auth import BODY_SECONDS, App, AuthPolicy, Receive, Refusal, Send, authenticated, refuse
from .messages import Slip, message_in, parsed

PATH = "/mcp"
MAX_BODY_BYTES = 4 * 1_048_576  # same limit as the SDK
# As long as a slow embedder may take for one fact; a client that cannot wait sends a signal.
DRAIN_SECONDS = 30.0
_GRACEFUL_SECONDS = 3  # for streams still open when the server stops
_BY_SIGNAL = 128  # shell convention for the exit status: 128 + signal number
_CANCELLED = "notifications/cancelled"
_NOT_FOUND = Refusal(404, "not-found", "there is nothing at this address", f"the server is at {PATH}")
_TOO_LONG = Refusal(
    413, "too-long", f"the body is longer than {MAX_BODY_BYTES:,} bytes", "send less; long texts are files to ingest"
)
_SLOW = Refusal(408, "slow", f"the body did not arrive within {BODY_SECONDS:.0f} seconds", "send it at once")
_NO_JSON = Refusal(415, "content-type", "the body is not sent as JSON", "send Content-Type: application/json")
_OPEN = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # auth has checked Host and Origin


def log_to_stderr() -> None:
    """Send all logging to standard error: standard output carries the protocol."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s: %(message)s")


# -- over stdio ------------------------------------------------------------------------------------------------------


def over_stdio(server: Server[Any], leave: Callable[[], None]) -> None:
    """Serve one client until standard input closes and replies are sent; on a signal, exit at once."""

    def end(number: int, _: object) -> None:
        leave()
        # A thread blocked on a line of standard input cannot be woken, so none is joined.
        os._exit(_BY_SIGNAL + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)

    async def serve() -> None:
        lines = InputLines(sys.stdin.buffer)
        async with stdio_server(cast("anyio.AsyncFile[str]", lines)) as (reading, writing):
            lines.replies = replies = Replies(writing)
            await server.run(reading, replies, server.create_initialization_options())

    asyncio.run(serve())


class Writing(Protocol):
    """Protocol of a stream to the client."""

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message."""

    async def aclose(self) -> None:
        """Close the stream."""


class InputLines:
    """Standard input as lines that the SDK can parse; at its end, requests in flight are awaited.

    The SDK itself cancels requests in flight when its input ends.
    """

    replies: Replies

    def __init__(self, stdin: BinaryIO) -> None:
        self._stdin = anyio.wrap_file(stdin)

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._stdin:
            if not line.strip():
                continue
            text = message_in(line.decode("utf-8", "replace"))
            message = text if isinstance(text, Slip) else parsed(text)
            if isinstance(message, Slip):
                await self.replies.send(SessionMessage(message.answer()))
            else:
                self.replies.expect(message)
                yield cast(bytes, text).decode()
        await self.replies.drain()


class Replies:
    """The SDK's stream to the client; a request is in flight until its reply is sent or it is cancelled."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing
        self._in_flight = set[RequestId]()
        self._drained = anyio.Event()

    def expect(self, message: JSONRPCMessage) -> None:
        """Track a message of the client: a request is in flight until its reply or cancellation."""
        if isinstance(message, JSONRPCRequest):
            self._in_flight.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == _CANCELLED:
            self._settle((message.params or {}).get("requestId"))

    def _settle(self, request_id: object) -> None:
        if isinstance(request_id, str | int):  # a client may send anything
            self._in_flight.discard(request_id)
        if not self._in_flight:
            self._drained.set()

    async def drain(self, seconds: float = DRAIN_SECONDS) -> None:
        """Wait until no request is in flight, at most so many seconds; no message may arrive meanwhile."""
        if self._in_flight:
            self._drained = anyio.Event()
            with anyio.move_on_after(seconds):
                await self._drained.wait()

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message."""
        await self._writing.send(item)
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._settle(item.message.id)

    async def aclose(self) -> None:
        """Close the stream."""
        await self._writing.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


# -- over HTTP -------------------------------------------------------------------------------------------------------


def over_http(
    servers: Sequence[tuple[AuthPolicy, Server[Any]]], listening: socket.socket, ready: Callable[[], None]
) -> None:
    """Serve over HTTP on a socket until the process is stopped, each server behind its own policy."""
    managers = [(policy, StreamableHTTPSessionManager(server, security_settings=_OPEN)) for policy, server in servers]

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for _gate, manager in managers:
                await stack.enter_async_context(manager.run())
            yield

    lifetime = Starlette(lifespan=lifespan)
    inside = authenticated(
        [(policy, _at_path(_with_messages(cast(App, manager.asgi_app)))) for policy, manager in managers]
    )

    async def app(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await lifetime(scope, receive, send)
        elif (refusal := check_head(scope)) is not None:
            await refuse(refusal, send)
        else:
            await inside(scope, receive, send)

    server = uvicorn.Server(server_config(app, graceful_seconds=_GRACEFUL_SECONDS))
    with stop_signals(server.handle_exit):
        ready()  # the socket listens already
        server.run(sockets=[listening])


def _at_path(app: App) -> App:
    async def ask(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["path"] == PATH:
            await app(scope, receive, send)
        else:
            await refuse(_NOT_FOUND, send)

    return ask


def _with_messages(app: App) -> App:
    """Wrap an application: bodies that are not a message are refused, others are passed on whole."""

    async def ask(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await app(scope, receive, send)
            return
        headers = {name.lower(): value for name, value in scope["headers"]}
        if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
            await refuse(_NO_JSON, send)
            return
        declared = headers.get(b"content-length", b"")
        is_long = declared.isdigit() and int(declared[:20]) > MAX_BODY_BYTES
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = None if is_long else await _read_body(receive)
        except TimeoutError:
            await refuse(_SLOW, send)
            return
        except ClientDisconnect:
            return
        if body is None:
            await refuse(_TOO_LONG, send)
        elif isinstance(read := message_in(body), Slip):
            await _answer(read, send)
        else:
            await app(scope, _replay(read, receive), send)

    return ask


async def _read_body(receive: Receive) -> bytes | None:
    """Return the body; None if it is too long."""
    parts, size, more = list[bytes](), 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY_BYTES:
            return None
        more = message.get("more_body", False)
    return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a receive function that replays a body and then continues with the original one."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Any:
        return waiting.pop() if waiting else await receive()

    return next_message


async def _answer(slip: Slip, send: Send) -> None:
    body = slip.answer().model_dump_json(by_alias=True, exclude_unset=True).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body})
