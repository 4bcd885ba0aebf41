"""Diversity: MMR over vectors or token sets."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..errors import ConfigError
from ..types.results import Alike, ContentKey, Context, Hits, Ranking
from ..types.trail import WINDOW_LIFT, Step, Trail

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ..types.memory import MemoryId

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]


_WORD = 64  # bits that are counted at once
_NO_WORDS: frozenset[str] = frozenset()


def likeness_between(ids: Sequence[MemoryId], context: Context) -> Alike:
    """Return the pairwise similarities of these memories."""
    return (context.likeness or Similarity({}, {})).between(ids)


class Similarity:
    """Pairwise similarity of memories: by vectors, else by shared words; never below 0.

    Each memory is compared with another once, however often a pool is ranked.
    """

    def __init__(
        self,
        vectors: Mapping[MemoryId, NDArray[np.float32]],
        tokens: Mapping[MemoryId, frozenset[str]],
    ) -> None:
        self._vectors = vectors
        self._tokens = tokens
        self._ids = sorted({*vectors, *tokens})
        self._places = {identity: place for place, identity in enumerate(self._ids)}
        self._known: dict[int, Floats] = {}

    def between(self, ids: Sequence[MemoryId]) -> Some:
        """Return the pairwise similarities of these memories; unknown ones have 0."""
        import numpy as np

        nowhere = len(self._ids)
        return Some(self, np.array([self._places.get(identity, nowhere) for identity in ids], np.int64))

    @cached_property
    def square(self) -> Floats:
        """Return the rows of all."""
        import numpy as np

        return np.array([self.row(place) for place in range(len(self._ids) + 1)])

    def row(self, place: int) -> Floats:
        """Return the similarities of all memories to one; the last entry is for unknown ones."""
        import numpy as np

        known = self._known.get(place)
        if known is None:
            known = np.zeros(len(self._ids) + 1)
            if place < len(self._ids):
                known[:-1] = self._cosines(place) if self._texts is None else self._texts.row(place)
                if self._texts is not None and self._embedded[place]:
                    known[:-1][self._embedded] = self._cosines(int(np.count_nonzero(self._embedded[:place])))
            self._known[place] = known
        return known

    def _cosines(self, row: int) -> Floats:
        # Products of float32 are exact in float64, and the sum of each row, unlike that of a product of matrices, has
        # an order of its own: a cosine depends on two vectors alone and not on the company.
        import numpy as np

        vectors = self._doubled
        cosines: Floats = np.add.reduce(vectors * vectors[row], axis=1)
        bounded: Floats = np.minimum(np.maximum(cosines, 0.0, out=cosines), 1.0, out=cosines)
        return bounded

    @cached_property
    def _embedded(self) -> NDArray[np.bool_]:
        import numpy as np

        if len(self._vectors) == len(self._ids):
            return np.ones(len(self._ids), np.bool_)
        return np.array([identity in self._vectors for identity in self._ids], np.bool_)

    @cached_property
    def _rows(self) -> NDArray[np.float32]:
        """Return the vectors of those that have one, a row for each."""
        import numpy as np

        vectors = [self._vectors[identity] for identity in self._ids if identity in self._vectors]
        return np.array(vectors, np.float32).reshape(len(vectors), -1) if vectors else np.empty((0, 0), np.float32)

    @cached_property
    def _doubled(self) -> Floats:
        import numpy as np

        return self._rows.astype(np.float64)

    @cached_property
    def _texts(self) -> _Texts | None:
        """Return the words of all, or nothing where all have vectors, as they nearly always have."""
        if len(self._vectors) == len(self._ids):
            return None
        return _Texts([self._tokens.get(identity, _NO_WORDS) for identity in self._ids])


class Some:
    """Pairwise similarity of a subset of a comparison's memories."""

    def __init__(self, comparison: Similarity, members: Integers) -> None:
        self._comparison = comparison
        self._members = members

    def __getitem__(self, place: int, /) -> Floats:
        return self._comparison.row(int(self._members[place]))[self._members]

    def square(self) -> Floats:
        """Return the rows of all."""
        return self._comparison.square[self._members[:, None], self._members]


class _Texts:
    """The words of texts as rows of bits, one for each word, so that those of all are compared at once."""

    def __init__(self, texts: Sequence[frozenset[str]]) -> None:
        import numpy as np

        held = Counter(chain.from_iterable(texts))
        shared = (word for word, count in held.items() if count > 1)  # a word of one text alone only makes it longer
        numbers = {word: number for number, word in enumerate(shared)}
        bits = np.zeros((len(texts), -(-len(numbers) // _WORD) * _WORD), np.bool_)
        for row, words in zip(bits, texts, strict=True):
            row[[numbers[word] for word in words if word in numbers]] = True
        self.rows = np.packbits(bits, axis=1).view(np.uint64)
        self.lengths = np.array([len(words) for words in texts], np.int64)

    def row(self, place: int) -> Floats:
        """Return the share of the words of each text and one that both have (Jaccard)."""
        import numpy as np

        both = np.bitwise_count(self.rows & self.rows[place]).sum(axis=1, dtype=np.int64)
        both[place] = self.lengths[place]  # with itself it has all in common, words that have no bit as well
        either = self.lengths + self.lengths[place] - both
        shares: Floats = np.divide(both, either, out=np.zeros(len(both)), where=either > 0)
        return shares


class _Rows(Protocol):
    def __getitem__(self, place: int, /) -> Floats: ...


TieBreak = ContentKey | int


@dataclass(frozen=True)
class MMR:
    """Maximal marginal relevance: λ · relevance − (1 − λ) · similarity to the nearest hit placed before.

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
        """Place hits until all `wanted` are placed (None: all hits): later placements move none before them.

        No gain is above the one before it, and of equals the first by content is placed first: this is the order.
        """
        import numpy as np

        hits = Hits.of(ranking.hits)
        if not len(hits):
            return ranking
        ids, content_keys = hits.ids, hits.candidates.content_keys
        tiers, relevance = np.array(hits.tiers, np.int64), relevance_of(hits)
        alike = likeness_between(ids, context)
        missing = {*range(len(hits))} if wanted is None else _standing_for(hits, wanted)
        placed: list[int] = []
        gains: list[float] = []
        picks = self.placed(tiers, self.lambda_ * relevance, alike, lambda number: content_keys[hits.places[number]])
        for number, gain in picks:
            if not missing:
                break
            missing.discard(number)
            placed.append(number)
            gains.append(gain)

        def trail(rank: int) -> Trail:
            told = f"{self.lambda_:g} × relevance {relevance[placed[rank]]:.4f}"
            if rank:
                before = alike[placed[rank]][placed[:rank]]
                first = int(before.argmax())  # of several the first
                if before[first] > 0:
                    told += f" − {1 - self.lambda_:g} × {before[first]:.4f}, most like {ids[placed[first]]}"
            return (*hits.trail(placed[rank]), Step("mmr", "set", gains[rank], told))

        shown = hits.pick(placed)
        return replace(ranking, hits=Hits(shown.candidates, shown.places, shown.tiers, gains, trail, shown.beside))

    def placed(
        self,
        tiers: NDArray[np.int64],
        worth: Floats,
        likeness: _Rows,
        tie_break: Callable[[int], TieBreak],
    ) -> Iterator[Pick]:
        """Yield picks lazily: place the best, compare it with the others, place the best of these, and so on.

        A worth of minus infinity is never placed.
        """
        import numpy as np

        others = 1 - self.lambda_
        placed: list[int] = []
        so_far, row = worth, np.empty(len(worth))
        for tier in sorted({*tiers.tolist()}, reverse=True):
            if placed:
                so_far = worth - others * np.max([likeness[place] for place in placed], axis=0)
            gains = np.where(tiers == tier, so_far, -np.inf)
            backwards = gains[::-1]
            while True:
                best = int(gains.argmax())
                gain = float(gains[best])
                if gain == -np.inf:
                    break
                if best != len(gains) - 1 - int(backwards.argmax()):
                    best = min(np.flatnonzero(gains == gain).tolist(), key=tie_break)
                yield Pick(best, gain)
                placed.append(best)
                np.subtract(worth, np.multiply(likeness[best], others, out=row), out=row)
                gains[best] = -np.inf
                np.minimum(gains, row, out=gains)


def relevance_of(hits: Hits) -> Floats:
    """Scale scores from the worst to the best; those a reranker gave are on a scale of their own."""
    import numpy as np

    scores = np.array(hits.scores, np.float64)
    windows = np.array(hits.tiers, np.int64) // WINDOW_LIFT
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


def _standing_for(hits: Hits, wanted: Collection[MemoryId]) -> set[int]:
    """Return the places of these memories, or of the chunks that represent their files."""
    ids = hits.candidates.ids
    above = {ids[place]: identity for identity, others in hits.beside.items() for place in others}
    standing = {above.get(identity, identity) for identity in wanted} | {*wanted}
    return {number for number, identity in enumerate(hits.ids) if identity in standing}


class Pick(NamedTuple):
    """Next hit to place, and its gain."""

    place: int
    gain: float
