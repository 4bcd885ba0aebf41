"""Pages of postings: the terms of a range of keys, with their lists, sealed; what the file holds and readers cache.

A page is: number of terms u32 · keys i64 · ends of their lists u32 · ends of their followers u32 ·
numbers u16, counted from the segment's first · frequencies u8 · followers u32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..sealed import seal, unseal
from .inversion import Inverted

PAGE_BYTES = 16_384  # aimed at; a list that is longer has a page to itself
MAX_SPAN = 65_536  # numbers in one segment, so that an offset fits two bytes
_TERM_BYTES, _POSTING_BYTES, _FOLLOWER_BYTES = 16, 3, 4


class Page(NamedTuple):
    """A page as read: terms by ascending key."""

    keys: NDArray[np.int64]
    ends: NDArray[np.uint32]
    follower_ends: NDArray[np.uint32]
    offsets: NDArray[np.uint16]
    frequencies: NDArray[np.uint8]
    followers: NDArray[np.uint32]

    @property
    def nbytes(self) -> int:
        """Return how much memory it holds."""
        return sum(part.nbytes for part in self)


class Listed(NamedTuple):
    """The list of one term in one segment, as its page holds it: offsets count from the segment's first number."""

    first: int
    offsets: NDArray[np.uint16]
    frequencies: NDArray[np.uint8]
    followers: NDArray[np.uint32]

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Return the numbers of the memories that hold the term."""
        return np.add(self.offsets, self.first, dtype=np.int64)


def pages(postings: Inverted, first: int) -> Iterator[tuple[int, bytes]]:
    """Cut postings into pages, each with the lowest key it holds; numbers are counted from `first`."""
    if not len(postings.keys):
        return
    bounds = np.append(_begins(postings.keys), len(postings.keys))
    heard = np.append(0, postings.ends) if len(postings.followers) else np.zeros(len(postings.keys) + 1, np.int64)
    sizes = _TERM_BYTES + _POSTING_BYTES * np.diff(bounds) + _FOLLOWER_BYTES * np.diff(heard[bounds])
    cuts = np.append(_begins((np.cumsum(sizes) - sizes) // PAGE_BYTES), len(sizes)).tolist()
    for begin, end in pairwise(cuts):
        yield int(postings.keys[bounds[begin]]), _page(postings, bounds[begin : end + 1], heard, first)


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


def read(blob: bytes) -> Page:
    """Read a page; its arrays look into the bytes."""
    body = unseal(blob)
    terms = int.from_bytes(body[:4], "little")
    place = 4
    keys = np.frombuffer(body, "<i8", terms, place)
    ends = np.frombuffer(body, "<u4", terms, place + 8 * terms)
    follower_ends = np.frombuffer(body, "<u4", terms, place + 12 * terms)
    place += _TERM_BYTES * terms
    count = int(ends[-1])
    offsets = np.frombuffer(body, "<u2", count, place)
    frequencies = np.frombuffer(body, "u1", count, place + 2 * count)
    followers = np.frombuffer(body, "<u4", int(follower_ends[-1]), place + _POSTING_BYTES * count)
    return Page(keys, ends, follower_ends, offsets, frequencies, followers)


def list_of(page: Page, key: int, first: int) -> Listed | None:
    """Return the list of a term, if the page has it."""
    place = int(page.keys.searchsorted(key))
    if place == len(page.keys) or page.keys[place] != key:
        return None
    begin, end = (int(page.ends[place - 1]) if place else 0), int(page.ends[place])
    low, high = (int(page.follower_ends[place - 1]) if place else 0), int(page.follower_ends[place])
    return Listed(first, page.offsets[begin:end], page.frequencies[begin:end], page.followers[low:high])


def joined(
    lists: Sequence[Listed], numbers: NDArray[np.int64], frequencies: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the numbers and frequencies of some lists, one list after the other, and those given behind them."""
    begin, end = 0, sum(len(listed.offsets) for listed in lists)
    places, often = np.empty(end + len(numbers), np.int64), np.empty(end + len(numbers))
    places[end:], often[end:] = numbers, frequencies
    for listed in lists:  # each is written once, where it will stay: lists may be long
        end = begin + len(listed.offsets)
        np.add(listed.offsets, listed.first, out=places[begin:end], dtype=np.int64)
        often[begin:end] = listed.frequencies
        begin = end
    return places, often


def postings_of(page: Page, first: int) -> Inverted:
    """Return everything a page holds."""
    sizes = page.ends.astype(np.int64)
    sizes[1:] -= sizes[:-1].copy()
    return Inverted(
        np.repeat(page.keys, sizes), page.offsets.astype(np.int64) + first, page.frequencies, page.followers
    )


def joined_pages(parts: Sequence[Page]) -> Page:
    """Return several pages that follow each other as one."""
    if not parts:
        empty = np.zeros(0, np.uint32)
        return Page(np.zeros(0, np.int64), empty, empty, np.zeros(0, np.uint16), np.zeros(0, np.uint8), empty)
    ends = np.cumsum([0, *(len(part.offsets) for part in parts)])
    heard = np.cumsum([0, *(len(part.followers) for part in parts)])
    return Page(
        np.concatenate([part.keys for part in parts]),
        np.concatenate([part.ends + start for part, start in zip(parts, ends, strict=False)]).astype(np.uint32),
        np.concatenate([part.follower_ends + start for part, start in zip(parts, heard, strict=False)]).astype(
            np.uint32
        ),
        np.concatenate([part.offsets for part in parts]),
        np.concatenate([part.frequencies for part in parts]),
        np.concatenate([part.followers for part in parts]),
    )
