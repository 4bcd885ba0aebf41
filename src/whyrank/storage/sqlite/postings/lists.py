"""Reading the index: the list of a term in one scope, from its segments and from what is still fresh."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ....analysis.spellings import accented_in, by_plain_spelling
from ....caches import STRING_BYTES, ByteBoundedCache
from ....expressions import OTHERWISE_COUNTS, is_several, spellings
from ....kernel import Kernel
from ...fields import DATES, GRAMS, PAIRS, WORDS, Field, grams_of
from ..catalogue import Floats, Integers, Shelf
from ..connection import Connection
from ..sealed import BrokenSeal
from .cache import Pages
from .found import Part, Postings, Wide, joined
from .inversion import MAX_FREQUENCY, Text, follower_of, key_of
from .pages import Listed
from .spans import Segment, Span, span
from .texts import stored_texts

_POSTING_BYTES = 16  # a place and how often it holds a term
_PART_BYTES = 256  # a tuple, and the headers of its arrays


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
    def accented(self) -> Sequence[str]:
        """Return those of them that have accents."""
        return accented_in(" ".join(self.tokens))

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
    is_believed: bool = True  # what the segments hold; if not, all texts count as fresh


def shelved(connection: Connection, shelf: Shelf, known: Shelved | None) -> Shelved:
    """Return the segments and fresh texts of a shelf; texts that were fresh before are not read again."""
    held = _believed(connection, shelf)
    segments, begin = held or Span((), 0)
    # What another reader holds may be of a later moment, in which some of these are gone.
    is_older = known is not None and known.changed < shelf.changed and known.epoch == shelf.epoch
    is_alike = known is not None and known.is_believed == (held is not None)
    before = known.fresh if known is not None and is_older and is_alike else ()
    kept = [text for text in before if begin <= text.number < len(shelf) and shelf.alive[text.number]]
    after = kept[-1].number + 1 if kept else begin
    fresh = [FreshText(text) for text in stored_texts(connection, shelf.scope, after, len(shelf) - 1)]
    return Shelved(shelf.changed, shelf.epoch, segments, (*kept, *fresh), held is not None)


def _believed(connection: Connection, shelf: Shelf) -> Span | None:
    """Return what the segments of a shelf hold; None if that cannot be."""
    try:
        held = span(connection, shelf.scope)
    except BrokenSeal:
        return None
    return held if held.flushed <= len(shelf) else None


class Lists:
    """The lists of one scope at one moment, those read lately kept."""

    def __init__(self, shelf: Shelf, stored: Shelved, cache: Pages, kernel: Kernel | None, max_bytes: int) -> None:
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
        """Return about how much memory the lists and the fresh texts hold."""
        return self._known.nbytes + self._fresh_bytes

    def clear(self) -> None:
        """Let the lists that were read go; they are read again when a term is asked for."""
        self._known.clear()

    def postings(self, connection: Connection, field: Field, term: str) -> Postings:
        """Return the places that hold a term; several words as one term of the words are a phrase."""
        known = self._known.get((field.number, term))
        return known if known is not None else self.several(connection, field, [term])[0]

    def several(self, connection: Connection, field: Field, terms: Sequence[str]) -> list[Postings]:
        """Return the same for some terms; what must be read for them is read together."""
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
        found = {term: Postings(parts, self._alive, self._kernel) for term, parts in zip(plain, read, strict=True)}
        for term in terms if len(plain) < len(terms) else ():
            if is_several(term):
                found[term] = self._together(connection, *spellings(term))
            elif term not in found:
                found[term] = self._phrase(connection, term.split(" "))
        return found

    def _read(self, connection: Connection, field: Field, terms: Sequence[str]) -> list[tuple[Part, ...]]:
        """Return the lists of some terms in the segments, and what fresh texts hold behind them."""
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
        """Return the places that hold any of these tokens and phrases, and how often all of them together."""
        held = self._occurrences(connection, asked)
        if others:
            weight = OTHERWISE_COUNTS if asked else 1.0
            held = held + weight * self._occurrences(connection, others)
        there = np.flatnonzero(held)
        return Postings((Wide(there, held[there]),))

    def _occurrences(self, connection: Connection, terms: Sequence[str]) -> Floats:
        """Return how often each place holds any of these tokens and phrases."""
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

    def accented(self, connection: Connection) -> Sequence[Mapping[str, tuple[str, ...]]]:
        """Return the tokens with accents by how they are typed without; perhaps some that no memory holds any more."""
        known = self._accented
        if known is None:
            scope, fresh = self._shelf.scope, {token for text in self.stored.fresh for token in text.accented}
            tables = [self._cache.accented(connection, scope, segment) for segment in self.stored.segments]
            known = self._accented = [table for table in (*tables, by_plain_spelling(fresh)) if table]
        return known

    def _pair(self, connection: Connection, one: str, other: str) -> Postings:
        """Read off the followers of the first word where the second follows it."""
        wanted = follower_of(other)
        lists = (part for part in self.postings(connection, WORDS, one).parts if isinstance(part, Listed))
        found = [pairs for pairs in (followed(listed, wanted, self._kernel) for listed in lists) if pairs is not None]
        found += self._fresh([held.get((one, other), 0) for held in self._counts(PAIRS)])
        if not found:
            return Postings(())
        pairs = joined(found)
        return Postings((pairs if self._alive is None else pairs.only(self._alive),), None, self._kernel)

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
        return Postings((Wide(places[held > 0], held[held > 0]),))

    def _tokens(self, connection: Connection, place: int) -> Sequence[str]:
        texts = stored_texts(connection, self._shelf.scope, place, place)
        return texts[0].tokens if texts else ()

    def _counts(self, field: Field) -> Sequence[Counter[Any]]:
        """Return how often each term of a field stands in each fresh text; a question asks for many terms."""
        known = self._counted.get(field.number)
        if known is None:
            known = self._counted[field.number] = [text.counts[field.number] for text in self.stored.fresh]
        return known

    def _fresh(self, counts: Sequence[int]) -> Sequence[Wide]:
        """Return what fresh texts hold, if any does, by how often each holds it."""
        if not any(counts):
            return ()
        pairs = zip(self.stored.fresh, counts, strict=True)
        held = [(text.number, min(count, MAX_FREQUENCY)) for text, count in pairs if count]
        numbers, times = zip(*held, strict=True)
        return (Wide(np.array(numbers, np.int64), np.array(times, np.float64)),)


def followed(listed: Listed, follower: int, kernel: Kernel | None) -> Wide | None:
    """Return the places of a list where a word is followed by another, and how often; None if it is nowhere."""
    if kernel is not None:
        found = kernel.pairs(listed, follower)
        return None if found is None else Wide(np.frombuffer(found[0], np.int64), np.frombuffer(found[1]))
    heard = np.flatnonzero(listed.followers == follower)
    if not len(heard):
        return None
    holders = np.searchsorted(np.cumsum(listed.frequencies, dtype=np.int64), heard, side="right")
    places, counts = np.unique(listed.numbers[holders], return_counts=True)
    return Wide(places, counts.astype(np.float64))


def _size(key: tuple[int, str], found: Postings) -> int:
    """Count the bytes of a list: of the arrays it may be written out to, and of the pages that it keeps in memory."""
    return len(key[1]) + sum([
        _PART_BYTES + _POSTING_BYTES * part.size + (len(part.blob) if isinstance(part, Listed) else 0)
        for part in found.parts
    ])  # fmt: skip


def _occurrences(tokens: Sequence[str], phrase: Sequence[str]) -> int:
    """Count a sequence of tokens in a text."""
    size, wanted = len(phrase), list(phrase)
    places = (i for i in range(len(tokens) - size + 1) if tokens[i] == wanted[0])
    return sum(1 for i in places if list(tokens[i : i + size]) == wanted)
