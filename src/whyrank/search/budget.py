"""A budget of tokens: whole memories, best first, as many as fit."""

from __future__ import annotations

from dataclasses import replace

from ..analysis.text import estimated_tokens
from ..hits import Hit, Ranking
from ..ranking.order import keep
from ..types import Notice
from ..wording import counted


def within_budget(ranking: Ranking, max_tokens: int | None) -> Ranking:
    """Drop the hits from the first one on that does not fit, and say so."""
    if max_tokens is None:
        return ranking
    left = max_tokens

    def reason(hit: Hit) -> str | None:
        nonlocal left
        needed = estimated_tokens(hit.memory.text)
        left = left - needed if left >= needed else -1
        return None if left >= 0 else f"about {counted(needed, 'token')}, and the budget of {max_tokens} is used up"

    kept = keep(ranking, "budget", reason)
    missing = len(ranking.hits) - len(kept.hits)
    if not missing:
        return kept
    notice = Notice(
        "budget",
        f"{counted(missing, 'more result does', 'more results do')} not fit into {counted(max_tokens, 'token')}",
    )
    return replace(kept, notices=(*kept.notices, notice))
