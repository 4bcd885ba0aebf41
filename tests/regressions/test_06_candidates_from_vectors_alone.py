"""Failure 6: candidates come from the vector run alone."""

from __future__ import annotations

from dataclasses import replace

from tests.regressions.conftest import OpenEngine
from whyrank.ranking.recipes import RECIPES


def test_a_hit_that_only_the_keyword_run_lists_is_a_candidate(open_engine: OpenEngine) -> None:
    # With a pool of one, the vector run can list only one of these.
    engine = open_engine("ticket ZQX-4471 was closed", "all about closing tickets", "how tickets are closed")
    small = replace(RECIPES["default"], plan=replace(RECIPES["default"].plan, pool=1))
    results = engine.search("ZQX-4471 ticket closed", recipe=small)
    seen = {hit.memory.text for hit in (*results.hits, *results.dropped)}
    assert "ticket ZQX-4471 was closed" in seen
