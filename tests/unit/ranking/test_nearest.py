"""The nearest value at which something happens."""

from __future__ import annotations

import pytest

from whyrank.ranking.counterfactuals import NEARLY, Knob, along, searched
from whyrank.ranking.recipes import RECIPES

KNOB = Knob("balance", 0.6, 0.0, 1.0, lambda value: RECIPES["default"])
STEPS = [*along(KNOB, 8), 0.0, 1.0]


@pytest.mark.parametrize("threshold", [0.61, 0.7301, 0.95, 0.999])
def test_a_threshold_is_found_and_99_percent_of_the_change_is_not_enough(threshold: float) -> None:
    found = searched(KNOB, STEPS, lambda value: value > threshold)
    assert found is not None
    assert found > threshold >= 0.6 + NEARLY * (found - 0.6)


def test_where_nothing_happens_nothing_is_found() -> None:
    assert searched(KNOB, STEPS, lambda value: False) is None


def test_where_places_change_more_than_once_on_the_way_the_nearest_change_is_found() -> None:
    # it happens beyond 0.9, and before that in a window that halving may or may not meet
    def happens(value: float) -> bool:
        return value > 0.9 or 0.82 < value < 0.83

    found = searched(KNOB, [0.7, 0.95], happens)
    assert found is not None
    assert happens(found)
    assert not happens(0.6 + NEARLY * (found - 0.6))


def test_what_the_least_change_is_enough_for_has_no_nearest_value() -> None:
    assert searched(KNOB, STEPS, lambda value: value != 0.6) is None
