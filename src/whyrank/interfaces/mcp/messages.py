"""What comes in and is no message: refused in our words, over HTTP before a session sees it, over stdio in its turn."""

from __future__ import annotations

import json
import re
from collections.abc import MutableMapping
from typing import Any, Protocol, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, RequestId, jsonrpc_message_adapter
from pydantic import ValidationError

from ..characters import whole_characters
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
MAX_NESTING = 100  # levels of a message; the SDK's parser refuses 200 under no id
REPAIRED = "whyrank/repaired"  # in `_meta` of a call: its text is not what the client meant to send
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)  # one that is not closed ends with the text
_IDENTITY = re.compile(r'\s*:\s*("(?:[^"\\]|\\.)*"|-?\d{1,18}(?![\d.eE]))')


class Slip(Exception):
    """What came is no message of the protocol: the number the protocol has for that, our own code, and why."""

    def __init__(self, number: int, code: str, message: str, identity: RequestId | None = None) -> None:
        super().__init__(message)
        self.identity = identity
        self.error = ErrorData(
            code=number,
            message=f"{message}; {_ONE_MESSAGE}",
            data={"error": {"code": code, "message": message, "hint": _ONE_MESSAGE}, "format": FORMAT},
        )

    def answer(self) -> JSONRPCError:
        """Return the answer, under the id of the request where one can be read: its client waits for that id."""
        return JSONRPCError(jsonrpc="2.0", id=self.identity, error=self.error)


def message_in(body: str | bytes) -> bytes | Slip:
    """Return a message as the SDK can parse it: lone surrogates as U+FFFD, a call that held one marked in `_meta`."""
    try:
        text = body if isinstance(body, str) else body.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        identity = identity_in(error.object.decode("utf-8", "replace"))
        return Slip(PARSE_ERROR, "bad-json", f"this is no JSON: {error}", identity)
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


def _slip_in(text: str) -> Slip | None:
    """Say what keeps a text from being a message, if something does."""
    if _nesting(text) > MAX_NESTING:
        return Slip(PARSE_ERROR, "bad-json", f"it is nested deeper than {MAX_NESTING} levels", identity_in(text))
    try:
        read = json.loads(text)
    except (ValueError, RecursionError) as error:
        return Slip(PARSE_ERROR, "bad-json", f"this is no JSON: {str(error)[:_SAID]}", identity_in(text))
    if isinstance(read, list):
        return Slip(INVALID_REQUEST, "batch", "several messages at once are not understood")
    identity = read.get("id") if isinstance(read, dict) else None
    known = identity if isinstance(identity, str | int) and not isinstance(identity, bool) else None
    if isinstance(known, str) and _SURROGATE.search(known):
        known = None
    if not isinstance(read, dict) or read.get("jsonrpc") != "2.0":
        return Slip(INVALID_REQUEST, "no-message", "this is no JSON-RPC message", known)
    if not {"method", "result", "error"} & read.keys():
        told = "this JSON-RPC message asks for nothing and answers nothing"
        return Slip(INVALID_REQUEST, "no-message", told, known)
    if identity is not None and known is None:
        return Slip(INVALID_REQUEST, "no-message", "the id of this message is neither a text nor a whole number")
    if not isinstance(read.get("method", ""), str) or not isinstance(read.get("params"), dict | None):
        return Slip(INVALID_REQUEST, "no-message", "the method is no text, or its params are no object", known)
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
        elif isinstance(read := message_in(body), Slip):
            await _answer(read, send)
        else:
            await app(scope, _again(read, receive), send)

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
    """The messages of a client; a line that is none is refused at once, under its id where one can be read.

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
                read = _read_again(item)
                if isinstance(read, SessionMessage):
                    item = read
                    break
                if read is not None:
                    await self._writing.send(SessionMessage(read.answer()))
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


def _read_again(error: Exception) -> SessionMessage | Slip | None:
    """Read a line the SDK could not, by the error that holds it: as a mended message, or what is wrong with it."""
    unread = Slip(INVALID_REQUEST, "no-message", "this is no message that can be read")
    if not isinstance(error, ValidationError):
        return unread
    told = error.errors(include_url=False)
    given = told[0]["input"]
    if told[0]["type"] != "json_invalid":
        # An error about one field holds that field alone; the kinds of message that miss one hold all of it.
        given = json.dumps(next((one["input"] for one in told if one["type"] == "missing"), given), default=str)
    elif not given.strip():
        return None  # an empty line
    read = message_in(given)
    if isinstance(read, Slip):
        return read
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(read, by_name=False))
    except ValidationError:
        unread.identity = identity_in(read.decode())
        return unread
