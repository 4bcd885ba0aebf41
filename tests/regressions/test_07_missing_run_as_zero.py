"""Failure 7: a missing run counts as score 0 and drags the hit down (0.7 × cosine)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from whyrank.types.trail import part_of

if TYPE_CHECKING:
    from tests.regressions.conftest import OpenEngine


def test_without_a_keyword_hit_the_vector_vote_is_whole(open_engine: OpenEngine) -> None:
    engine = open_engine("the dog is ill and needs a veterinarian", "the invoice is overdue")
    results = engine.search("sick puppy")
    parts = [part for part in results[0].trail[0].parts if part.weight]
    assert [part.signal for part in parts] == ["vector"]
    assert parts[0].weight == 1.0


def test_the_old_recipe_pays_only_seven_tenths_of_the_cosine(open_engine: OpenEngine) -> None:
    engine = open_engine("the dog is ill and needs a veterinarian", "the invoice is overdue")
    results = engine.search("sick puppy", recipe="openclaw-2026-02")
    for hit in (*results.hits, *results.dropped):
        vector = part_of(hit.trail, "vector")
        assert vector is not None
        assert vector.raw is not None
        assert hit.score == pytest.approx(0.7 * max(0.0, vector.raw))
