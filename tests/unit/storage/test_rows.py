"""Rows: what a memory is after it was stored, and what is known of it before it is made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from whyrank.ingest.entries import entry_for
from whyrank.storage.sqlite.rows import COLUMNS, fetched, to_row
from whyrank.testing.store_contract import NOW, fact
from whyrank.types import Memory


def row_of(memory: Memory) -> tuple[Any, ...]:
    return to_row(entry_for(memory, "en"), 0)[: len(COLUMNS)]


def test_a_row_gives_back_the_memory_it_was_made_of() -> None:
    memory = replace(fact("m_1", "green tea"), tags=("drinks",), expires=NOW + 1, superseded_by="m_2")
    [held] = fetched([row_of(memory)])
    assert (held.id, held.scope, held.read()) == ("m_1", "global", memory)


@pytest.mark.parametrize(
    "limit", [{"expires": NOW}, {"valid_from": NOW}, {"valid_until": NOW}, {"superseded_by": "m_2"}]
)
def test_only_what_nothing_limits_is_timeless(limit: dict[str, Any]) -> None:
    memory = fact("m_1", "green tea")
    held, limited = fetched([row_of(memory), row_of(replace(memory, **limit))])
    assert (held.is_timeless, limited.is_timeless) == (True, False)


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [
        ("text", b"\0", "(its text was damaged"),
        ("tags", "[", ""),
        ("path", 7, ""),
        ("start_line", "x", ""),
        ("scope", "a b", ""),
    ],
)
def test_what_cannot_be_read_is_blank_and_told_and_harms_nobody_else(column: str, value: object, shown: str) -> None:
    row = list(row_of(fact("m_1", "green tea")))
    row[COLUMNS.index(column)] = value
    held, other = fetched([tuple(row), row_of(fact("m_2", "black tea"))])
    assert (held.is_mended, held.id, held.text.startswith(shown)) == (True, "m_1", True)
    assert (other.is_mended, other.read().text) == (False, "black tea")
