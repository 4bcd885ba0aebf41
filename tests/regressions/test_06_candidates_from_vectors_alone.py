"""Failure 6: candidates come from the vector run alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from whyrank.ranking.recipes import RECIPES

if TYPE_CHECKING:
    from tests.regressions.conftest import OpenEngine
    from whyrank.types.query import RunName

QUERY = "ticket number zqx4471"
LONE = "zqx4471: the harbour master counts crates of lemons every Friday"


def test_a_hit_that_only_the_keyword_run_lists_is_a_candidate(open_engine: OpenEngine) -> None:
    engine = open_engine(LONE, "what is the ticket number", "a ticket has a number", "the number of a ticket")

    def candidates(*runs: RunName) -> set[str]:
        # With a pool of one, each run can list one memory only.
        plan = replace(RECIPES["default"].plan, pool=1, runs=runs)
        results = engine.search(QUERY, recipe=replace(RECIPES["default"], plan=plan))
        return {hit.memory.text for hit in (*results.hits, *results.dropped)}

    assert LONE not in candidates("vector")
    assert LONE in candidates("keyword", "vector")
