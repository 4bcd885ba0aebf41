"""What answering only the surest questions would gain: the risk–coverage curve of one evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple


class Answered(NamedTuple):
    """One question: the evidence for its answer, and whether the first hit was right."""

    evidence: float
    is_right: bool


class Risk(NamedTuple):
    """If this share of the questions is answered, the share of those whose first hit is wrong."""

    coverage: float
    risk: float


def risk_by_coverage(answered: Sequence[Answered]) -> list[Risk]:
    """Answer the questions with the most evidence first; those with the same evidence stand or fall together."""
    curve, asked, wrong = [], 0, 0
    ordered = sorted(answered, key=lambda one: -one.evidence)
    for _, alike in groupby(ordered, key=lambda one: one.evidence):
        group = list(alike)
        asked += len(group)
        wrong += sum(not one.is_right for one in group)
        curve.append(Risk(asked / len(ordered), wrong / asked))
    return curve


def best_possible(answered: Sequence[Answered]) -> list[Risk]:
    """Return the curve of evidence that knew: all right answers before all wrong ones."""
    right = sum(one.is_right for one in answered)
    return [Risk(asked / len(answered), max(0, asked - right) / asked) for asked in range(1, len(answered) + 1)]


def area(curve: Sequence[Risk]) -> float:
    """Return the mean risk over all coverages, the area under the curve (Geifman and El-Yaniv 2017)."""
    before, whole = 0.0, 0.0
    for coverage, risk in curve:
        whole += (coverage - before) * risk
        before = coverage
    return whole
