"""Where a term stands: the lists of its pages as they are, and arrays of places for whoever needs them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ....kernel import Kernel
from ..catalogue import Flags, Floats, Integers
from .pages import Listed


class Wide(NamedTuple):
    """Places, ascending, and how often each holds a term."""

    places: Integers
    frequencies: Floats

    @property
    def size(self) -> int:
        """Return how many places there are."""
        return len(self.places)

    def only(self, wanted: Flags) -> Wide:
        """Return those of some places."""
        kept = np.flatnonzero(wanted[self.places])
        return self if len(kept) == len(self.places) else Wide(self.places[kept], self.frequencies[kept])


NOTHING = Wide(np.zeros(0, np.int64), np.zeros(0))
Part = Listed | Wide


class Postings:
    """The places that hold a term, ascending, and how often each holds it."""

    def __init__(self, parts: tuple[Part, ...], alive: Flags | None = None, kernel: Kernel | None = None) -> None:
        self.parts = parts
        self.alive = alive  # which places count; None if all do
        self._kernel = kernel

    @cached_property
    def size(self) -> int:
        """Return how many places hold the term."""
        if self.alive is None:
            return sum([part.size for part in self.parts])
        return len(self.places) if self._kernel is None else self._kernel.living(self.parts, self.alive)

    @property
    def places(self) -> Integers:
        """Return the places."""
        return self.joined.places

    @property
    def frequencies(self) -> Floats:
        """Return how often each of them holds the term."""
        return self.joined.frequencies

    @cached_property
    def joined(self) -> Wide:
        """Return both."""
        every = joined(self.parts)
        return every if self.alive is None else every.only(self.alive)

    def gathered(self, belonging: Integers, groups: int) -> Postings:
        """Return the groups whose places hold the term, and how often.

        Each row of `belonging` says to which of the groups every place belongs; what is in none, as all that does not
        count, has a number that no group has.
        """
        if self._kernel is not None:
            found = self._kernel.gathered(self.parts, belonging, len(belonging), groups)
            if found is not None:
                return _holding(Wide(np.frombuffer(found[0], np.int64), np.frombuffer(found[1])))
        reached = belonging[:, self.places].ravel()
        inside = (reached >= 0) & (reached < groups)
        return _summed(reached[inside], np.tile(self.frequencies, len(belonging))[inside])


def _summed(groups: Integers, often: Floats) -> Postings:
    """Add up how often each group holds a term."""
    if not len(groups):
        return Postings(())
    if (groups[1:] < groups[:-1]).any():
        order = np.argsort(groups, kind="stable")
        groups, often = groups[order], often[order]
    starts = np.concatenate(((0,), (groups[1:] != groups[:-1]).nonzero()[0] + 1))
    return Postings((Wide(groups[starts], np.add.reduceat(often, starts)),))


def _holding(found: Wide) -> Postings:
    return Postings((found,) if found.size else ())


def joined(parts: Sequence[Part]) -> Wide:
    """Return the places and frequencies of some lists, one list after the other."""
    if len(parts) == 1 and isinstance(parts[0], Wide):
        return parts[0]
    begin, size = 0, sum([part.size for part in parts])
    places, often = np.empty(size, np.int64), np.empty(size)
    for part in parts:  # each is written once, where it will stay: lists may be long
        end = begin + part.size
        if isinstance(part, Listed):
            np.add(part.offsets, part.first, out=places[begin:end], dtype=np.int64)
        else:
            places[begin:end] = part.places
        often[begin:end] = part.frequencies
        begin = end
    return Wide(places, often)
