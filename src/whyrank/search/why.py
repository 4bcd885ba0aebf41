"""Why a memory is where it is, or where it was lost and by how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..errors import NotFound
from ..ports import Store
from ..ranking.recipes import Recipe
from ..types import Hit, Memory, MemoryId, Query, Ranking, Run
from .retrieval import Retrieved, Stopwatch
from .searcher import Searcher, within_limits

Outcome = Literal["found", "dropped", "filtered", "not a candidate"]


@dataclass(frozen=True, slots=True)
class Why:
    """The answer to "why is this memory here, or why is it not?"."""

    query: str
    memory: Memory
    outcome: Outcome
    summary: str
    details: tuple[str, ...] = ()
    rank: int | None = None
    hit: Hit | None = None

    def __str__(self) -> str:
        lines = [f"{self.memory.id}  {self.memory.source or self.memory.text[:60]}", self.summary]
        lines += [f"  {detail}" for detail in self.details]
        if self.hit is not None:
            lines += [f"  {line}" for line in self.hit.explain().splitlines()]
        return "\n".join(lines)


def why(searcher: Searcher, query: Query, recipe: Recipe, identity: MemoryId) -> Why:
    """Explain the place, or the absence, of one memory; a memory the caller may not see does not exist."""
    query, _ = within_limits(query)
    memory = searcher.store.get([identity], query.where.scopes).get(identity)
    if memory is None:
        raise NotFound(f"there is no memory {identity!r}", "`whyrank list` shows the ids you can ask about")
    refusal = query.where.refusal(memory)
    if refusal is not None:
        return Why(query.text, memory, "filtered", f"it cannot answer: {refusal}")
    retrieved, ranking = searcher.ranked(query, recipe, Stopwatch())
    found = ranking.find(identity)
    if found is None:
        return _never_a_candidate(searcher.store, query, memory, retrieved, searcher.embedder is not None)
    return _placed(query, memory, found, ranking)


def _placed(query: Query, memory: Memory, hit: Hit, ranking: Ranking) -> Why:
    if hit in ranking.hits:
        rank = query.offset + ranking.hits.index(hit) + 1
        return Why(query.text, memory, "found", f"it is result {rank}", rank=rank, hit=hit)
    step = hit.trail[-1]
    summary = f"it was a candidate, and {step.stage} dropped it: {step.why}"
    details = _distance(hit, ranking) if step.stage == "top" else ()
    return Why(query.text, memory, "dropped", summary, details, hit=hit)


def _distance(hit: Hit, ranking: Ranking) -> tuple[str, ...]:
    if not ranking.hits:
        return ()
    last = ranking.hits[-1]
    if last.tier > hit.tier:
        return (f"the last result, {last.id}, is in a higher tier ({last.tier} against {hit.tier}): its name matches",)
    return (f"the last result, {last.id}, has {last.score:.4f}; this has {hit.score:.4f}",)


def _never_a_candidate(store: Store, query: Query, memory: Memory, retrieved: Retrieved, has_embedder: bool) -> Why:
    details = []
    with store.reading():
        for name in retrieved.recipe.plan.runs:
            pool = next((run for run in retrieved.runs if run.name == name), Run(name))
            details.append(f"{name}: {_lost_in(store, query, memory.id, pool, retrieved, has_embedder)}")
    return Why(query.text, memory, "not a candidate", "no run proposed it", tuple(details))


def _lost_in(
    store: Store, query: Query, identity: MemoryId, pool: Run, retrieved: Retrieved, has_embedder: bool
) -> str:
    """Say how far one run was from proposing a memory."""
    plan, analysis = retrieved.recipe.plan, retrieved.context.analysis
    if pool.name == "name":
        return "none of its names is like the query"
    if pool.name == "vector" and retrieved.vector is None:
        return "the query was not embedded" if has_embedder else "there is no embedder"
    if pool.name == "keyword":
        whole = store.keyword(analysis.terms, query.where, None, plan.join)
        measure = "word score"
    else:
        assert retrieved.vector is not None
        whole = store.nearest(retrieved.vector, retrieved.space, query.where, None)
        measure = "cosine"
    return _place_in(whole, pool, identity, measure, plan.pool)


def _place_in(whole: Run, pool: Run, identity: MemoryId, measure: str, size: int) -> str:
    rank = whole.ranks().get(identity)
    if rank is None:
        return "no shared term" if pool.name == "keyword" else "it has no vector yet"
    score = whole.candidates[rank - 1].score
    needed = pool.candidates[-1].score if pool.candidates else 0.0
    if score >= needed:
        return f"rank {rank}, {measure} {score:.4f}, but better chunks of its file took the places of that file"
    return f"rank {rank} of a pool of {size} sources; needs {measure} {needed:.4f}, has {score:.4f}"
