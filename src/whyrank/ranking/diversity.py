"""Diversity: of results that say the same, the first counts and the rest step back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ..columns import MemoryId
from ..errors import ConfigError
from ..hits import Context, Hit, Ranking
from ..trail import Step
from .order import in_order
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
        return self.as_far_as(ranking, context, None)

    def as_far_as(self, ranking: Ranking, context: Context, wanted: Collection[MemoryId] | None) -> Ranking:
        """Place hits until all that are wanted stand, or all there are: what comes later moves none before it."""
        import numpy as np

        hits = list(ranking.hits)
        if not hits:
            return ranking
        likeness = likeness_between([hit.id for hit in hits], context)
        tiers = np.array([hit.tier for hit in hits], np.int64)
        relevance = relevance_of(tiers, np.array([hit.score for hit in hits], np.float64))
        picks = self.placed(tiers, relevance, likeness, lambda place: hits[place].memory.content_key)
        placed = [*picks] if wanted is None else _until(picks, _standing_for(hits, wanted))
        nearest = _nearest([pick.place for pick in placed], likeness)
        gains = [
            Gain(
                pick.gain, float(relevance[pick.place]), pick.likeness, hits[most_like].id if pick.likeness > 0 else ""
            )
            for pick, most_like in zip(placed, nearest, strict=True)
        ]
        found = [hits[pick.place].after(self._step(gain)) for pick, gain in zip(placed, gains, strict=True)]
        return Ranking(in_order(found), ranking.dropped, ranking.notices)

    def placed(
        self,
        tiers: NDArray[np.int64],
        relevance: Floats,
        likeness: Callable[[int], Floats],
        tie_break: Callable[[int], TieBreak],
    ) -> Iterator[Pick]:
        """Place the best, see how like it the others are, place the best of these, and so on as long as asked."""
        import numpy as np

        worth = self.lambda_ * relevance
        most, gains = np.zeros(len(worth)), np.empty(len(worth))
        for tier in sorted({*tiers.tolist()}, reverse=True):
            left = np.where(tiers == tier, worth, -np.inf)
            for _ in range(int(np.count_nonzero(tiers == tier))):
                np.subtract(left, np.multiply(most, 1 - self.lambda_, out=gains), out=gains)
                best = int(gains.argmax())
                if best != len(gains) - 1 - int(gains[::-1].argmax()):
                    best = min(np.flatnonzero(gains == gains[best]).tolist(), key=tie_break)
                yield Pick(best, float(gains[best]), float(most[best]))
                left[best] = -np.inf
                np.maximum(most, likeness(best), out=most)

    def _step(self, gain: Gain) -> Step:
        told = f"{self.lambda_:g} × relevance {gain.relevance:.4f}"
        if gain.most_like:
            told += f" − {1 - self.lambda_:g} × {gain.likeness:.4f}, most like {gain.most_like}"
        return Step("mmr", "set", gain.value, told)


def likeness_between(ids: Sequence[MemoryId], context: Context) -> Callable[[int], Floats]:
    """Return a function from the place of one of these memories to how like it each of them is."""
    return (context.likeness or Comparison({}, {})).between(ids)


def relevance_of(tiers: NDArray[np.int64], scores: Floats) -> Floats:
    """Scale scores from the worst to the best; those a reranker gave are on a scale of their own."""
    import numpy as np

    windows = tiers // WINDOW_LIFT
    scaled = np.ones(len(scores))
    for window in np.unique(windows) if windows.any() else [0]:
        inside = windows == window
        low, high = scores[inside].min(), scores[inside].max()
        half = high / 2 - low / 2  # half the reach, which cannot overflow, and is nothing between the smallest numbers
        if half > 0:
            scaled[inside] = np.clip((scores[inside] / 2 - low / 2) / half, 0.0, 1.0)
    return scaled


def _standing_for(hits: Sequence[Hit], wanted: Collection[MemoryId]) -> set[int]:
    """Return the places of these memories, or of the chunk that stands for their file."""
    return {
        place for place, hit in enumerate(hits) if hit.id in wanted or any(held.id in wanted for held in hit.beside)
    }


def _until(picks: Iterator[Pick], wanted: set[int]) -> list[Pick]:
    """Take picks as long as one that is wanted is still to come."""
    taken: list[Pick] = []
    while wanted:
        taken.append(next(picks))
        wanted = wanted - {taken[-1].place}
    return taken


def _nearest(placed: Sequence[int], likeness: Callable[[int], Floats]) -> list[int]:
    """Return for each place the most similar of those placed before it, of several the first."""
    import numpy as np

    if not placed:
        return []
    alike = np.array([likeness(place) for place in placed])[:, placed]
    before = np.where(np.triu(np.ones_like(alike, np.bool_), 1), alike, -1.0)
    return [placed[first] for first in before.argmax(axis=0).tolist()]


class Pick(NamedTuple):
    """Who is placed next, with what gain, and how like it is to the most similar one before it."""

    place: int
    gain: float
    likeness: float


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
        if own is not None and len(self._rows) == len(self._ids):  # as nearly always: all have a vector
            every: Floats = np.clip(np.vecdot(self._rows, self._rows[self._places[identity]]), 0.0, 1.0)
            return every
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
