"""How like each other memories are: by their vectors, else by the words they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from ..columns import MemoryId
from ..hits import Alike, Context

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_WORD = 64  # bits that are counted at once
_NO_WORDS: frozenset[str] = frozenset()


def likeness_between(ids: Sequence[MemoryId], context: Context) -> Alike:
    """Return how like each other these memories are."""
    return (context.likeness or Comparison({}, {})).between(ids)


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

    def between(self, ids: Sequence[MemoryId]) -> _Some:
        """Return how like each other these memories are; what nothing is known of is like nothing."""
        if ids == self._ids:
            return _Some(self, range(len(ids)), is_whole=True)
        nowhere = len(self._ids)
        return _Some(self, [self._places.get(identity, nowhere) for identity in ids])

    def row(self, place: int) -> Floats:
        """Return how like one memory all are; the last is what nothing is known of."""
        import numpy as np

        known = self._known.get(place)
        if known is None:
            known = np.zeros(len(self._ids) + 1)
            if place < len(self._ids):
                known[:-1] = self._compared(place)
            self._known[place] = known
        return known

    @cached_property
    def square(self) -> Floats:
        """Return the rows of all; where all have vectors, two of them are compared once and not twice."""
        import numpy as np

        count = len(self._ids)
        if self._texts is not None:
            return np.array([self.row(place) for place in range(count + 1)])
        alike = np.zeros((count + 1, count + 1))
        for place, row in enumerate(self._rows):
            np.vecdot(self._rows[place:], row, out=alike[place, place:count])
        alike = _within_bounds(alike)
        return np.maximum(alike, alike.T)  # below the diagonal there is nothing yet

    def _compared(self, place: int) -> Floats:
        # Vectors row by row, so that a cosine depends on two of them alone and not on the company.
        import numpy as np

        texts = self._texts
        if texts is None:
            return _within_bounds(np.vecdot(self._rows, self._rows[place]))
        alike = texts.row(place)
        if self._embedded[place]:
            own = self._rows[np.count_nonzero(self._embedded[:place])]
            alike[self._embedded] = _within_bounds(np.vecdot(self._rows, own))
        return alike

    @cached_property
    def _embedded(self) -> NDArray[np.bool_]:
        import numpy as np

        return np.array([identity in self._vectors for identity in self._ids], np.bool_)

    @cached_property
    def _rows(self) -> Floats:
        import numpy as np

        return np.array([self._vectors[identity] for identity in self._ids if identity in self._vectors], np.float64)

    @cached_property
    def _texts(self) -> _Texts | None:
        """Return the words of all, or nothing where all have vectors, as they nearly always have."""
        if len(self._vectors) == len(self._ids):
            return None
        return _Texts([self._tokens.get(identity, _NO_WORDS) for identity in self._ids])


def _within_bounds(cosines: Floats) -> Floats:
    """Cut cosines to 0 … 1, in place."""
    import numpy as np

    bounded: Floats = np.minimum(np.maximum(cosines, 0.0, out=cosines), 1.0, out=cosines)
    return bounded


class _Some:
    """How like some memories of a comparison are to each other."""

    def __init__(self, comparison: Comparison, places: Sequence[int], is_whole: bool = False) -> None:
        import numpy as np

        self._comparison = comparison
        self._places = np.array(places, np.int64)
        self._is_whole = is_whole

    def __getitem__(self, place: int, /) -> Floats:
        row = self._comparison.row(int(self._places[place]))
        return row[:-1] if self._is_whole else row[self._places]

    def square(self) -> Floats:
        """Return the rows of all."""
        if self._is_whole:
            return self._comparison.square[:-1, :-1]
        return self._comparison.square[self._places[:, None], self._places]


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
        self._rows = np.packbits(bits, axis=1).view(np.uint64)
        self._lengths = np.array([len(words) for words in texts], np.int64)

    def row(self, place: int) -> Floats:
        """Return the share of the words of each text and one that both have (Jaccard)."""
        import numpy as np

        both = np.bitwise_count(self._rows & self._rows[place]).sum(axis=1, dtype=np.int64)
        both[place] = self._lengths[place]  # with itself it has all in common, words that have no bit as well
        either = self._lengths + self._lengths[place] - both
        shares: Floats = np.divide(both, either, out=np.zeros(len(both)), where=either > 0)
        return shares
