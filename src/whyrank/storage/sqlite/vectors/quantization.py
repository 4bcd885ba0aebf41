"""Quantization of vectors, for a preselection among all of them.

int8 codes read a quarter of the bytes; signs are one bit each, compared by Hamming distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..doc_values import Flags, Floats, Integers, grow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ....protocols import Vector
    from ..postings.kernel import Kernel

# Maximum number of candidates selected by codes; with more, whole vectors are compared: a tenth of all, or a few.
CHOSEN_SHARE, CHOSEN_FEW = 10, 1_000


@dataclass(frozen=True, eq=False)
class Codes:
    """int8 codes of each vector, their scale, and the distance of the decoded row from the vector."""

    values: NDArray[np.int8]
    scales: NDArray[np.float32]
    errors: NDArray[np.float32]

    @cached_property
    def reach(self) -> float:
        """Return the largest distance of any vector from its codes."""
        return float(self.errors.max(initial=0.0))

    @cached_property
    def step(self) -> float:
        """Return the largest scale."""
        return float(self.scales.max(initial=0.0))

    @property
    def nbytes(self) -> int:
        """Return the memory of the arrays, in bytes."""
        return self.values.nbytes + self.scales.nbytes + self.errors.nbytes

    def may_be_nearest(
        self, kernel: Kernel, vector: Vector, mask: Flags | None, wanted: int
    ) -> tuple[Integers, float] | None:
        """Return the places that may be among the nearest, and the cosine above which they are complete.

        None if codes cannot decide: too many are too close to each other, or a vector has no numbers.
        """
        fits = vector.dtype == np.float32 and vector.shape == self.values.shape[1:]
        if not fits or not self.reach < np.inf:
            return None
        places = np.empty(max(CHOSEN_FEW, 2 * wanted, len(self.scales) // CHOSEN_SHARE), np.int64)
        question = np.ascontiguousarray(vector)
        count, floor = kernel.nearest(self.values, self.scales, question, places, mask, wanted, self.reach, self.step)
        return (places[:count], floor) if count >= 0 else None


def codes_of(
    kernel: Kernel, vectors: NDArray[np.float32], known: Codes | None, changed: Iterable[tuple[int, int]], is_new: bool
) -> Codes:
    """Return the codes of vectors: the known ones, computed again in the changed ranges.

    Where all changes are new vectors, spare capacity is shared with readers of the known ones.
    """
    if known is None or known.values.shape[1:] != vectors.shape[1:]:
        known, changed = None, [(0, len(vectors))]
    elif not is_new:
        known = Codes(known.values.copy(), known.scales.copy(), known.errors.copy())
    codes = Codes(
        grow(known.values if known else None, vectors.shape, np.int8),
        grow(known.scales if known else None, vectors.shape[:1], np.float32),
        grow(known.errors if known else None, vectors.shape[:1], np.float32),
    )
    for begin, end in changed:
        kernel.coded(vectors[begin:end], codes.values[begin:end], codes.scales[begin:end], codes.errors[begin:end])
    return codes


FAR = 2**16 - 1  # signs: more than any vector has
_WORD_BITS = 64
_LARGEST_SUM = 2**24 - 1  # up to here float32 represents every whole number

Signs = NDArray[np.uint64]  # a row per 64 dimensions, a column per memory: one pass per row of bits, all in order


def signs_of(vectors: NDArray[np.float32]) -> Signs:
    """Return the signs of vectors, column by column; dimensions beyond the last count as negative everywhere."""
    count, dimensions = vectors.shape
    bits = np.packbits(vectors > 0, axis=1, bitorder="little")
    words = -(-dimensions // _WORD_BITS)
    padded = np.zeros((count, words * 8), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(padded.view("<u8").T)


class Apart(NamedTuple):
    """Hamming distance of each memory's signs from the query's, and the number of memories by distance.

    Places that are masked out are FAR, and not counted.
    """

    distances: NDArray[np.uint16]
    counts: Integers


def apart(signs: Signs, question: Signs, mask: Flags | None, kernel: Kernel) -> Apart:
    """Compute the Hamming distances of all memories' signs from the query's."""
    counts = np.zeros(len(question) * _WORD_BITS + 1, np.int64)
    distances = np.empty(signs.shape[1], np.uint16)
    kernel.apart(signs, question, distances, counts, mask)
    return Apart(distances, counts)


def nearest(found: Sequence[Apart], wanted: int) -> list[Integers]:
    """Return the places nearest by signs in each scope, `wanted` in all, with ties of the last."""
    reached = np.cumsum(np.add.reduce([own.counts for own in found]))
    farthest = int(np.searchsorted(reached, min(wanted, int(reached[-1]))))
    return [np.flatnonzero(own.distances <= farthest) for own in found]


def whole_numbers(vector: Vector) -> NDArray[np.int32]:
    """Return a query vector in integers: their sums are the same in any order, and exact in float32."""
    peak = float(np.abs(vector).max(initial=0.0))
    numbers = np.zeros(-(-len(vector) // _WORD_BITS) * _WORD_BITS, np.int32)
    if 0.0 < peak < np.inf:
        numbers[: len(vector)] = np.rint(vector * (_LARGEST_SUM // len(vector) / peak))
    return numbers


def sums_under(signs: Signs, places: Integers, numbers: NDArray[np.int32], kernel: Kernel) -> Floats:
    """Return the sums of integers over the dimensions where the signs of some memories are positive."""
    sums = np.empty(len(places))
    kernel.under(signs, places, numbers, sums)
    return sums
