"""JSON-RPC messages as the SDK can parse them; invalid ones are refused under their id, if readable."""

from __future__ import annotations

import json
import re

from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from ..sanitize import whole_characters
from ..serialize import FORMAT

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


def parsed(message: bytes) -> JSONRPCMessage | Slip:
    """Parse a message into the SDK's type."""
    try:
        return jsonrpc_message_adapter.validate_json(message, by_name=False)
    except ValidationError:
        told = "this is no message that can be read"
        return Slip(INVALID_REQUEST, "no-message", told, identity_in(message.decode()))


def _slip_in(text: str) -> Slip | None:
    """Return the reason why a text is not a valid message; None if it is."""
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
