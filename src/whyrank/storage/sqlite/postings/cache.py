"""Pages of postings in memory, read when a question asks for a term of theirs."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from ....analysis.spellings import accented_in, by_plain_spelling
from ....kernel import Kernel
from ...fields import Field
from ..catalogue import Flags, Integers
from ..connection import Connection
from ..sealed import BrokenSeal
from . import vocabulary
from .inversion import invert, only
from .pages import Listed, Page, list_of, one_page, read
from .segments import Segment
from .tallies import Tallies, tally
from .texts import stored_texts

_DIRECTORIES_KEPT = 4_096
_UNLISTED_KEPT = 64  # segments of an older version, whose words stand in memory until they are listed
# Terms fall anywhere into pages: where so many are asked for, all pages are read once, and their counts kept.
_PAGES_PER_KEY = 4
_PAGES_PER_STATEMENT = 16
_PAGES_BY_NUMBER = {
    count: f"SELECT number, page FROM posting_pages WHERE number IN ({', '.join('?' * count)})"
    for count in range(1, _PAGES_PER_STATEMENT + 1)
}


class Directory(NamedTuple):
    """The pages of one field of a segment: the lowest key of each, ascending, and its number."""

    firsts: Sequence[int]
    numbers: Sequence[int]


Name = tuple[int, int]  # the number of a segment, and of a page


class Missing(NamedTuple):
    """A page to be read: whose it is, and the lowest key it holds."""

    segment: Segment
    field: Field
    first: int


class Pages:
    """Pages in memory, the last used first to stay; a segment never changes, so neither does a page of it."""

    def __init__(self, max_bytes: int, kernel: Kernel | None) -> None:
        self._max_bytes = max_bytes
        self._kernel = kernel
        self._pages: OrderedDict[Name, Page] = OrderedDict()
        self._bytes = 0
        self._directories: dict[tuple[int, int], Directory] = {}
        self._unlisted: dict[int, frozenset[str]] = {}
        self._accented: dict[Segment, Mapping[str, tuple[str, ...]]] = {}
        self._tallies = Tallies()
        self._turn = threading.Lock()
        self.broken: dict[int, tuple[str, Segment]] = {}

    def lists(
        self, connection: Connection, scope: str, segments: Sequence[Segment], field: Field, keys: Sequence[int]
    ) -> list[list[Listed]]:
        """Return the lists of some terms in some segments; the pages that are not in memory are read together."""
        found: list[list[Listed]] = [[] for _ in keys]
        for segment, number, page in self._spots(connection, scope, segments, field, keys):
            listed = list_of(page, keys[number], segment.first, self._kernel)
            if listed is not None:
                found[number].append(listed)
        return found

    def _spots(
        self, connection: Connection, scope: str, segments: Sequence[Segment], field: Field, keys: Sequence[int]
    ) -> list[tuple[Segment, int, Page]]:
        """Return the pages that would hold some keys, each with its segment and the number of its key."""
        spots: list[tuple[Segment, int, Name]] = []
        there: dict[Name, Page] = {}
        missing: dict[Name, Missing] = {}
        with self._turn:
            kept = self._pages
            for segment in segments:
                firsts, numbers = self._directory(connection, segment, field)
                for number, key in enumerate(keys):
                    place = bisect_right(firsts, key) - 1
                    if place < 0:
                        continue
                    # A number may be given again when its segment is gone, so it does not name a page alone.
                    name = (segment.segment, numbers[place])
                    if name in kept:
                        kept.move_to_end(name)
                        there[name] = kept[name]
                    else:
                        missing[name] = Missing(segment, field, firsts[place])
                    spots.append((segment, number, name))
            if missing:
                there.update(self._read(connection, scope, missing))
        return [(segment, number, there[name]) for segment, number, name in spots]

    def counts(
        self, connection: Connection, scope: str, segment: Segment, field: Field, keys: Integers, living: Flags
    ) -> Integers:
        """Return how many of the living memories of a segment hold each of some terms."""
        with self._turn:
            pages = len(self._directory(connection, segment, field).firsts)
        if len(keys) * _PAGES_PER_KEY >= pages or self._tallies.known(segment.segment, living) is not None:
            whole = partial(self._whole, connection, scope, segment, field)
            return self._tallies.made(segment.segment, living, whole).of(keys)
        held = np.zeros(len(keys), np.int64)
        for page, asked in self._pages_for(connection, scope, segment, field, keys):
            held[asked] = tally([page], living).of(keys[asked])
        return held

    def _whole(self, connection: Connection, scope: str, segment: Segment, field: Field) -> Iterator[Page]:
        """Yield all pages of a segment in order, as they are read; so many are not kept."""
        name = (segment.segment, field.number)
        rows = connection.execute(
            "SELECT first_key, page FROM posting_pages WHERE segment = ? AND field = ? ORDER BY first_key", name
        )
        return (self._unsealed(page, connection, scope, segment, (*name, first)) for first, page in rows)

    def _pages_for(
        self, connection: Connection, scope: str, segment: Segment, field: Field, keys: Integers
    ) -> Iterator[tuple[Page, Integers]]:
        """Yield the pages of a segment that would hold some keys, each with the places of those keys."""
        with self._turn:
            firsts = np.array(self._directory(connection, segment, field).firsts, np.int64)
        order = np.argsort(keys, kind="stable")
        numbers = np.searchsorted(firsts, keys[order], side="right") - 1
        found, starts = np.unique(numbers, return_index=True)
        for number, places in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
            first = [int(firsts[number])] if number >= 0 else []
            for _, _, page in self._spots(connection, scope, [segment], field, first):
                yield page, places

    def beginning(self, connection: Connection, scope: str, segment: Segment, start: str) -> Sequence[str]:
        """Return the words of a segment that begin so; of one whose words are not listed, the texts are read once."""
        try:
            if vocabulary.is_listed(connection, segment.segment):
                return vocabulary.beginning(connection, segment.segment, start)
        except BrokenSeal:
            self.broken[segment.segment] = (scope, segment)
        return [word for word in self._words(connection, scope, segment) if word.startswith(start)]

    def accented(self, connection: Connection, scope: str, segment: Segment) -> Mapping[str, tuple[str, ...]]:
        """Return the words with accents of a segment, by how they are typed without; kept as long as it is there."""
        known = self._accented.get(segment)
        if known is None:
            if len(self._accented) >= _DIRECTORIES_KEPT:
                self._accented.clear()
            known = self._accented[segment] = by_plain_spelling(self._all_accented(connection, scope, segment))
        return known

    def _all_accented(self, connection: Connection, scope: str, segment: Segment) -> Sequence[str]:
        try:
            if vocabulary.is_listed(connection, segment.segment):
                return vocabulary.accented(connection, segment.segment)
        except BrokenSeal:
            self.broken[segment.segment] = (scope, segment)
        return accented_in(" ".join(self._words(connection, scope, segment)))

    def _words(self, connection: Connection, scope: str, segment: Segment) -> frozenset[str]:
        """Return the words of a segment that does not list them, read off its texts."""
        with self._turn:
            words = self._unlisted.get(segment.segment)
            if words is None:
                if len(self._unlisted) >= _UNLISTED_KEPT:
                    self._unlisted.clear()
                texts = stored_texts(connection, scope, segment.first, segment.last)
                words = self._unlisted[segment.segment] = frozenset(token for text in texts for token in text.tokens)
            return words

    def _directory(self, connection: Connection, segment: Segment, field: Field) -> Directory:
        name = (segment.segment, field.number)
        known = self._directories.get(name)
        if known is None:
            rows = connection.execute(
                "SELECT first_key, number FROM posting_pages WHERE segment = ? AND field = ? ORDER BY first_key", name
            ).fetchall()
            if len(self._directories) >= _DIRECTORIES_KEPT:
                self._directories.clear()
            known = self._directories[name] = Directory([key for key, _ in rows], [number for _, number in rows])
        return known

    def _read(self, connection: Connection, scope: str, missing: Mapping[Name, Missing]) -> dict[Name, Page]:
        numbers = [number for _, number in missing]
        blobs: dict[int, bytes] = {}
        for begin in range(0, len(numbers), _PAGES_PER_STATEMENT):
            some = numbers[begin : begin + _PAGES_PER_STATEMENT]
            blobs.update(connection.execute(_PAGES_BY_NUMBER[len(some)], some).fetchall())
        pages = {}
        for name, (segment, field, first) in missing.items():
            where = (segment.segment, field.number, first)
            page = pages[name] = self._unsealed(blobs.get(name[1], b""), connection, scope, segment, where)
            self._keep(name, page)
        return pages

    def _unsealed(
        self, blob: bytes, connection: Connection, scope: str, segment: Segment, name: tuple[int, int, int]
    ) -> Page:
        try:
            return read(blob, self._kernel)
        except BrokenSeal:
            self.broken[segment.segment] = (scope, segment)
            return _made_anew(connection, scope, segment, name)

    def _keep(self, name: Name, page: Page) -> None:
        self._pages[name] = page
        self._bytes += page.nbytes
        while self._bytes > self._max_bytes and len(self._pages) > 1:
            self._bytes -= self._pages.popitem(last=False)[1].nbytes


def _made_anew(connection: Connection, scope: str, segment: Segment, name: tuple[int, int, int]) -> Page:
    """Make one page from the texts; the pages of a segment are the same whenever they are made from the same texts.

    After removals they are cut elsewhere, so the terms of the broken page are looked for in all of them.
    """
    inverted = invert(stored_texts(connection, scope, segment.first, segment.last))
    postings = next(found for field, found in inverted.items() if field.number == name[1])
    following = connection.execute(
        "SELECT min(first_key) FROM posting_pages WHERE segment = ? AND field = ? AND first_key > ?", name
    ).fetchone()[0]
    inside = (postings.keys >= name[2]) & ((postings.keys < following) if following is not None else True)
    return one_page(only(postings, inside), segment.first)
