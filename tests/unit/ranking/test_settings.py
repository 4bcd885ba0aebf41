"""Settings that change recipes."""

from __future__ import annotations

from whyrank.ranking.recipes import RECIPES
from whyrank.ranking.settings import Adjustments, adjusted, tunable, unhonoured
from whyrank.ranking.stages import NameFirst


def test_the_name_bonus_multiplies_both_bonuses_and_leaves_the_rest() -> None:
    [stage] = [
        stage
        for stage in adjusted(RECIPES["default"], Adjustments(name_bonus=2.0)).stages
        if isinstance(stage, NameFirst)
    ]
    # 2 × 0.1 for parts of names, 2 × 0.3 for names inside a sentence.
    assert stage == NameFirst(partial_bonus=0.2, sentence_bonus=0.6)
    assert adjusted(RECIPES["default"], Adjustments()) == RECIPES["default"]


def test_a_recipe_without_names_says_that_the_bonus_has_no_place() -> None:
    [notice] = unhonoured(RECIPES["rrf"], Adjustments(name_bonus=2.0))
    assert notice.message == "ranking.name_bonus has no place in the recipe 'rrf'"
    assert unhonoured(RECIPES["default"], Adjustments(name_bonus=2.0)) == ()


def test_what_can_be_fitted_is_what_a_recipe_has() -> None:
    assert tunable(RECIPES["default"]) == {"vector_weight", "name_bonus"}
    assert tunable(RECIPES["openclaw"]) == {"vector_weight"}
    assert tunable(RECIPES["rrf"]) == frozenset()
