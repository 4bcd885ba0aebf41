"""What a client has asked and nobody has answered yet: over stdio, its end waits for that, for a while."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, RequestId

# As long as a slow embedder may take for one fact; whoever cannot wait that long sends a signal, which ends us at once.
SECONDS_FOR_THE_REST = 30.0
_CANCELLED = "notifications/cancelled"


class Unanswered:
    """The requests that are open, by their ids."""

    def __init__(self) -> None:
        self._open: set[RequestId] = set()
        self._none = anyio.Event()

    def came(self, message: JSONRPCMessage) -> None:
        """Take note of a message of the client: a request is open until it is answered or called off."""
        if isinstance(message, JSONRPCRequest):
            self._open.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == _CANCELLED:
            self._close((message.params or {}).get("requestId"))

    def went(self, message: JSONRPCMessage) -> None:
        """Take note of a message to the client: an answer closes its request."""
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._close(message.id)

    def _close(self, identity: RequestId | None) -> None:
        if identity is not None:
            self._open.discard(identity)
        if not self._open:
            self._none.set()

    async def settled(self, seconds: float = SECONDS_FOR_THE_REST) -> None:
        """Wait until nothing is open, or for so many seconds; nothing more must come meanwhile."""
        if self._open:
            self._none = anyio.Event()
            with anyio.move_on_after(seconds):
                await self._none.wait()


class Writing(Protocol):
    """The way to a client."""

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message."""

    async def aclose(self) -> None:
        """Send no more."""


class Closing:
    """A way that is closed where the block ends in which it is used."""

    async def aclose(self) -> None:
        """Close it."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        await self.aclose()
        return None


class Answering(Closing):
    """The way to a client, on which answers close what was open."""

    def __init__(self, writing: Writing, unanswered: Unanswered) -> None:
        self._writing = writing
        self._unanswered = unanswered

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message."""
        await self._writing.send(item)
        self._unanswered.went(item.message)

    async def aclose(self) -> None:
        """Send no more."""
        await self._writing.aclose()
