"""One engine behind a server: nothing is made by a question, everything by the first fact."""

from __future__ import annotations

import asyncio
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from whyrank.config import load
from whyrank.embedding.wordllama import WordLlama
from whyrank.engine import Engine, open_store
from whyrank.errors import StoreDamaged
from whyrank.interfaces.desk import Desk
from whyrank.opening import open_engine


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "memory.db", partial(open_engine, workspace=tmp_path, embedding="none"))


def test_a_question_makes_no_store_and_hears_that_nothing_is_stored(tmp_path: Path, desk: Desk) -> None:
    answer = desk.reading().search("tea")
    assert [notice.code for notice in answer.notices] == ["nothing-stored"]
    desk.close()
    assert list(tmp_path.iterdir()) == []


def test_the_first_fact_makes_the_store_and_questions_see_it(tmp_path: Path, desk: Desk) -> None:
    assert len(desk.reading().search("tea")) == 0
    desk.writing().add("Robin drinks tea")
    assert len(desk.reading().search("tea")) == 1
    desk.close()
    assert (tmp_path / "memory.db").is_file()


def test_a_store_that_somebody_else_makes_is_seen(tmp_path: Path, desk: Desk) -> None:
    assert len(desk.reading().search("tea")) == 0
    with open_engine(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as other:
        other.add("Robin drinks tea")
    assert len(desk.reading().search("tea")) == 1
    desk.close()


def test_a_damaged_store_is_an_error_every_time_and_none_once_it_is_mended(tmp_path: Path, desk: Desk) -> None:
    file = tmp_path / "memory.db"
    file.write_bytes(b"no database " * 500)
    for _ in range(2):
        with pytest.raises(StoreDamaged):
            desk.reading()
    file.unlink()
    assert len(desk.reading().search("tea")) == 0
    desk.close()


def test_work_keeps_nobody_else_waiting_and_comes_to_its_end(desk: Desk) -> None:
    may_end, ended = threading.Event(), threading.Event()

    def slow() -> None:
        may_end.wait(60)
        ended.set()

    async def both() -> bool:
        task = desk.task(slow, writes=True)
        for _ in range(9):
            desk.task(slow, writes=True).cancel()
        is_first = await desk.task(lambda: not ended.is_set())
        task.cancel()  # whoever waited has gone
        may_end.set()
        return is_first

    assert asyncio.run(both())
    desk.close()
    assert ended.is_set()


def test_a_server_that_was_warmed_has_its_model_loaded(tmp_path: Path) -> None:
    embedder = WordLlama()
    desk = Desk(tmp_path / "memory.db", lambda path: Engine(open_store(path, "postings", 16), embedder, load()))
    desk.writing().add("Robin drinks tea")
    desk.warm()
    until = time.monotonic() + 60
    while "_table" not in vars(embedder) and time.monotonic() < until:
        time.sleep(0.01)
    desk.close()
    assert {"_tokenizer", "_table"} <= vars(embedder).keys()
