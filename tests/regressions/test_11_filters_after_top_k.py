"""Failure 11: filters run after top-k, so that small scopes starve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.regressions.conftest import OpenEngine


@pytest.mark.parametrize("recipe", ["default", "rrf", "keyword", "vector", "openclaw"])
def test_a_scope_with_two_per_cent_of_the_rows_keeps_its_results(open_engine: OpenEngine, recipe: str) -> None:
    engine = open_engine(*(f"tea note number {i}" for i in range(490)), scope="user:many")
    for i in range(10):
        engine.add(f"my own tea note {i}", scope="user:few")
    found = engine.search("tea note", scope="user:few", limit=10, recipe=recipe)
    assert len(found) == 10
    assert {str(hit.memory.scope) for hit in found} == {"user:few"}


def test_tags_are_filtered_before_the_cut_too(open_engine: OpenEngine) -> None:
    engine = open_engine(*(f"tea note number {i}" for i in range(300)))
    engine.add("tea, tagged", tags=["wanted"])
    assert [hit.memory.text for hit in engine.search("tea note", tags=["wanted"])] == ["tea, tagged"]
