"""Diversity: of results that say the same, the first counts and the rest step back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ..columns import MemoryId
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
        likeness = (context.likeness or Comparison({}, {})).between([hit.id for hit in hits])
        most, like = np.zeros(len(hits)), np.full(len(hits), -1)
        for tier in sorted({hit.tier for hit in hits}, reverse=True):
            left = np.array([hit.tier == tier for hit in hits])
            while left.any():
                gains = np.where(left, self.lambda_ * relevance - (1 - self.lambda_) * most, -np.inf)
                ties = np.flatnonzero(gains == gains.max()).tolist()
                best = min(ties, key=lambda i: hits[i].memory.content_key) if len(ties) > 1 else ties[0]
                nearest = hits[like[best]].id if like[best] >= 0 else ""
                yield best, Gain(float(gains[best]), float(relevance[best]), float(most[best]), nearest)
                left[best] = False
                alike = likeness(best)
                like[alike > most] = best
                np.maximum(most, alike, out=most)

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


class Comparison:
    """How like each other memories are: by their vectors, else by the words they share; never below nothing.

    Each memory is compared with the others once, however often a pool is ranked.
    """

    def __init__(
        self, vectors: Mapping[MemoryId, NDArray[np.float32]], tokens: Mapping[MemoryId, frozenset[str]]
    ) -> None:
        self._vectors = vectors
        self._tokens = tokens
        self._ids = sorted({*vectors, *tokens})
        self._places = {identity: place for place, identity in enumerate(self._ids)}
        self._known: dict[int, Floats] = {}

    def between(self, ids: Sequence[MemoryId]) -> Callable[[int], Floats]:
        """Return a function from the place of one of these memories to how like it each of them is."""
        import numpy as np

        nowhere = len(self._ids)
        places = np.array([self._places.get(identity, nowhere) for identity in ids], np.int64)
        return lambda place: self._row(int(places[place]))[places]

    def _row(self, place: int) -> Floats:
        """Return how like one memory all are; the last is what nothing is known of."""
        import numpy as np

        known = self._known.get(place)
        if known is None:
            known = self._known[place] = np.zeros(len(self._ids) + 1)
            if place < len(self._ids):
                known[:-1] = self._compared(self._ids[place])
        return known

    def _compared(self, identity: MemoryId) -> Floats:
        import numpy as np

        own, words = self._vectors.get(identity), self._tokens.get(identity, _NO_WORDS)
        alike = np.zeros(len(self._ids))
        by_vector = self._embedded if own is not None else np.zeros_like(self._embedded)
        for i in np.flatnonzero(~by_vector).tolist():
            alike[i] = _shared(words, self._tokens.get(self._ids[i], _NO_WORDS))
        if own is not None:
            # Row by row, so that a cosine depends on its two vectors alone and not on the company.
            alike[by_vector] = np.clip(np.vecdot(self._rows, own.astype(np.float64)), 0.0, 1.0)
        return alike

    @cached_property
    def _embedded(self) -> NDArray[np.bool_]:
        import numpy as np

        return np.array([identity in self._vectors for identity in self._ids], np.bool_)

    @cached_property
    def _rows(self) -> Floats:
        import numpy as np

        return np.array([self._vectors[identity] for identity in self._ids if identity in self._vectors], np.float64)


_NO_WORDS: frozenset[str] = frozenset()


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of words that both have (Jaccard)."""
    either = len(one | other)
    return len(one & other) / either if either else 0.0
