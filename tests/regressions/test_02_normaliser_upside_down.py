"""Failure 2: 1/(1+abs(rank)) gives the best match the lowest score."""

from __future__ import annotations

import pytest

from whyrank.ranking.fusion import Saturating, Sigmoid


def test_the_broken_formula_is_upside_down_and_ours_are_not() -> None:
    # FTS5 ranks of a strong, a middling and a weak match.
    strong, middling, weak = -8.5, -3.2, -0.5
    broken = [1 / (1 + abs(rank)) for rank in (strong, middling, weak)]
    assert broken == sorted(broken)  # the best match gets the lowest value
    ours = Sigmoid(2)([-strong, -middling, -weak], [1, 2, 3])
    assert ours == sorted(ours, reverse=True)


def test_the_sigmoid_has_the_values_of_its_formula() -> None:
    # 1/(1 + exp(2 − 8.5)) = 0.998499, 1/(1 + exp(2 − 3.2)) = 0.768525, 1/(1 + exp(2 − 0.5)) = 0.182426
    assert Sigmoid(2)([8.5, 3.2, 0.5], [1, 2, 3]) == pytest.approx([0.998499, 0.768525, 0.182426], abs=1e-6)


def test_the_sigmoid_takes_fts5s_own_negative_values() -> None:
    # bm25() of a strong, a middling and a weak match: |−8.5|, |−3.2|, |−0.5| have the values above
    assert Sigmoid(2)([-8.5, -3.2, -0.5], [1, 2, 3]) == Sigmoid(2)([8.5, 3.2, 0.5], [1, 2, 3])


def test_saturating_has_the_values_of_its_formula() -> None:
    # 4.2/5.2 = 0.807692, 0.5/1.5 = 0.333333
    assert Saturating()([4.2, 0.5], [1, 2]) == pytest.approx([0.807692, 0.333333], abs=1e-6)
