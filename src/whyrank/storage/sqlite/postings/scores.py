"""The lexical score of every visible memory: words, pairs and letters, of its own text and of what surrounds it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from ....types import inverse_frequency
from ...contexts import OWN_WEIGHT, Unit
from ...fields import FIELDS, GRAMS, PAIRS, WORDS, Field, grams_of, pairs_of
from ...lexical import K1, B
from ..catalogue import NOWHERE, Floats, Integers, Shelf
from .lists import Lists, Postings

Around = Literal["own", "file", "nearby"]
_OWN_WEIGHTS = np.array([OWN_WEIGHT[unit] for unit in Unit])


@dataclass(frozen=True)
class Texts:
    """Texts of one kind and field over all visible scopes: how many there are, and how long."""

    field: Field
    lengths: Sequence[Floats]
    count: int

    @cached_property
    def average(self) -> float:
        """Return the mean length."""
        return float(sum(float(lengths.sum()) for lengths in self.lengths)) / self.count if self.count else 0.0

    def scores(self, shelf: int, texts: Integers, frequencies: Floats, idf: float) -> Floats:
        """Return idf · tf/(tf + K) for some texts of a shelf that hold a term."""
        prior = self.field.length_prior
        per_term = K1 * B / (self.average + prior)
        saturation = self.lengths[shelf][texts]
        saturation *= per_term
        saturation += K1 * (1 - B) + per_term * prior
        saturation += frequencies
        scores: Floats = frequencies / saturation
        scores *= idf
        return scores


class Library:
    """All visible shelves, with the statistics of their texts: what a query's terms are weighed against."""

    def __init__(self, shelves: Sequence[Shelf]) -> None:
        self.shelves = shelves
        self.count = sum(shelf.count for shelf in shelves)
        # Where every memory is the only chunk of its file, the file is the same text and need not be looked at.
        self.is_plain = all(shelf.is_plain for shelf in shelves)
        self.has_files = any(shelf.files.count for shelf in shelves)
        self.has_turns = any(len(shelf.turns) for shelf in shelves)
        self._texts: dict[tuple[Field, Around], Texts] = {}

    def texts(self, field: Field, around: Around) -> Texts:
        """Return the texts of a field: memories' own, their files, or their windows of turns."""
        known = self._texts.get((field, around))
        if known is None:
            known = self._texts[field, around] = self._measured(field, around)
        return known

    def _measured(self, field: Field, around: Around) -> Texts:
        match around:
            case "own":
                return Texts(field, [shelf.lengths[field.name] for shelf in self.shelves], self.count)
            case "file":
                files = [shelf.files for shelf in self.shelves]
                return Texts(field, [file.lengths[field.name] for file in files], sum(file.count for file in files))
            case "nearby":
                turns = sum(len(shelf.turns) for shelf in self.shelves)
                return Texts(field, [shelf.window_lengths(field) for shelf in self.shelves], turns)


@dataclass(frozen=True)
class Asked:
    """The terms of a query in one field and kind of text: where they stand, and how much they tell."""

    term: str
    field: Field
    around: Around
    idf: float
    postings: Sequence[Postings]

    @property
    def label(self) -> str:
        """Return how the trail names it."""
        return self.term if self.around == "own" else f"{self.term} ({self.around})"


def asked(
    library: Library, lists: Sequence[Lists], terms: Sequence[str], fields: Sequence[Field] = FIELDS
) -> Iterator[Asked]:
    """Yield what the terms find, in their own texts first, then in their surroundings; always in the same order."""
    for field, wanted in wanted_terms(terms):
        for term in wanted if field in fields else ():
            own = [scope.postings(field, term) for scope in lists]
            held = sum(len(found.places) for found in own)
            if not held:
                continue
            yield Asked(term, field, "own", inverse_frequency(library.count, held), own)
            if library.has_files and not library.is_plain:
                yield from _around(library, term, field, "file", [_in_files(*pair) for pair in _pairs(library, own)])
            if library.has_turns:
                windows = [_in_windows(*pair) for pair in _pairs(library, own)]
                yield from _around(library, term, field, "nearby", windows)


def wanted_terms(terms: Sequence[str]) -> tuple[tuple[Field, Sequence[str]], ...]:
    """Return what a query asks of each field; phrases are asked of the words only."""
    words = [term for term in terms if " " not in term]
    return (WORDS, terms), (PAIRS, pairs_of(words)), (GRAMS, [*dict.fromkeys(grams_of(words))])


def _pairs(library: Library, own: Sequence[Postings]) -> Iterator[tuple[Shelf, Postings]]:
    return zip(library.shelves, own, strict=True)


def _around(library: Library, term: str, field: Field, around: Around, found: Sequence[Postings]) -> Iterator[Asked]:
    held = sum(len(postings.places) for postings in found)
    if held:
        idf = inverse_frequency(library.texts(field, around).count, held)
        yield Asked(term, field, around, idf, found)


def _in_files(shelf: Shelf, own: Postings) -> Postings:
    """Return the files that hold a term, and how often."""
    files = shelf.files.of[own.places]
    inside = files < shelf.files.count
    return summed(files[inside], own.frequencies[inside])


def _in_windows(shelf: Shelf, own: Postings) -> Postings:
    """Return the turns whose window holds a term, and how often."""
    reached = np.concatenate([step[own.places] for step in shelf.windows])
    inside = reached != NOWHERE
    return summed(reached[inside], np.tile(own.frequencies, len(shelf.windows))[inside])


def summed(numbers: Integers, values: Floats) -> Postings:
    """Add up the values of each number."""
    if not len(numbers):
        return Postings(numbers, values)
    if (numbers[1:] < numbers[:-1]).any():
        order = np.argsort(numbers, kind="stable")
        numbers, values = numbers[order], values[order]
    starts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
    return Postings(numbers[starts], np.add.reduceat(values, starts))


@dataclass(frozen=True)
class Scores:
    """Lexical scores of a query: of every place of every shelf, with the share of them that its own words gave."""

    library: Library
    terms: Sequence[Asked]
    totals: Sequence[Floats]
    words: Sequence[Floats]

    def addends(self, shelf: int, places: Integers) -> Floats:
        """Return what each term (a row) adds to the score of each place (a column)."""
        found = np.empty((len(self.terms), len(places)))
        for number, asked in enumerate(self.terms):
            found[number] = _addends(self.library, asked, shelf, places)
        return found


def scored(library: Library, terms: Sequence[Asked]) -> Scores:
    """Add everything up: own texts, files and windows each in an array of their own, then all together."""
    totals, words = [], []
    for number, shelf in enumerate(library.shelves):
        own_words, own_rest = np.zeros(len(shelf)), np.zeros(len(shelf))
        files, windows = np.zeros(shelf.files.count + 1), np.zeros(len(shelf) if library.has_turns else 0)
        for asked in terms:
            found = asked.postings[number]
            values = library.texts(asked.field, asked.around).scores(number, *found, asked.idf)
            match asked.around:
                case "own" if asked.field is WORDS:
                    own_words[found.places] += values
                case "own":
                    own_rest[found.places] += asked.field.weight * values
                case "file":
                    files[found.places] += asked.field.weight * values
                case "nearby":
                    windows[found.places] += asked.field.weight * values
        own_rest += own_words
        totals.append(_together(library, shelf, own_rest, files, windows))
        words.append(own_words)
    return Scores(library, terms, totals, words)


def _together(library: Library, shelf: Shelf, own: Floats, files: Floats, windows: Floats) -> Floats:
    if library.is_plain:
        return own * (OWN_WEIGHT[Unit.CHUNK] + 1.0)
    own *= _OWN_WEIGHTS[np.maximum(shelf.units, 0)]
    if library.has_files:
        own += files[shelf.files.of]
    if library.has_turns:
        own += windows
    return own


def _addends(library: Library, asked: Asked, shelf: int, places: Integers) -> Floats:
    """Return what one term adds to some places, as the sums above did."""
    home, found = library.shelves[shelf], asked.postings[shelf]
    if not len(found.places):
        return np.zeros(len(places))
    texts = home.files.of[places] if asked.around == "file" else places
    index = np.minimum(found.places.searchsorted(texts), len(found.places) - 1)
    held = found.places[index] == texts
    values = np.zeros(len(places))
    values[held] = library.texts(asked.field, asked.around).scores(
        shelf, texts[held], found.frequencies[index[held]], asked.idf
    )
    values *= asked.field.weight
    if asked.around == "own":
        values *= OWN_WEIGHT[Unit.CHUNK] + 1.0 if library.is_plain else _OWN_WEIGHTS[np.maximum(home.units[places], 0)]
    return values
