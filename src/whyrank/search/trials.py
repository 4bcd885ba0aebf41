"""Ask once and rank many times: what other settings would make of the same candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..columns import MemoryId
from ..ranking.lineup import ids_of
from ..ranking.recipes import Recipe, rank
from ..types import Query, Scope
from .retrieval import Stopwatch
from .searcher import Searcher


def origins_by_recipe(
    searcher: Searcher, query: Query, recipes: Sequence[Recipe]
) -> list[list[tuple[Scope, str] | MemoryId]]:
    """Return the sources each recipe finds, best first; they share one plan, so one retrieval serves them all."""
    if len({recipe.plan for recipe in recipes}) != 1:
        raise ValueError("recipes of different plans ask for different candidates")
    with searcher.store.reading():
        retrieved = searcher.retrieved(query, recipes[0], Stopwatch())
        language = retrieved.context.analysis.language
        weight = searcher.embedder.weight(language) if searcher.embedder else 0.0
        settled = (replace(recipe, fusion=recipe.fusion.settled(weight)) for recipe in recipes)
        found = [ids_of(rank(retrieved.runs, recipe, retrieved.context).hits) for recipe in settled]
        memories = searcher.store.get({identity for ids in found for identity in ids}, query.where.scopes)
    return [[memories[identity].origin for identity in ids if identity in memories] for ids in found]
