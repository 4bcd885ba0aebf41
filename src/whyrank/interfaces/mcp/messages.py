"""What comes in and is no message: refused in our words, over HTTP before a session sees it, over stdio in its turn."""

from __future__ import annotations

import json
from collections.abc import MutableMapping
from typing import Any, Protocol, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

from ..gate import App, Receive, Refusal, Send, refuse
from ..shapes import FORMAT
from .unanswered import Closing, Unanswered, Writing

MAX_BODY_BYTES = 4 * 1_048_576  # as the SDK has it
_TOO_LONG = Refusal(
    413, "too-long", f"the body is longer than {MAX_BODY_BYTES:,} bytes", "send less; long texts are files to ingest"
)
_NO_JSON = Refusal(415, "content-type", "the body is not sent as JSON", "send Content-Type: application/json")
_ONE_MESSAGE = 'send one JSON-RPC message: {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
_SAID = 200  # characters of what a parser complains of


class Slip(Exception):
    """What came is no message of the protocol: the number the protocol has for that, our own code, and why."""

    def __init__(self, number: int, code: str, message: str) -> None:
        super().__init__(message)
        self.error = ErrorData(
            code=number,
            message=f"{message}; {_ONE_MESSAGE}",
            data={"error": {"code": code, "message": message, "hint": _ONE_MESSAGE}, "format": FORMAT},
        )

    def answer(self) -> JSONRPCError:
        """Return the answer; nobody knows whose question it was, so it is nobody's."""
        return JSONRPCError(jsonrpc="2.0", id=None, error=self.error)


def slip_in(body: str | bytes) -> Slip | None:
    """Say what keeps a text from being a message, if something does."""
    try:
        read = json.loads(body)
    except (ValueError, RecursionError) as error:
        said = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:_SAID]
        return Slip(PARSE_ERROR, "bad-json", f"this is no JSON: {said}")
    if isinstance(read, list):
        return Slip(INVALID_REQUEST, "batch", "several messages at once are not understood")
    if not isinstance(read, dict) or read.get("jsonrpc") != "2.0":
        return Slip(INVALID_REQUEST, "no-message", "this is no JSON-RPC message")
    if not {"method", "result", "error"} & read.keys():
        return Slip(INVALID_REQUEST, "no-message", "this JSON-RPC message asks for nothing and answers nothing")
    return None


# -- over HTTP -------------------------------------------------------------------------------------------------------


def understood(app: App) -> App:
    """Refuse bodies that are no message before they are passed on; others are passed on whole."""

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
        body = None if is_long else await _whole(receive)
        if body is None:
            await refuse(_TOO_LONG, send)
        elif (slip := slip_in(body)) is not None:
            await _answer(slip, send)
        else:
            await app(scope, _again(body, receive), send)

    return ask


async def _whole(receive: Receive) -> bytes | None:
    """Return the body; None if it is too long. Of somebody who has left, what came."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > MAX_BODY_BYTES:
            return None
        more = message["type"] == "http.request" and message.get("more_body", False)
    return body


def _again(body: bytes, receive: Receive) -> Receive:
    """Give a body out once more, and then what comes after it."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Any:
        return waiting.pop() if waiting else await receive()

    return next_message


async def _answer(slip: Slip, send: Send) -> None:
    body = slip.answer().model_dump_json(by_alias=True, exclude_unset=True).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body})


# -- over stdio ------------------------------------------------------------------------------------------------------


class Reading(Protocol):
    """The messages of a client, and what is none as the error that came of it."""

    async def receive(self) -> SessionMessage | Exception:
        """Return the next."""

    async def aclose(self) -> None:
        """Read no more."""


class Understood(Closing):
    """The messages of a client; to a line that is none it is said so at once, as JSON-RPC wants it, under no id.

    Their end comes when what was asked is answered: whoever runs the session drops what is open when it comes.
    """

    def __init__(self, reading: Reading, writing: Writing, unanswered: Unanswered) -> None:
        self._reading = reading
        self._writing = writing
        self._unanswered = unanswered

    @property
    def last_context(self) -> Any:
        """Return the context in which the last message was sent."""
        return getattr(self._reading, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        try:
            while isinstance(item := await self._reading.receive(), Exception):
                slip = _slip_of(item)
                if slip is not None:
                    await self._writing.send(SessionMessage(slip.answer()))
        except anyio.EndOfStream:
            await self._unanswered.settled()
            raise
        self._unanswered.came(item.message)
        return item

    async def aclose(self) -> None:
        """Read no more."""
        await self._reading.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


def _slip_of(error: Exception) -> Slip | None:
    """Say what was wrong with a line, by the error that holds it or what was read from it; an empty one is nothing."""
    unread = Slip(INVALID_REQUEST, "no-message", "this is no message that can be read")
    if not isinstance(error, ValidationError):
        return unread
    first = error.errors(include_url=False)[0]
    given = first["input"]
    if first["type"] != "json_invalid":
        return slip_in(json.dumps(given, default=str)) or unread
    return (slip_in(given) or unread) if given.strip() else None
