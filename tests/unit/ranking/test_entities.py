"""How often a term counts that names an entity: the formula, and its figures."""

from __future__ import annotations

import math

import pytest

from whyrank.errors import ConfigError
from whyrank.ranking.boosts import EntityBoost
from whyrank.types.query import Statistics

SUZY_WEIGHT = 3.4  # ceil(3.4 × 5) = 17 repeats, before rarity is looked at


@pytest.mark.parametrize(
    ("held", "ratio", "repeats"),
    [
        (28, math.log((30 - 28 + 0.5) / (28 + 0.5) + 1) / math.log(31), 1),  # 0.0245: 17 × 0.0245 rounds to 0, so 1
        (2, math.log((30 - 2 + 0.5) / (2 + 0.5) + 1) / math.log(31), 12),  # 0.733: 17 × 0.733 = 12.46
        (0, 1.0, 17),  # ln(62)/ln(31) is 1.2, and more than all cannot be
        (30, math.log((30 - 30 + 0.5) / (30 + 0.5) + 1) / math.log(31), 1),
    ],
)
def test_repeats_fall_with_the_share_of_memories_that_hold_the_name(held: int, ratio: float, repeats: int) -> None:
    found = EntityBoost(5).boost("Suzy", SUZY_WEIGHT, "suzi", Statistics(30, 9.0, {"suzi": held}))
    assert (found.base, found.repeats) == (17, repeats)
    assert found.ratio == pytest.approx(ratio)


def test_the_ratios_are_those_of_the_formula_and_not_the_usual_figures() -> None:
    def ratio(held: int) -> float:
        return EntityBoost().boost("Suzy", 1.0, "suzi", Statistics(30, 9.0, {"suzi": held})).ratio

    assert ratio(28) == pytest.approx(0.0245, abs=5e-5)  # not 0.05
    assert ratio(2) == pytest.approx(0.733, abs=5e-4)  # not 0.85, and so not 14 repeats


def test_it_says_what_it_did() -> None:
    found = EntityBoost(5).boost("Suzy", SUZY_WEIGHT, "suzi", Statistics(30, 9.0, {"suzi": 2}))
    assert str(found) == "entity 'Suzy': 'suzi' in 2 of 30, ratio 0.733, 17 repeats become 12"


def test_an_empty_store_and_a_boost_of_nothing_count_once() -> None:
    assert EntityBoost(5).boost("Suzy", 9.0, "suzi", Statistics(0, 0.0, {})).repeats == 1
    assert EntityBoost(0).boost("Suzy", 9.0, "suzi", Statistics(30, 9.0, {})).repeats == 1


@pytest.mark.parametrize("weight", [-1.0, math.inf, math.nan])
def test_a_weight_that_makes_no_sense_is_refused(weight: float) -> None:
    with pytest.raises(ConfigError):
        EntityBoost(weight)
