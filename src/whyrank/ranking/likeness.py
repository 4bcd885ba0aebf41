"""How like each other memories are: by their vectors, else by the words they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from ..columns import MemoryId
from ..hits import Alike, Context
from ..kernel import COMPILED, Compared, Kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

_WORD = 64  # bits that are counted at once
_NO_WORDS: frozenset[str] = frozenset()


def likeness_between(ids: Sequence[MemoryId], context: Context) -> Alike:
    """Return how like each other these memories are."""
    return (context.likeness or Comparison({}, {})).between(ids)


class Comparison:
    """How like each other memories are: by their vectors, else by the words they share; never below nothing.

    Each memory is compared with another once, however often a pool is ranked.
    """

    def __init__(
        self,
        vectors: Mapping[MemoryId, NDArray[np.float32]],
        tokens: Mapping[MemoryId, frozenset[str]],
        kernel: Kernel | None = COMPILED,
    ) -> None:
        self._vectors = vectors
        self._tokens = tokens
        self._kernel = kernel
        self._ids = sorted({*vectors, *tokens})
        self._places = {identity: place for place, identity in enumerate(self._ids)}
        self._known: dict[int, Floats] = {}

    def between(self, ids: Sequence[MemoryId]) -> Some:
        """Return how like each other these memories are; what nothing is known of is like nothing."""
        import numpy as np

        nowhere = len(self._ids)
        return Some(self, np.array([self._places.get(identity, nowhere) for identity in ids], np.int64))

    def among(self, place: int, others: Integers) -> Floats:
        """Return how like one memory others are; what is beyond the last is what nothing is known of."""
        import numpy as np

        if self._kernel is None:
            return self._row(place)[others]
        alike = np.empty(len(others))
        self._kernel.alike(self.compared, place, others, alike)
        return alike

    @cached_property
    def square(self) -> Floats:
        """Return the rows of all; two of them are compared once and not twice."""
        import numpy as np

        count = len(self._ids)
        alike = np.zeros((count + 1, count + 1))
        for place in range(count):
            alike[place, place:count] = self.among(place, np.arange(place, count))
        return np.maximum(alike, alike.T)  # below the diagonal there is nothing yet

    @property
    def kernel(self) -> Kernel | None:
        """Return what compares, if it is compiled."""
        return self._kernel

    @cached_property
    def compared(self) -> Compared:
        """Return all that comparing takes, with room for what it gives."""
        import numpy as np

        count = len(self._ids)
        which = np.where(self._embedded, self._embedded.cumsum() - 1, -1)
        texts, lengths = np.empty((count, 0), np.uint64), np.zeros(count, np.int64)
        if self._texts is not None:
            texts, lengths = self._texts.rows, self._texts.lengths
        return Compared(self._rows, which, texts, lengths, np.empty((count, count)), np.zeros((count, count), np.bool_))

    def _row(self, place: int) -> Floats:
        """Return how like one memory all are, and last what nothing is known of."""
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
    """How like some memories of a comparison are to each other."""

    def __init__(self, comparison: Comparison, members: Integers) -> None:
        self._comparison = comparison
        self._members = members

    def __getitem__(self, place: int, /) -> Floats:
        return self._comparison.among(int(self._members[place]), self._members)

    def among(self, place: int, others: Sequence[int]) -> Floats:
        """Return how like one of them some others are."""
        return self._comparison.among(int(self._members[place]), self._members[others])

    def square(self) -> Floats:
        """Return the rows of all."""
        return self._comparison.square[self._members[:, None], self._members]

    @property
    def compiled(self) -> Compiled | None:
        """Return by what the kernel places them, if there is one."""
        kernel = self._comparison.kernel
        return Compiled(kernel, self._comparison.compared, self._members) if kernel else None


class Compiled(NamedTuple):
    """A kernel, whom it compares, and which of these stands at each place of a pool."""

    kernel: Kernel
    compared: Compared
    members: Integers


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
