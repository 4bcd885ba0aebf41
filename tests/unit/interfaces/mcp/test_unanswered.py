"""The end of a client's messages waits for the answers that are open, and not for ever."""

from __future__ import annotations

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from whyrank.interfaces.mcp.unanswered import Answering, Unanswered

REQUEST = JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/list")
ANSWER = JSONRPCResponse(jsonrpc="2.0", id=1, result={})
CALLED_OFF = JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params={"requestId": 1})
LONG = 3600.0  # seconds: who waits so long hangs


class Line:
    """A way to a client that keeps what was sent."""

    def __init__(self) -> None:
        self.sent: list[JSONRPCMessage] = []

    async def send(self, item: SessionMessage, /) -> None:
        self.sent.append(item.message)

    async def aclose(self) -> None: ...


def test_an_answer_ends_the_wait() -> None:
    async def story() -> None:
        unanswered, line = Unanswered(), Line()
        unanswered.came(REQUEST)
        answering = Answering(line, unanswered)
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(unanswered.settled, LONG)
                await anyio.lowlevel.checkpoint()
                await answering.send(SessionMessage(ANSWER))
        assert line.sent == [ANSWER]

    anyio.run(story)


@pytest.mark.parametrize("messages", [[], [REQUEST, CALLED_OFF]])
def test_where_nothing_is_open_nobody_waits(messages: list[JSONRPCMessage]) -> None:
    async def story() -> None:
        unanswered = Unanswered()
        for message in messages:
            unanswered.came(message)
        with anyio.move_on_after(5) as waiting:
            await unanswered.settled(LONG)
        assert not waiting.cancelled_caught

    anyio.run(story)


def test_what_is_never_answered_is_waited_for_only_so_long() -> None:
    async def story() -> None:
        unanswered = Unanswered()
        unanswered.came(REQUEST)
        with anyio.move_on_after(5) as waiting:
            await unanswered.settled(0.01)
        assert not waiting.cancelled_caught

    anyio.run(story)
