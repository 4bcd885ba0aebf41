"""What everybody may ask costs one query, however many ask."""

from __future__ import annotations

import http.client
import io
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
import uvicorn

import whyrank
from whyrank.interfaces.asgi_server import server_config
from whyrank.interfaces.auth import auth_policy
from whyrank.interfaces.engine_pool import Access, PooledEngine
from whyrank.interfaces.http.app import Application, Principal
from whyrank.interfaces.http.observability import Log

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ASKING = 8


class Slow:
    """Opens a store when it is told to, and knows how often somebody waited for that."""

    def __init__(self) -> None:
        self.may_open = threading.Event()
        self.asked = 0

    def __call__(self, store: Path) -> whyrank.Engine:
        self.asked += 1
        assert self.may_open.wait(30)
        if self.asked == 1:
            raise whyrank.WhyrankError("the first is told that it fails", "ask again")
        return whyrank.open(store)


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def port(tmp_path: Path, slow: Slow) -> Iterator[int]:
    whyrank.open(tmp_path / "memory.db").close()
    pooled = PooledEngine(tmp_path / "memory.db", slow)
    application = Application(
        [Principal("", auth_policy("127.0.0.1", [], None), Access(pooled))],
        Log(io.StringIO(), as_json=False),
        threading.Event(),
    )
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(server_config(application))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield listening.getsockname()[1]
    slow.may_open.set()
    server.should_exit = True
    thread.join(30)
    pooled.close()


def health(port: int) -> int:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request("GET", "/health")
        return connection.getresponse().status


def test_all_who_ask_for_health_at_once_are_told_of_one_query(port: int, slow: Slow) -> None:
    with ThreadPoolExecutor(ASKING) as threads:
        asked = [threads.submit(health, port) for _ in range(ASKING)]
        time.sleep(0.5)  # until all have come
        slow.may_open.set()
        # The first attempt fails; a second one, had anybody made it, would have succeeded.
        assert {one.result() for one in asked} == {503}
    assert slow.asked == 1
    time.sleep(1.1)  # longer than an answer is good for
    assert health(port) == 200
    assert slow.asked == 2
