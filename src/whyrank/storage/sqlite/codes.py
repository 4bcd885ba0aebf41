"""Vectors as small whole numbers beside themselves: a first look at all of them that reads a quarter of the bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...kernel import Kernel
from ...ports import Vector
from .catalogue import Flags, Integers
from .rooms import roomy

# How many may be chosen by their codes before whole vectors are compared at once: a tenth of all, or a few.
CHOSEN_SHARE, CHOSEN_FEW = 10, 1_000


@dataclass(frozen=True, eq=False)
class Codes:
    """A row of codes for each vector, what one is worth in it, and how far the row is from the vector."""

    values: NDArray[np.int8]
    scales: NDArray[np.float32]
    errors: NDArray[np.float32]

    @cached_property
    def reach(self) -> float:
        """Return how far any vector is from its codes."""
        return float(self.errors.max(initial=0.0))

    @cached_property
    def step(self) -> float:
        """Return the most that one is worth."""
        return float(self.scales.max(initial=0.0))

    @property
    def nbytes(self) -> int:
        """Return how much memory they hold."""
        return self.values.nbytes + self.scales.nbytes + self.errors.nbytes

    def may_be_nearest(
        self, kernel: Kernel, vector: Vector, mask: Flags | None, wanted: int
    ) -> tuple[Integers, float] | None:
        """Return the places that may be among the nearest, and the cosine from which on all are there.

        None if codes cannot tell: too many are too close to each other, or a vector has no numbers.
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
    """Return the codes of vectors: those that are known, made anew in the ranges that have changed.

    Where all that has changed is new, room is shared with those who still read the known ones.
    """
    if known is None or known.values.shape[1:] != vectors.shape[1:]:
        known, changed = None, [(0, len(vectors))]
    elif not is_new:
        known = Codes(known.values.copy(), known.scales.copy(), known.errors.copy())
    codes = Codes(
        roomy(known.values if known else None, vectors.shape, np.int8),
        roomy(known.scales if known else None, vectors.shape[:1], np.float32),
        roomy(known.errors if known else None, vectors.shape[:1], np.float32),
    )
    for begin, end in changed:
        kernel.coded(vectors[begin:end], codes.values[begin:end], codes.scales[begin:end], codes.errors[begin:end])
    return codes
