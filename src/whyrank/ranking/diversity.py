"""Diversity: of results that say the same, the first counts and the rest step back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ..columns import MemoryId
from ..errors import ConfigError
from ..hits import Context, Ranking
from ..trail import Step
from .likeness import likeness_between
from .lineup import Stepped, chosen, ids_of, scores_of, tiers_of
from .stages import WINDOW_LIFT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

TieBreak = tuple[str, int, str, MemoryId] | int


@dataclass(frozen=True)
class MMR:
    """Maximal marginal relevance: λ · relevance − (1 − λ) · likeness to the most similar hit placed before it.

    Carbonell and Goldstein 1998. Relevance is the score, scaled from the worst to the best of the pool; the gain
    becomes the score. No gain is above the one before it, so the order stays score order. Tiers stay above tiers.
    """

    lambda_: float = 0.7
    reads_likeness = True

    def __post_init__(self) -> None:
        if not 0 <= self.lambda_ <= 1:
            raise ConfigError(f"lambda_ is {self.lambda_}", "give a number from 0 (diversity) to 1 (relevance)")

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Give every hit its gain, over the whole pool, so that the limit changes nothing."""
        import numpy as np

        hits, ids = ranking.hits, ids_of(ranking.hits)
        if not ids:
            return ranking
        likeness = likeness_between(ids, context)
        tiers = np.array(tiers_of(hits), np.int64)
        relevance = relevance_of(tiers, np.array(scores_of(hits), np.float64))
        picks = self.placed(tiers, self.lambda_ * relevance, likeness, lambda place: hits[place].memory.content_key)
        places, gains = zip(*picks, strict=True)
        nearest, alike = _nearest(places, likeness)

        def step(index: int) -> Step:
            most_like = ids[nearest[index]] if alike[index] > 0 else ""
            return self._step(Gain(gains[index], float(relevance[places[index]]), alike[index], most_like))

        # No gain is above the one before it, and of equals the first by content was placed first: this is the order.
        return Ranking(Stepped(chosen(hits, places), "mmr", step), ranking.dropped, ranking.notices)

    def placed(
        self,
        tiers: NDArray[np.int64],
        worth: Floats,
        likeness: Floats,
        tie_break: Callable[[int], TieBreak],
    ) -> Iterator[tuple[int, float]]:
        """Place the best, see how like it the others are, place the best of these, and so on as long as asked.

        Yields places with their gains. A worth of minus infinity is never placed.
        """
        import numpy as np

        others = 1 - self.lambda_
        placed: list[int] = []
        so_far, row = worth, np.empty(len(worth))
        for tier in sorted({*tiers.tolist()}, reverse=True):
            if placed:
                so_far = worth - others * likeness[placed].max(axis=0)
            gains = np.where(tiers == tier, so_far, -np.inf)
            backwards = gains[::-1]
            while True:
                best = int(gains.argmax())
                gain = float(gains[best])
                if gain == -np.inf:
                    break
                if best != len(gains) - 1 - int(backwards.argmax()):
                    best = min(np.flatnonzero(gains == gain).tolist(), key=tie_break)
                yield best, gain
                placed.append(best)
                np.subtract(worth, np.multiply(likeness[best], others, out=row), out=row)
                gains[best] = -np.inf
                np.minimum(gains, row, out=gains)

    def _step(self, gain: Gain) -> Step:
        told = f"{self.lambda_:g} × relevance {gain.relevance:.4f}"
        if gain.most_like:
            told += f" − {1 - self.lambda_:g} × {gain.likeness:.4f}, most like {gain.most_like}"
        return Step("mmr", "set", gain.value, told)


def relevance_of(tiers: NDArray[np.int64], scores: Floats) -> Floats:
    """Scale scores from the worst to the best; those a reranker gave are on a scale of their own."""
    import numpy as np

    windows = tiers // WINDOW_LIFT
    if not windows.any():
        return _scaled(scores)
    scaled = np.ones(len(scores))
    for window in np.unique(windows):
        inside = windows == window
        scaled[inside] = _scaled(scores[inside])
    return scaled


def _scaled(scores: Floats) -> Floats:
    import numpy as np

    low, high = scores.min(), scores.max()
    half = high / 2 - low / 2  # half the reach, which cannot overflow, and is nothing between the smallest numbers
    if not half > 0:
        return np.ones(len(scores))
    shares: Floats = np.minimum(np.maximum((scores / 2 - low / 2) / half, 0.0), 1.0)
    return shares


def _nearest(placed: Sequence[int], likeness: Floats) -> tuple[list[int], list[float]]:
    """Return for each place the most similar of those placed before it, of several the first, and how like it is."""
    import numpy as np

    order = np.array(placed)
    before = np.triu(likeness[order[:, None], order], 1)
    first = before.argmax(axis=0)
    return order[first].tolist(), before[first, np.arange(len(order))].tolist()


class Gain(NamedTuple):
    """What a hit adds to those placed before it."""

    value: float
    relevance: float
    likeness: float
    most_like: str
