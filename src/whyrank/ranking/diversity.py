"""Diversity: of results that say the same, the first counts and the rest step back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ..errors import ConfigError
from ..hits import Context, Hit, Ranking
from ..trail import Step
from .normalisers import MinMax
from .order import in_order
from .stages import WINDOW_LIFT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


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
        hits = list(ranking.hits)
        if not hits:
            return ranking
        placed = [hits[place].after(self._step(gain)) for place, gain in self._placed(hits, context)]
        return Ranking(in_order(placed), ranking.dropped, ranking.notices)

    def _placed(self, hits: Sequence[Hit], context: Context) -> Iterator[tuple[int, Gain]]:
        """Place the best, see how like it the others are, place the best of these, and so on."""
        import numpy as np

        relevance = np.array(_relevance(hits))
        tiers = np.array([hit.tier for hit in hits])
        likeness = Likeness(hits, context)
        most, like = np.zeros(len(hits)), np.full(len(hits), -1)
        gains = self.lambda_ * relevance
        left = np.ones(len(hits), np.bool_)
        for _ in hits:
            able = np.flatnonzero(left & (tiers == tiers[left].max()))
            ties = able[gains[able] == gains[able].max()].tolist()
            best = min(ties, key=lambda i: hits[i].memory.content_key) if len(ties) > 1 else ties[0]
            nearest = hits[like[best]].id if like[best] >= 0 else ""
            yield best, Gain(float(gains[best]), float(relevance[best]), float(most[best]), nearest)
            left[best] = False
            alike = likeness.to(best)
            nearer = alike > most
            most[nearer], like[nearer] = alike[nearer], best
            gains = self.lambda_ * relevance - (1 - self.lambda_) * most

    def _step(self, gain: Gain) -> Step:
        told = f"{self.lambda_:g} × relevance {gain.relevance:.4f}"
        if gain.most_like:
            told += f" − {1 - self.lambda_:g} × {gain.likeness:.4f}, most like {gain.most_like}"
        return Step("mmr", "set", gain.value, told)


def _relevance(hits: Sequence[Hit]) -> list[float]:
    """Scale scores from the worst to the best; those a reranker gave are on a scale of their own."""
    scaled: dict[int, float] = {}
    windows = [hit.tier // WINDOW_LIFT for hit in hits]
    for window in set(windows):
        inside = [place for place, own in enumerate(windows) if own == window]
        scaled |= zip(inside, MinMax()([hits[place].score for place in inside], []), strict=True)
    return [scaled[place] for place in range(len(hits))]


class Gain(NamedTuple):
    """What a hit adds to those placed before it."""

    value: float
    relevance: float
    likeness: float
    most_like: str


class Likeness:
    """How like each other hits are: by their vectors, else by the words they share; never below nothing."""

    def __init__(self, hits: Sequence[Hit], context: Context) -> None:
        import numpy as np

        self._vectors = [context.vectors.get(hit.id) for hit in hits]
        self._tokens = [context.tokens.get(hit.id, frozenset()) for hit in hits]
        self._embedded = np.array([vector is not None for vector in self._vectors])
        known = [vector for vector in self._vectors if vector is not None]
        self._rows: Floats = np.array(known, np.float64) if known else np.zeros((0, 0))

    def to(self, place: int) -> Floats:
        """Return how like one hit each is."""
        import numpy as np

        own = self._vectors[place]
        alike = np.zeros(len(self._vectors))
        compared = self._embedded if own is not None else np.zeros_like(self._embedded)
        for i in np.flatnonzero(~compared).tolist():
            alike[i] = _shared(self._tokens[place], self._tokens[i])
        if own is not None:
            # Row by row, so that a cosine depends on its two vectors alone and not on the company.
            alike[compared] = np.maximum(0.0, np.vecdot(self._rows, own.astype(np.float64)))
        return alike


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of words that both have (Jaccard)."""
    either = len(one | other)
    return len(one & other) / either if either else 0.0
