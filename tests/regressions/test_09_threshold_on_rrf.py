"""Failure 9: a 0..1 threshold is laid on RRF scores (0.016 … 0.033)."""

from __future__ import annotations

import pytest

from whyrank import Run, rank
from whyrank.ranking.recipes import RECIPES
from whyrank.ranking.stages import Evidence


def test_rrf_scores_are_scaled_so_that_first_everywhere_is_one() -> None:
    runs = [Run.of("a", [("x", 2.0), ("y", 1.0)]), Run.of("b", [("x", 9.0), ("z", 3.0)])]
    ranking = rank(runs, "rrf")
    assert ranking.hits[0].id == "x"
    # two runs of weight 1/2 each, rank 1 in both: 1/2 · 61/61 + 1/2 · 61/61
    assert ranking.hits[0].score == 1.0
    # rank 2 in one run only: 1/2 · 61/62
    assert ranking.hits[1].score == pytest.approx(0.5 * 61 / 62)


def test_a_threshold_reads_named_evidence_and_not_the_score() -> None:
    runs = [Run.of("vector", [("x", 0.9), ("y", 0.2)])]
    strict = RECIPES["rrf"].with_stages(Evidence(min_vector=0.5))
    ranking = rank(runs, strict)
    assert [hit.id for hit in ranking.hits] == ["x"]
    assert "cosine 0.200 is below 0.5" in ranking.dropped[0].trail[-1].why
