"""Bodies of requests: read up to a limit and in time, and only if they are JSON that says one thing."""

from __future__ import annotations

import asyncio
import json
from typing import Any, NoReturn

from ...errors import WhyrankError
from ..gate import Receive

MAX_BODY_BYTES = 1_048_576  # a fact of 50,000 letters in any script with all its fields, several times over
BODY_SECONDS = 10.0  # for a body to arrive whole
_LINGER_SECONDS = 5.0  # for somebody to finish sending what is thrown away, so that they come to read why
_LINGER_BYTES = 64 * 1_048_576


class Refused(WhyrankError):
    """A request that is none, with the status it is answered with."""

    def __init__(self, status: int, code: str, message: str, hint: str, retry_after_s: float | None = None) -> None:
        super().__init__(message, hint)
        self.status = status
        self.code = code
        self.retry_after_s = retry_after_s


class Left(Exception):
    """Whoever asked has gone."""


async def read_body(receive: Receive, length: str | None) -> bytes:
    """Return the body; refuse one that is too long before it has come, and one that does not come."""
    if length is not None and length.isdecimal() and int(length[:20]) > MAX_BODY_BYTES:
        raise _too_long()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await _all_of(receive)
    except TimeoutError as error:
        message = f"the body did not arrive within {BODY_SECONDS:.0f} seconds"
        raise Refused(408, "slow", message, "send it at once") from error


async def _all_of(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Left
        part = message.get("body", b"")
        size += len(part)
        if size > MAX_BODY_BYTES:
            raise _too_long()
        parts.append(part)
        more = message.get("more_body", False)
    return b"".join(parts)


def _too_long() -> Refused:
    message = f"the body is longer than {MAX_BODY_BYTES:,} bytes"
    return Refused(413, "too-long", message, "send less; long texts are files for /v1/ingest")


async def drained(receive: Receive) -> None:
    """Throw away what is still being sent, for a while: who is cut off while sending does not read the answer."""
    size = 0
    try:
        async with asyncio.timeout(_LINGER_SECONDS):
            while size < _LINGER_BYTES:
                message = await receive()
                size += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return
    except TimeoutError:
        return


def read_json(content_type: str | None, encoding: str | None, body: bytes) -> dict[str, Any]:
    """Return the JSON object a body holds."""
    kind, _, charset = (content_type or "").partition(";")
    is_utf8 = charset.strip().lower().removeprefix("charset=").strip('"') in ("", "utf-8", "utf8")
    if kind.strip().lower() != "application/json" or not is_utf8 or encoding not in (None, "", "identity"):
        raise Refused(415, "content-type", "the body is not sent as JSON", "send Content-Type: application/json")
    try:
        read = json.loads(body.decode("utf-8"), parse_constant=_no_number, object_pairs_hook=_said_once)
    except (ValueError, RecursionError) as error:
        said = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
        raise Refused(400, "bad-json", f"the body is no JSON: {said}", "send one JSON object in UTF-8") from error
    if not isinstance(read, dict):
        raise Refused(422, "config", "the body is no JSON object", 'send one object: {"query": "…"}')
    return read


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _said_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ValueError("a name stands in it twice")
    return read
