"""The end of a client's messages waits for the answers that are open, and not for ever."""

from __future__ import annotations

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from whyrank.interfaces.mcp.transports import Replies

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
        line = Line()
        replies = Replies(line)
        replies.expect(REQUEST)
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(replies.drain, LONG)
                await anyio.lowlevel.checkpoint()
                await replies.send(SessionMessage(ANSWER))
        assert line.sent == [ANSWER]

    anyio.run(story)


@pytest.mark.parametrize("messages", [[], [REQUEST, CALLED_OFF]])
def test_where_nothing_is_open_nobody_waits(messages: list[JSONRPCMessage]) -> None:
    async def story() -> None:
        replies = Replies(Line())
        for message in messages:
            replies.expect(message)
        with anyio.move_on_after(5) as waiting:
            await replies.drain(LONG)
        assert not waiting.cancelled_caught

    anyio.run(story)


@pytest.mark.parametrize("identity", [[1], {}, None, 1.5])
def test_a_cancellation_of_no_request_ends_nothing(identity: object) -> None:
    replies = Replies(Line())
    replies.expect(REQUEST)
    replies.expect(JSONRPCNotification(jsonrpc="2.0", method=CALLED_OFF.method, params={"requestId": identity}))

    async def waiting() -> bool:
        with anyio.move_on_after(0.05) as waited:
            await replies.drain(LONG)
        return waited.cancelled_caught

    assert anyio.run(waiting)  # the request is still waited for


def test_what_is_never_answered_is_waited_for_only_so_long() -> None:
    async def story() -> None:
        replies = Replies(Line())
        replies.expect(REQUEST)
        with anyio.move_on_after(5) as waiting:
            await replies.drain(0.01)
        assert not waiting.cancelled_caught

    anyio.run(story)
