"""Importance and forgetting, with the figures written out."""

from __future__ import annotations

import math

import pytest

from tests.unit.ranking.builders import DAY, NOW, context, hit, memory, ranking
from whyrank.errors import ConfigError
from whyrank.ranking.boosts import Base, Importance
from whyrank.types.memory import GLOBAL


def base_of(distance_days: float = 0.0, **fields: object) -> float:
    found = memory("a", "tea", "", date=NOW - distance_days * DAY, **fields)
    return Base()(ranking(hit(found, 10.0)), context(found)).hits[0].score - 10.0


@pytest.mark.parametrize("importance", [1, 2, 3, 4, 5])
def test_the_base_of_something_new_is_its_importance(importance: int) -> None:
    assert base_of(importance=importance) == importance  # so it is at most 5, whatever the range is said to be


@pytest.mark.parametrize(
    ("importance", "days", "kept"),
    [
        (1, 100, 1 * math.exp(-0.05 / 1 * 100)),  # 0.0067
        (3, 100, 3 * math.exp(-0.05 / 9 * 100)),  # 1.7212
        (5, 100, 5 * math.exp(-0.05 / 25 * 100)),  # 4.0937
        (4, 990, 4 * math.exp(-0.05 / 16 * 990)),  # 0.1814
        (5, 990, 1.0),  # 5 · exp(−1.98) is 0.690, and the most important never falls below 1
    ],
)
def test_what_matters_more_is_forgotten_more_slowly(importance: int, days: float, kept: float) -> None:
    assert base_of(days, importance=importance) == pytest.approx(kept, abs=1e-9)


@pytest.mark.parametrize("given", [None, 0, 6, -1])
def test_an_importance_that_makes_no_sense_counts_as_three(given: int | None) -> None:
    assert base_of(importance=given) == 3


def test_in_a_chat_the_distance_is_in_messages() -> None:
    turn = memory("a", path="log.jsonl", session="s", position=60, importance=3, date=NOW - 400 * DAY)
    asked = context(turn, chats={(GLOBAL, "s"): 160})
    [found] = Base()(ranking(hit(turn, 0.0)), asked).hits
    assert found.score == 3 * math.exp(-0.05 / 9 * 100)
    assert found.trail[-1].why == "importance 3 × 0.574 remembered, 100 messages ago"


def test_part_of_a_day_is_not_forgotten_yet() -> None:
    assert base_of(3.9, importance=2) == base_of(3.0, importance=2) == pytest.approx(2 * math.exp(-0.05 / 4 * 3))


def test_the_future_and_what_does_not_age_are_no_days_away() -> None:
    assert base_of(-3.0, importance=2) == 2
    assert base_of(900.0, importance=2, evergreen=True) == 2
    undated = memory("a", importance=2, created=NOW - 40 * DAY)
    [found] = Base()(ranking(hit(undated, 0.0)), context(undated)).hits
    assert found.score == 2 * math.exp(-0.05 / 4 * 40)  # then by the day it was stored


@pytest.mark.parametrize(("importance", "factor"), [(1, 0.85), (2, 0.95), (3, 1.05), (4, 1.15), (5, 1.25)])
def test_importance_scales_by_a_quarter_at_most(importance: int, factor: float) -> None:
    found = memory("a", importance=importance)
    [scaled] = Importance()(ranking(hit(found, 2.0)), context(found)).hits
    assert scaled.score == pytest.approx(2.0 * factor)
    assert (scaled.trail[-1].op, scaled.trail[-1].why) == ("scale", f"importance {importance}")


def test_no_importance_changes_nothing() -> None:
    found = memory("a")
    [scaled] = Importance()(ranking(hit(found, 2.0)), context(found)).hits
    assert scaled.score == 2.0
    assert len(scaled.trail) == 1


def test_settings_that_make_no_sense_are_refused() -> None:
    for make in (lambda: Base(-1.0), lambda: Base(math.nan), lambda: Importance(least=-0.1)):
        with pytest.raises(ConfigError):
            make()
