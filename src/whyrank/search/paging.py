"""Where an answer ends, and what a page says that lies behind its end."""

from __future__ import annotations

from collections.abc import Iterator

from ..hits import Ranking, origins_of
from ..ranking.lineup import dropped_by
from ..types import Notice
from ..wording import counted, which
from .retrieval import Retrieved

_CUT = frozenset({"top"})  # the stage that cuts the page out of all that was ranked


def page_notices(retrieved: Retrieved, ranking: Ranking) -> Iterator[Notice]:
    """Say why a page is empty or short: none was asked for, the answer has ended, or the pool has."""
    query = retrieved.context.query
    if query.limit == 0:
        yield Notice("limit-zero", "a limit of 0 asks for no results; give 1 or more to see some")
        return
    ranked = len(ranking.hits) + sum(map(len, dropped_by(ranking.dropped, _CUT)))
    if not ranked or query.offset + query.limit <= ranked:
        return
    is_cut = _is_pool_full(retrieved)
    if query.offset >= ranked or is_cut:
        yield Notice("past-the-end", _ending(query.offset, ranked) + (_cut_at(retrieved) if is_cut else ""))


def _ending(offset: int, ranked: int) -> str:
    last = f"there {which(ranked, 'is', 'are')} {counted(ranked, 'result')}"
    asked = f", and the page asked for begins at {offset + 1}" if offset >= ranked else ""
    return f"{last} for this question{asked}"


def _cut_at(retrieved: Retrieved) -> str:
    pool = retrieved.recipe.plan.pool
    return f"; each way of searching brings {counted(pool, 'source')} at most: narrow the question to see others"


def _is_pool_full(retrieved: Retrieved) -> bool:
    """Tell whether a run brought as many sources as it may, so that there may be more behind."""
    memories, pool = retrieved.context.memories, retrieved.recipe.plan.pool
    return any(len(run.ids) >= pool and len(set(origins_of(memories, run.ids))) >= pool for run in retrieved.runs)
