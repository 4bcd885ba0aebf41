"""Settings that change recipes."""

from __future__ import annotations

from dataclasses import replace

from whyrank.analysis.query import analyse
from whyrank.ranking.recipes import AS_IT_IS, RECIPES, Adjustments, adjusted, rank, tunable, unhonoured
from whyrank.ranking.stages import GroupBySource, NameFirst
from whyrank.types.memory import Memory
from whyrank.types.query import Query
from whyrank.types.results import Context, Run


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
    assert notice.message == "ranking.name_bonus has no effect in the recipe 'rrf'"
    assert unhonoured(RECIPES["default"], Adjustments(name_bonus=2.0)) == ()


def test_what_can_be_fitted_is_what_a_recipe_has() -> None:
    assert tunable(RECIPES["default"]) == {"vector_weight", "name_bonus"}
    assert tunable(RECIPES["openclaw"]) == {"vector_weight"}
    assert tunable(RECIPES["rrf"]) == frozenset()


def test_k_is_honoured_where_ranks_are_counted_and_said_to_be_unused_elsewhere() -> None:
    runs = (Run.of("keyword", [("a", 3.0), ("b", 2.0)]), Run.of("vector", [("b", 0.9), ("c", 0.8)]))
    context = Context(Query(""), analyse(""), {key: Memory(key, key) for key in "abc"})
    scores = {hit.id: hit.score for hit in rank(runs, adjusted(RECIPES["rrf"], Adjustments(k=2.0)), context)}
    assert scores == {"a": 0.5 * 3 / 3, "b": 0.5 * 3 / 4 + 0.5 * 3 / 3, "c": 0.5 * 3 / 4}
    [notice] = unhonoured(RECIPES["default"], Adjustments(k=2.0))
    assert (notice.code, notice.message.split()[0]) == ("setting-unused", "ranking.k")
    assert unhonoured(RECIPES["hybrid-mem"], Adjustments(k=2.0)) == ()


def test_there_are_wishes_that_leave_every_recipe_as_it_is() -> None:
    for recipe in (*RECIPES.values(), replace(RECIPES["rrf"], stages=(GroupBySource(3),))):
        assert adjusted(recipe, AS_IT_IS) == recipe
