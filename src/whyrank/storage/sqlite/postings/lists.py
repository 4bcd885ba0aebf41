"""Reading the index: the list of a term in one scope, from its segments and from what is still fresh."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ....expressions import is_several, meant
from ...fields import DATES, GRAMS, PAIRS, WORDS, Field, grams_of
from ..catalogue import Flags, Floats, Integers, Shelf
from ..connection import Connection
from ..sealed import BrokenSeal
from . import vocabulary
from .inversion import MAX_FREQUENCY, Text, follower_of, invert, key_of, only
from .pages import Listed, Page, joined, joined_pages, list_of, pages, read
from .segments import Segment, flushed_below, live_segments
from .tallies import Tallies, tally
from .texts import stored_texts

_DIRECTORIES_KEPT = 4_096
_UNLISTED_KEPT = 64  # segments of an older version, whose words stand in memory until they are listed
_LISTS_KEPT = 64  # as many as a question has words
# Terms fall anywhere into pages: where so many are asked for, all pages are read once, and their counts kept.
_PAGES_PER_KEY = 4
POSTINGS_KEPT = 3_000_000  # of lists read lately, 48 MB


class Postings(NamedTuple):
    """The places that hold a term, ascending, and how often each holds it."""

    places: Integers
    frequencies: Floats

    def only(self, wanted: Flags) -> Postings:
        """Return those of some places."""
        kept = np.flatnonzero(wanted[self.places])
        return Postings(self.places[kept], self.frequencies[kept])


NOTHING = Postings(np.zeros(0, np.int64), np.zeros(0))


@dataclass(frozen=True)
class FreshText:
    """A memory that no segment holds yet, its terms counted."""

    text: Text

    @property
    def number(self) -> int:
        """Return its number in its scope."""
        return self.text.number

    @property
    def tokens(self) -> Sequence[str]:
        """Return its tokens."""
        return self.text.tokens

    @cached_property
    def counts(self) -> Mapping[int, Counter[Any]]:
        """Return how often each term occurs; pairs as pairs of tokens, whatever their script."""
        return {
            WORDS.number: Counter(self.tokens),
            GRAMS.number: Counter(grams_of(self.tokens) if self.text.letters else ()),
            DATES.number: Counter(self.text.marks),
            PAIRS.number: Counter(pairwise(self.tokens)),
        }


@dataclass(frozen=True)
class Shelved:
    """The segments and fresh texts of one scope, as of one change of it."""

    changed: int
    epoch: int
    segments: Sequence[Segment]
    fresh: Sequence[FreshText]


class Directory(NamedTuple):
    """The pages of one field of a segment: the lowest key of each, ascending, and its number."""

    firsts: Sequence[int]
    numbers: Sequence[int]


class Pages:
    """Pages in memory, the last used first to stay; a segment never changes, so neither does a page of it."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._pages: OrderedDict[tuple[int, int], Page] = OrderedDict()
        self._bytes = 0
        self._directories: dict[tuple[int, int], Directory] = {}
        self._unlisted: dict[int, frozenset[str]] = {}
        self._tallies = Tallies()
        self._turn = threading.Lock()
        self.broken: dict[int, tuple[str, Segment]] = {}

    def page(self, connection: Connection, scope: str, segment: Segment, field: Field, key: int) -> Page | None:
        """Return the page of a segment that would hold a key."""
        with self._turn:
            directory = self._directory(connection, segment, field)
            place = bisect_right(directory.firsts, key) - 1
            if place < 0:
                return None
            # A number may be given again when its segment is gone, so it does not name a page alone.
            name = (segment.segment, directory.numbers[place])
            known = self._pages.get(name)
            if known is not None:
                self._pages.move_to_end(name)
                return known
            page = self._read(connection, scope, segment, field, directory, place)
            self._keep(name, page)
            return page

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
            page = self.page(connection, scope, segment, field, int(firsts[number])) if number >= 0 else None
            if page is not None:
                yield page, places

    def beginning(self, connection: Connection, scope: str, segment: Segment, start: str) -> Sequence[str]:
        """Return the words of a segment that begin so; of one whose words are not listed, the texts are read once."""
        try:
            if vocabulary.is_listed(connection, segment.segment):
                return vocabulary.beginning(connection, segment.segment, start)
        except BrokenSeal:
            self.broken[segment.segment] = (scope, segment)
        with self._turn:
            words = self._unlisted.get(segment.segment)
            if words is None:
                if len(self._unlisted) >= _UNLISTED_KEPT:
                    self._unlisted.clear()
                texts = stored_texts(connection, scope, segment.first, segment.last)
                words = self._unlisted[segment.segment] = frozenset(token for text in texts for token in text.tokens)
        return [word for word in words if word.startswith(start)]

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

    def _read(
        self, connection: Connection, scope: str, segment: Segment, field: Field, directory: Directory, place: int
    ) -> Page:
        found = connection.execute("SELECT page FROM posting_pages WHERE number = ?", (directory.numbers[place],))
        name = (segment.segment, field.number, directory.firsts[place])
        return self._unsealed(found.fetchone()[0], connection, scope, segment, name)

    def _unsealed(
        self, blob: bytes, connection: Connection, scope: str, segment: Segment, name: tuple[int, int, int]
    ) -> Page:
        try:
            return read(blob)
        except BrokenSeal:
            self.broken[segment.segment] = (scope, segment)
            return _made_anew(connection, scope, segment, name)

    def _keep(self, name: tuple[int, int], page: Page) -> None:
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
    made = list(pages(only(postings, inside), segment.first))
    return joined_pages([read(blob) for _, blob in made])


def shelved(connection: Connection, shelf: Shelf, known: Shelved | None) -> Shelved:
    """Return the segments and fresh texts of a shelf; texts that were fresh before are not read again."""
    begin = flushed_below(connection, shelf.scope)
    # What another reader holds may be of a later moment, in which some of these are gone.
    is_older = known is not None and known.changed < shelf.changed and known.epoch == shelf.epoch
    before = known.fresh if known is not None and is_older else ()
    kept = [text for text in before if begin <= text.number < len(shelf) and shelf.alive[text.number]]
    after = kept[-1].number + 1 if kept else begin
    fresh = [FreshText(text) for text in stored_texts(connection, shelf.scope, after, len(shelf) - 1)]
    return Shelved(shelf.changed, shelf.epoch, live_segments(connection, shelf.scope), (*kept, *fresh))


class Lists:
    """The lists of one scope at one moment, those read lately kept."""

    def __init__(self, shelf: Shelf, stored: Shelved, cache: Pages) -> None:
        self.stored = stored
        self._shelf = shelf
        self._cache = cache
        self._known: dict[tuple[int, str], Postings] = {}
        self._last: dict[tuple[int, str], list[Listed]] = {}
        self._counted: dict[int, Sequence[Counter[Any]]] = {}
        self.kept = 0

    def postings(self, connection: Connection, field: Field, term: str) -> Postings:
        """Return the places that hold a term; several words as one term of the words are a phrase."""
        known = self._known.get((field.number, term))
        if known is None:
            known = self._find(connection, field, term)
            if self.kept > POSTINGS_KEPT:
                self._known, self._last, self.kept = {}, {}, 0
            self._known[field.number, term] = known
            self.kept += len(known.places)
        return known

    def _find(self, connection: Connection, field: Field, term: str) -> Postings:
        if field is PAIRS:
            return self._pair(connection, *term.split(" "))
        if field is WORDS and is_several(term):
            return self._several(connection, meant(term))
        if field is WORDS and " " in term:
            return self._phrase(connection, term.split(" "))
        fresh = self._fresh([held.get(term, 0) for held in self._counts(field)])
        return self._living([Postings(*joined(self._listed(connection, field, term), *fresh))])

    def _several(self, connection: Connection, terms: Sequence[str]) -> Postings:
        """Return the places that hold any of these tokens and phrases, and how often all of them together."""
        phrases = [self.postings(connection, WORDS, term) for term in terms if " " in term]
        lists = [listed for term in terms if " " not in term for listed in self._read(connection, WORDS, term)]
        wanted = frozenset(terms)

        together = [sum(held[token] for token in held.keys() & wanted) for held in self._counts(WORDS)]
        every = [self._living([Postings(*joined(lists, *self._fresh(together)))]), *phrases]
        places, frequencies = (np.concatenate(parts) for parts in zip(*every, strict=True))
        held: Floats = np.bincount(places, frequencies, len(self._shelf)).astype(np.float64)
        there = np.flatnonzero(held)
        return Postings(there, held[there])

    def counts(self, connection: Connection, terms: Sequence[str]) -> Integers:
        """Return how many memories hold each of some tokens, a page at a time: there may be thousands."""
        keys = np.array([key_of(term) for term in terms], np.int64)
        held = np.zeros(len(terms), np.int64)
        for segment in self.stored.segments:
            living = self._shelf.alive[segment.first : segment.last + 1]
            held += self._cache.counts(connection, self._shelf.scope, segment, WORDS, keys, living)
        numbers = {term: number for number, term in enumerate(terms)}
        for text in self.stored.fresh:
            for term in text.counts[WORDS.number].keys() & numbers.keys():
                held[numbers[term]] += 1
        return held

    def beginning(self, connection: Connection, start: str) -> set[str]:
        """Return the tokens that begin so, perhaps with some that no memory holds any more."""
        known = {token for text in self.stored.fresh for token in text.tokens if token.startswith(start)}
        for segment in self.stored.segments:
            known.update(self._cache.beginning(connection, self._shelf.scope, segment, start))
        return known

    def _listed(self, connection: Connection, field: Field, term: str) -> list[Listed]:
        """Return a term's lists in the segments; those of a question's words are asked for again by its pairs."""
        known = self._last.get((field.number, term))
        if known is None:
            if len(self._last) >= _LISTS_KEPT:
                self._last = {}
            known = self._last[field.number, term] = self._read(connection, field, term)
            self.kept += sum(len(listed.offsets) for listed in known)
        return known

    def _read(self, connection: Connection, field: Field, term: str) -> list[Listed]:
        key = key_of(term)
        found = []
        for segment in self.stored.segments:
            page = self._cache.page(connection, self._shelf.scope, segment, field, key)
            listed = list_of(page, key, segment.first) if page is not None else None
            if listed is not None:
                found.append(listed)
        return found

    def _pair(self, connection: Connection, one: str, other: str) -> Postings:
        """Read off the followers of the first word where the second follows it."""
        wanted = follower_of(other)
        found = []
        for listed in self._listed(connection, WORDS, one):
            heard = np.flatnonzero(listed.followers == wanted)
            if len(heard):
                holders = np.searchsorted(np.cumsum(listed.frequencies, dtype=np.int64), heard, side="right")
                places, counts = np.unique(listed.numbers[holders], return_counts=True)
                found.append(Postings(places, counts.astype(np.float64)))
        return self._living(found, self._fresh([held.get((one, other), 0) for held in self._counts(PAIRS)]))

    def _phrase(self, connection: Connection, tokens: Sequence[str]) -> Postings:
        """Return the places that hold tokens side by side."""
        common = self._pair(connection, tokens[0], tokens[1])
        if len(tokens) == 2:
            return common
        places = common.places
        for one, other in list(pairwise(tokens))[1:]:
            places = np.intersect1d(places, self._pair(connection, one, other).places, assume_unique=True)
        # Pairs may stand apart from each other; the text itself says how often the whole stands in it.
        counts = [_occurrences(self._tokens(connection, place), tokens) for place in places.tolist()]
        held = np.array(counts, np.float64)
        return Postings(places[held > 0], held[held > 0])

    def _tokens(self, connection: Connection, place: int) -> Sequence[str]:
        texts = stored_texts(connection, self._shelf.scope, place, place)
        return texts[0].tokens if texts else ()

    def _counts(self, field: Field) -> Sequence[Counter[Any]]:
        """Return how often each term of a field stands in each fresh text; a question asks for many terms."""
        known = self._counted.get(field.number)
        if known is None:
            known = self._counted[field.number] = [text.counts[field.number] for text in self.stored.fresh]
        return known

    def _fresh(self, counts: Sequence[int]) -> Postings:
        """Return what fresh texts hold, by how often each holds it."""
        if not any(counts):
            return NOTHING
        pairs = zip(self.stored.fresh, counts, strict=True)
        held = [(text.number, min(count, MAX_FREQUENCY)) for text, count in pairs if count]
        numbers, times = zip(*held, strict=True)
        return Postings(np.array(numbers, np.int64), np.array(times, np.float64))

    def _living(self, found: Sequence[Postings], fresh: Postings = NOTHING) -> Postings:
        parts = [*found, fresh] if len(fresh.places) else found
        if not parts:
            return NOTHING
        places = np.concatenate([part.places for part in parts]) if len(parts) > 1 else parts[0].places
        frequencies = np.concatenate([part.frequencies for part in parts]) if len(parts) > 1 else parts[0].frequencies
        if self._shelf.has_gaps:
            living = self._shelf.alive[places]
            places, frequencies = places[living], frequencies[living]
        return Postings(places, frequencies)


def _occurrences(tokens: Sequence[str], phrase: Sequence[str]) -> int:
    """Count a sequence of tokens in a text."""
    size, wanted = len(phrase), list(phrase)
    places = (i for i in range(len(tokens) - size + 1) if tokens[i] == wanted[0])
    return sum(1 for i in places if list(tokens[i : i + size]) == wanted)
