"""Measures with their sums written out."""

from __future__ import annotations

import math

import pytest

from whyrank.config.settings import SETTINGS
from whyrank.evaluation.measures import DEFAULT_LIMIT, bootstrap, compare, hit, mean, mrr, ndcg, recall, score

JUDGED = {"a": 2, "b": 1, "c": 0}


def test_ndcg_has_linear_gain_and_a_logarithmic_discount() -> None:
    # found b first, then nothing, then a: 1/log2(2) + 2/log2(4); best: 2/log2(2) + 1/log2(3)
    expected = (1 / 1 + 2 / 2) / (2 / 1 + 1 / math.log2(3))
    assert ndcg(10).of(["b", "x", "a"], JUDGED) == pytest.approx(expected)


def test_ndcg_stops_at_its_cut() -> None:
    assert ndcg(1).of(["x", "a"], JUDGED) == 0.0


def test_recall_counts_relevant_documents_only() -> None:
    assert recall(5).of(["a", "c", "x"], JUDGED) == 1 / 2


def test_mrr_is_one_over_the_first_rank() -> None:
    assert mrr(10).of(["x", "c", "b"], JUDGED) == 1 / 3


def test_hit_is_all_or_nothing() -> None:
    assert (hit(1).of(["x", "a"], JUDGED), hit(5).of(["x", "a"], JUDGED)) == (0.0, 1.0)


def test_the_hit_rate_of_the_default_limit_is_measured() -> None:
    sixth = [*"uvwxy", "a"]
    assert SETTINGS["limit"].default == DEFAULT_LIMIT == len(sixth)
    assert (score(sixth, JUDGED)["hit@5"], score(sixth, JUDGED)["hit@6"]) == (0.0, 1.0)


def test_no_result_scores_nothing() -> None:
    assert set(score([], JUDGED).values()) == {0.0}


def test_means_are_over_queries() -> None:
    assert mean([score(["a"], JUDGED), score([], JUDGED)])["hit@1"] == 0.5


def test_the_interval_holds_the_mean_and_narrows_with_more_queries() -> None:
    few, many = bootstrap([0.0, 1.0] * 5), bootstrap([0.0, 1.0] * 200)
    assert few.low <= 0.5 <= few.high
    assert many.high - many.low < few.high - few.low


def test_a_clear_difference_is_unlikely_by_chance() -> None:
    compared = compare([0.1] * 30, [0.9] * 30)
    assert compared.difference == pytest.approx(0.8)
    assert (compared.better, compared.worse) == (30, 0)
    assert compared.p < 0.001


def test_no_difference_is_no_finding() -> None:
    assert compare([0.5, 0.2], [0.5, 0.2]).p == 1.0


def test_differences_that_cancel_are_no_finding() -> None:
    assert compare([0.0, 1.0] * 10, [1.0, 0.0] * 10).p > 0.5
