"""Everything ranking knew of the candidates of one question, as one value that can be ranked again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ..columns import MemoryId
from ..hits import Ranking, Results, memory_of
from ..ranking.counterfactuals import Pool
from ..ranking.likeness import likeness_between
from ..ranking.order import Stage
from ..ranking.recipes import Recipe, rank_pool
from ..ranking.settings import Adjustments, adjusted
from ..types import Memory, Query
from .confidence import judged
from .evidence import Weighing
from .gathering import with_likeness, with_memories
from .probes import shares_of
from .retrieval import Retrieved
from .searcher import Searcher

Shares = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Pooled:
    """One question's candidates, and how a recipe, its settings and its embedder come to the ranking of them.

    `base` is the recipe as it ships, `wish` what the settings ask of it, `last` the stages that come after those;
    `declared` is what the embedder's vote is worth, `shares` how votes are divided among further runs; `weighing` says
    how evidence is added up, from which `confidences` are read.
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
        """Return how like each candidate is to each that stands before it."""
        ids = [memory.id for memory in self.memories]
        alike = likeness_between(ids, self.pool.context).square()
        return [alike[place, :place].tolist() for place in range(len(ids))]


def pooled(
    searcher: Searcher, query: Query, base: Recipe, wish: Adjustments, last: tuple[Stage, ...], *, likeness: bool
) -> Pooled:
    """Ask as a search does, and keep everything; memories are read now, because later the store may have changed."""
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
    """Return how sure each candidate is: those that are results as the answer says it, the others as if they were."""
    ranking = rank_pool(retrieved.runs, retrieved.recipe, retrieved.context)
    calibration = searcher.calibration(retrieved)
    everything, answer = (
        judged(hits, searcher.embedder, retrieved.context, calibration)
        for hits in (Ranking((*ranking.hits, *ranking.dropped)), ranking)
    )
    sure = {hit.id: hit.confidence for one in (everything, answer) for hit in one.ranking.hits}
    return sure, answer.weighing
