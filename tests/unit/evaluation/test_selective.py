"""Risk by coverage, on four questions."""

from __future__ import annotations

import pytest

from whyrank.evaluation.abstention import Answered, area, best_possible, risk_by_coverage

FOUR = [Answered(0.9, True), Answered(0.7, False), Answered(0.5, True), Answered(0.1, False)]


def test_the_surest_are_answered_first() -> None:
    # right, wrong, right, wrong: of one 0 are wrong, of two 1, of three 1, of four 2
    assert risk_by_coverage(FOUR) == [(0.25, 0.0), (0.5, 1 / 2), (0.75, 1 / 3), (1.0, 2 / 4)]


def test_equal_evidence_stands_or_falls_together() -> None:
    alike = [Answered(0.5, True), Answered(0.5, False), Answered(0.1, False)]
    assert risk_by_coverage(alike) == [(2 / 3, 1 / 2), (1.0, 2 / 3)]


def test_evidence_that_knew_would_answer_all_right_ones_first() -> None:
    assert best_possible(FOUR) == [(0.25, 0.0), (0.5, 0.0), (0.75, 1 / 3), (1.0, 2 / 4)]


def test_the_area_is_the_mean_risk() -> None:
    assert area(risk_by_coverage(FOUR)) == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4)
    assert area(best_possible(FOUR)) <= area(risk_by_coverage(FOUR))
