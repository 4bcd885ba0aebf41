"""Fusion with its sums written out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.ranking.builders import context, memory
from whyrank.errors import ConfigError
from whyrank.ranking.fusion import BatchMax, Clamped, Fuse, ReciprocalRank, Saturating, Theoretical, Vote
from whyrank.ranking.recipes import RECIPES
from whyrank.types.results import Run, Signal

KEYWORD = Run.of("keyword", [("a", 4.0), ("b", 2.0)])
VECTOR = Run.of("vector", [("b", 0.8), ("c", 0.5)])
SIGNALS = {
    "keyword": Signal("keyword", {"a": 4.0, "b": 2.0, "c": 0.0}),
    "vector": Signal("vector", {"a": 0.2, "b": 0.8, "c": 0.5}),
}
FUSE = Fuse((Vote("vector", 0.6, Theoretical(-1.0)), Vote("keyword", 0.4, Theoretical(0.0))))


def test_the_score_is_the_weighted_sum_of_normalised_signals() -> None:
    ranking = FUSE((KEYWORD, VECTOR), context(memory("a"), memory("b"), memory("c"), signals=SIGNALS))
    scores = {hit.id: hit.score for hit in ranking.hits}
    assert scores["a"] == 0.6 * (1.2 / 1.8) + 0.4 * (4 / 4)
    assert scores["b"] == 0.6 * (1.8 / 1.8) + 0.4 * (2 / 4)
    assert scores["c"] == 0.6 * (1.5 / 1.8) + 0.4 * 0.0


def test_a_candidate_is_scored_by_runs_that_did_not_list_it() -> None:
    ranking = FUSE((KEYWORD, VECTOR), context(memory("a"), memory("b"), memory("c"), signals=SIGNALS))
    a = next(hit for hit in ranking.hits if hit.id == "a")
    vector = a.trail[0].parts[0]
    assert (vector.signal, vector.rank, vector.raw) == ("vector", None, 0.2)


def test_the_weight_of_an_empty_run_is_shared_out() -> None:
    ranking = FUSE((Run("keyword"), VECTOR), context(memory("b"), memory("c"), signals=SIGNALS))
    assert ranking.hits[0].score == 1.0 * (1.8 / 1.8)
    assert ranking.hits[0].trail[0].parts[0].weight == 1.0


def test_a_hit_without_a_vector_leaves_that_weight_to_its_words() -> None:
    signals = {**SIGNALS, "vector": Signal("vector", {"b": 0.8, "c": 0.5})}
    ranking = FUSE((KEYWORD, VECTOR), context(memory("a"), memory("b"), memory("c"), signals=signals))
    a = next(hit for hit in ranking.hits if hit.id == "a")
    assert [(part.signal, part.weight) for part in a.trail[0].parts] == [("keyword", 1.0)]


def test_the_weight_that_is_left_to_words_is_the_whole_strength() -> None:
    signals = {**SIGNALS, "vector": Signal("vector", {"b": 0.8, "c": 0.5})}
    found = context(memory("a"), memory("b"), memory("c"), signals=signals)
    a = next(hit for hit in replace(FUSE, strength=15.0)((KEYWORD, VECTOR), found).hits if hit.id == "a")
    assert [(part.signal, part.weight) for part in a.trail[0].parts] == [("keyword", 15.0)]


def test_reciprocal_rank_fusion_orders_as_the_sum_of_reciprocals() -> None:
    fuse = Fuse((Vote("keyword", 1.0, ReciprocalRank(60)), Vote("vector", 1.0, ReciprocalRank(60))))
    ranking = fuse((KEYWORD, VECTOR), context(memory("a"), memory("b"), memory("c"), signals=SIGNALS))
    # b: 1/(60+2) + 1/(60+1); a: 1/(60+1); c: 1/(60+2); times 61/2 each, the weights being 1/2
    scale = 61 / 2
    assert [hit.id for hit in ranking.hits] == ["b", "a", "c"]
    assert ranking.hits[0].score == pytest.approx(scale * (1 / 62 + 1 / 61))
    assert ranking.hits[1].score == pytest.approx(scale * (1 / 61))


def test_counting_absence_as_zero_is_only_for_show() -> None:
    fuse = Fuse((Vote("vector", 0.7, Clamped()), Vote("keyword", 0.3, Saturating())), absent="zero")
    ranking = fuse((KEYWORD, VECTOR), context(memory("a"), memory("b"), memory("c"), signals=SIGNALS))
    # a is listed by keyword alone: 0.7 · 0 + 0.3 · 4/5
    assert {hit.id: hit.score for hit in ranking.hits}["a"] == pytest.approx(0.3 * 0.8)


def test_runs_nobody_votes_for_get_the_vote_for_others() -> None:
    fuse = Fuse((), others=Vote("*", 1.0, BatchMax()))
    ranking = fuse((Run.of("lance", [("a", 2.0), ("b", 1.0)]),), context(memory("a"), memory("b")))
    assert [(hit.id, hit.score) for hit in ranking.hits] == [("a", 1.0), ("b", 0.5)]


def test_an_added_vote_stands_beside_the_others_for_those_it_knows() -> None:
    added = Run.of("vector:second", [("c", 0.4)])
    signals = {**SIGNALS, "vector:second": Signal("vector:second", {"c": 0.4})}
    fuse = replace(FUSE, others=Vote("*", 5.0, BatchMax()), added=Vote("vector:*", 1.0, BatchMax()))
    ranking = fuse((KEYWORD, VECTOR, added), context(memory("a"), memory("b"), memory("c"), signals=signals))
    scores = {hit.id: hit.score for hit in ranking.hits}
    # Of c the weights 0.6, 0.4 and 1 are shared out as 0.3, 0.2 and 0.5; of a and b they are as without it.
    assert scores["c"] == pytest.approx(0.3 * (1.5 / 1.8) + 0.2 * 0.0 + 0.5 * (0.4 / 0.4))
    assert scores["a"] == pytest.approx(0.6 * (1.2 / 1.8) + 0.4 * (4 / 4))
    assert scores["b"] == pytest.approx(0.6 * (1.8 / 1.8) + 0.4 * (2 / 4))


def test_open_weights_are_settled_by_the_embedder() -> None:
    fuse = Fuse((Vote("vector", None, Clamped()), Vote("keyword", None, Clamped())))
    assert [vote.weight for vote in fuse.with_vector_weight(0.7).votes] == [0.7, pytest.approx(0.3)]


@pytest.mark.parametrize("weight", [-0.1, float("inf"), float("nan")])
def test_a_weight_that_makes_no_sense_is_refused(weight: float) -> None:
    with pytest.raises(ConfigError):
        Vote("vector", weight, Clamped())


def test_a_recipe_is_settled_once_for_each_weight() -> None:
    recipe = RECIPES["default"]
    settled = recipe.with_vector_weight(0.7)
    assert settled == replace(recipe, fusion=recipe.fusion.with_vector_weight(0.7))
    assert recipe.with_vector_weight(0.7) is settled
    assert recipe.with_vector_weight(0.2) != settled
