"""Reranking of the top hits by a model that reads the query and a memory together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import ConfigError
from ..protocols import Reranker
from ..types.columns import MemoryId
from ..types.results import Context, Hit, Ranking
from ..types.trail import Step
from .ranking import in_order
from .stages import WINDOW_LIFT

WINDOW = 50  # memories; a small cross-encoder reads so many in about half a second of CPU
DEADLINE_MS = 1_000.0
MAX_DEADLINE_MS = 86_400_000.0  # a day


@dataclass(frozen=True)
class Rerank:
    """Order of the `top` first hits by a reranker's scores; names stay first, the window above the rest.

    The reranker runs before ranking, and its scores are in the context. Without them (it was late, it failed) the order
    stays as it is.
    """

    reranker: Reranker | None = None
    top: int = WINDOW
    deadline_ms: float = DEADLINE_MS

    def __post_init__(self) -> None:
        if self.top < 1 or not 0 < self.deadline_ms <= MAX_DEADLINE_MS:
            raise ConfigError(
                f"rerank: top {self.top}, deadline {self.deadline_ms} ms",
                "give 1 or more, and a deadline of at most a day",
            )

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Set the score of reranked hits to the reranker's, and lift them above the others."""
        opinions = context.opinions
        if not opinions:
            return ranking
        read = [hit.id for hit in ranking.hits if hit.id in opinions]
        scores = _falling(sorted(read, key=lambda key: -opinions[key]), opinions)
        places = {key: place for place, key in enumerate(scores, 1)}

        def opined(hit: Hit) -> Hit:
            if hit.id not in scores:
                return hit
            told = f"{places[hit.id]} of {len(places)} by {self.reranker!r}"
            return hit.after(Step("rerank", "set", scores[hit.id], told)).after(
                Step("rerank", "lift", WINDOW_LIFT, "what was read stands above what was not")
            )

        return Ranking(in_order(map(opined, ranking.hits)), ranking.dropped, ranking.notices)


def _falling(ordered: Sequence[MemoryId], opinions: Mapping[MemoryId, float]) -> dict[MemoryId, float]:
    """Return the scores, ties separated by the least float step: hits of equal score keep their order."""
    scores: dict[MemoryId, float] = {}
    above = math.inf
    for identity in ordered:
        above = scores[identity] = min(opinions[identity], math.nextafter(above, -math.inf))
    return scores
