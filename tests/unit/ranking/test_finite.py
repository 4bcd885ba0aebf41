"""No recipe is made of a number that is none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from whyrank.errors import ConfigError
from whyrank.ranking.boosts import Boosts, TokenMatch
from whyrank.ranking.fusion import Sigmoid, Theoretical
from whyrank.ranking.stages import Evidence, MinScore, NameFirst, OpenClawSelection, Recency

if TYPE_CHECKING:
    from collections.abc import Callable

MAKERS: list[Callable[[float], object]] = [
    lambda number: Evidence(number, 0.2),
    lambda number: Evidence(0.2, number),
    lambda number: NameFirst(partial_bonus=number),
    lambda number: NameFirst(covered_weight=number),
    lambda number: NameFirst(sentence_bonus=number),
    lambda number: NameFirst(min_sentence_share=number),
    lambda number: Recency(half_life_days=number),
    MinScore,
    OpenClawSelection,
    TokenMatch,
    lambda number: Boosts(slug_exact=number),
    lambda number: Boosts(summary=number),
    Theoretical,
    Sigmoid,
]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused_when_a_recipe_is_built(make: Callable[[float], object], number: float) -> None:
    make(0.5)
    with pytest.raises(ConfigError, match=r"is (nan|-?inf)") as refused:
        make(number)
    assert refused.value.hint == "give a finite number"


def test_what_is_left_open_is_no_number_that_is_none() -> None:
    assert Evidence() == Evidence(None, None)
