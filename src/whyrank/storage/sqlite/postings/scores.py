"""The lexical score of every visible memory: words, pairs and letters, of its own text and of what surrounds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from ....types import inverse_frequency
from ...contexts import OWN_WEIGHT, Unit
from ...fields import FIELDS, GRAMS, PAIRS, WORDS, Field, grams_of, pairs_of
from ...lexical import K1, B
from ..catalogue import NOWHERE, Floats, Integers, Shelf
from ..connection import Connection
from .lists import Lists, Postings

Around = Literal["own", "file", "nearby"]


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

    def scores(self, shelf: int, texts: Integers, frequencies: Floats, idf: Floats) -> Floats:
        """Return field weight · idf · tf/(tf + K) for texts of a shelf that hold a term."""
        prior = self.field.length_prior
        per_term = K1 * B / (self.average + prior)
        saturation = self.lengths[shelf][texts]
        saturation *= per_term
        saturation += K1 * (1 - B) + per_term * prior
        saturation += frequencies
        scores: Floats = frequencies / saturation
        scores *= idf
        if self.field.weight != 1.0:
            scores *= self.field.weight
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
    connection: Connection,
    library: Library,
    lists: Sequence[Lists],
    terms: Sequence[str],
    fields: Sequence[Field] = FIELDS,
) -> Iterator[Asked]:
    """Yield what the terms find, in their own texts first, then in their surroundings; always in the same order."""
    for field, wanted in wanted_terms(terms):
        for term in wanted if field in fields else ():
            own = [scope.postings(connection, field, term) for scope in lists]
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
class Sums:
    """What the terms of one field add to the texts of one kind on one shelf: an addend per term and text."""

    texts: Integers
    terms: Integers
    values: Floats

    def totals(self, count: int) -> Floats:
        """Add up what the terms give each text."""
        totals: Floats = np.bincount(self.texts, self.values, count).astype(np.float64, copy=False)
        return totals

    def addends(self, texts: Integers, terms: int, count: int) -> Floats:
        """Return what each term (a row) adds to each of some texts (a column)."""
        distinct, columns = np.unique(texts, return_inverse=True)
        marks = np.full(count, NOWHERE, np.int32)
        marks[distinct] = np.arange(len(distinct), dtype=np.int32)
        marked = marks[self.texts]
        inside = np.flatnonzero(marked != NOWHERE)
        found = np.zeros((terms, len(distinct)))
        found[self.terms[inside], marked[inside]] = self.values[inside]
        return found[:, columns]


@dataclass(frozen=True)
class Scores:
    """Lexical scores of a query: of every place of every shelf, with the share of them that its own words gave."""

    library: Library
    terms: Sequence[Asked]
    sums: Sequence[Mapping[tuple[Field, Around], Sums]]
    totals: Sequence[Floats]
    words: Sequence[Floats]

    def addends(self, shelf: int, places: Integers) -> Floats:
        """Return what each term (a row) adds to the score of each place (a column)."""
        home = self.library.shelves[shelf]
        found = np.zeros((len(self.terms), len(places)))
        for (_, around), sums in self.sums[shelf].items():
            texts, count = (home.files.of[places], home.files.count + 1) if around == "file" else (places, len(home))
            here = sums.addends(texts, len(self.terms), count)
            if around == "own":
                here *= _own_weights(self.library, home, places)
            found += here
        return found


def scored(library: Library, terms: Sequence[Asked]) -> Scores:
    """Add everything up: own texts, files and windows each on their own, then all together."""
    sums, totals, words = [], [], []
    for number, shelf in enumerate(library.shelves):
        here = {
            kind: _sums(library, terms, number, *kind) for kind in dict.fromkeys((a.field, a.around) for a in terms)
        }
        own = here[WORDS, "own"].totals(len(shelf)) if (WORDS, "own") in here else np.zeros(len(shelf))
        sums.append(here)
        words.append(own)
        totals.append(_together(library, shelf, here, own))
    return Scores(library, terms, sums, totals, words)


def _sums(library: Library, terms: Sequence[Asked], shelf: int, field: Field, around: Around) -> Sums:
    chosen = [i for i, asked in enumerate(terms) if asked.field is field and asked.around == around]
    found = [terms[i].postings[shelf] for i in chosen]
    sizes = [len(postings.places) for postings in found]
    texts = np.concatenate([postings.places for postings in found])
    frequencies = np.concatenate([postings.frequencies for postings in found])
    idf = np.repeat([terms[i].idf for i in chosen], sizes)
    values = library.texts(field, around).scores(shelf, texts, frequencies, idf)
    return Sums(texts, np.repeat(chosen, sizes), values)


def _together(library: Library, shelf: Shelf, sums: Mapping[tuple[Field, Around], Sums], words: Floats) -> Floats:
    totals = words.copy()
    for (field, around), part in sums.items():
        if around == "own" and field is not WORDS:
            totals += part.totals(len(shelf))
    totals *= _own_weights(library, shelf)
    for (_, around), part in sums.items():
        if around == "file":
            totals += part.totals(shelf.files.count + 1)[shelf.files.of]
        elif around == "nearby":
            totals += part.totals(len(shelf))
    return totals


def _own_weights(library: Library, shelf: Shelf, places: Integers | None = None) -> Floats | float:
    """Return how much the own text of each place counts; where it is the file's text too, it counts as both."""
    if library.is_plain:
        return OWN_WEIGHT[Unit.CHUNK] + 1.0
    return shelf.own_weights if places is None else shelf.own_weights[places]
