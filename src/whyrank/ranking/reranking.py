"""A second opinion on the head of the ranking, by whoever can read the question and a memory together."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..errors import ConfigError
from ..hits import Context, Hit, Ranking
from ..ports import Reranker
from ..trail import Step
from .order import in_order
from .stages import WINDOW_LIFT

WINDOW = 50  # memories; a small cross-encoder reads so many in about half a second of CPU
DEADLINE_MS = 1_000.0


@dataclass(frozen=True)
class Rerank:
    """Order the `top` first hits by a reranker's scores; names stay first, and the window stays above the rest.

    The reranker is asked before ranking, and its opinions are in the context. Without them (it was late, it failed)
    the order stays as it is.
    """

    reranker: Reranker | None = None
    top: int = WINDOW
    deadline_ms: float = DEADLINE_MS

    def __post_init__(self) -> None:
        if self.top < 1 or not 0 < self.deadline_ms < math.inf:
            raise ConfigError(
                f"rerank: top {self.top}, deadline {self.deadline_ms} ms", "give 1 or more, and a positive deadline"
            )

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Set the score of what was read to the reranker's, and lift it above what was not."""
        opinions = context.opinions
        if not opinions:
            return ranking
        places = {key: place for place, key in enumerate(sorted(opinions, key=lambda key: -opinions[key]), 1)}

        def opined(hit: Hit) -> Hit:
            if hit.id not in opinions:
                return hit
            told = f"{places[hit.id]} of {len(places)} by {self.reranker!r}"
            return hit.after(Step("rerank", "set", opinions[hit.id], told)).after(
                Step("rerank", "lift", WINDOW_LIFT, "what was read stands above what was not")
            )

        return Ranking(in_order(map(opined, ranking.hits)), ranking.dropped, ranking.notices)
