"""Transports of the MCP server: stdio and HTTP."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import signal
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, Self, cast

import anyio
import uvicorn
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from starlette.applications import Starlette

from ...analysis.sanitize import whole_characters
from ..asgi_server import check_head, server_config, stop_signals
from ..auth import SLOW_BODY, App, AuthPolicy, Left, Receive, Refusal, Send, authenticated, body_of, refuse
from ..errors import FORMAT

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Callable, MutableMapping, Sequence
    from types import TracebackType

    from mcp.server.lowlevel import Server

_ONE_MESSAGE = 'send one JSON-RPC message: {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
_SAID = 200  # characters quoted of a parser's message
MAX_NESTING = 100  # levels of a message; the SDK's parser refuses 200 under no id
REPAIRED = "whyrank/repaired"  # in `_meta` of a call: its text was repaired and differs from what the client meant
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)  # an unterminated string ends with the text
_IDENTITY = re.compile(r'\s*:\s*("(?:[^"\\]++|\\.)*+"|-?\d{1,18}(?![\d.eE]))')


class Slip(Exception):
    """Invalid message: the JSON-RPC error number, whyrank's code, and the reason."""

    def __init__(self, number: int, code: str, message: str, identity: RequestId | None = None) -> None:
        super().__init__(message)
        self.identity = identity
        self.error = ErrorData(
            code=number,
            message=f"{message}; {_ONE_MESSAGE}",
            data={"error": {"code": code, "message": message, "hint": _ONE_MESSAGE}, "format": FORMAT},
        )

    def answer(self) -> JSONRPCError:
        """Return the error response, under the request id if it is readable: the client waits for that id."""
        return JSONRPCError(jsonrpc="2.0", id=self.identity, error=self.error)


def message_in(body: str | bytes) -> bytes | Slip:
    """Return a message the SDK can parse; lone surrogates become U+FFFD.

    A call that held a lone surrogate is marked in `_meta`.
    """
    try:
        text = body if isinstance(body, str) else body.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        identity = identity_in(error.object.decode("utf-8", "replace"))
        return Slip(PARSE_ERROR, "bad-json", f"this is not JSON: {error}", identity)
    if (slip := _slip_in(text)) is not None:
        return slip
    if not (_ESCAPED_SURROGATE.search(text) or _SURROGATE.search(text)):
        return text.encode()
    read = json.loads(text)
    mended = whole_characters(read)
    if mended != read and isinstance(params := mended.get("params"), dict):
        meta = params.get("_meta")
        params["_meta"] = {**(meta if isinstance(meta, dict) else {}), REPAIRED: True}
    return json.dumps(mended).encode()


def parsed(message: bytes) -> JSONRPCMessage | Slip:
    """Parse a message into the SDK's type."""
    try:
        return jsonrpc_message_adapter.validate_json(message, by_name=False)
    except ValidationError:
        told = "this message cannot be read"
        return Slip(INVALID_REQUEST, "no-message", told, identity_in(message.decode()))


def _slip_in(text: str) -> Slip | None:
    """Return the reason why a text is not a valid message; None if it is."""
    if _nesting(text) > MAX_NESTING:
        return Slip(PARSE_ERROR, "bad-json", f"it is nested deeper than {MAX_NESTING} levels", identity_in(text))
    try:
        read = json.loads(text)
    except (ValueError, RecursionError) as error:
        return Slip(PARSE_ERROR, "bad-json", f"this is not JSON: {str(error)[:_SAID]}", identity_in(text))
    if isinstance(read, list):
        return Slip(INVALID_REQUEST, "batch", "batches of messages are not supported")
    identity = read.get("id") if isinstance(read, dict) else None
    known = identity if isinstance(identity, str | int) and not isinstance(identity, bool) else None
    if isinstance(known, str) and _SURROGATE.search(known):
        known = None
    if not isinstance(read, dict) or read.get("jsonrpc") != "2.0":
        return Slip(INVALID_REQUEST, "no-message", "this is not JSON-RPC message", known)
    if not {"method", "result", "error"} & read.keys():
        told = "this JSON-RPC message is neither a request nor a response"
        return Slip(INVALID_REQUEST, "no-message", told, known)
    if identity is not None and known is None:
        return Slip(INVALID_REQUEST, "no-message", "the id of this message is neither a text nor a whole number")
    if not isinstance(read.get("method", ""), str) or not isinstance(read.get("params"), dict | None):
        return Slip(INVALID_REQUEST, "no-message", "the method is not text, or its params are not an object", known)
    return None


def identity_in(text: str) -> RequestId | None:
    """Return the id of a message that does not parse, read from its top level alone, in linear time."""
    depth = 0
    for token in _TOKEN.finditer(text):
        if token[0] in ("{", "["):
            depth += 1
        elif token[0] in ("}", "]"):
            depth -= 1
        elif depth == 1 and token[0] == '"id"' and (found := _IDENTITY.match(text, token.end())) is not None:
            try:
                read = json.loads(found[1])
            except ValueError:
                return None
            return None if isinstance(read, str) and _SURROGATE.search(read) else read
    return None


def _nesting(text: str) -> int:
    if text.count("{") + text.count("[") <= MAX_NESTING:
        return 0
    depth = deepest = 0
    for token in _TOKEN.finditer(text):
        depth += (token[0] in ("{", "[")) - (token[0] in ("}", "]"))
        deepest = max(deepest, depth)
    return deepest


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
_NO_JSON = Refusal(415, "content-type", "the body is not sent as JSON", "send Content-Type: application/json")
_OPEN = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # auth has checked Host and Origin


def log_to_stderr() -> None:
    """Send all logging to standard error: standard output carries the protocol."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s: %(message)s")


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
                yield cast("bytes", text).decode()
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
    inside = authenticated([(policy, _with_messages(cast("App", manager.asgi_app))) for policy, manager in managers])

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


def _with_messages(app: App) -> App:
    """Wrap an application: refuse other paths and bodies that are not messages."""

    async def ask(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["path"] != PATH:
            await refuse(_NOT_FOUND, send)
            return
        if scope["method"] != "POST":
            await app(scope, receive, send)
            return
        headers = {name.lower(): value for name, value in scope["headers"]}
        if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
            await refuse(_NO_JSON, send)
            return
        length = headers.get(b"content-length")
        try:
            body = await body_of(receive, None if length is None else length.decode("latin-1"), MAX_BODY_BYTES)
        except TimeoutError:
            await refuse(SLOW_BODY, send)
            return
        except Left:
            return
        if body is None:
            await refuse(_TOO_LONG, send)
        elif isinstance(read := message_in(body), Slip):
            await _answer(read, send)
        else:
            await app(scope, _replay(read, receive), send)

    return ask


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
