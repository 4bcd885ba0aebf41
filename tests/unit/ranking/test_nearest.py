"""The nearest value at which something happens, found one look at a time or many at once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from whyrank.ranking.knobs import Knob
from whyrank.ranking.nearest import NEARLY, OneByOne, Together, along, searched
from whyrank.ranking.recipes import RECIPES

KNOB = Knob("balance", 0.6, 0.0, 1.0, lambda value: RECIPES["default"])
STEPS = [*along(KNOB, 8), 0.0, 1.0]


@pytest.mark.parametrize("threshold", [0.61, 0.7301, 0.95, 0.999])
def test_many_looks_at_once_find_what_one_after_the_other_finds(threshold: float) -> None:
    looks: list[Sequence[float]] = []

    def happens(values: Sequence[float]) -> list[bool]:
        looks.append(values)
        return [value > threshold for value in values]

    together = searched(KNOB, STEPS, Together(happens))
    assert together == searched(KNOB, STEPS, OneByOne(lambda value: value > threshold))
    assert together is not None
    assert together > threshold >= 0.6 + NEARLY * (together - 0.6)
    seen = [value for values in looks for value in values]
    assert len(seen) == len(set(seen))  # nothing is looked at twice


def test_what_is_seen_ahead_is_not_looked_at_again() -> None:
    looks: list[Sequence[float]] = []
    seen = Together(lambda values: looks.append(values) or [value > 0.5 for value in values])  # type: ignore[func-returns-value]
    seen.ahead([0.1, 0.9, 0.1])
    assert (seen(0.1), seen(0.9), seen(0.7)) == (False, True, True)
    assert looks == [[0.1, 0.9], [0.7]]


def test_where_nothing_happens_nothing_is_found() -> None:
    assert searched(KNOB, STEPS, Together(lambda values: [False] * len(values))) is None


def test_where_places_change_more_than_once_on_the_way_the_nearest_change_is_found() -> None:
    # it happens beyond 0.9, and before that in a window that halving may or may not meet
    def happens(value: float) -> bool:
        return value > 0.9 or 0.82 < value < 0.83

    for look in (OneByOne(happens), Together(lambda values: [*map(happens, values)])):
        found = searched(KNOB, [0.7, 0.95], look)
        assert found is not None
        assert happens(found)
        assert not happens(0.6 + NEARLY * (found - 0.6))


def test_what_the_least_change_is_enough_for_has_no_nearest_value() -> None:
    looks: list[Sequence[float]] = []
    look = Together(lambda values: looks.append(values) or [value != 0.6 for value in values])  # type: ignore[func-returns-value]
    assert searched(KNOB, STEPS, look) is None
    assert len(looks) <= len(STEPS) + 2 * 4  # each probe, and four times fifteen halvings on either side
