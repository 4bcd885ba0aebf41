"""Memories whose rows are at hand: made when somebody looks, and guarded without being made."""

from __future__ import annotations

from typing import Any

import pytest

from whyrank.hits import Fetched, Hit, are_open
from whyrank.types import GLOBAL, Memory, Scope, Where

NOW = 1_700_000_000.0


def fetched(memory: Memory, made: list[str], *, is_timeless: bool = True) -> Fetched:
    def make(row: tuple[Any, ...]) -> Memory:
        made.append(row[0])
        return memory

    return Fetched(memory.id, str(memory.scope), is_timeless, (memory.id,), make)


def test_a_memory_is_made_once_and_only_when_somebody_looks() -> None:
    made: list[str] = []
    hit = Hit(fetched(Memory("a", "tea"), made))
    assert (hit.id, made) == ("a", [])
    assert (hit.memory.text, hit.memory.text, made) == ("tea", "tea", ["a"])


def test_a_memory_that_waits_equals_the_one_that_it_is() -> None:
    memory = Memory("a", "tea")
    assert fetched(memory, []) == memory
    assert memory == fetched(memory, [])
    assert fetched(memory, []) != fetched(Memory("a", "coffee"), [])
    assert hash(fetched(memory, [])) == hash(memory)


def test_the_guard_makes_no_memory_that_nothing_limits() -> None:
    made: list[str] = []
    assert are_open([fetched(Memory("a", "tea"), made)], Where(now=NOW))
    assert made == []


@pytest.mark.parametrize(
    "memory",
    [
        Memory("a", "tea", scope=Scope("user", "ann")),
        Memory("a", "tea", expires=NOW - 1),
        Memory("a", "tea", valid_from=NOW + 1),
        Memory("a", "tea", valid_until=NOW - 1),
        Memory("a", "tea", superseded_by="b"),
    ],
)
def test_the_guard_says_of_what_waits_what_it_says_of_a_memory(memory: Memory) -> None:
    where, limited = Where(now=NOW), memory.scope == GLOBAL
    assert not are_open([memory], where)
    assert not are_open([fetched(memory, [], is_timeless=not limited)], where)


def test_the_guard_looks_at_everything_when_asked_about_another_time() -> None:
    later = Memory("a", "tea", created=NOW)
    assert are_open([fetched(later, [])], Where(now=NOW))
    assert not are_open([fetched(later, [])], Where(now=NOW, as_of=NOW - 1))
