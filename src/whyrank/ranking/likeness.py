"""How like each other memories are: by their vectors, else by the words they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from ..columns import MemoryId
from ..hits import Context

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_WORD = 64  # bits that are counted at once


def likeness_between(ids: Sequence[MemoryId], context: Context) -> Floats:
    """Return how like each other these memories are, a row for each."""
    return (context.likeness or Comparison({}, {})).between(ids)


class Comparison:
    """How like each other memories are: by their vectors, else by the words they share; never below nothing.

    All are compared with all once, however often a pool is ranked.
    """

    def __init__(
        self, vectors: Mapping[MemoryId, NDArray[np.float32]], tokens: Mapping[MemoryId, frozenset[str]]
    ) -> None:
        self._vectors = vectors
        self._tokens = tokens
        self._ids = sorted({*vectors, *tokens})
        self._places = {identity: place for place, identity in enumerate(self._ids)}

    def between(self, ids: Sequence[MemoryId]) -> Floats:
        """Return how like each other these memories are, a row for each; what nothing is known of is like nothing."""
        import numpy as np

        if ids == self._ids:
            return self._compared
        known = [(place, self._places[key]) for place, key in enumerate(ids) if key in self._places]
        own, places = np.array(known, np.int64).reshape(-1, 2).T
        alike = self._compared[places[:, None], places]
        if len(known) == len(ids):
            return alike
        whole = np.zeros((len(ids), len(ids)))
        whole[own[:, None], own] = alike
        return whole

    @cached_property
    def _compared(self) -> Floats:
        """Return how like each other all memories are."""
        import numpy as np

        embedded = [identity in self._vectors for identity in self._ids]
        if all(embedded):  # as nearly always
            return _by_vectors([self._vectors[identity] for identity in self._ids])
        alike = _by_words([self._tokens.get(identity, _NO_WORDS) for identity in self._ids])
        places = np.flatnonzero(embedded)
        alike[places[:, None], places] = _by_vectors([self._vectors[self._ids[place]] for place in places.tolist()])
        return alike


def _by_vectors(vectors: Sequence[NDArray[np.float32]]) -> Floats:
    """Return cosines. Row by row, so that one depends on its two vectors alone and not on the company."""
    import numpy as np

    rows = np.array(vectors, np.float64)
    alike = np.zeros((len(rows), len(rows)))
    for place, row in enumerate(rows):
        np.vecdot(rows[place:], row, out=alike[place, place:])
    np.minimum(np.maximum(alike, 0.0, out=alike), 1.0, out=alike)
    return np.maximum(alike, alike.T)  # below the diagonal there is nothing yet


_NO_WORDS: frozenset[str] = frozenset()


def _by_words(texts: Sequence[frozenset[str]]) -> Floats:
    """Return the share of words that two texts both have (Jaccard); a text is a row of bits, one for each word.

    A word of one text alone needs no bit: it only makes the text longer.
    """
    import numpy as np

    held = Counter(chain.from_iterable(texts))
    numbers = {word: number for number, word in enumerate(word for word, texts in held.items() if texts > 1)}
    bits = np.zeros((len(texts), -(-len(numbers) // _WORD) * _WORD), np.bool_)
    for row, words in zip(bits, texts, strict=True):
        row[[numbers[word] for word in words if word in numbers]] = True
    rows = np.packbits(bits, axis=1).view(np.uint64)
    lengths = np.array([len(words) for words in texts], np.int64)
    alike = np.zeros((len(texts), len(texts)))
    for place, row in enumerate(rows):
        both = np.bitwise_count(rows & row).sum(axis=1, dtype=np.int64)
        either = lengths + lengths[place] - both
        np.divide(both, either, out=alike[place], where=either > 0)
    return alike
