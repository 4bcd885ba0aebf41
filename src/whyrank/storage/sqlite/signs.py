"""Vectors by the signs of their numbers: one bit each, a coarse first look at many rows (Hamming distance)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernel import Kernel
from ...ports import Vector
from .catalogue import Flags, Floats, Integers

FAR = 2**16 - 1  # signs: more than any vector has
_WORD_BITS = 64
_LARGEST_SUM = 2**24 - 1  # up to here float32 knows every whole number

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
    """In how many dimensions each memory's sign differs from the question's, and how many memories differ in so many.

    What may not be found is FAR, and not counted.
    """

    distances: NDArray[np.uint16]
    counts: Integers


def apart(signs: Signs, question: Signs, mask: Flags | None, kernel: Kernel | None) -> Apart:
    """Compare the signs of all memories with the question's."""
    counts = np.zeros(len(question) * _WORD_BITS + 1, np.int64)
    if kernel is not None:
        distances = np.empty(signs.shape[1], np.uint16)
        kernel.apart(signs, question, distances, counts, mask)
        return Apart(distances, counts)
    distances = np.zeros(signs.shape[1], np.uint16)
    for word, asked in zip(signs, question[:, 0], strict=True):
        distances += np.bitwise_count(word ^ asked)
    counts += np.bincount(distances if mask is None else distances[mask], minlength=len(counts))
    if mask is not None:
        distances[~mask] = FAR
    return Apart(distances, counts)


def nearest(found: Sequence[Apart], wanted: int) -> list[Integers]:
    """Return the places nearest by signs on each shelf, `wanted` in all and every one that is as near as the last."""
    reached = np.cumsum(np.add.reduce([own.counts for own in found]))
    farthest = int(np.searchsorted(reached, min(wanted, int(reached[-1]))))
    return [np.flatnonzero(own.distances <= farthest) for own in found]


def whole_numbers(vector: Vector) -> NDArray[np.int32]:
    """Return a question's numbers in whole ones: sums of them are the same in any order, and exact in float32."""
    peak = float(np.abs(vector).max(initial=0.0))
    numbers = np.zeros(-(-len(vector) // _WORD_BITS) * _WORD_BITS, np.int32)
    if 0.0 < peak < np.inf:
        numbers[: len(vector)] = np.rint(vector * (_LARGEST_SUM // len(vector) / peak))
    return numbers


def sums_under(signs: Signs, places: Integers, numbers: NDArray[np.int32], kernel: Kernel | None) -> Floats:
    """Return what whole numbers add up to where the signs of some memories are positive."""
    if kernel is not None:
        sums = np.empty(len(places))
        kernel.under(signs, places, numbers, sums)
        return sums
    columns = np.ascontiguousarray(signs[:, places].T)
    bits = np.unpackbits(columns.view(np.uint8), axis=1, bitorder="little")
    under: Floats = np.vecdot(bits.astype(np.float32), numbers.astype(np.float32)).astype(np.float64)
    return under
