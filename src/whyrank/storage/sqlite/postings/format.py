"""Format of postings: texts are inverted into postings, and postings packed into pages with checksums.

A page is: number of terms u32 · keys i64 · ends of their lists u32 · ends of their followers u32 ·
numbers u16, counted from the segment's first · frequencies u8 · followers u32.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, pairwise
from struct import Struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....analysis.caches import MOST_WORDS, Memo, share
from ....kernel import COMPILED, Kernel
from ...bm25 import DATES, GRAMS, WORDS, Field, grams_of
from ..checksums import ChecksumError, add_checksum, check_body

MAX_FREQUENCY = 255  # the maximum of a byte; more of the same word changes no score by a thousandth
INDEXED = (WORDS, GRAMS, DATES)  # pairs are read off the words' followers


class Text(NamedTuple):
    """A text to be inverted: its number, its tokens, a flag for its letter runs, and its marks."""

    number: int
    tokens: Sequence[str]
    letters: bool = False
    marks: Sequence[str] = ()


class Inverted(NamedTuple):
    """Postings by ascending key, then number: frequencies, and for words the follower of every occurrence."""

    keys: NDArray[np.int64]
    numbers: NDArray[np.int64]
    frequencies: NDArray[np.uint8]
    followers: NDArray[np.uint32]

    @property
    def ends(self) -> NDArray[np.int64]:
        """Return the end of the followers of each posting."""
        return np.cumsum(self.frequencies, dtype=np.int64)


def key_of(term: str) -> int:
    """Return the key of a term: a 64-bit hash; a million terms collide in one of a million stores."""
    return _KEYS[term]


def keys_of(terms: Iterable[str]) -> NDArray[np.int64]:
    """Return the keys of many terms; new ones are not cached, as few of them come again."""
    return np.array([_KEYS.get(term) or _key(term) for term in terms], np.int64)


def _key(term: str) -> int:
    digest = hashlib.blake2b(term.encode("utf-8", errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _run_keys(token: str) -> tuple[int, ...]:
    return tuple(map(key_of, grams_of((token,))))


_KEYS, _RUN_KEYS = Memo(_key), Memo(_run_keys)
share(lambda: len(_KEYS) + len(_RUN_KEYS), 2 * MOST_WORDS)


def follower_of(term: str) -> int:
    """Return the follower code of a term: the lower half of its key; 0 is the end of a text."""
    return key_of(term) & 0xFFFFFFFF


def invert(texts: Sequence[Text], kernel: Kernel | None = COMPILED) -> dict[Field, Inverted]:
    """Invert texts given by ascending number."""
    return inverted(texts, kernel)[0]


def inverted(texts: Sequence[Text], kernel: Kernel | None = COMPILED) -> tuple[dict[Field, Inverted], Collection[str]]:
    """Invert texts given by ascending number, and return all their words too."""
    postings, words = _words_by(kernel, texts) if kernel is not None else (_words(texts), words_in(texts))
    marks = [(key_of(mark), text.number) for text in texts for mark in text.marks]
    return {
        WORDS: postings,
        GRAMS: _gathered(*_letters([text for text in texts if text.letters])),
        DATES: _gathered(*np.array(marks, np.int64).reshape(-1, 2).T),
    }, words


def words_in(texts: Iterable[Text]) -> set[str]:
    """Return the words of some texts."""
    return set().union(*(text.tokens for text in texts))


def _words_by(kernel: Kernel, texts: Sequence[Text]) -> tuple[Inverted, Collection[str]]:
    numbers = np.array([text.number for text in texts], np.int64)
    try:
        *parts, words = kernel.inverted([text.tokens for text in texts], numbers)
    except UnicodeEncodeError:  # a lone surrogate, which no entry point accepts
        return _words(texts), words_in(texts)
    keys, holders, frequencies, followers = parts
    postings = Inverted(
        np.frombuffer(keys, np.int64),
        np.frombuffer(holders, np.int64),
        np.frombuffer(frequencies, np.uint8),
        np.frombuffer(followers, np.uint32),
    )
    return postings, words.decode().split(" ") if words else ()


def _words(texts: Sequence[Text]) -> Inverted:
    lengths = [len(text.tokens) for text in texts]
    tokens = chain.from_iterable([text.tokens for text in texts])
    keys = np.fromiter(map(_KEYS.__getitem__, tokens), np.int64, sum(lengths))
    holders = np.repeat(np.array([text.number for text in texts], np.int64), lengths)
    return _gathered(keys, holders, _followers(keys, lengths))


def _followers(keys: NDArray[np.int64], lengths: Sequence[int]) -> NDArray[np.uint32]:
    """Return the follower of each occurrence in its text."""
    followers = np.zeros(len(keys), np.uint32)
    followers[:-1] = (keys[1:] & 0xFFFFFFFF).astype(np.uint32)
    counts = np.array(lengths, np.int64)
    last = np.cumsum(counts) - 1
    followers[last[counts > 0]] = 0
    return followers


def _letters(texts: Sequence[Text]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the keys of the letter runs of every token, and the number of the text of each."""
    runs = [[*chain.from_iterable(map(_RUN_KEYS.__getitem__, text.tokens))] for text in texts]
    keys = np.fromiter(chain.from_iterable(runs), np.int64, sum(map(len, runs)))
    return keys, np.repeat(np.array([text.number for text in texts], np.int64), [len(run) for run in runs])


def spread(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return start, start + 1, … for each start, `counts` values each."""
    ends = np.cumsum(counts)
    return np.repeat(starts - ends + counts, counts) + np.arange(ends[-1] if len(ends) else 0)


def _gathered(
    keys: NDArray[np.int64], numbers: NDArray[np.int64], followers: NDArray[np.uint32] | None = None
) -> Inverted:
    """Group occurrences in the order of their texts into postings."""
    order = np.argsort(keys, kind="stable")
    keys, numbers = keys[order], numbers[order]
    followers = np.zeros(0, np.uint32) if followers is None else followers[order]
    begins = np.ones(len(keys), np.bool_)
    begins[1:] = (keys[1:] != keys[:-1]) | (numbers[1:] != numbers[:-1])
    starts = np.flatnonzero(begins)
    frequencies = np.diff(np.append(starts, len(keys)))
    if len(followers) and len(frequencies) and frequencies.max() > MAX_FREQUENCY:
        followers = followers[np.arange(len(keys)) - np.repeat(starts, frequencies) < MAX_FREQUENCY]
    limited = np.minimum(frequencies, MAX_FREQUENCY).astype(np.uint8)
    return Inverted(keys[starts], numbers[starts], limited, followers)


def merged(parts: Sequence[Inverted]) -> Inverted:
    """Merge postings whose numbers ascend from part to part."""
    keys = np.concatenate([part.keys for part in parts])
    numbers = np.concatenate([part.numbers for part in parts])
    frequencies = np.concatenate([part.frequencies for part in parts])
    followers = np.concatenate([part.followers for part in parts])
    order = np.argsort(keys, kind="stable")
    if len(followers):
        counts = frequencies.astype(np.int64)
        starts = np.cumsum(counts) - counts
        followers = followers[spread(starts[order], counts[order])]
    return Inverted(keys[order], numbers[order], frequencies[order], followers)


def only(postings: Inverted, kept: NDArray[np.bool_]) -> Inverted:
    """Return the postings that are kept."""
    followers = postings.followers
    if len(followers):
        followers = followers[np.repeat(kept, postings.frequencies)]
    return Inverted(postings.keys[kept], postings.numbers[kept], postings.frequencies[kept], followers)


PAGE_BYTES = 16_384  # target size; a longer list has a page to itself
MAX_SPAN = 65_536  # numbers in one segment, so that an offset fits two bytes
_HEAD_BYTES = 8  # the checksum, and the number of terms
_TERM_BYTES, _POSTING_BYTES, _FOLLOWER_BYTES = 16, 3, 4
_U4, _I8 = Struct("<I").unpack_from, Struct("<q").unpack_from


class Page:
    """A page as stored, terms by ascending key; its arrays are decoded lazily."""

    def __init__(self, blob: bytes, terms: int, count: int, heard: int) -> None:
        self.blob = blob
        self.heard = heard
        self.count = count
        self._terms = terms
        self._offsets_at = _HEAD_BYTES + _TERM_BYTES * terms

    @property
    def nbytes(self) -> int:
        """Return the memory of the page, in bytes."""
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
        """Return the end of the list of each term."""
        return np.frombuffer(self.blob, "<u4", self._terms, _HEAD_BYTES + 8 * self._terms)

    @cached_property
    def follower_ends(self) -> NDArray[np.uint32]:
        """Return the end of the followers of each term."""
        return np.frombuffer(self.blob, "<u4", self._terms, _HEAD_BYTES + 12 * self._terms)

    @property
    def offsets(self) -> NDArray[np.uint16]:
        """Return the memories of each posting, as offsets from the segment's first number."""
        return np.frombuffer(self.blob, "<u2", self.count, self._offsets_at)

    @property
    def frequencies(self) -> NDArray[np.uint8]:
        """Return the term frequency of each posting."""
        return np.frombuffer(self.blob, "u1", self.count, self._offsets_at + 2 * self.count)

    @property
    def followers(self) -> NDArray[np.uint32]:
        """Return the follower of each occurrence."""
        return np.frombuffer(self.blob, "<u4", self.heard, self._offsets_at + _POSTING_BYTES * self.count)

    def spot(self, key: int) -> Spot | None:
        """Return the position of a term's list: offsets, frequencies, their count; followers, their count."""
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


class PostingList(NamedTuple):
    """The posting list of one term in one segment, as a view of its page; offsets count from `first`."""

    first: int
    blob: bytes
    offsets_at: int
    frequencies_at: int
    size: int
    followers_at: int
    heard: int

    @property
    def offsets(self) -> NDArray[np.uint16]:
        """Return the memories that hold the term, as offsets from the first number."""
        return np.frombuffer(self.blob, "<u2", self.size, self.offsets_at)

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Return the numbers of the memories that hold the term."""
        return np.add(self.offsets, self.first, dtype=np.int64)

    @property
    def frequencies(self) -> NDArray[np.uint8]:
        """Return the term frequency of each posting."""
        return np.frombuffer(self.blob, "u1", self.size, self.frequencies_at)

    @property
    def followers(self) -> NDArray[np.uint32]:
        """Return the follower of each occurrence."""
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
    """Return the begin of the followers of each posting, and the end of the last."""
    return np.append(0, postings.ends) if len(postings.followers) else np.zeros(len(postings.keys) + 1, np.int64)


def _begins(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions at which the value changes."""
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
    return add_checksum(body)


def read(blob: bytes, kernel: Kernel | None = None) -> Page:
    """Decode a page; one whose length differs from its header is broken, whatever its checksum."""
    if kernel is None or not kernel.SEALS:
        check_body(blob)
    elif not (isinstance(blob, bytes) and kernel.sealed(blob)):
        raise ChecksumError
    size = len(blob)
    terms = _U4(blob, _HEAD_BYTES - 4)[0] if size >= _HEAD_BYTES else 0
    after = _HEAD_BYTES + _TERM_BYTES * terms
    if not terms or after > size:
        raise ChecksumError
    count, heard = _U4(blob, after - 4 * terms - 4)[0], _U4(blob, after - 4)[0]
    if size != after + _POSTING_BYTES * count + _FOLLOWER_BYTES * heard:
        raise ChecksumError
    return Page(blob, terms, count, heard)


def list_of(page: Page, key: int, first: int, kernel: Kernel | None = None) -> PostingList | None:
    """Return the list of a term, if the page has it."""
    spot = page.spot(key) if kernel is None else kernel.listed(page.blob, key)
    return None if spot is None else PostingList(first, page.blob, *spot)


def postings_of(page: Page, first: int) -> Inverted:
    """Return all postings of a page."""
    sizes = page.ends.astype(np.int64)
    sizes[1:] -= sizes[:-1].copy()
    return Inverted(
        np.repeat(page.keys, sizes), page.offsets.astype(np.int64) + first, page.frequencies, page.followers
    )


def one_page(postings: Inverted, first: int) -> Page:
    """Return postings as one page, however long."""
    if not len(postings.keys):
        return Page(add_checksum(bytes(4)), 0, 0, 0)
    bounds = np.append(_begins(postings.keys), len(postings.keys))
    return read(_page(postings, bounds, _heard(postings), first))
