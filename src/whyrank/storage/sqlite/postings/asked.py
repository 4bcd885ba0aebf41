"""What the terms of a question find: in their own texts, and in what surrounds these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np

from ....analysis.speakers import BY, speaker_of
from ....expressions import label_of
from ....types import ONCE, Repeats, inverse_frequency
from ...fields import DATES, FIELDS, GRAMS, WORDS, Field, wanted_terms
from ...lexical import repeated
from ..catalogue import NOWHERE, Floats, Integers, Shelf
from ..connection import Connection
from .found import Postings, Wide
from .library import Around, Library
from .lists import Lists


class Asked(NamedTuple):
    """A term of a query in one field and kind of text: where it stands, how much it tells, and how often it counts."""

    term: str
    field: Field
    around: Around
    idf: float
    postings: Sequence[Postings]
    held: int  # texts that hold the term
    often: int = 1

    @property
    def label(self) -> str:
        """Return how the trail names it."""
        name = repeated(label_of(self.term), self.often)
        return name if self.around == "own" else f"{name} ({self.around})"


def asked(
    connection: Connection,
    library: Library,
    lists: Sequence[Lists],
    terms: Sequence[str],
    fields: Sequence[Field] = FIELDS,
    repeats: Repeats = ONCE,
    known: Sequence[Asked] = (),
) -> Iterator[Asked]:
    """Yield what terms find, in their own texts first, then around them; what an earlier question knows is reused.

    Words may count several times; pairs, letters and dates never do.
    """
    before = {key: [*found] for key, found in groupby(known, lambda asked: (asked.field, asked.term, asked.often))}
    there = fields if library.has_letters else [field for field in fields if field is not GRAMS]
    for field, wanted in wanted_terms(terms, there):
        if not wanted:
            continue
        counted = {term: repeats.get(term, 1) if field is WORDS else 1 for term in wanted}
        new = [term for term, often in counted.items() if (field, term, often) not in before] if before else wanted
        found = _standing(connection, lists, field, new)
        for term in wanted:
            often = counted[term]
            yield from before.get((field, term, often)) or _found(library, field, term, found[term], often)


def _standing(
    connection: Connection, lists: Sequence[Lists], field: Field, terms: Sequence[str]
) -> Mapping[str, Sequence[Postings]]:
    """Return where terms stand on each shelf."""
    by_shelf = [scope.several(connection, field, terms) for scope in lists]
    return {term: [found[number] for found in by_shelf] for number, term in enumerate(terms)}


def _found(library: Library, field: Field, term: str, own: Sequence[Postings], often: int) -> Iterator[Asked]:
    held = sum([found.size for found in own])
    if not held:
        return
    yield Asked(term, field, "own", often * inverse_frequency(library.count, held), own, held, often)
    if field is DATES:
        return  # what surrounds a memory is mostly of the same day
    if library.has_files and not library.is_plain:
        files = [_in_files(*pair) for pair in _pairs(library, own)]
        yield from _around(library, term, field, "file", files, often)
    if library.has_turns:
        windows = [_in_windows(*pair) for pair in _pairs(library, own)]
        yield from _around(library, term, field, "nearby", windows, often)


def _pairs(library: Library, own: Sequence[Postings]) -> Iterator[tuple[Shelf, Postings]]:
    return zip(library.shelves, own, strict=True)


def _around(
    library: Library, term: str, field: Field, around: Around, found: Sequence[Postings], often: int
) -> Iterator[Asked]:
    held = sum([postings.size for postings in found])
    if held:
        idf = inverse_frequency(library.texts(field, around).count, held)
        yield Asked(term, field, around, often * idf, found, held, often)


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
        return Postings(())
    if (numbers[1:] < numbers[:-1]).any():
        order = np.argsort(numbers, kind="stable")
        numbers, values = numbers[order], values[order]
    starts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
    return Postings((Wide(numbers[starts], np.add.reduceat(values, starts)),))


@dataclass(frozen=True)
class Spoken:
    """The one speaker a question names, and the turns that are his."""

    name: str
    postings: Sequence[Postings]


def named_speaker(
    connection: Connection, library: Library, lists: Sequence[Lists], terms: Sequence[str]
) -> Spoken | None:
    """Return the speaker that a question names, if it names exactly one that is known."""
    marks = [term for term in terms if term.startswith(BY)] if library.has_turns else []
    turns = _standing(connection, lists, DATES, marks) if marks else {}
    known = [mark for mark, found in turns.items() if any(postings.size for postings in found)]
    return Spoken(speaker_of(known[0]), turns[known[0]]) if len(known) == 1 else None
