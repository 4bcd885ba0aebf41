"""Who is placed first, a row for each setting, with the arithmetic of MMR beside it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from whyrank.ranking.duels import Duels

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# a and b say the same, c is new; nobody is like d.
LIKENESS = np.array([[1.0, 0.9, 0.1, 0.0], [0.9, 1.0, 0.1, 0.0], [0.1, 0.1, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
A, B, C, D = range(4)


class Four:
    """Who is like whom, and ties in the order of places."""

    tie_breaks = (0, 1, 2, 3)

    def alike_one(self, place: int) -> Floats:
        row: Floats = LIKENESS[place]
        return row

    def alike(self, places: Integers) -> Floats:
        return LIKENESS[places]

    def most_alike(self, place: int) -> float:
        return float(np.delete(LIKENESS[place], place).max())


def won(
    lambdas: list[float], one: int, other: int, tiers: tuple[int, ...] = (0, 0, 0, 0), by: float = 0.0
) -> list[bool]:
    """Tell who is placed first under each λ, where a is worth 1, b 0.8, c 0.5 and d is not shown."""
    rows = len(lambdas)
    shown, relevance = np.array([True, True, True, False]), np.array([1.0, 0.8, 0.5, 0.0])
    worth = np.where(shown, np.array(lambdas)[:, None] * relevance, -np.inf)
    first, second, every = np.full(rows, one), np.full(rows, other), np.array([tiers] * rows)
    told: list[bool] = Duels(Four(), np.array(lambdas), every, worth, first, second).are_won(by).tolist()
    return told


def test_the_new_comes_before_the_same_where_diversity_counts_enough() -> None:
    # after a: b has λ · 0.8 − (1 − λ) · 0.9, c has λ · 0.5 − (1 − λ) · 0.1: c is first below λ = 8/11
    assert won([0.5, 0.72, 0.73, 1.0], C, B) == [True, True, False, False]
    assert won([0.5, 0.72, 0.73, 1.0], B, C) == [False, False, True, True]
    assert won([0.5] * 8, C, B) == [True] * 8  # many rows go together, few one by one


def test_without_relevance_content_decides_who_comes_first() -> None:
    assert won([0.0], A, B) == [True]
    assert won([0.0], C, B) == [True]  # a is taken first, and c is less like it


def test_what_stands_above_is_placed_before_and_counts() -> None:
    # a stands in a tier of its own; below it b and c are told apart as ever
    assert won([0.5, 1.0], C, B, tiers=(4, 0, 0, 0)) == [True, False]


@pytest.mark.parametrize("rows", [1, 6])
def test_a_lead_must_be_as_large_as_asked_for(rows: int) -> None:
    # at λ = 1 gains are relevance: a is 0.2 above b
    assert won([1.0] * rows, A, B, by=0.19) == [True] * rows
    assert won([1.0] * rows, A, B, by=0.21) == [False] * rows
