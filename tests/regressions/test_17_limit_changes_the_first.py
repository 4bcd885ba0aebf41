"""Failure 17: asking for 1 result gives another first hit than asking for 5."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from whyrank.ranking.diversity import MMR
from whyrank.ranking.recipes import RECIPES
from whyrank.ranking.stages import Rerank
from whyrank.testing.fakes import SharedWords

if TYPE_CHECKING:
    from tests.regressions.conftest import OpenEngine


@pytest.mark.parametrize("recipe", list(RECIPES))
def test_one_result_is_the_head_of_fifty(open_engine: OpenEngine, recipe: str) -> None:
    engine = open_engine(*(f"note {i} about tea, pots and leaves number {i * 7 % 13}" for i in range(60)))
    everything = [hit.id for hit in engine.search("tea leaves number 5", limit=50, recipe=recipe)]
    for limit in (1, 2, 5, 20):
        assert [hit.id for hit in engine.search("tea leaves number 5", limit=limit, recipe=recipe)] == everything[
            :limit
        ]


def test_pages_join_to_the_whole(open_engine: OpenEngine) -> None:
    engine = open_engine(*(f"note {i} about tea" for i in range(30)))
    whole = [hit.id for hit in engine.search("tea note", limit=30)]
    pages = [hit.id for offset in (0, 10, 20) for hit in engine.search("tea note", limit=10, offset=offset)]
    assert pages == whole


@pytest.mark.parametrize("lambda_", [0.0, 0.5, 0.9])
def test_diversity_is_made_over_the_pool_and_not_over_the_page(open_engine: OpenEngine, lambda_: float) -> None:
    engine = open_engine(*(f"note {i} about tea, pots and leaves number {i * 7 % 13}" for i in range(40)))
    recipe = RECIPES["default"].with_stages(MMR(lambda_))
    everything = [hit.id for hit in engine.search("tea leaves number 5", limit=50, recipe=recipe)]
    assert everything != [hit.id for hit in engine.search("tea leaves number 5", limit=50)]
    for limit in (1, 2, 5, 20):
        found = [hit.id for hit in engine.search("tea leaves number 5", limit=limit, recipe=recipe)]
        assert found == everything[:limit]


def test_a_reranker_reads_its_window_and_not_the_page(open_engine: OpenEngine) -> None:
    engine = open_engine(*(f"note {i} about tea, pots and leaves number {i * 7 % 13}" for i in range(40)))
    recipe = RECIPES["default"].with_stages(Rerank(SharedWords(), top=10))
    everything = [hit.id for hit in engine.search("tea leaves number 5", limit=50, recipe=recipe)]
    for limit in (1, 2, 5, 20):
        found = [hit.id for hit in engine.search("tea leaves number 5", limit=limit, recipe=recipe)]
        assert found == everything[:limit]
