"""Vectors by the signs of their numbers: one bit each, a coarse first look at many rows (Hamming distance)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .catalogue import Flags, Integers

_WORD_BITS = 64

Signs = NDArray[np.uint64]  # a row per 64 dimensions, a column per memory: one pass per row of bits, all in order


def signs_of(vectors: NDArray[np.float32]) -> Signs:
    """Return the signs of vectors, column by column; dimensions beyond the last count as negative everywhere."""
    count, dimensions = vectors.shape
    bits = np.packbits(vectors > 0, axis=1, bitorder="little")
    words = -(-dimensions // _WORD_BITS)
    padded = np.zeros((count, words * 8), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(padded.view("<u8").T)


def distances(signs: Signs, question: Signs) -> NDArray[np.uint16]:
    """Return in how many dimensions each memory's sign differs from the question's."""
    apart = np.zeros(signs.shape[1], np.uint16)
    for word, asked in zip(signs, question[:, 0], strict=True):
        apart += np.bitwise_count(word ^ asked)
    return apart


def nearest(apart: Sequence[NDArray[np.uint16]], allowed: Sequence[Flags | None], wanted: int) -> list[Integers]:
    """Return the places nearest by signs on each shelf, `wanted` in all and every one that is as near as the last."""
    counts = np.zeros(1, np.int64)
    for distance, mask in zip(apart, allowed, strict=True):
        here = np.bincount(distance if mask is None else distance[mask])
        size = max(len(counts), len(here))
        counts = np.pad(counts, (0, size - len(counts))) + np.pad(here, (0, size - len(here)))
    farthest = int(np.searchsorted(np.cumsum(counts), min(wanted, int(counts.sum()))))
    return [
        np.flatnonzero(distance <= farthest if mask is None else (distance <= farthest) & mask)
        for distance, mask in zip(apart, allowed, strict=True)
    ]
