"""A pool ranks as the search it was kept from, and as a search by other settings would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import whyrank
from whyrank.ranking.recipes import RECIPES, Recipe
from whyrank.ranking.stages import GroupBySource
from whyrank.testing.fakes import SharedWords
from whyrank.types.query import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from whyrank.engine.engine import Engine

QUESTION = "green tea for Ann"
FACTS = (
    "Ann drinks green tea",
    "green tea stains the pot",
    "tea is green because it is not fermented",
    "the pot is in the kitchen",
    "Ann keeps the tea behind the flour",
    "Ann drinks tea, and it is green",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pooled")
    with opened(folder) as memory:
        for number, text in enumerate(FACTS):
            memory.add(text, key=str(number), importance=1 + number % 5, date=f"2026-0{number + 1}-01")
        memory.add("Bob drinks green tea", scope="user:bob")
    return folder


def opened(folder: Path, **settings: Any) -> Engine:
    return whyrank.open(folder / "memory.db", workspace=folder, embedding="wordllama", **settings)


@pytest.fixture
def memory(folder: Path) -> Iterator[Engine]:
    with opened(folder) as memory:
        yield memory


@pytest.mark.parametrize("recipe", RECIPES)
def test_as_it_is_a_pool_ranks_as_the_search_answers(memory: Engine, recipe: str) -> None:
    pooled, results = memory.pool(QUESTION, recipe=recipe), memory.search(QUESTION, recipe=recipe, limit=50)
    assert pooled.recipe() == pooled.pool.recipe
    assert [(hit.id, hit.tier, hit.score) for hit in pooled.ranked()] == [(hit.id, *hit.key) for hit in results]
    assert {hit.id: hit.confidence for hit in results}.items() <= pooled.confidences.items()
    assert (pooled.results.verdict, pooled.results.notices) == (results.verdict, results.notices)


@pytest.mark.parametrize(
    ("recipe", "wish"),
    [
        ("default", {"vector_weight": 0.9, "recency_weight": 0.5, "min_coverage": 0.3}),
        ("rrf", {"k": 1.0, "mmr_lambda": 0.4}),
        ("openvault", {"alpha": 0.1, "boost_weight": 2.0, "importance": "scaled"}),
        ("openclaw", {"min_score": 0.7, "vector_weight": 0.2}),
    ],
)
def test_by_other_settings_it_ranks_as_a_search_by_those(
    folder: Path, memory: Engine, recipe: str, wish: dict[str, Any]
) -> None:
    ranking = memory.pool(QUESTION, recipe=recipe, likeness=True).ranked(**wish)
    with opened(folder, **{f"ranking.{name}": value for name, value in wish.items()}) as other:
        results = other.search(QUESTION, recipe=recipe, limit=50)
    assert [hit.id for hit in ranking] == [hit.id for hit in results]
    # Ages are counted from the moment of the question, and the second was asked a moment later.
    assert [hit.score for hit in ranking] == pytest.approx([hit.score for hit in results], rel=1e-6)


def test_a_recipe_given_as_a_value_stays_as_it_is(memory: Engine) -> None:
    recipe = Recipe("mine", RECIPES["default"].fusion, (GroupBySource(3),), Plan(pool=7))
    assert memory.pool(QUESTION, recipe=recipe).recipe().stages == recipe.stages
    assert memory.pool(QUESTION, recipe=recipe).recipe(recency_weight=0.5).stages[-1] == GroupBySource(3)


def test_a_reranker_is_asked_once_and_has_the_last_word_by_any_settings(folder: Path) -> None:
    with opened(folder, reranker=SharedWords()) as memory:
        pooled, results = memory.pool(QUESTION), memory.search(QUESTION, limit=50)
    assert [(hit.id, hit.score) for hit in pooled.ranked()] == [(hit.id, hit.score) for hit in results]
    assert [type(stage).__name__ for stage in pooled.recipe(recency_weight=0.5).stages] == [
        "NameFirst",
        "SameLanguage",
        "Recency",
        "Rerank",
        "GroupBySource",
    ]


def test_a_pool_holds_what_the_caller_may_see_and_can_be_ranked_when_the_store_is_closed(folder: Path) -> None:
    with opened(folder) as memory:
        alone, bobs = memory.pool(QUESTION), memory.pool(QUESTION, scope="user:bob")
    assert not any(found.text.startswith("Bob") for found in alone.memories)
    assert any(found.text.startswith("Bob") for found in bobs.memories)
    assert len(alone.ranked(recency_weight=1.0).hits) == len(alone.memories) == len(FACTS)


def test_likeness_is_that_of_each_to_those_before_it(memory: Engine) -> None:
    pooled = memory.pool(QUESTION, likeness=True)
    places = {found.text: place for place, found in enumerate(pooled.memories)}
    assert [len(row) for row in pooled.likeness] == list(range(len(FACTS)))

    def between(one: str, other: str) -> float:
        lower, upper = sorted((places[one], places[other]))
        return pooled.likeness[upper][lower]

    same, another = "Ann drinks tea, and it is green", "the pot is in the kitchen"
    assert 1 >= between("Ann drinks green tea", same) > between("Ann drinks green tea", another) >= 0
