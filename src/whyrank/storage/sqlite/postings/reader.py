"""Reader of postings: cached pages, and posting lists of one scope, from segments and fresh memories."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ....analysis.names import accented_in, by_plain_spelling
from ....analysis.normalize import STRING_BYTES, ByteBoundedCache
from ....types.query import OTHERWISE_COUNTS, is_several, spellings
from ...bm25 import DATES, FIELDS, GRAMS, PAIRS, WORDS, Field, grams_of
from ..database import ChecksumError, Connection, foresee, rows_of
from . import terms
from .format import (
    FOLLOWER_MASK,
    INDEXED,
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
    filed_asked,
    find_list,
    has_strays,
    invert,
    joined,
    key_of,
    keys_of,
    one_page,
    one_unfiled,
    only,
    read,
    span,
    span_asked,
    stored_texts,
    strays_asked,
    texts_asked,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from ..database import Asked
    from ..doc_values import Flags, Floats, Integers, ScopeDocValues
    from .kernel import Kernel


class Postings:
    """Ascending places that hold a term, with the frequency of each."""

    def __init__(self, parts: tuple[Part, ...], alive: Flags | None = None) -> None:
        self.parts = parts
        self.alive = alive  # mask of the places that count; None if all do
        self.size = 0  # places that hold the term
        self.nbytes = 0  # of the arrays that the lists may be joined into, and of the pages they reference
        for part in parts:
            held = part.size if isinstance(part, PostingList) else len(part.places)
            self.size += held if alive is None else int(np.count_nonzero(alive[part.numbers]))
            self.nbytes += _PART_BYTES + _POSTING_BYTES * held
            self.nbytes += len(part.blob) if isinstance(part, PostingList) else 0

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
        reached = belonging[:, self.joined.places].ravel()
        inside = (reached >= 0) & (reached < groups)
        reached, often = reached[inside], np.tile(self.joined.frequencies, len(belonging))[inside]
        if not len(reached):
            return Postings(())
        if (reached[1:] < reached[:-1]).any():
            order = np.argsort(reached, kind="stable")
            reached, often = reached[order], often[order]
        starts = np.concatenate(((0,), (reached[1:] != reached[:-1]).nonzero()[0] + 1))
        return Postings((Wide(reached[starts], np.add.reduceat(often, starts)),))


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
    """LRU cache of document frequencies by scope and number of a segment."""

    def __init__(self, max_bytes: int = TALLY_BYTES) -> None:
        self._known: ByteBoundedCache[tuple[str, int], DocumentFrequencies] = ByteBoundedCache(
            max_bytes, lambda _, tally: tally.nbytes
        )

    @property
    def nbytes(self) -> int:
        """Return the memory of the cache, in bytes."""
        return self._known.nbytes

    def known(self, scope: str, segment: int, living: Flags) -> DocumentFrequencies | None:
        """Return the cached frequencies of a segment, if as many of its memories live."""
        found = self._known.get((scope, segment))
        return found if found is not None and found.living == np.count_nonzero(living) else None

    def put(self, scope: str, segment: int, frequencies: DocumentFrequencies) -> None:
        """Cache the frequencies of a segment."""
        self._known.put((scope, segment), frequencies)


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


_DIRECTORY_ENTRY_BYTES = 80  # of a page in a directory: its lowest key and its checksum
_TALLY_SHARE, _DIRECTORY_SHARE, _WORD_SHARE = 1 / 5, 1 / 50, 1 / 50  # of the cache; pages take the rest
# Terms are hashed over all pages: for many terms, all pages are read once, and their counts cached.
_PAGES_PER_KEY = 4
_PAGES_PER_STATEMENT = 16
_PAGES_BY_KEY = {
    count: "SELECT first_key, page FROM posting_pages WHERE scope = ? AND segment = ? AND field = ? "
    f"AND first_key IN ({', '.join('?' * count)})"
    for count in range(1, _PAGES_PER_STATEMENT + 1)
}


Name = tuple[Segment, int, int]  # a segment, and the field and the lowest key of a page of it


class Missing(NamedTuple):
    """A page to be read: its segment and field, its range of keys, and the directory that lists it."""

    segment: Segment
    field: Field
    first: int
    below: int | None
    directory: Directory


Directories = Mapping[int, Directory]  # the pages of a segment by field


def _directory_bytes(_: Segment, directories: Directories) -> int:
    return _DIRECTORY_ENTRY_BYTES * sum(len(directory.firsts) for directory in directories.values())


class PageCache:
    """LRU cache of pages.

    A segment changes only when removed memories are scrubbed from it, and its count of memories falls then: so a
    segment with its count is the cache key.
    """

    def __init__(self, max_bytes: int) -> None:
        rest = 1 - _TALLY_SHARE - _DIRECTORY_SHARE - 2 * _WORD_SHARE
        self._pages: ByteBoundedCache[Name, Page] = ByteBoundedCache(int(max_bytes * rest), lambda _, page: page.nbytes)
        self._directories: ByteBoundedCache[Segment, Directories] = ByteBoundedCache(
            int(max_bytes * _DIRECTORY_SHARE), _directory_bytes
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
        self.broken: dict[tuple[str, int], Segment] = {}  # damaged segments by scope and number
        self.inconsistent: set[str] = set()  # scopes whose segments are inconsistent
        self.strays: set[str] = set()  # scopes with pages that belong to no segment

    def cache_bytes(self) -> dict[str, int]:
        """Return the memory of each cache, in bytes."""
        words = self._unlisted.nbytes + self._accented.nbytes
        directories = {"directories": self._directories.nbytes, "words": words}
        return {"pages": self._pages.nbytes, "tallies": self._tallies.nbytes} | directories

    def read_lists(
        self, connection: Connection, segments: Sequence[Segment], field: Field, keys: Sequence[int]
    ) -> list[list[PostingList]]:
        """Return the lists of some terms in some segments; pages that are not cached are read together."""
        wanted: list[tuple[Segment, int, Name]] = []
        pages: dict[Name, Page] = {}
        missing: dict[Name, Missing] = {}
        with self._turn:
            foresee(connection, self.directories_asked(segments))
            for segment in segments:
                known = self._directories.get(segment) or self._read_directories(connection, segment)
                directory = known.get(field.number, NO_PAGES)
                for term, key in enumerate(keys):
                    place = bisect_right(directory.firsts, key) - 1
                    if place < 0:
                        continue
                    name = (segment, field.number, directory.firsts[place])
                    page = self._pages.get(name)
                    if page is not None:
                        pages[name] = page
                    else:
                        missing[name] = _missing(segment, field, directory, place)
                    wanted.append((segment, term, name))
            if missing:
                read = self._read(connection, missing)
                pages.update(read)
                self._pages.update(read)
        found: list[list[PostingList]] = [[] for _ in keys]
        for segment, term, name in wanted:
            listed = find_list(pages[name], keys[term], segment.first)
            if listed is not None:
                found[term].append(listed)
        return found

    def directories_asked(self, segments: Sequence[Segment]) -> Iterator[Asked]:
        """Yield the statements that read the directories of segments which are not cached."""
        for segment in segments:
            if segment not in self._directories:
                yield strays_asked(segment.scope)
                yield from filed_asked(segment)

    def pages_asked(self, segments: Sequence[Segment], field: Field, keys: Sequence[int]) -> Iterator[Asked]:
        """Yield the statements that read the uncached pages of some terms, where directories are cached."""
        names: dict[Name, None] = {}
        for segment in segments:
            directory = (self._directories.get(segment) or {}).get(field.number, NO_PAGES)
            for place in (bisect_right(directory.firsts, key) - 1 for key in keys if directory.is_stored):
                if place >= 0 and (name := (segment, field.number, directory.firsts[place])) not in self._pages:
                    names[name] = None
        return _pages_asked(names)

    def counts(self, connection: Connection, segment: Segment, field: Field, keys: Integers, living: Flags) -> Integers:
        """Return the document frequency of each of some terms among the living memories of a segment."""
        with self._turn:
            known = self._directories.get(segment) or self._read_directories(connection, segment)
        directory = known.get(field.number, NO_PAGES)
        frequencies = self._tallies.known(segment.scope, segment.segment, living)
        if frequencies is None and len(keys) * _PAGES_PER_KEY >= len(directory.firsts):
            frequencies = tally(self._whole(connection, segment, field, directory), living)
            self._tallies.put(segment.scope, segment.segment, frequencies)
        if frequencies is not None:
            return frequencies.of(keys)
        held = np.zeros(len(keys), np.int64)
        for page, asked in self._pages_for(connection, segment, field, directory, keys):
            held[asked] = tally([page], living).of(keys[asked])
        return held

    def _whole(self, connection: Connection, segment: Segment, field: Field, directory: Directory) -> Iterator[Page]:
        """Yield all pages of a segment in order, as they are read; they are not cached."""
        firsts = directory.firsts
        for begin in range(0, len(firsts), _PAGES_PER_STATEMENT):
            places = range(begin, min(begin + _PAGES_PER_STATEMENT, len(firsts)))
            some = {
                (segment, field.number, firsts[place]): _missing(segment, field, directory, place) for place in places
            }
            yield from self._read(connection, some).values()

    def _pages_for(
        self,
        connection: Connection,
        segment: Segment,
        field: Field,
        directory: Directory,
        keys: Integers,
    ) -> Iterator[tuple[Page, Integers]]:
        """Yield the pages of a segment whose range includes some keys, each with the positions of those keys."""
        order = np.argsort(keys, kind="stable")
        pages = np.searchsorted(np.array(directory.firsts, np.int64), keys[order], side="right") - 1
        found, starts = np.unique(pages, return_index=True)
        for place, asked in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
            if place < 0:
                continue
            name = (segment, field.number, directory.firsts[place])
            with self._turn:
                page = self._pages.get(name)
                if page is None:
                    page = self._read(connection, {name: _missing(segment, field, directory, place)})[name]
                    self._pages.put(name, page)
            yield page, asked

    def beginning(self, connection: Connection, segment: Segment, start: str) -> Sequence[str]:
        """Return the words of a segment with a prefix; without a term dictionary, its texts are read once."""
        try:
            listed = self._listed_words(connection, segment)
            if listed is not None:
                return terms.beginning(connection, segment, start, listed.lists)
        except ChecksumError:
            self._mark_broken(segment)
        return [word for word in self._words(connection, segment) if word.startswith(start)]

    def accented(self, connection: Connection, segment: Segment) -> Mapping[str, tuple[str, ...]]:
        """Return the accented words of a segment by their spelling without accents, cached by segment."""
        known = self._accented.get(segment)
        if known is None:
            known = by_plain_spelling(self._all_accented(connection, segment))
            self._accented.put(segment, known)
        return known

    def _all_accented(self, connection: Connection, segment: Segment) -> Sequence[str]:
        try:
            listed = self._listed_words(connection, segment)
            if listed is not None:
                return terms.accented(connection, segment, listed.lists)
        except ChecksumError:
            self._mark_broken(segment)
        return accented_in(" ".join(self._words(connection, segment)))

    def _mark_broken(self, segment: Segment) -> None:
        self.broken[segment.scope, segment.segment] = segment

    def _words(self, connection: Connection, segment: Segment) -> frozenset[str]:
        """Return the words of a segment without a term dictionary, from its texts."""
        with self._turn:
            words = self._unlisted.get(segment)
            if words is None:
                texts = stored_texts(connection, segment.scope, segment.first, segment.last)
                words = frozenset(token for text in texts for token in text.tokens)
                self._unlisted.put(segment, words)
            return words

    def _listed_words(self, connection: Connection, segment: Segment) -> Directory | None:
        """Return the pages of a segment's term dictionary; None without one."""
        with self._turn:
            known = self._directories.get(segment) or self._read_directories(connection, segment)
        words = known.get(terms.FIELD)
        return words if words is not None and words.firsts[0] == terms.FIRST else None

    def _read_directories(self, connection: Connection, segment: Segment) -> Directories:
        """Read the directories of a segment; where they are damaged, its texts are read in place of its pages."""
        foresee(connection, self.directories_asked([segment]))
        is_astray = has_strays(connection, segment.scope)
        (self.strays.add if is_astray else self.strays.discard)(segment.scope)
        found = filed(connection, segment)
        if found is None:
            self._mark_broken(segment)
        if found is None or is_astray:
            found = {field.number: one_unfiled() for field in INDEXED}
        elif WORDS.number not in found:
            found = {**found, WORDS.number: one_unfiled()}
        self._directories.put(segment, found)
        return found

    def _read(self, connection: Connection, missing: Mapping[Name, Missing]) -> dict[Name, Page]:
        asked = [*_pages_asked(name for name, one in missing.items() if one.directory.is_stored)]
        foresee(connection, asked)
        blobs: dict[tuple[object, ...], bytes] = {}
        for statement, place in asked:
            blobs.update(((*place[:3], first), blob) for first, blob in rows_of(connection, statement, place))
        return {
            name: self._decode(blobs.get((*name[0][:2], *name[1:]), b""), connection, one)
            for name, one in missing.items()
        }

    def _decode(self, blob: bytes, connection: Connection, missing: Missing) -> Page:
        try:
            page = read(blob)
            if page.lowest != missing.first or not missing.directory.lists(missing.first, blob):
                raise ChecksumError
            return page
        except ChecksumError:
            page, segment = _rebuild_page(connection, missing), missing.segment
            if segment.scope not in self.strays and (blob or page.count):  # an empty segment has no page
                self._mark_broken(segment)
            return page


def _pages_asked(names: Iterable[Name]) -> Iterator[Asked]:
    """Yield the statements that read some pages, those of a field of a segment together."""
    firsts: dict[tuple[Segment, int], list[int]] = {}
    for segment, field, first in names:
        firsts.setdefault((segment, field), []).append(first)
    for (segment, field), own in firsts.items():
        for begin in range(0, len(own), _PAGES_PER_STATEMENT):
            some = own[begin : begin + _PAGES_PER_STATEMENT]
            yield _PAGES_BY_KEY[len(some)], (segment.scope, segment.segment, field, *some)


def _missing(segment: Segment, field: Field, directory: Directory, place: int) -> Missing:
    firsts = directory.firsts
    return Missing(segment, field, firsts[place], firsts[place + 1] if place + 1 < len(firsts) else None, directory)


def _rebuild_page(connection: Connection, missing: Missing) -> Page:
    """Rebuild one page from the texts; the same texts always give the same pages.

    After removals they are split elsewhere, so the range of keys of the broken page is taken from all of them.
    """
    segment, field, first, below, _ = missing
    postings = invert(stored_texts(connection, segment.scope, segment.first, segment.last))[field]
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
class ScopeSegments:
    """The segments and fresh texts of one scope at one change."""

    changed: int
    epoch: int
    segments: Sequence[Segment]
    fresh: Sequence[FreshText]
    is_consistent: bool = True  # False if the segments are inconsistent; then all texts count as fresh


def open_segments(
    connection: Connection, scopes: Sequence[tuple[ScopeDocValues, ScopeSegments | None]]
) -> list[ScopeSegments]:
    """Return the segments and fresh texts of some scopes, given with what is known of each."""
    foresee(connection, (asked for shelf, _ in scopes for asked in span_asked(shelf.scope)))
    stored = [_without_new_texts(connection, shelf, known) for shelf, known in scopes]
    places = [
        (shelf.scope, stored.fresh[-1].number + 1 if stored.fresh else begin, len(shelf) - 1)
        for (shelf, _), (stored, begin) in zip(scopes, stored, strict=True)
    ]
    foresee(connection, (asked for place in places for asked in texts_asked(*place)))
    return [
        replace(one, fresh=(*one.fresh, *map(FreshText, stored_texts(connection, *place))))
        for (one, _), place in zip(stored, places, strict=True)
    ]


def _without_new_texts(
    connection: Connection, shelf: ScopeDocValues, known: ScopeSegments | None
) -> tuple[ScopeSegments, int]:
    """Return the segments of a scope with the fresh texts that are known, and where fresh texts begin."""
    held = _consistent_span(connection, shelf)
    segments, begin = held or SegmentSpan((), 0)
    # The known state may be of a later snapshot, in which some of these are gone.
    is_older = known is not None and known.changed < shelf.changed and known.epoch == shelf.epoch
    is_alike = known is not None and known.is_consistent == (held is not None)
    before = known.fresh if known is not None and is_older and is_alike else ()
    kept = tuple(text for text in before if begin <= text.number < len(shelf) and shelf.alive[text.number])
    return ScopeSegments(shelf.changed, shelf.epoch, segments, kept, held is not None), begin


def _consistent_span(connection: Connection, shelf: ScopeDocValues) -> SegmentSpan | None:
    """Return the segments of a scope; None if they are inconsistent."""
    try:
        held = span(connection, shelf.scope)
    except ChecksumError:
        return None
    return held if held.flushed <= len(shelf) else None


class PostingLists:
    """LRU cache of the posting lists of one scope at one change."""

    def __init__(
        self, shelf: ScopeDocValues, stored: ScopeSegments, cache: PageCache, kernel: Kernel, max_bytes: int
    ) -> None:
        self.stored = stored
        self._shelf = shelf
        self._alive = shelf.alive if shelf.has_gaps else None
        self._cache = cache
        self._kernel = kernel
        self._known: ByteBoundedCache[tuple[int, str], Postings] = ByteBoundedCache(
            max_bytes, lambda key, found: len(key[1]) + found.nbytes
        )
        self._accented: Sequence[Mapping[str, tuple[str, ...]]] | None = None
        self._fresh_counts: Mapping[int, Sequence[Counter[Any]]] = {  # the term frequencies of each fresh text
            field.number: [text.counts[field.number] for text in stored.fresh] for field in FIELDS
        }
        self._fresh_bytes = sum(STRING_BYTES * len(text.tokens) for text in stored.fresh)

    @property
    def nbytes(self) -> int:
        """Return the approximate memory of the lists and the fresh texts, in bytes."""
        return self._known.nbytes + self._fresh_bytes

    def clear(self) -> None:
        """Clear the cached lists."""
        self._known.clear()

    def read_postings(self, connection: Connection, field: Field, terms: Sequence[str]) -> list[Postings]:
        """Return the postings of some terms; a term of the words field with several words is a phrase.

        Uncached lists are read together. The list of a term in the segments is followed by that in the fresh texts.
        """
        known = self._known.get_many([(field.number, term) for term in terms])
        missing = [term for term, postings in zip(terms, known, strict=True) if postings is None]
        if not missing:
            return known  # type: ignore[return-value]
        found: dict[str, Postings] = {}
        if field is PAIRS:
            firsts = self.read_postings(connection, WORDS, [term.partition(" ")[0] for term in missing])
            for term, first in zip(missing, firsts, strict=True):
                found[term] = self._find_pair(first, *term.split(" "))
        else:
            plain = [term for term in missing if field is not WORDS or not (" " in term or is_several(term))]
            keys = [key_of(term) for term in plain]
            lists = self._cache.read_lists(connection, self.stored.segments, field, keys)
            for term, listed in zip(plain, lists, strict=True):
                fresh = self._fresh_postings([held.get(term, 0) for held in self._fresh_counts[field.number]])
                found[term] = Postings((*listed, *fresh), self._alive)
            for term in missing if len(plain) < len(missing) else ():
                if is_several(term):
                    found[term] = self._unite_spellings(connection, *spellings(term))
                elif term not in found:
                    found[term] = self._find_phrase(connection, term.split(" "))
        self._known.update({(field.number, term): postings for term, postings in found.items()})
        return [found[term] if one is None else one for term, one in zip(terms, known, strict=True)]

    def pages_asked(self, field: Field, terms: Sequence[str]) -> Iterator[Asked]:
        """Yield the statements that read the pages of terms whose lists are not cached."""
        if field is PAIRS:
            field, terms = WORDS, [term.partition(" ")[0] for term in terms]
        known = self._known.get_many([(field.number, term) for term in terms])
        plain = [
            term
            for term, postings in zip(terms, known, strict=True)
            if postings is None and (field is not WORDS or not (" " in term or is_several(term)))
        ]
        return self._cache.pages_asked(self.stored.segments, field, [key_of(term) for term in plain])

    def _unite_spellings(self, connection: Connection, asked: Sequence[str], others: Sequence[str]) -> Postings:
        """Return the places that hold any of these tokens and phrases, with their summed frequencies."""
        held = self._count_places(connection, asked)
        if others:
            weight = OTHERWISE_COUNTS if asked else 1.0
            held = held + weight * self._count_places(connection, others)
        there = np.flatnonzero(held)
        return Postings((Wide(there, held[there]),))

    def _count_places(self, connection: Connection, terms: Sequence[str]) -> Floats:
        """Return the summed frequency of these tokens and phrases at each place."""
        words = [term for term in terms if " " not in term]
        keys = [key_of(term) for term in words]
        lists = self._cache.read_lists(connection, self.stored.segments, WORDS, keys)
        wanted, counts = frozenset(words), self._fresh_counts[WORDS.number]
        fresh = self._fresh_postings([sum(held[token] for token in held.keys() & wanted) for held in counts])
        parts: list[Part] = [listed for found in lists for listed in found]
        every = [Postings((*parts, *fresh), self._alive)]
        every += self.read_postings(connection, WORDS, [term for term in terms if " " in term])
        places = np.concatenate([found.joined.places for found in every])
        frequencies = np.concatenate([found.joined.frequencies for found in every])
        counted: Floats = np.bincount(places, frequencies, len(self._shelf)).astype(np.float64)
        return counted

    def counts(self, connection: Connection, terms: Sequence[str]) -> Integers:
        """Return the document frequencies of some tokens, page by page: there may be thousands."""
        keys = keys_of(terms)
        held = np.zeros(len(terms), np.int64)
        for segment in self.stored.segments:
            living = self._shelf.alive[segment.first : segment.last + 1]
            held += self._cache.counts(connection, segment, WORDS, keys, living)
        numbers = {term: number for number, term in enumerate(terms)}
        for text in self.stored.fresh:
            for term in text.counts[WORDS.number].keys() & numbers.keys():
                held[numbers[term]] += 1
        return held

    def beginning(self, connection: Connection, start: str) -> set[str]:
        """Return the tokens with a prefix; they may include those of removed memories."""
        known = {token for text in self.stored.fresh for token in text.tokens if token.startswith(start)}
        for segment in self.stored.segments:
            known.update(self._cache.beginning(connection, segment, start))
        return known

    def accented(self, connection: Connection) -> Sequence[Mapping[str, tuple[str, ...]]]:
        """Return accented tokens by their plain spelling; they may include those of removed memories."""
        known = self._accented
        if known is None:
            fresh = {token for text in self.stored.fresh for token in text.accented}
            tables = [self._cache.accented(connection, segment) for segment in self.stored.segments]
            known = self._accented = [table for table in (*tables, by_plain_spelling(fresh)) if table]
        return known

    def _find_pair(self, postings: Postings, first: str, second: str) -> Postings:
        """Return the postings of a pair, from the followers of its first word."""
        lists = (part for part in postings.parts if isinstance(part, PostingList))
        heard = [self._kernel.pairs(listed, key_of(second) & FOLLOWER_MASK) for listed in lists]
        found = [Wide(np.frombuffer(pair[0], np.int64), np.frombuffer(pair[1])) for pair in heard if pair is not None]
        found += self._fresh_postings([held.get((first, second), 0) for held in self._fresh_counts[PAIRS.number]])
        if not found:
            return Postings(())
        pairs = joined(found)
        return Postings((pairs if self._alive is None else pairs.only(self._alive),))

    def _find_phrase(self, connection: Connection, tokens: Sequence[str]) -> Postings:
        """Return the places that hold tokens side by side."""
        pairs = self.read_postings(connection, PAIRS, [f"{one} {other}" for one, other in pairwise(tokens)])
        if len(tokens) == 2:
            return pairs[0]
        places = pairs[0].joined.places
        for pair in pairs[1:]:
            places = np.intersect1d(places, pair.joined.places, assume_unique=True)
        # The pairs may not be adjacent to each other; the phrase is counted in the text itself.
        counts = [_count_phrase(self._tokens(connection, place), tokens) for place in places.tolist()]
        held = np.array(counts, np.float64)
        return Postings((Wide(places[held > 0], held[held > 0]),))

    def _tokens(self, connection: Connection, place: int) -> Sequence[str]:
        texts = stored_texts(connection, self._shelf.scope, place, place)
        return texts[0].tokens if texts else ()

    def _fresh_postings(self, counts: Sequence[int]) -> Sequence[Wide]:
        """Return the postings of fresh texts with these frequencies; none if all are zero."""
        if not any(counts):
            return ()
        pairs = zip(self.stored.fresh, counts, strict=True)
        held = [(text.number, min(count, MAX_FREQUENCY)) for text, count in pairs if count]
        numbers, times = zip(*held, strict=True)
        return (Wide(np.array(numbers, np.int64), np.array(times, np.float64)),)


def _count_phrase(tokens: Sequence[str], phrase: Sequence[str]) -> int:
    """Count a sequence of tokens in a text."""
    size, wanted = len(phrase), list(phrase)
    places = (i for i in range(len(tokens) - size + 1) if tokens[i] == wanted[0])
    return sum(1 for i in places if list(tokens[i : i + size]) == wanted)
