"""What an error looks like over HTTP: the right status, and a body that says what to do."""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from starlette.responses import Response

from ...errors import NotFound, ProviderUnavailable, StoreLocked, WhyrankError
from ..failures import AT_HTTP, failure_of, hint_at
from ..shapes import FORMAT
from .bodies import Refused, drained

JSON = "application/json"
_RETRY_SECONDS = 5  # of those who met a lock that others held, or a server that ends
_MESSAGE_CHARACTERS = 500
_WHERE_IDS_ARE = "/v1/search and /v1/memories show the ids there are; it may have been forgotten, or be another's"


class Told(NamedTuple):
    """An error as it is told: its status, and the body."""

    status: int
    body: bytes


def told(error: WhyrankError, identity: str) -> Told:
    """Return what is said of an error in a request; one schema for all."""
    failure = failure_of(error)
    status, code = (error.status, error.code) if isinstance(error, Refused) else (failure.http_status, failure.code)
    hint = _WHERE_IDS_ARE if isinstance(error, NotFound) else hint_at(AT_HTTP, error.hint)
    said = {"code": code, "message": error.message[:_MESSAGE_CHARACTERS], "hint": hint, "request_id": identity}
    return Told(status, json.dumps({"error": said, "format": FORMAT}).encode())


def refused(error: WhyrankError, identity: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return the answer to a request that failed."""
    status, body = told(error, identity)
    more = {**(headers or {}), **_advice(error, status)}
    if status in (408, 413, 431) or (isinstance(error, Refused) and error.code == "bad-http"):
        return _Closing(body, status, {**more, "connection": "close"}, JSON)
    return Response(body, status, more, JSON)


def _advice(error: WhyrankError, status: int) -> dict[str, str]:
    if status == 401:
        return {"www-authenticate": "Bearer"}
    if isinstance(error, ProviderUnavailable | Refused) and error.retry_after_s is not None:
        return {"retry-after": str(max(1, math.ceil(error.retry_after_s)))}
    is_passing = isinstance(error, StoreLocked) or (isinstance(error, Refused) and error.code == "stopping")
    return {"retry-after": str(_RETRY_SECONDS)} if is_passing else {}


class RateLimit:
    """Lets so many requests through in any span of so many seconds; the clock may be given."""

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._let_through: deque[float] = deque()

    def check(self, what: str, hint: str) -> None:
        """Count one request; raise 429 with the time to wait where there were too many."""
        now = self._clock()
        while self._let_through and self._let_through[0] <= now - self._seconds:
            self._let_through.popleft()
        if len(self._let_through) >= self._most:
            message = f"there were {self._most} {what} within {self._seconds:.0f} seconds"
            raise Refused(429, "too-many", message, hint, self._let_through[0] + self._seconds - now)
        self._let_through.append(now)


class _Closing(Response):
    """An answer to somebody who is still sending: said at once, closed when they have had the time to read it."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        await drained(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})
