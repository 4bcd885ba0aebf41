"""What the terms of a question give to places: added up by compiled loops, or by numpy, to the same bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....kernel import Kernel
from ...contexts import OWN_WEIGHT, Unit
from ...fields import DATES, Field
from ..catalogue import Flags, Floats, Integers, Shelf
from ..selection import Sums
from .asked import Asked
from .found import NOTHING, Part, Wide
from .library import Around, Library

ONLY_CHUNK = OWN_WEIGHT[Unit.CHUNK] + 1.0  # of a file: the file is the same text
Kind = tuple[Field, Around]


class Given(NamedTuple):
    """Terms of one field and kind of text on a shelf, with all that it takes to score them, as the kernel reads it."""

    lengths: NDArray[np.uint32] | Floats
    per_term: float
    base: float
    weight: float
    own: Floats | float
    wanted: Flags | None
    terms: tuple[tuple[float, tuple[Part, ...]], ...]


class Adding:
    """How what terms give is added up over the shelves of a library."""

    def __init__(self, library: Library, kernel: Kernel | None) -> None:
        self._library = library
        self.kernel = kernel

    def summed(self, shelf: int, terms: Sequence[Asked], able: Flags | None = None) -> Floats:
        """Add up what some terms give to every place of a shelf, or to those that are able to win."""
        home = self._library.shelves[shelf]
        around = {asked.around for asked in terms}
        totals = self._of(shelf, [asked for asked in terms if asked.around == "own"], len(home), able)
        if "file" in around:
            wanted = None if able is None else _files_of(home, able)
            files = [asked for asked in terms if asked.around == "file"]
            totals += self._of(shelf, files, home.files.count + 1, wanted)[home.files.of]
        if "window" in around:
            totals += self._of(shelf, [asked for asked in terms if asked.around == "window"], len(home), able)
        return totals

    def _of(self, shelf: int, terms: Sequence[Asked], texts: int, wanted: Flags | None) -> Floats:
        """Add up what terms of one kind of text give to every text, or to those wanted."""
        if self.kernel is None:
            found, values = self._values(shelf, terms, wanted)
            return np.bincount(found, values, texts).astype(np.float64, copy=False)
        totals = np.zeros(texts)
        self.kernel.sums(totals, self._given(shelf, terms, wanted))
        return totals

    def further(self, totals: Floats, shelf: int, terms: Sequence[Asked]) -> Floats:
        """Return totals with what further terms of own texts give to every place, one after the other."""
        more = totals.copy()
        if self.kernel is None:
            np.add.at(more, *self._values(shelf, terms, None))
        else:
            self.kernel.sums(more, self._given(shelf, terms, None))
        return more

    def best(self, shelf: int, terms: Sequence[Asked], mask: Flags | None, wanted: int) -> Sums:
        """Return the best places of a shelf by what terms of own texts give, and every one as good as the last.

        This needs the kernel: numpy chooses among the sums of all places.
        """
        assert self.kernel is not None
        count = len(self._library.shelves[shelf])
        return _chosen(self.kernel.best(count, self._given(shelf, terms, None), mask, wanted))

    def top(self, totals: Floats, mask: Flags | None, wanted: int) -> Sums:
        """Return the same where the sums of all places are at hand."""
        assert self.kernel is not None
        return _chosen(self.kernel.top(totals, mask, wanted))

    def table(self, shelf: int, terms: Sequence[Asked], places: Integers) -> Floats:
        """Return what each of some terms (a row) gives to each of some places (a column)."""
        home = self._library.shelves[shelf]
        found = np.zeros((len(terms), len(places)))
        for (field, around), numbers in _by_kind(terms).items():
            texts = home.files.of[places] if around == "file" else places
            chosen = [terms[i] for i in numbers]
            if self.kernel is None:
                rows, columns, values = self._looked_up(shelf, field, around, chosen, texts)
                found[np.array(numbers, np.int64)[rows], columns] = values
            else:
                found[numbers] = self._compiled(shelf, chosen, texts)
        return found

    def _compiled(self, shelf: int, terms: Sequence[Asked], texts: Integers) -> Floats:
        kinds = self._given(shelf, terms, None)
        here = texts < len(kinds[0].lengths)  # what is in no file has a number past the last
        known = np.ascontiguousarray(texts if here.all() else texts[here], np.int64)
        values = np.zeros((len(terms), len(known)))
        assert self.kernel is not None
        self.kernel.given(kinds, known, values)
        if here.all():
            return values
        found = np.zeros((len(terms), len(texts)))
        found[:, here] = values
        return found

    def _given(self, shelf: int, terms: Sequence[Asked], wanted: Flags | None) -> tuple[Given, ...]:
        """Return terms as the kernel reads them."""
        home = self._library.shelves[shelf]
        kinds = []
        for (field, around), numbers in _by_kind(terms).items():
            texts = self._library.texts(field, around)
            chosen = [terms[i] for i in numbers]
            alive = home.alive if home.has_gaps and around == "own" else None
            kinds.append(
                Given(
                    home.columns[field.name] if around == "own" else texts.lengths[shelf],  # type: ignore[arg-type]
                    *texts.saturation,
                    field.weight,
                    own_weights(self._library, home, field) if around == "own" else 1.0,
                    alive if wanted is None else wanted[: len(texts.lengths[shelf])],
                    tuple([(asked.idf, asked.postings[shelf].parts) for asked in chosen]),
                )
            )
        return tuple(kinds)

    def _values(self, shelf: int, terms: Sequence[Asked], wanted: Flags | None) -> tuple[Integers, Floats]:
        """Return the texts that hold terms (if given, of those wanted), list by list, and what each gains."""
        parts = [
            self._values_of_kind(shelf, *kind, [terms[i] for i in numbers], wanted)
            for kind, numbers in _by_kind(terms).items()
        ]
        if not parts:
            return NOTHING.places, NOTHING.frequencies
        texts, values = (np.concatenate(every) if len(every) > 1 else every[0] for every in zip(*parts, strict=True))
        return texts, values

    def _values_of_kind(
        self, shelf: int, field: Field, around: Around, terms: Sequence[Asked], wanted: Flags | None
    ) -> tuple[Integers, Floats]:
        lists = [asked.postings[shelf].joined for asked in terms]
        if wanted is not None:
            lists = [listed.only(wanted) for listed in lists]
        idf = np.array([asked.idf for asked in terms]).repeat([listed.size for listed in lists])
        texts = np.concatenate([listed.places for listed in lists])
        frequencies = np.concatenate([listed.frequencies for listed in lists])
        return texts, self._scored(shelf, field, around, texts, frequencies, idf)

    def _scored(
        self, shelf: int, field: Field, around: Around, texts: Integers, frequencies: Floats, idf: Floats
    ) -> Floats:
        values = self._library.texts(field, around).scores(shelf, texts, frequencies, idf)
        if around == "own":
            own = own_weights(self._library, self._library.shelves[shelf], field)
            values *= own if isinstance(own, float) else own[texts]
        return values

    def _looked_up(
        self, shelf: int, field: Field, around: Around, terms: Sequence[Asked], texts: Integers
    ) -> tuple[Integers, Integers, Floats]:
        """Return which term stands in which text, and what that gives it: the twin of the kernel's `given`."""
        rows, columns, frequencies = _matching([asked.postings[shelf].joined for asked in terms], texts)
        idf = np.array([asked.idf for asked in terms])[rows]
        return rows, columns, self._scored(shelf, field, around, texts[columns], frequencies, idf)


def _chosen(found: tuple[bytes, bytes]) -> Sums:
    return Sums(np.frombuffer(found[1]), np.frombuffer(found[0], np.int64), is_chosen=True)


def _by_kind(terms: Sequence[Asked]) -> dict[Kind, list[int]]:
    kinds: dict[Kind, list[int]] = {}
    for number, asked in enumerate(terms):
        kinds.setdefault((asked.field, asked.around), []).append(number)
    return kinds


def _matching(lists: Sequence[Wide], texts: Integers) -> tuple[Integers, Integers, Floats]:
    """Return which list holds which text, and how often."""
    rows, columns, frequencies = [], [], []
    for number, found in enumerate(lists):
        if len(found.places):
            index = found.places.searchsorted(texts)
            index[index == len(found.places)] = 0
            held = np.flatnonzero(found.places[index] == texts)
            rows.append(np.full(len(held), number))
            columns.append(held)
            frequencies.append(found.frequencies[index[held]])
    if not rows:
        return NOTHING.places, NOTHING.places, NOTHING.frequencies
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(frequencies)


def _files_of(shelf: Shelf, able: Flags) -> Flags:
    files = np.zeros(shelf.files.count + 1, np.bool_)
    files[shelf.files.of[able]] = True
    return files


def own_weights(library: Library, shelf: Shelf, field: Field) -> Floats | float:
    """Return how much the own text of each place counts; where it is the file's text too, it counts as both."""
    if field is DATES:
        return 1.0
    return ONLY_CHUNK if library.is_plain else shelf.own_weights
