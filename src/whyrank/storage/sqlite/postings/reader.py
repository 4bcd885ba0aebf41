"""Reader of postings: cached pages, and posting lists of one scope, from segments and fresh memories."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ....analysis.names import accented_in, by_plain_spelling
from ....analysis.normalize import STRING_BYTES, ByteBoundedCache
from ....types.query import OTHERWISE_COUNTS, is_several, spellings
from ...bm25 import DATES, GRAMS, PAIRS, WORDS, Field, grams_of
from ..database import ChecksumError, Connection, rows_of
from . import terms
from .format import (
    MAX_FREQUENCY,
    NO_PAGES,
    Directory,
    Page,
    Part,
    PostingList,
    Segment,
    SegmentSpan,
    Text,
    Wide,
    filed,
    follower_of,
    has_strays,
    invert,
    joined,
    key_of,
    keys_of,
    list_of,
    one_page,
    one_unfiled,
    only,
    read,
    span,
    stored_texts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ..doc_values import Flags, Floats, Integers, ScopeDocValues
    from .kernel import Kernel


class Postings:
    """Ascending places that hold a term, with the frequency of each."""

    def __init__(self, parts: tuple[Part, ...], alive: Flags | None = None) -> None:
        self.parts = parts
        self.alive = alive  # mask of the places that count; None if all do

    @cached_property
    def size(self) -> int:
        """Return the number of places that hold the term."""
        if self.alive is None:
            return sum([part.size for part in self.parts])
        return sum([int(np.count_nonzero(self.alive[part.numbers])) for part in self.parts])

    @property
    def places(self) -> Integers:
        """Return the places."""
        return self.joined.places

    @property
    def frequencies(self) -> Floats:
        """Return the term frequency of each place."""
        return self.joined.frequencies

    @cached_property
    def joined(self) -> Wide:
        """Return places and frequencies as arrays, joined over all parts."""
        every = joined(self.parts)
        return every if self.alive is None else every.only(self.alive)

    def gathered(self, belonging: Integers, groups: int, kernel: Kernel) -> Postings:
        """Return the groups whose places hold the term, with their summed frequencies.

        Each row of `belonging` maps every place to a group; a place in none, or one that does not count, has a number
        outside the range of groups.
        """
        found = kernel.gathered(self.parts, belonging, len(belonging), groups)
        if found is not None:
            return Postings((Wide(np.frombuffer(found[0], np.int64), np.frombuffer(found[1])),) if found[0] else ())
        reached = belonging[:, self.places].ravel()
        inside = (reached >= 0) & (reached < groups)
        return _summed(reached[inside], np.tile(self.frequencies, len(belonging))[inside])


def _summed(groups: Integers, often: Floats) -> Postings:
    """Sum the frequencies of a term by group."""
    if not len(groups):
        return Postings(())
    if (groups[1:] < groups[:-1]).any():
        order = np.argsort(groups, kind="stable")
        groups, often = groups[order], often[order]
    starts = np.concatenate(((0,), (groups[1:] != groups[:-1]).nonzero()[0] + 1))
    return Postings((Wide(groups[starts], np.add.reduceat(often, starts)),))


# Memories of a segment are only ever removed, so a cached frequency is valid while their count is equal.
TALLY_BYTES = 16 * 1024 * 1024  # of all cached frequencies; those of the segments of three hundred thousand notes


class DocumentFrequencies(NamedTuple):
    """Document frequencies of a segment by ascending key, and the number of living memories at the time."""

    keys: Integers
    held: NDArray[np.int32]
    living: int

    @property
    def nbytes(self) -> int:
        """Return the memory of the arrays, in bytes."""
        return self.keys.nbytes + self.held.nbytes

    def of(self, keys: Integers) -> Integers:
        """Return the document frequency of each of some terms."""
        if not len(self.keys):
            return np.zeros(len(keys), np.int64)
        places = np.minimum(self.keys.searchsorted(keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, self.held[places], 0).astype(np.int64)


class DocumentFrequencyCache:
    """LRU cache of document frequencies by segment."""

    def __init__(self, max_bytes: int = TALLY_BYTES) -> None:
        self._known: ByteBoundedCache[int, DocumentFrequencies] = ByteBoundedCache(
            max_bytes, lambda _, tally: tally.nbytes
        )

    @property
    def nbytes(self) -> int:
        """Return the memory of the cache, in bytes."""
        return self._known.nbytes

    def known(self, segment: int, living: Flags) -> DocumentFrequencies | None:
        """Return the cached frequencies of a segment, if as many of its memories live."""
        found = self._known.get(segment)
        return found if found is not None and found.living == np.count_nonzero(living) else None

    def made(self, segment: int, living: Flags, pages: Callable[[], Iterable[Page]]) -> DocumentFrequencies:
        """Return the frequencies of a segment, counted from its pages if they are not cached."""
        known = self.known(segment, living)
        if known is None:
            known = tally(pages(), living)
            self._known.put(segment, known)
        return known


def tally(pages: Iterable[Page], living: Flags) -> DocumentFrequencies:
    """Count the document frequencies in pages, in their order."""
    found = [(page.keys, held_in(page, living)) for page in pages if len(page.keys)]
    keys = np.concatenate([keys for keys, _ in found]) if found else np.zeros(0, np.int64)
    held = np.concatenate([held for _, held in found]) if found else np.zeros(0, np.int64)
    return DocumentFrequencies(keys, held.astype(np.int32), int(np.count_nonzero(living)))


def held_in(page: Page, living: Flags) -> Integers:
    """Return the number of living memories that hold each term of a page."""
    ends = page.ends.astype(np.int64)
    if living.all():
        ends[1:] -= page.ends[:-1]
        return ends
    held: Integers = np.add.reduceat(living[page.offsets].astype(np.int64), np.append(0, ends[:-1]))
    return held


_FILED_BYTES = 80  # of a page in a directory: its lowest key and its number
_TALLY_SHARE, _DIRECTORY_SHARE, _WORD_SHARE = 1 / 5, 1 / 50, 1 / 50  # of the cache; pages take the rest
# Terms are hashed over all pages: for many terms, all pages are read once, and their counts cached.
_PAGES_PER_KEY = 4
_PAGES_PER_STATEMENT = 16
_PAGES_BY_NUMBER = {
    count: f"SELECT number, page FROM posting_pages WHERE number IN ({', '.join('?' * count)})"
    for count in range(1, _PAGES_PER_STATEMENT + 1)
}


Name = tuple[Segment, int]  # a segment, and the number of a page of it


class Missing(NamedTuple):
    """A page to be read: its segment and field, its range of keys, and the directory that lists it."""

    segment: Segment
    field: Field
    first: int
    below: int | None
    directory: Directory


class _Filed(NamedTuple):
    """Directories of the pages of a segment, by field; None where they are damaged."""

    fields: Mapping[int, Directory] | None


def _filed_bytes(_: Segment, filed: _Filed) -> int:
    return _FILED_BYTES * sum(len(directory.numbers) for directory in (filed.fields or {}).values())


class PageCache:
    """LRU cache of pages.

    A segment changes only when removed memories are scrubbed from it, and its count of memories falls then: so a
    segment with its count is the cache key.
    """

    def __init__(self, max_bytes: int) -> None:
        rest = 1 - _TALLY_SHARE - _DIRECTORY_SHARE - 2 * _WORD_SHARE
        self._pages: ByteBoundedCache[Name, Page] = ByteBoundedCache(int(max_bytes * rest), lambda _, page: page.nbytes)
        self._filed: ByteBoundedCache[Segment, _Filed] = ByteBoundedCache(
            int(max_bytes * _DIRECTORY_SHARE), _filed_bytes
        )
        # Of segments of an older version, whose words are kept in memory until they are listed.
        self._unlisted: ByteBoundedCache[Segment, frozenset[str]] = ByteBoundedCache(
            int(max_bytes * _WORD_SHARE), lambda _, words: 2 * STRING_BYTES * len(words)
        )
        self._accented: ByteBoundedCache[Segment, Mapping[str, tuple[str, ...]]] = ByteBoundedCache(
            int(max_bytes * _WORD_SHARE), lambda _, table: 4 * STRING_BYTES * len(table)
        )
        self._tallies = DocumentFrequencyCache(int(max_bytes * _TALLY_SHARE))
        self._turn = threading.Lock()
        self.broken: dict[int, tuple[str, Segment]] = {}
        self.unbelieved: set[str] = set()  # scopes whose segments are inconsistent
        self.has_strays: bool | None = None  # None until it was checked

    def cache_bytes(self) -> dict[str, int]:
        """Return the memory of each cache, in bytes."""
        words = self._unlisted.nbytes + self._accented.nbytes
        directories = {"directories": self._filed.nbytes, "words": words}
        return {"pages": self._pages.nbytes, "tallies": self._tallies.nbytes} | directories

    def lists(
        self, connection: Connection, scope: str, segments: Sequence[Segment], field: Field, keys: Sequence[int]
    ) -> list[list[PostingList]]:
        """Return the lists of some terms in some segments; pages that are not cached are read together."""
        found: list[list[PostingList]] = [[] for _ in keys]
        for segment, number, page in self._spots(connection, scope, segments, field, keys):
            listed = list_of(page, keys[number], segment.first)
            if listed is not None:
                found[number].append(listed)
        return found

    def _spots(
        self, connection: Connection, scope: str, segments: Sequence[Segment], field: Field, keys: Sequence[int]
    ) -> list[tuple[Segment, int, Page]]:
        """Return the pages whose range includes some keys, each with its segment and the index of its key."""
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
                    # A page number may be reused when its segment is gone, so it does not identify a page alone.
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
        """Return the document frequency of each of some terms among the living memories of a segment."""
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
        """Yield all pages of a segment in order, as they are read; they are not cached."""
        numbers = directory.numbers
        for begin in range(0, len(numbers), _PAGES_PER_STATEMENT):
            places = range(begin, min(begin + _PAGES_PER_STATEMENT, len(numbers)))
            some = {(segment, numbers[place]): _missing(segment, field, directory, place) for place in places}
            yield from self._read(connection, scope, some).values()

    def _pages_for(
        self, connection: Connection, scope: str, segment: Segment, field: Field, keys: Integers
    ) -> Iterator[tuple[Page, Integers]]:
        """Yield the pages of a segment whose range includes some keys, each with the positions of those keys."""
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
        """Return the words of a segment with a prefix; without a term dictionary, its texts are read once."""
        try:
            listed = self._listed_words(connection, scope, segment)
            if listed is not None:
                return terms.beginning(connection, segment.segment, start, listed.lists)
        except ChecksumError:
            self.broken[segment.segment] = (scope, segment)
        return [word for word in self._words(connection, scope, segment) if word.startswith(start)]

    def accented(self, connection: Connection, scope: str, segment: Segment) -> Mapping[str, tuple[str, ...]]:
        """Return the accented words of a segment by their spelling without accents, cached by segment."""
        known = self._accented.get(segment)
        if known is None:
            known = by_plain_spelling(self._all_accented(connection, scope, segment))
            self._accented.put(segment, known)
        return known

    def _all_accented(self, connection: Connection, scope: str, segment: Segment) -> Sequence[str]:
        try:
            listed = self._listed_words(connection, scope, segment)
            if listed is not None:
                return terms.accented(connection, segment.segment, listed.lists)
        except ChecksumError:
            self.broken[segment.segment] = (scope, segment)
        return accented_in(" ".join(self._words(connection, scope, segment)))

    def _words(self, connection: Connection, scope: str, segment: Segment) -> frozenset[str]:
        """Return the words of a segment without a term dictionary, from its texts."""
        with self._turn:
            words = self._unlisted.get(segment)
            if words is None:
                texts = stored_texts(connection, scope, segment.first, segment.last)
                words = frozenset(token for text in texts for token in text.tokens)
                self._unlisted.put(segment, words)
            return words

    def _listed_words(self, connection: Connection, scope: str, segment: Segment) -> Directory | None:
        """Return the pages of a segment's term dictionary; None without one."""
        with self._turn:
            fields = self._fields(connection, scope, segment)
        words = fields.get(terms.FIELD) if fields is not None else None
        return words if words is not None and words.firsts[0] == terms.FIRST else None

    def _directory(self, connection: Connection, scope: str, segment: Segment, field: Field) -> Directory:
        fields = self._fields(connection, scope, segment)
        if fields is None or (field is WORDS and field.number not in fields):
            return one_unfiled(field)
        return fields.get(field.number, NO_PAGES)

    def _fields(self, connection: Connection, scope: str, segment: Segment) -> Mapping[int, Directory] | None:
        """Return the directories of a segment; None where they are damaged, and its texts are read instead."""
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
            page = read(blob)
            if page.lowest != missing.first or not missing.directory.lists(missing.first, blob):
                raise ChecksumError
            return page
        except ChecksumError:
            page, segment = _made_anew(connection, scope, missing), missing.segment
            if not self.has_strays and (blob or page.count):  # an empty segment has no page
                self.broken[segment.segment] = (scope, segment)
            return page


def _missing(segment: Segment, field: Field, directory: Directory, place: int) -> Missing:
    firsts = directory.firsts
    return Missing(segment, field, firsts[place], firsts[place + 1] if place + 1 < len(firsts) else None, directory)


def _made_anew(connection: Connection, scope: str, missing: Missing) -> Page:
    """Rebuild one page from the texts; the same texts always give the same pages.

    After removals they are split elsewhere, so the range of keys of the broken page is taken from all of them.
    """
    segment, field, first, below, _ = missing
    postings = invert(stored_texts(connection, scope, segment.first, segment.last))[field]
    inside = (postings.keys >= first) & ((postings.keys < below) if below is not None else True)
    return one_page(only(postings, inside), segment.first)


_POSTING_BYTES = 16  # a place and its frequency
_PART_BYTES = 256  # a tuple, and the headers of its arrays


@dataclass(frozen=True)
class FreshText:
    """A memory in the write buffer, not yet in a segment, with its terms counted."""

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
    def accented(self) -> Sequence[str]:
        """Return the tokens that have accents."""
        return accented_in(" ".join(self.tokens))

    @cached_property
    def counts(self) -> Mapping[int, Counter[Any]]:
        """Return the frequency of each term by field; pairs as pairs of tokens, whatever their script."""
        return {
            WORDS.number: Counter(self.tokens),
            GRAMS.number: Counter(grams_of(self.tokens) if self.text.letters else ()),
            DATES.number: Counter(self.text.marks),
            PAIRS.number: Counter(pairwise(self.tokens)),
        }


@dataclass(frozen=True)
class Shelved:
    """The segments and fresh texts of one scope at one change."""

    changed: int
    epoch: int
    segments: Sequence[Segment]
    fresh: Sequence[FreshText]
    is_believed: bool = True  # False if the segments are inconsistent; then all texts count as fresh


def shelved(connection: Connection, shelf: ScopeDocValues, known: Shelved | None) -> Shelved:
    """Return the segments and fresh texts of a scope; known fresh texts are not read again."""
    held = _believed(connection, shelf)
    segments, begin = held or SegmentSpan((), 0)
    # The known state may be of a later snapshot, in which some of these are gone.
    is_older = known is not None and known.changed < shelf.changed and known.epoch == shelf.epoch
    is_alike = known is not None and known.is_believed == (held is not None)
    before = known.fresh if known is not None and is_older and is_alike else ()
    kept = [text for text in before if begin <= text.number < len(shelf) and shelf.alive[text.number]]
    after = kept[-1].number + 1 if kept else begin
    fresh = [FreshText(text) for text in stored_texts(connection, shelf.scope, after, len(shelf) - 1)]
    return Shelved(shelf.changed, shelf.epoch, segments, (*kept, *fresh), held is not None)


def _believed(connection: Connection, shelf: ScopeDocValues) -> SegmentSpan | None:
    """Return the segments of a scope; None if they are inconsistent."""
    try:
        held = span(connection, shelf.scope)
    except ChecksumError:
        return None
    return held if held.flushed <= len(shelf) else None


class PostingLists:
    """LRU cache of the posting lists of one scope at one change."""

    def __init__(
        self, shelf: ScopeDocValues, stored: Shelved, cache: PageCache, kernel: Kernel, max_bytes: int
    ) -> None:
        self.stored = stored
        self._shelf = shelf
        self._alive = shelf.alive if shelf.has_gaps else None
        self._cache = cache
        self._kernel = kernel
        self._known: ByteBoundedCache[tuple[int, str], Postings] = ByteBoundedCache(max_bytes, _size)
        self._accented: Sequence[Mapping[str, tuple[str, ...]]] | None = None
        self._counted: dict[int, Sequence[Counter[Any]]] = {}
        self._fresh_bytes = sum(STRING_BYTES * len(text.tokens) for text in stored.fresh)

    @property
    def nbytes(self) -> int:
        """Return the approximate memory of the lists and the fresh texts, in bytes."""
        return self._known.nbytes + self._fresh_bytes

    def clear(self) -> None:
        """Clear the cached lists."""
        self._known.clear()

    def postings(self, connection: Connection, field: Field, term: str) -> Postings:
        """Return the postings of a term; a term of the words field with several words is a phrase."""
        known = self._known.get((field.number, term))
        return known if known is not None else self.several(connection, field, [term])[0]

    def several(self, connection: Connection, field: Field, terms: Sequence[str]) -> list[Postings]:
        """Return the postings of some terms; uncached lists are read together."""
        number = field.number
        known = self._known.get_many([(number, term) for term in terms])
        missing = [term for term, found in zip(terms, known, strict=True) if found is None]
        if not missing:
            return known  # type: ignore[return-value]
        found = self._found(connection, field, missing)
        self._known.update({(number, term): postings for term, postings in found.items()})
        return [found[term] if one is None else one for term, one in zip(terms, known, strict=True)]

    def _found(self, connection: Connection, field: Field, terms: Sequence[str]) -> dict[str, Postings]:
        if field is PAIRS:
            return {term: self._pair(connection, *term.split(" ")) for term in terms}
        plain = [term for term in terms if " " not in term and not is_several(term)] if field is WORDS else terms
        read = self._read(connection, field, plain)
        found = {term: Postings(parts, self._alive) for term, parts in zip(plain, read, strict=True)}
        for term in terms if len(plain) < len(terms) else ():
            if is_several(term):
                found[term] = self._together(connection, *spellings(term))
            elif term not in found:
                found[term] = self._phrase(connection, term.split(" "))
        return found

    def _read(self, connection: Connection, field: Field, terms: Sequence[str]) -> list[tuple[Part, ...]]:
        """Return the lists of some terms in the segments, followed by those of fresh texts."""
        keys = [key_of(term) for term in terms]
        lists = self._cache.lists(connection, self._shelf.scope, self.stored.segments, field, keys)
        fresh = self._counts(field)
        if not fresh:
            return [*map(tuple, lists)]
        return [
            (*listed, *self._fresh([held.get(term, 0) for held in fresh]))
            for term, listed in zip(terms, lists, strict=True)
        ]

    def _together(self, connection: Connection, asked: Sequence[str], others: Sequence[str]) -> Postings:
        """Return the places that hold any of these tokens and phrases, with their summed frequencies."""
        held = self._occurrences(connection, asked)
        if others:
            weight = OTHERWISE_COUNTS if asked else 1.0
            held = held + weight * self._occurrences(connection, others)
        there = np.flatnonzero(held)
        return Postings((Wide(there, held[there]),))

    def _occurrences(self, connection: Connection, terms: Sequence[str]) -> Floats:
        """Return the summed frequency of these tokens and phrases at each place."""
        words = [term for term in terms if " " not in term]
        keys = [key_of(term) for term in words]
        lists = self._cache.lists(connection, self._shelf.scope, self.stored.segments, WORDS, keys)
        wanted = frozenset(words)

        together = [sum(held[token] for token in held.keys() & wanted) for held in self._counts(WORDS)]
        parts: list[Part] = [listed for found in lists for listed in found]
        every = [Postings((*parts, *self._fresh(together)), self._alive)]
        every += [self.postings(connection, WORDS, term) for term in terms if " " in term]
        places = np.concatenate([found.places for found in every])
        frequencies = np.concatenate([found.frequencies for found in every])
        counted: Floats = np.bincount(places, frequencies, len(self._shelf)).astype(np.float64)
        return counted

    def counts(self, connection: Connection, terms: Sequence[str]) -> Integers:
        """Return the document frequencies of some tokens, page by page: there may be thousands."""
        keys = keys_of(terms)
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
        """Return the tokens with a prefix; they may include those of removed memories."""
        known = {token for text in self.stored.fresh for token in text.tokens if token.startswith(start)}
        for segment in self.stored.segments:
            known.update(self._cache.beginning(connection, self._shelf.scope, segment, start))
        return known

    def accented(self, connection: Connection) -> Sequence[Mapping[str, tuple[str, ...]]]:
        """Return accented tokens by their plain spelling; they may include those of removed memories."""
        known = self._accented
        if known is None:
            scope, fresh = self._shelf.scope, {token for text in self.stored.fresh for token in text.accented}
            tables = [self._cache.accented(connection, scope, segment) for segment in self.stored.segments]
            known = self._accented = [table for table in (*tables, by_plain_spelling(fresh)) if table]
        return known

    def _pair(self, connection: Connection, one: str, other: str) -> Postings:
        """Return the postings of a pair, from the followers of its first word."""
        wanted = follower_of(other)
        lists = (part for part in self.postings(connection, WORDS, one).parts if isinstance(part, PostingList))
        heard = [pairs for pairs in (self._kernel.pairs(listed, wanted) for listed in lists) if pairs is not None]
        found = [Wide(np.frombuffer(places, np.int64), np.frombuffer(often)) for places, often in heard]
        found += self._fresh([held.get((one, other), 0) for held in self._counts(PAIRS)])
        if not found:
            return Postings(())
        pairs = joined(found)
        return Postings((pairs if self._alive is None else pairs.only(self._alive),))

    def _phrase(self, connection: Connection, tokens: Sequence[str]) -> Postings:
        """Return the places that hold tokens side by side."""
        common = self._pair(connection, tokens[0], tokens[1])
        if len(tokens) == 2:
            return common
        places = common.places
        for one, other in list(pairwise(tokens))[1:]:
            places = np.intersect1d(places, self._pair(connection, one, other).places, assume_unique=True)
        # The pairs may not be adjacent to each other; the phrase is counted in the text itself.
        counts = [_occurrences(self._tokens(connection, place), tokens) for place in places.tolist()]
        held = np.array(counts, np.float64)
        return Postings((Wide(places[held > 0], held[held > 0]),))

    def _tokens(self, connection: Connection, place: int) -> Sequence[str]:
        texts = stored_texts(connection, self._shelf.scope, place, place)
        return texts[0].tokens if texts else ()

    def _counts(self, field: Field) -> Sequence[Counter[Any]]:
        """Return the term frequencies of a field in each fresh text, cached: a query has many terms."""
        known = self._counted.get(field.number)
        if known is None:
            known = self._counted[field.number] = [text.counts[field.number] for text in self.stored.fresh]
        return known

    def _fresh(self, counts: Sequence[int]) -> Sequence[Wide]:
        """Return the postings of fresh texts with these frequencies; none if all are zero."""
        if not any(counts):
            return ()
        pairs = zip(self.stored.fresh, counts, strict=True)
        held = [(text.number, min(count, MAX_FREQUENCY)) for text, count in pairs if count]
        numbers, times = zip(*held, strict=True)
        return (Wide(np.array(numbers, np.int64), np.array(times, np.float64)),)


def _size(key: tuple[int, str], found: Postings) -> int:
    """Return the bytes of a list: of the arrays it may be joined into, and of the pages it references."""
    return len(key[1]) + sum([
        _PART_BYTES + _POSTING_BYTES * part.size + (len(part.blob) if isinstance(part, PostingList) else 0)
        for part in found.parts
    ])  # fmt: skip


def _occurrences(tokens: Sequence[str], phrase: Sequence[str]) -> int:
    """Count a sequence of tokens in a text."""
    size, wanted = len(phrase), list(phrase)
    places = (i for i in range(len(tokens) - size + 1) if tokens[i] == wanted[0])
    return sum(1 for i in places if list(tokens[i : i + size]) == wanted)
