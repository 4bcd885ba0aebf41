"""Pages of postings: the terms of a range of keys, with their lists, sealed; what the file holds and readers cache.

A page is: number of terms u32 · keys i64 · ends of their lists u32 · ends of their followers u32 ·
numbers u16, counted from the segment's first · frequencies u8 · followers u32.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from struct import Struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....kernel import Kernel
from ..sealed import BrokenSeal, seal, unseal
from .inversion import Inverted

PAGE_BYTES = 16_384  # aimed at; a list that is longer has a page to itself
MAX_SPAN = 65_536  # numbers in one segment, so that an offset fits two bytes
_HEAD_BYTES = 8  # the checksum, and the number of terms
_TERM_BYTES, _POSTING_BYTES, _FOLLOWER_BYTES = 16, 3, 4
_U4, _I8 = Struct("<I").unpack_from, Struct("<q").unpack_from


class Page:
    """A page as the file holds it, terms by ascending key; its parts are looked into when somebody asks for them."""

    def __init__(self, blob: bytes, terms: int, count: int, heard: int) -> None:
        self.blob = blob
        self.heard = heard
        self.count = count
        self._terms = terms
        self._offsets_at = _HEAD_BYTES + _TERM_BYTES * terms

    @property
    def nbytes(self) -> int:
        """Return how much memory it holds."""
        return len(self.blob)

    @property
    def lowest(self) -> int:
        """Return the lowest key of its terms."""
        lowest: int = _I8(self.blob, _HEAD_BYTES)[0]
        return lowest

    @cached_property
    def keys(self) -> NDArray[np.int64]:
        """Return the keys of its terms."""
        return np.frombuffer(self.blob, "<i8", self._terms, _HEAD_BYTES)

    @cached_property
    def ends(self) -> NDArray[np.uint32]:
        """Return where the list of each term ends."""
        return np.frombuffer(self.blob, "<u4", self._terms, _HEAD_BYTES + 8 * self._terms)

    @cached_property
    def follower_ends(self) -> NDArray[np.uint32]:
        """Return where the followers of each term end."""
        return np.frombuffer(self.blob, "<u4", self._terms, _HEAD_BYTES + 12 * self._terms)

    @property
    def offsets(self) -> NDArray[np.uint16]:
        """Return who holds each term, counted from the segment's first."""
        return np.frombuffer(self.blob, "<u2", self.count, self._offsets_at)

    @property
    def frequencies(self) -> NDArray[np.uint8]:
        """Return how often each of them does."""
        return np.frombuffer(self.blob, "u1", self.count, self._offsets_at + 2 * self.count)

    @property
    def followers(self) -> NDArray[np.uint32]:
        """Return what follows each occurrence."""
        return np.frombuffer(self.blob, "<u4", self.heard, self._offsets_at + _POSTING_BYTES * self.count)

    def spot(self, key: int) -> Spot | None:
        """Return where the list of a term stands: offsets, frequencies, how many; followers, how many."""
        place = int(self.keys.searchsorted(key))
        if place == self._terms or self.keys[place] != key:
            return None
        begin, end = (int(self.ends[place - 1]) if place else 0), int(self.ends[place])
        low, high = (int(self.follower_ends[place - 1]) if place else 0), int(self.follower_ends[place])
        if not (begin <= end <= self.count and low <= high <= self.heard):
            raise ValueError("a page is shorter than it says")
        after = self._offsets_at + 2 * self.count
        return self._offsets_at + 2 * begin, after + begin, end - begin, after + self.count + 4 * low, high - low


Spot = tuple[int, int, int, int, int]


class Listed(NamedTuple):
    """The list of one term in one segment, where its page holds it: offsets count from the segment's first number."""

    first: int
    blob: bytes
    offsets_at: int
    frequencies_at: int
    size: int
    followers_at: int
    heard: int

    @property
    def offsets(self) -> NDArray[np.uint16]:
        """Return who holds the term, counted from the first number."""
        return np.frombuffer(self.blob, "<u2", self.size, self.offsets_at)

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Return the numbers of the memories that hold the term."""
        return np.add(self.offsets, self.first, dtype=np.int64)

    @property
    def frequencies(self) -> NDArray[np.uint8]:
        """Return how often each of them does."""
        return np.frombuffer(self.blob, "u1", self.size, self.frequencies_at)

    @property
    def followers(self) -> NDArray[np.uint32]:
        """Return what follows each occurrence."""
        return np.frombuffer(self.blob, "<u4", self.heard, self.followers_at)


def pages(postings: Inverted, first: int) -> Iterator[tuple[int, bytes]]:
    """Cut postings into pages, each with the lowest key it holds; numbers are counted from `first`."""
    if not len(postings.keys):
        return
    bounds = np.append(_begins(postings.keys), len(postings.keys))
    heard = _heard(postings)
    sizes = _TERM_BYTES + _POSTING_BYTES * np.diff(bounds) + _FOLLOWER_BYTES * np.diff(heard[bounds])
    cuts = np.append(_begins((np.cumsum(sizes) - sizes) // PAGE_BYTES), len(sizes)).tolist()
    for begin, end in pairwise(cuts):
        yield int(postings.keys[bounds[begin]]), _page(postings, bounds[begin : end + 1], heard, first)


def _heard(postings: Inverted) -> NDArray[np.int64]:
    """Return where the followers of each posting begin, and where the last of them end."""
    return np.append(0, postings.ends) if len(postings.followers) else np.zeros(len(postings.keys) + 1, np.int64)


def _begins(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where numbers begin to be others than before."""
    return np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))


def _page(postings: Inverted, bounds: NDArray[np.int64], heard: NDArray[np.int64], first: int) -> bytes:
    low, high = bounds[0], bounds[-1]
    body = b"".join(
        (
            np.array([len(bounds) - 1], "<u4").tobytes(),
            postings.keys[bounds[:-1]].astype("<i8").tobytes(),
            (bounds[1:] - low).astype("<u4").tobytes(),
            (heard[bounds[1:]] - heard[low]).astype("<u4").tobytes(),
            (postings.numbers[low:high] - first).astype("<u2").tobytes(),
            postings.frequencies[low:high].tobytes(),
            postings.followers[heard[low] : heard[high]].astype("<u4").tobytes(),
        )
    )
    return seal(body)


def read(blob: bytes, kernel: Kernel | None = None) -> Page:
    """Read a page; one that is not as long as it says is broken, whatever its checksum."""
    if kernel is None or not kernel.SEALS:
        unseal(blob)
    elif not (isinstance(blob, bytes) and kernel.sealed(blob)):
        raise BrokenSeal
    size = len(blob)
    terms = _U4(blob, _HEAD_BYTES - 4)[0] if size >= _HEAD_BYTES else 0
    after = _HEAD_BYTES + _TERM_BYTES * terms
    if not terms or after > size:
        raise BrokenSeal
    count, heard = _U4(blob, after - 4 * terms - 4)[0], _U4(blob, after - 4)[0]
    if size != after + _POSTING_BYTES * count + _FOLLOWER_BYTES * heard:
        raise BrokenSeal
    return Page(blob, terms, count, heard)


def list_of(page: Page, key: int, first: int, kernel: Kernel | None = None) -> Listed | None:
    """Return the list of a term, if the page has it."""
    spot = page.spot(key) if kernel is None else kernel.listed(page.blob, key)
    return None if spot is None else Listed(first, page.blob, *spot)


def postings_of(page: Page, first: int) -> Inverted:
    """Return everything a page holds."""
    sizes = page.ends.astype(np.int64)
    sizes[1:] -= sizes[:-1].copy()
    return Inverted(
        np.repeat(page.keys, sizes), page.offsets.astype(np.int64) + first, page.frequencies, page.followers
    )


def one_page(postings: Inverted, first: int) -> Page:
    """Return postings as one page, however long."""
    if not len(postings.keys):
        return Page(seal(bytes(4)), 0, 0, 0)
    bounds = np.append(_begins(postings.keys), len(postings.keys))
    return read(_page(postings, bounds, _heard(postings), first))
