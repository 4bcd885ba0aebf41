"""A search that takes too long answers with what it has, and says what is missing."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank import Engine, Results
from whyrank.analysis.document import entry_for
from whyrank.errors import ConfigError, StoreTimeout
from whyrank.interfaces.engine_pool import timeout_of
from whyrank.protocols import Changes, Vector
from whyrank.ranking.recipes import recipe_named
from whyrank.search.searcher import Searcher
from whyrank.storage.store import SqliteStore
from whyrank.testing.fakes import WordDirections
from whyrank.testing.memory_store import MemoryStore
from whyrank.testing.store_contract import NOW, fact
from whyrank.types.query import GRACE, Deadline, Query, Where, call_within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from whyrank.types.memory import MemoryId
    from whyrank.types.results import Run
    from whyrank.types.trail import NameProbe

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


class Waiting(WordDirections):
    """An embedder whose answers to questions come only when it is told to give them."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()

    def query(self, text: str) -> Vector:
        self.go_on.wait(30)
        return super().query(text)


class AbortedNames(MemoryStore):
    """A store whose run by names is aborted."""

    def named(self, probe: NameProbe, where: Where, limit: int | None) -> Run:
        raise StoreTimeout("the statement was aborted")


def filled(store: MemoryStore) -> MemoryStore:
    store.write(Changes(put=[entry_for(fact("m_tea", "the green tea pot"), "en")]))
    return store


def asked(searcher: Searcher, deadline: Deadline | None) -> Results:
    return searcher.search(Query("tea pot", Where(now=NOW), deadline=deadline), recipe_named("default"))


def found(results: Results) -> list[MemoryId]:
    return [hit.id for hit in results.hits]


def said(results: Results) -> list[str]:
    return [notice.message for notice in results.notices if notice.code == "timeout"]


@pytest.fixture
def waiting() -> Iterator[Waiting]:
    embedder = Waiting()
    yield embedder
    embedder.go_on.set()


def test_a_late_embedder_leaves_the_answer_to_words_and_a_notice_says_so(waiting: Waiting) -> None:
    results = asked(Searcher(filled(MemoryStore()), waiting, "en"), Deadline(200))
    assert found(results) == ["m_tea"]
    [message] = said(results)
    assert "timeout_ms = 200" in message
    assert "without vector" in message
    assert "vector-off" not in [notice.code for notice in results.notices]  # it did not fail


def test_an_embedder_that_is_in_time_is_heard(waiting: Waiting) -> None:
    waiting.go_on.set()
    with_deadline = asked(Searcher(filled(MemoryStore()), waiting, "en"), Deadline(60_000))
    without = asked(Searcher(filled(MemoryStore()), waiting, "en"), None)
    assert not said(with_deadline)
    assert [(hit.id, hit.score) for hit in with_deadline.hits] == [(hit.id, hit.score) for hit in without.hits]


def test_once_the_time_is_over_only_the_first_run_is_asked() -> None:
    over = Deadline(1_000, start=time.monotonic() - 1.5)  # passed, and half a second before statements are aborted
    results = asked(Searcher(filled(MemoryStore()), None, "en"), over)
    assert found(results) == ["m_tea"]
    assert ["without name" in message for message in said(results)] == [True]


def test_a_run_that_is_aborted_is_left_out_whole() -> None:
    results = asked(Searcher(filled(AbortedNames()), None, "en"), Deadline(60_000))
    assert found(results) == ["m_tea"]
    assert ["without name" in message for message in said(results)] == [True]


def test_where_nothing_was_found_in_time_the_answer_is_empty_and_no_verdict_on_the_memories(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = filled(MemoryStore())

    def aborted(*_: object) -> Run:
        raise StoreTimeout("the statement was aborted")

    monkeypatch.setattr(store, "keyword", aborted)
    results = asked(Searcher(store, None, "en"), Deadline(1_000))
    assert (found(results), results.verdict) == ([], "weak")
    assert ["answered with nothing" in message for message in said(results)] == [True]


def test_a_long_statement_is_aborted_and_the_connection_goes_on(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memory.db")
    try:
        with store.reading():
            with pytest.raises(StoreTimeout, match="aborted"), store.aborting(time.monotonic() + 0.05):
                store._database.reader().execute(ENDLESS).fetchone()
            assert store._database.reader().execute("SELECT 1").fetchone() == (1,)
    finally:
        store.close()


def test_statements_are_aborted_after_twice_the_time() -> None:
    deadline = Deadline(500, start=10.0)
    assert deadline.abort_at == 10.0 + GRACE * 0.5
    assert deadline.has_passed
    assert not replace(deadline, start=time.monotonic()).has_passed


def test_a_call_that_fails_in_time_fails_as_it_does() -> None:
    assert call_within(None, lambda: 7, "timeout_ms") == 7
    with pytest.raises(ZeroDivisionError):
        call_within(60, lambda: 1 // 0, "timeout_ms")
    never = threading.Event()
    with pytest.raises(TimeoutError, match="longer than"):
        call_within(0.01, lambda: never.wait(5), "timeout_ms")
    never.set()


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as opened:
        opened.add("the green tea pot")
        yield opened


@pytest.mark.parametrize("timeout_ms", [0, -1, 1.5, "soon"])
def test_a_time_that_is_none_is_refused(engine: Engine, timeout_ms: object) -> None:
    with pytest.raises(ConfigError, match="timeout_ms is"):
        engine.search("tea", timeout_ms=timeout_ms)  # type: ignore[arg-type]


def test_a_search_in_time_is_the_same_as_without_a_limit(engine: Engine) -> None:
    limited, free = engine.search("tea", timeout_ms=60_000), engine.search("tea")
    assert [(hit.id, hit.score) for hit in limited] == [(hit.id, hit.score) for hit in free]
    assert not said(limited)


def test_servers_have_a_limit_of_ten_seconds_unless_one_is_set(engine: Engine, tmp_path: Path) -> None:
    assert timeout_of(engine, {}) == 10_000
    assert timeout_of(engine, {"timeout_ms": 5}) == 5
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none", timeout_ms=70) as opened:
        assert timeout_of(opened, {}) == 70
