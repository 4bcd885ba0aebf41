"""Failure 10: an exact name is buried (rank 71 for "Remind Me")."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.regressions.conftest import OpenEngine


@pytest.mark.parametrize("query", ["Remind Me", "remind me", "RemindMe", "remind-me", "remind_me", "Remnid Me"])
def test_a_name_comes_first_however_it_is_typed(open_engine: OpenEngine, query: str) -> None:
    engine = open_engine(*(f"remind me to remind Suzy to remind me, number {i}" for i in range(80)))
    named = engine.add("Sets alarms for later.", name="Remind Me")
    results = engine.search(query)
    assert results[0].id == named.id
    assert results.verdict == "found" or query == "Remnid Me"  # a slip of the finger is lifted, but not certain


def test_it_is_first_by_tier_and_not_by_a_bigger_bonus(open_engine: OpenEngine) -> None:
    engine = open_engine(*(f"remind me to remind me, number {i}" for i in range(20)))
    engine.add("Sets alarms for later.", name="Remind Me")
    first, second, *_ = engine.search("Remind Me")
    assert first.tier > second.tier == 0
    assert any(step.op == "lift" for step in first.trail)


def test_a_known_word_is_no_typo_of_a_name(open_engine: OpenEngine) -> None:
    engine = open_engine("a test of the new amplifier", "we test every Friday")
    engine.add("Renders glyphs.", name="Text")
    assert all(hit.tier == 0 for hit in engine.search("test"))
