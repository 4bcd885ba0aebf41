"""How many living memories hold each term of a segment, kept in memory: beginnings ask for thousands of terms at once.

Segments never change, and memories of one only ever go; so a tally is good as long as as many of them live.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....caches import ByteBoundedCache
from ..catalogue import Flags, Integers
from .pages import Page

TALLY_BYTES = 16 * 1024 * 1024  # of all tallies; those of the segments of three hundred thousand notes


class Tally(NamedTuple):
    """The terms of a segment by ascending key, how many memories hold each, and how many lived when it was made."""

    keys: Integers
    held: NDArray[np.int32]
    living: int

    @property
    def nbytes(self) -> int:
        """Return how much memory it holds."""
        return self.keys.nbytes + self.held.nbytes

    def of(self, keys: Integers) -> Integers:
        """Return how many memories hold each of some terms."""
        if not len(self.keys):
            return np.zeros(len(keys), np.int64)
        places = np.minimum(self.keys.searchsorted(keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, self.held[places], 0).astype(np.int64)


class Tallies:
    """Tallies by segment, those asked for lately kept."""

    def __init__(self, max_bytes: int = TALLY_BYTES) -> None:
        self._known: ByteBoundedCache[int, Tally] = ByteBoundedCache(max_bytes, lambda _, tally: tally.nbytes)

    @property
    def nbytes(self) -> int:
        """Return how much memory all of them hold."""
        return self._known.nbytes

    def known(self, segment: int, living: Flags) -> Tally | None:
        """Return the tally of a segment whose memories live so, if it is kept."""
        found = self._known.get(segment)
        return found if found is not None and found.living == np.count_nonzero(living) else None

    def made(self, segment: int, living: Flags, pages: Callable[[], Iterable[Page]]) -> Tally:
        """Return the tally of a segment, made from its pages if need be."""
        known = self.known(segment, living)
        if known is None:
            known = tally(pages(), living)
            self._known.put(segment, known)
        return known


def tally(pages: Iterable[Page], living: Flags) -> Tally:
    """Count what pages hold, in their order."""
    found = [(page.keys, held_in(page, living)) for page in pages if len(page.keys)]
    keys = np.concatenate([keys for keys, _ in found]) if found else np.zeros(0, np.int64)
    held = np.concatenate([held for _, held in found]) if found else np.zeros(0, np.int64)
    return Tally(keys, held.astype(np.int32), int(np.count_nonzero(living)))


def held_in(page: Page, living: Flags) -> Integers:
    """Return how many living memories hold each term of a page."""
    ends = page.ends.astype(np.int64)
    if living.all():
        ends[1:] -= page.ends[:-1]
        return ends
    held: Integers = np.add.reduceat(living[page.offsets].astype(np.int64), np.append(0, ends[:-1]))
    return held
