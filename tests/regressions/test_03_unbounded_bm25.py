"""Failure 3: unbounded BM25 drowns vectors (54.2 in all, 44.8 of it BM25)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whyrank.types.trail import part_of

if TYPE_CHECKING:
    from tests.regressions.conftest import OpenEngine


def test_no_run_contributes_more_than_its_weight(open_engine: OpenEngine) -> None:
    words = " ".join(f"rare{i}" for i in range(30))
    engine = open_engine(words, "a calm note about tea", *(f"filler number {i}" for i in range(40)))
    best = engine.search(words)[0]
    keyword, vector = part_of(best.trail, "keyword"), part_of(best.trail, "vector")
    assert keyword is not None
    assert vector is not None
    assert (keyword.raw or 0) > 10  # thirty rare words: a large word score …
    assert keyword.value <= keyword.weight  # … that is worth no more than its vote
    assert 0 < vector.value <= vector.weight
    assert best.score <= 1
