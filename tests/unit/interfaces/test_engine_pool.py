"""One engine behind a server: nothing is made by a question, everything by the first fact."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import whyrank
from tests.faulty_server import FaultyServer
from whyrank.config.load import load
from whyrank.engine.engine import Engine, open_store
from whyrank.engine.open import open_engine
from whyrank.errors import StoreDamaged, StoreUnavailable
from whyrank.interfaces.engine_pool import EnginePool, PooledEngine
from whyrank.providers.wordllama import WordLlama

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def pooled(tmp_path: Path) -> PooledEngine:
    return PooledEngine(tmp_path / "memory.db", partial(open_engine, workspace=tmp_path, embedding="none"))


def test_a_question_makes_no_store_and_hears_that_nothing_is_stored(tmp_path: Path, pooled: PooledEngine) -> None:
    answer = pooled.reading().search("tea")
    assert [notice.code for notice in answer.notices] == ["nothing-stored"]
    pooled.close()
    assert list(tmp_path.iterdir()) == []


def test_the_first_fact_makes_the_store_and_questions_see_it(tmp_path: Path, pooled: PooledEngine) -> None:
    assert len(pooled.reading().search("tea")) == 0
    pooled.writing().add("Robin drinks tea")
    assert len(pooled.reading().search("tea")) == 1
    pooled.close()
    assert (tmp_path / "memory.db").is_file()


def test_a_store_that_somebody_else_makes_is_seen(tmp_path: Path, pooled: PooledEngine) -> None:
    assert len(pooled.reading().search("tea")) == 0
    with open_engine(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as other:
        other.add("Robin drinks tea")
    assert len(pooled.reading().search("tea")) == 1
    pooled.close()


def test_a_damaged_store_is_an_error_every_time_and_none_once_it_is_mended(
    tmp_path: Path, pooled: PooledEngine
) -> None:
    file = tmp_path / "memory.db"
    file.write_bytes(b"no database " * 500)
    for _ in range(2):
        with pytest.raises(StoreDamaged):
            pooled.reading()
    file.unlink()
    assert len(pooled.reading().search("tea")) == 0
    pooled.close()


def test_a_store_that_was_replaced_is_opened_and_one_that_was_deleted_is_missed(
    tmp_path: Path, pooled: PooledEngine
) -> None:
    path = pooled.store
    assert isinstance(path, Path)
    pooled.writing().add("of the first file")
    kept = tmp_path / "kept.db"
    with whyrank.open(kept, embedding="none") as other:
        other.add("of the second file")
    os.replace(kept, path)
    assert [memory.text for memory in pooled.reading().list()] == ["of the second file"]
    assert pooled.writing().add("stored into it").text in {memory.text for memory in pooled.reading().list()}
    aside = path.rename(tmp_path / "aside.db")
    with pytest.raises(StoreUnavailable, match="was deleted"):
        pooled.writing().add("into nowhere")
    assert not path.exists()
    aside.rename(path)
    assert len(pooled.reading().list()) == 2


def test_work_keeps_nobody_else_waiting_and_comes_to_its_end(pooled: PooledEngine) -> None:
    may_end, ended = threading.Event(), threading.Event()

    def slow() -> None:
        may_end.wait(60)
        ended.set()

    async def both() -> bool:
        task = pooled.task(slow, writes=True)
        for _ in range(9):
            pooled.task(slow, writes=True).cancel()
        is_first = await pooled.task(lambda: not ended.is_set())
        task.cancel()  # whoever waited has gone
        may_end.set()
        return is_first

    assert asyncio.run(both())
    pooled.close()
    assert ended.is_set()


def test_a_server_that_was_warmed_has_its_model_loaded(tmp_path: Path) -> None:
    embedder = WordLlama()
    pooled = PooledEngine(
        tmp_path / "memory.db", lambda path: Engine(open_store(path, "postings", 16), embedder, load())
    )
    pooled.writing().add("Robin drinks tea")
    pooled.warm()
    until = time.monotonic() + 60
    while "_table" not in vars(embedder) and time.monotonic() < until:
        time.sleep(0.01)
    pooled.close()
    assert {"_tokenizer", "_table"} <= vars(embedder).keys()


@pytest.mark.parametrize("ask", [PooledEngine.warm, lambda pooled: pooled.probe("health", limit=1)])
def test_our_own_questions_ask_no_language_model_and_no_served_embedder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Callable[[PooledEngine], None]
) -> None:
    with FaultyServer(reply=lambda messages: "a hull") as server:
        for name in ("EMBEDDER", "LLM"):
            monkeypatch.setenv(f"WHYRANK_{name}_URL", server.url)
            monkeypatch.setenv(f"WHYRANK_{name}_MODEL", "m")
        monkeypatch.setenv("WHYRANK_QUERY_EXPANSION_ENABLED", "true")
        pooled = PooledEngine(tmp_path / "memory.db", partial(open_engine, workspace=tmp_path, embedding="openai"))
        pooled.writing().add("Robin drinks tea")
        before = len(server.requests)
        assert before  # the fact was embedded
        ask(pooled)
        pooled.close()  # what has begun comes to its end first
        assert len(server.requests) == before


class Tenants:
    """Desks of several stores that are opened by the leave of one another."""

    def __init__(self, folder: Path, count: int, most: int) -> None:
        self.open: list[str] = []
        self.pool = EnginePool(most)
        self.pooled = [PooledEngine(folder / f"{number}.db", self._opened, self.pool) for number in range(count)]

    def _opened(self, path: Path) -> Engine:
        engine = open_engine(path, workspace=path.parent, embedding="none")
        close = engine.close

        def closed() -> None:
            self.open.remove(path.stem)
            close()

        engine.close = closed  # type: ignore[method-assign]
        self.open.append(path.stem)
        return engine

    async def used(self, number: int) -> None:
        pooled = self.pooled[number]
        await pooled.task(lambda: pooled.writing().add(f"tea number {number}"), writes=True)

    def close(self) -> None:
        for pooled in self.pooled:
            pooled.close()


def test_of_many_tenants_the_one_that_was_idle_longest_is_closed(tmp_path: Path) -> None:
    tenants = Tenants(tmp_path, 4, most=2)

    async def story() -> None:
        for number in (0, 1, 0, 2):
            await tenants.used(number)
        assert tenants.open == ["0", "2"]
        await tenants.used(1)  # comes back, and finds what it stored
        assert tenants.open == ["2", "1"]

    asyncio.run(story())
    assert [hit.memory.text for hit in tenants.pooled[1].reading().search("tea number")] == ["tea number 1"]
    tenants.close()
    assert tenants.open == []


def test_a_tenant_in_use_is_never_closed(tmp_path: Path) -> None:
    tenants = Tenants(tmp_path, 3, most=2)
    may_end = threading.Event()

    async def story() -> None:
        first = tenants.pooled[0]

        def slow() -> int:
            engine = first.writing()
            may_end.wait(60)
            engine.add("still open")
            return engine.status().memories

        task = first.task(slow, writes=True)
        while "0" not in tenants.open:
            await asyncio.sleep(0.01)
        await tenants.used(1)
        await tenants.used(2)
        assert tenants.open == ["0", "2"]
        may_end.set()
        assert await task == 1

    asyncio.run(story())
    tenants.close()


def test_a_tenant_waits_for_room_where_all_are_in_use(tmp_path: Path) -> None:
    tenants = Tenants(tmp_path, 2, most=1)
    may_end = threading.Event()

    async def story() -> None:
        first = tenants.pooled[0]
        task = first.task(lambda: (first.writing(), may_end.wait(60)), writes=True)
        while "0" not in tenants.open:
            await asyncio.sleep(0.01)
        second = asyncio.create_task(tenants.used(1))
        await asyncio.sleep(0.1)
        assert tenants.open == ["0"]
        may_end.set()
        await asyncio.gather(task, second)
        assert tenants.open == ["1"]

    asyncio.run(story())
    tenants.close()


def test_work_that_is_taken_back_before_it_begins_keeps_no_store_open(tmp_path: Path) -> None:
    tenants = Tenants(tmp_path, 2, most=1)
    may_end = threading.Event()

    async def story() -> None:
        first = tenants.pooled[0]
        running = first.task(lambda: (first.writing(), may_end.wait(60)), writes=True)
        waiting = first.task(lambda: first.writing(), writes=True)
        waiting.cancel()
        await asyncio.sleep(0)
        may_end.set()
        await running
        await tenants.used(1)
        assert tenants.open == ["1"]

    asyncio.run(story())
    tenants.close()
