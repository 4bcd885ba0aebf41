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
