"""The most recent memories are found among any number, and nobody else's."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from whyrank.errors import NotFound
from whyrank.interfaces.desk import Desk
from whyrank.interfaces.door import Door
from whyrank.interfaces.mcp import resources
from whyrank.opening import open_engine
from whyrank.types import Memory, Scope

NOW = 1_800_000_000.0
DAY = 86_400.0


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    desk = Desk(tmp_path / "memory.db", partial(open_engine, workspace=tmp_path, embedding="none"))
    yield Door(desk)
    desk.close()


def stored(door: Door, ages_in_days: dict[str, float | None], scope: str = "global") -> None:
    door.desk.writing().put([
        Memory(f"m_{name}", f"fact {name}", scope=Scope.parse(scope), date=None if age is None else NOW - age * DAY)
        for name, age in ages_in_days.items()
    ])  # fmt: skip


def recent(door: Door, count: int) -> list[str]:
    return [one.id for one in resources.recent(door.desk.reading(), door.seen({}), count)]


def test_the_latest_come_first_and_the_undated_last(door: Door) -> None:
    stored(door, {"old": 9_000, "undated": None, "today": 0.01, "year": 300, "tomorrow": -1, "week": 6})
    assert recent(door, 3) == ["m_tomorrow", "m_today", "m_week"]
    assert recent(door, 9) == ["m_tomorrow", "m_today", "m_week", "m_year", "m_old", "m_undated"]


def test_they_are_found_among_thousands_of_one_day(door: Door) -> None:
    stored(door, {f"{i:04}": 2 + i / 5_000 for i in range(3_000)})
    assert recent(door, 5) == ["m_0000", "m_0001", "m_0002", "m_0003", "m_0004"]


def test_when_all_are_of_one_moment_some_of_them_are_shown(door: Door) -> None:
    stored(door, {f"{i:04}": 1.0 for i in range(1_500)})
    assert len(recent(door, 20)) == 20


def test_an_empty_store_has_none(door: Door) -> None:
    assert recent(door, 5) == []
    assert resources.read(door, resources.RECENT) == "Nothing is stored yet."


def test_another_scope_is_neither_listed_nor_read(door: Door) -> None:
    stored(door, {"mine": 1}, "user:42")
    stored(door, {"theirs": 1}, "user:7")
    own = Door(door.desk, ("user:42",))
    assert [one.address for one in resources.listed(own)] == ["whyrank://memory/m_mine"]
    assert "fact mine" in resources.read(own, "whyrank://memory/m_mine")
    with pytest.raises(NotFound):
        resources.read(own, "whyrank://memory/m_theirs")


def test_an_address_of_something_else_is_not_found(door: Door) -> None:
    with pytest.raises(NotFound, match="there is no resource"):
        resources.read(door, "file:///etc/passwd")


def test_a_name_in_the_list_is_one_short_line(door: Door) -> None:
    door.desk.writing().add("first line\n" + "word " * 100)
    [one] = resources.listed(door)
    assert one.title.startswith("first line word word")
    assert len(one.title) == 80
