"""Pages of postings in memory, read when a question asks for a term of theirs."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from ....analysis.spellings import accented_in, by_plain_spelling
from ....caches import STRING_BYTES, ByteBoundedCache
from ....kernel import Kernel
from ...fields import WORDS, Field
from ..catalogue import Flags, Integers
from ..connection import Connection, rows_of
from ..sealed import BrokenSeal
from . import vocabulary
from .filing import NO_PAGES, Directory, filed, has_strays, one_unfiled
from .inversion import invert, only
from .pages import Listed, Page, list_of, one_page, read
from .spans import Segment
from .tallies import Tallies, tally
from .texts import stored_texts

_FILED_BYTES = 80  # of a page in a directory: its lowest key and its number
_TALLY_SHARE, _DIRECTORY_SHARE, _WORD_SHARE = 1 / 5, 1 / 50, 1 / 50  # of the cache; pages take the rest
# Terms fall anywhere into pages: where so many are asked for, all pages are read once, and their counts kept.
_PAGES_PER_KEY = 4
_PAGES_PER_STATEMENT = 16
_PAGES_BY_NUMBER = {
    count: f"SELECT number, page FROM posting_pages WHERE number IN ({', '.join('?' * count)})"
    for count in range(1, _PAGES_PER_STATEMENT + 1)
}


Name = tuple[Segment, int]  # a segment, and the number of a page of it


class Missing(NamedTuple):
    """A page to be read: whose it is, the lowest key it holds, below which its last one is, and where it is listed."""

    segment: Segment
    field: Field
    first: int
    below: int | None
    directory: Directory


class _Filed(NamedTuple):
    """Where the pages of a segment lie, by field; None where that cannot be believed."""

    fields: Mapping[int, Directory] | None


def _filed_bytes(_: Segment, filed: _Filed) -> int:
    return _FILED_BYTES * sum(len(directory.numbers) for directory in (filed.fields or {}).values())


class Pages:
    """Pages in memory, the last used first to stay.

    A segment changes only when removed memories are scrubbed from it, and counts fewer memories then: so a segment
    with its count names what is kept of it.
    """

    def __init__(self, max_bytes: int, kernel: Kernel | None) -> None:
        self._kernel = kernel
        rest = 1 - _TALLY_SHARE - _DIRECTORY_SHARE - 2 * _WORD_SHARE
        self._pages: ByteBoundedCache[Name, Page] = ByteBoundedCache(int(max_bytes * rest), lambda _, page: page.nbytes)
        self._filed: ByteBoundedCache[Segment, _Filed] = ByteBoundedCache(
            int(max_bytes * _DIRECTORY_SHARE), _filed_bytes
        )
        # Of segments of an older version, whose words stand in memory until they are listed.
        self._unlisted: ByteBoundedCache[Segment, frozenset[str]] = ByteBoundedCache(
            int(max_bytes * _WORD_SHARE), lambda _, words: 2 * STRING_BYTES * len(words)
        )
        self._accented: ByteBoundedCache[Segment, Mapping[str, tuple[str, ...]]] = ByteBoundedCache(
            int(max_bytes * _WORD_SHARE), lambda _, table: 4 * STRING_BYTES * len(table)
        )
        self._tallies = Tallies(int(max_bytes * _TALLY_SHARE))
        self._turn = threading.Lock()
        self.broken: dict[int, tuple[str, Segment]] = {}
        self.unbelieved: set[str] = set()  # scopes whose segments do not fit together
        self.has_strays: bool | None = None  # until somebody has looked

    def cache_bytes(self) -> dict[str, int]:
        """Return how much memory each of its caches holds."""
        words = self._unlisted.nbytes + self._accented.nbytes
        directories = {"directories": self._filed.nbytes, "words": words}
        return {"pages": self._pages.nbytes, "tallies": self._tallies.nbytes} | directories

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
                directory = self._directory(connection, scope, segment, field)
                firsts, numbers, _ = directory
                for number, key in enumerate(keys):
                    place = bisect_right(firsts, key) - 1
                    if place < 0:
                        continue
                    # A number may be given again when its segment is gone, so it does not name a page alone.
                    name = (segment, numbers[place])
                    page = kept.get(name)
                    if page is not None:
                        there[name] = page
                    else:
                        missing[name] = _missing(segment, field, directory, place)
                    spots.append((segment, number, name))
            if missing:
                read = self._read(connection, scope, missing)
                there.update(read)
                kept.update(read)
        return [(segment, number, there[name]) for segment, number, name in spots]

    def counts(
        self, connection: Connection, scope: str, segment: Segment, field: Field, keys: Integers, living: Flags
    ) -> Integers:
        """Return how many of the living memories of a segment hold each of some terms."""
        with self._turn:
            directory = self._directory(connection, scope, segment, field)
        is_worth_it = len(keys) * _PAGES_PER_KEY >= len(directory.firsts)
        if is_worth_it or self._tallies.known(segment.segment, living) is not None:
            whole = partial(self._whole, connection, scope, segment, field, directory)
            return self._tallies.made(segment.segment, living, whole).of(keys)
        held = np.zeros(len(keys), np.int64)
        for page, asked in self._pages_for(connection, scope, segment, field, keys):
            held[asked] = tally([page], living).of(keys[asked])
        return held

    def _whole(
        self, connection: Connection, scope: str, segment: Segment, field: Field, directory: Directory
    ) -> Iterator[Page]:
        """Yield all pages of a segment in order, as they are read; so many are not kept."""
        numbers = directory.numbers
        for begin in range(0, len(numbers), _PAGES_PER_STATEMENT):
            places = range(begin, min(begin + _PAGES_PER_STATEMENT, len(numbers)))
            some = {(segment, numbers[place]): _missing(segment, field, directory, place) for place in places}
            yield from self._read(connection, scope, some).values()

    def _pages_for(
        self, connection: Connection, scope: str, segment: Segment, field: Field, keys: Integers
    ) -> Iterator[tuple[Page, Integers]]:
        """Yield the pages of a segment that would hold some keys, each with the places of those keys."""
        with self._turn:
            firsts = np.array(self._directory(connection, scope, segment, field).firsts, np.int64)
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
            listed = self._listed_words(connection, scope, segment)
            if listed is not None:
                return vocabulary.beginning(connection, segment.segment, start, listed.lists)
        except BrokenSeal:
            self.broken[segment.segment] = (scope, segment)
        return [word for word in self._words(connection, scope, segment) if word.startswith(start)]

    def accented(self, connection: Connection, scope: str, segment: Segment) -> Mapping[str, tuple[str, ...]]:
        """Return the words with accents of a segment, by how they are typed without; kept as long as it is there."""
        known = self._accented.get(segment)
        if known is None:
            known = by_plain_spelling(self._all_accented(connection, scope, segment))
            self._accented.put(segment, known)
        return known

    def _all_accented(self, connection: Connection, scope: str, segment: Segment) -> Sequence[str]:
        try:
            listed = self._listed_words(connection, scope, segment)
            if listed is not None:
                return vocabulary.accented(connection, segment.segment, listed.lists)
        except BrokenSeal:
            self.broken[segment.segment] = (scope, segment)
        return accented_in(" ".join(self._words(connection, scope, segment)))

    def _words(self, connection: Connection, scope: str, segment: Segment) -> frozenset[str]:
        """Return the words of a segment that does not list them, read off its texts."""
        with self._turn:
            words = self._unlisted.get(segment)
            if words is None:
                texts = stored_texts(connection, scope, segment.first, segment.last)
                words = frozenset(token for text in texts for token in text.tokens)
                self._unlisted.put(segment, words)
            return words

    def _listed_words(self, connection: Connection, scope: str, segment: Segment) -> Directory | None:
        """Return the pages that list the words of a segment; None if they are not listed."""
        with self._turn:
            fields = self._fields(connection, scope, segment)
        words = fields.get(vocabulary.FIELD) if fields is not None else None
        return words if words is not None and words.firsts[0] == vocabulary.FIRST else None

    def _directory(self, connection: Connection, scope: str, segment: Segment, field: Field) -> Directory:
        fields = self._fields(connection, scope, segment)
        if fields is None or (field is WORDS and field.number not in fields):
            return one_unfiled(field)
        return fields.get(field.number, NO_PAGES)

    def _fields(self, connection: Connection, scope: str, segment: Segment) -> Mapping[int, Directory] | None:
        """Return where the pages of a segment lie; None where that cannot be believed, and its texts are read."""
        known = self._filed.get(segment)
        if known is None:
            if self.has_strays is not False:
                self.has_strays = has_strays(connection)
            found = filed(connection, segment.segment)
            if found is None:
                self.broken[segment.segment] = (scope, segment)
            known = _Filed(None if self.has_strays else found)
            self._filed.put(segment, known)
        return known.fields

    def _read(self, connection: Connection, scope: str, missing: Mapping[Name, Missing]) -> dict[Name, Page]:
        numbers = [number for _, number in missing]
        blobs: dict[int, bytes] = {}
        for begin in range(0, len(numbers), _PAGES_PER_STATEMENT):
            some = numbers[begin : begin + _PAGES_PER_STATEMENT]
            blobs.update(rows_of(connection, _PAGES_BY_NUMBER[len(some)], some))
        return {name: self._unsealed(blobs.get(name[1], b""), connection, scope, one) for name, one in missing.items()}

    def _unsealed(self, blob: bytes, connection: Connection, scope: str, missing: Missing) -> Page:
        try:
            page = read(blob, self._kernel)
            if page.lowest != missing.first or not missing.directory.lists(missing.first, blob):
                raise BrokenSeal
            return page
        except BrokenSeal:
            page, segment = _made_anew(connection, scope, missing), missing.segment
            if not self.has_strays and (blob or page.count):  # a segment of nothing has no page
                self.broken[segment.segment] = (scope, segment)
            return page


def _missing(segment: Segment, field: Field, directory: Directory, place: int) -> Missing:
    firsts = directory.firsts
    return Missing(segment, field, firsts[place], firsts[place + 1] if place + 1 < len(firsts) else None, directory)


def _made_anew(connection: Connection, scope: str, missing: Missing) -> Page:
    """Make one page from the texts; the pages of a segment are the same whenever they are made from the same texts.

    After removals they are cut elsewhere, so the terms of the broken page are looked for in all of them.
    """
    segment, field, first, below, _ = missing
    postings = invert(stored_texts(connection, scope, segment.first, segment.last))[field]
    inside = (postings.keys >= first) & ((postings.keys < below) if below is not None else True)
    return one_page(only(postings, inside), segment.first)
