"""Sessions over HTTP: answers are plain JSON, and streams only where somebody asked to hear how far a call has come."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthorizationContext
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from ..gate import Receive, Send

_ASKS_FOR_PROGRESS = b'"progressToken"'
# Sessions run in tasks of their own, which inherit this from the request they begin with and must still stream.
_plain = ContextVar[asyncio.Task[Any] | None]("the task of a request that is answered by JSON alone", default=None)


class Sessions(StreamableHTTPSessionManager):
    """Keeps sessions, and opens a stream for an answer only if something may come before it.

    The SDK decides once per server. A stream takes tasks and queues of its own, more time than the rest of a message;
    without them nobody could be told of progress.
    """

    async def _handle_request(self, scope: Any, receive: Receive, send: Send) -> None:
        first = await receive()  # the whole body: its length was looked at before
        _plain.set(None if _ASKS_FOR_PROGRESS in first.get("body", b"") else asyncio.current_task())
        waiting = [first]

        async def again() -> Any:
            return waiting.pop() if waiting else await receive()

        await super()._handle_request(scope, again, send)

    def _admit_session(self, requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        transport = super()._admit_session(requestor)
        if transport is not None:
            transport.__class__ = _PlainOrStreamed
        return transport


class _PlainOrStreamed(StreamableHTTPServerTransport):
    """Answers each request as that request wants it."""

    @property
    def is_json_response_enabled(self) -> bool:  # type: ignore[override]  # an attribute there, set once
        return _plain.get() is asyncio.current_task()
