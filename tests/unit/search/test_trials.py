"""One retrieval for many recipes finds what each of them finds alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from whyrank.analysis.document import entry_for
from whyrank.protocols import Changes
from whyrank.ranking.recipes import RECIPES, Adjustments, adjusted
from whyrank.search.explain import origins_by_recipe
from whyrank.search.searcher import Searcher
from whyrank.storage.store import SqliteStore
from whyrank.testing.fakes import WordDirections
from whyrank.types.memory import Memory, Source
from whyrank.types.query import Query

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = ["green tea in the morning", "black tea at night", "the morning train", "night train to the sea", "tea tea tea"]


@pytest.fixture
def searcher(tmp_path: Path) -> Searcher:
    store, embedder = SqliteStore(tmp_path / "memory.db"), WordDirections()
    memories = [Memory(f"m_{i}", text, "chunk", source=Source(f"{i % 4}.md", i + 1)) for i, text in enumerate(TEXTS)]
    entries = [entry_for(memory, "en") for memory in memories]
    rows = embedder.documents([entry.embed_text for entry in entries])
    vectors = {entry.embed_hash: row for entry, row in zip(entries, rows, strict=True)}
    store.write(Changes(put=entries, space=embedder.fingerprint, vectors=vectors))
    return Searcher(store, embedder, "en")


def test_each_recipe_finds_what_it_finds_alone(searcher: Searcher) -> None:
    recipes = [adjusted(RECIPES["default"], Adjustments(vector_weight=weight)) for weight in (None, 0.0, 0.3, 0.9, 1.0)]
    for text in ("tea in the morning", "night", "sea train", "zeppelin"):
        query = Query(text, limit=3)
        alone = [[hit.memory.origin for hit in searcher.search(query, recipe)] for recipe in recipes]
        assert origins_by_recipe(searcher, query, recipes) == alone


def test_recipes_of_different_plans_are_refused(searcher: Searcher) -> None:
    with pytest.raises(ValueError, match="different plans"):
        origins_by_recipe(searcher, Query("tea"), [RECIPES["default"], RECIPES["keyword"]])
