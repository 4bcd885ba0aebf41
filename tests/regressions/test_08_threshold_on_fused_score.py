"""Failure 8: a fixed minimum on the fused score drops keyword-only hits (0.30 < 0.35)."""

from __future__ import annotations

from whyrank import Run, rank
from whyrank.ranking.fusion import Clamped, Fuse, Saturating, Vote
from whyrank.ranking.recipes import RECIPES, Recipe
from whyrank.ranking.stages import MinScore

KEYWORD = Run.of("keyword", [("only-words", 99.0)])
VECTOR = Run.of("vector", [("only-meaning", 0.6)])


def test_the_threshold_loses_the_best_keyword_hit_whatever_its_score() -> None:
    fusion = Fuse((Vote("vector", 0.7, Clamped()), Vote("keyword", 0.3, Saturating())), absent="zero")
    broken = Recipe("broken", fusion, (MinScore(0.35),))
    ranking = rank([KEYWORD, VECTOR], broken)
    # 0.3 × 99/100 = 0.297 < 0.35
    assert [hit.id for hit in ranking.hits] == ["only-meaning"]
    assert "0.297 is below 0.35" in ranking.dropped[0].trail[-1].why


def test_no_recipe_of_ours_but_the_one_that_shows_it_has_such_a_threshold() -> None:
    with_threshold = [name for name, recipe in RECIPES.items() if any(isinstance(s, MinScore) for s in recipe.stages)]
    assert with_threshold == ["openclaw-2026-02"]


def test_the_mended_selection_keeps_it() -> None:
    ranking = rank([KEYWORD, VECTOR], "openclaw")
    assert {hit.id for hit in ranking.hits} == {"only-words", "only-meaning"}
