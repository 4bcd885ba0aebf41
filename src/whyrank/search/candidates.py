"""Retrieve once, rank many times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ..ranking.counterfactuals import Pool
from ..ranking.diversity import likeness_between
from ..ranking.parameters import Adjustments, adjusted
from ..ranking.ranking import Stage, ids_of
from ..ranking.recipes import Recipe, rank, rank_pool
from ..types.columns import MemoryId
from ..types.memory import Memory, Scope
from ..types.query import Query
from ..types.results import Ranking, Results, memory_of
from .confidence import Weighing
from .context import with_likeness, with_memories
from .expansion import shares_of
from .retrieval import Retrieved, Stopwatch
from .searcher import Searcher

Shares = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Pooled:
    """Candidates of one query, with the recipe, settings and embedder weight that rank them.

    `base` is the recipe as it ships, `wish` its adjustments by the settings, `last` the stages that come after those;
    `declared` is the weight of the embedder's vote, `shares` the division of votes among further runs; `weighing`
    defines the sum of evidence from which `confidences` are read.
    """

    results: Results
    pool: Pool
    base: Recipe
    wish: Adjustments
    last: tuple[Stage, ...]
    declared: float
    shares: Shares
    confidences: Mapping[MemoryId, float | None]
    weighing: Weighing

    @cached_property
    def memories(self) -> tuple[Memory, ...]:
        """Return the candidates in the order that breaks ties."""
        return tuple(sorted(map(memory_of, self.pool.context.memories.values()), key=lambda found: found.content_key))

    def recipe(self, **wishes: Any) -> Recipe:
        """Return the recipe with its settings, or with others in their place, every weight settled."""
        chosen = adjusted(self.base, replace(self.wish, **wishes)).with_stages(*self.last)
        return replace(chosen, fusion=chosen.fusion.settled(self.declared).split(self.shares))

    def ranked(self, **wishes: Any) -> Ranking:
        """Rank all candidates, by other settings if some are given."""
        return self.pool.ranked(self.recipe(**wishes))

    @cached_property
    def likeness(self) -> list[list[float]]:
        """Return the similarity of each candidate to each one before it."""
        ids = [memory.id for memory in self.memories]
        alike = likeness_between(ids, self.pool.context).square()
        return [alike[place, :place].tolist() for place in range(len(ids))]


def pooled(
    searcher: Searcher, query: Query, base: Recipe, wish: Adjustments, last: tuple[Stage, ...], *, likeness: bool
) -> Pooled:
    """Search and keep all candidates; memories are read now, because the store may change later."""
    with searcher.store.reading():
        retrieved, results = searcher.found(query, adjusted(base, wish).with_stages(*last))
        retrieved = replace(retrieved, context=with_memories(retrieved.context))
        if likeness:
            retrieved = replace(retrieved, context=with_likeness(retrieved, searcher.store, searcher.language))
        confidences, weighing = _convictions(searcher, retrieved)
        return Pooled(
            results=results,
            pool=Pool(retrieved.runs, retrieved.context, retrieved.recipe),
            base=base,
            wish=wish,
            last=last,
            declared=searcher.embedder.weight(retrieved.context.analysis.language) if searcher.embedder else 0.0,
            shares=shares_of(retrieved.runs, retrieved.probes),
            confidences=confidences,
            weighing=weighing,
        )


def _convictions(searcher: Searcher, retrieved: Retrieved) -> tuple[dict[MemoryId, float | None], Weighing]:
    """Return the confidence of each candidate: hits as in the answer, dropped ones as if they were hits."""
    ranking = rank_pool(retrieved.runs, retrieved.recipe, retrieved.context)
    everything, answer = (
        searcher.judged(hits, retrieved) for hits in (Ranking((*ranking.hits, *ranking.dropped)), ranking)
    )
    sure = {hit.id: hit.confidence for one in (everything, answer) for hit in one.ranking.hits}
    return sure, answer.weighing


def origins_by_recipe(
    searcher: Searcher, query: Query, recipes: Sequence[Recipe]
) -> list[list[tuple[Scope, str] | MemoryId]]:
    """Return the sources each recipe finds, best first; they share one plan, so one retrieval is enough."""
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
