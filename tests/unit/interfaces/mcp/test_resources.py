"""The most recent memories are found among any number, and nobody else's."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from whyrank.engine.open import open_engine
from whyrank.errors import NotFound
from whyrank.interfaces.engine_pool import Access, PooledEngine
from whyrank.interfaces.mcp import server
from whyrank.types.memory import Memory, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = 1_800_000_000.0
DAY = 86_400.0


@pytest.fixture
def access(tmp_path: Path) -> Iterator[Access]:
    pooled = PooledEngine(tmp_path / "memory.db", partial(open_engine, workspace=tmp_path, embedding="none"))
    yield Access(pooled)
    pooled.close()


def stored(access: Access, ages_in_days: dict[str, float | None], scope: str = "global") -> None:
    access.pooled.writing().facts.import_memories([
        Memory(f"m_{name}", f"fact {name}", scope=Scope.parse(scope), date=None if age is None else NOW - age * DAY)
        for name, age in ages_in_days.items()
    ])  # fmt: skip


def recent(access: Access, count: int) -> list[str]:
    return [one.id for one in server.latest(access, count)]


def test_the_latest_come_first_and_the_undated_last(access: Access) -> None:
    stored(access, {"old": 9_000, "undated": None, "today": 0.01, "year": 300, "tomorrow": -1, "week": 6})
    assert recent(access, 3) == ["m_tomorrow", "m_today", "m_week"]
    assert recent(access, 9) == ["m_tomorrow", "m_today", "m_week", "m_year", "m_old", "m_undated"]


def test_they_are_found_among_thousands_of_one_day(access: Access) -> None:
    stored(access, {f"{i:04}": 2 + i / 5_000 for i in range(3_000)})
    assert recent(access, 5) == ["m_0000", "m_0001", "m_0002", "m_0003", "m_0004"]


def test_when_all_are_of_one_moment_some_of_them_are_shown(access: Access) -> None:
    stored(access, {f"{i:04}": 1.0 for i in range(1_500)})
    assert len(recent(access, 20)) == 20


def test_an_empty_store_has_none(access: Access) -> None:
    assert recent(access, 5) == []
    assert server.read(access, server.RECENT) == "Nothing is stored yet."


def test_another_scope_is_neither_listed_nor_read(access: Access) -> None:
    stored(access, {"mine": 1}, "user:42")
    stored(access, {"theirs": 1}, "user:7")
    own = Access(access.pooled, ("user:42",))
    assert [one.address for one in server.listed(own)] == ["whyrank://memory/m_mine"]
    assert "fact mine" in server.read(own, "whyrank://memory/m_mine")
    with pytest.raises(NotFound):
        server.read(own, "whyrank://memory/m_theirs")


def test_an_address_of_something_else_is_not_found(access: Access) -> None:
    with pytest.raises(NotFound, match="there is no resource"):
        server.read(access, "file:///etc/passwd")


def test_a_name_in_the_list_is_one_short_line(access: Access) -> None:
    access.pooled.writing().add("first line\n" + "word " * 100)
    [one] = server.listed(access)
    assert one.title.startswith("first line word word")
    assert len(one.title) == 80
