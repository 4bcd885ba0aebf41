"""The texts a term can stand in: a memory's own, its file's, its window of turns; each with its own statistics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ....types import inverse_frequency
from ...contexts import OWN_WEIGHT, Unit
from ...fields import Field
from ...lexical import K1, B
from .codec import Postings
from .reader import NOWHERE, Floats, Integers, Visible


@dataclass(frozen=True)
class Addend:
    """What one term of one field adds to the score of some places, ascending."""

    label: str
    places: Integers
    values: Floats


@dataclass(frozen=True)
class Texts:
    """Texts of some kind with their lengths: what a word score needs to know of them."""

    lengths: Floats
    field: Field

    @cached_property
    def saturation(self) -> Floats:
        """Return K for each text: how soon repeating a term stops to count, which grows with its length."""
        prior = self.field.length_prior
        average = float(self.lengths.sum()) / len(self.lengths) if len(self.lengths) else 0.0
        saturation: Floats = K1 * (1 - B + B * (self.lengths + prior) / (average + prior))
        return saturation

    def scores(self, texts: Integers, frequencies: Floats) -> Floats:
        """Return idf · tf/(tf + K) for the texts that hold a term."""
        idf = inverse_frequency(len(self.lengths), len(texts))
        scores: Floats = idf * frequencies / (frequencies + self.saturation[texts])
        return scores


class Own:
    """The memories' own texts."""

    def __init__(self, visible: Visible, field: Field) -> None:
        self._field = field
        self._numbers = np.cumsum(visible.alive) - 1  # places of the living, counted without gaps
        self._texts = Texts(visible.lengths(field)[visible.alive], field)
        weights = np.array([OWN_WEIGHT[unit] for unit in Unit])
        self._weights = field.weight * weights[np.maximum(visible.units, 0)]

    def scores(self, found: Postings) -> Floats:
        """Return the word scores of the places that hold a term, without any weight."""
        return self._texts.scores(self._numbers[found.numbers], found.frequencies)

    def addends(self, found: Postings, term: str) -> Iterator[Addend]:
        """Yield what a term adds to the memories that hold it."""
        yield Addend(term, found.numbers, self._weights[found.numbers] * self.scores(found))


class Files:
    """The files of chunks: a chunk scores what its file does, whether it holds the term itself or not."""

    def __init__(self, visible: Visible, field: Field) -> None:
        count, self._files = visible.files
        self._field = field
        chunks = np.flatnonzero(self._files != NOWHERE)
        lengths = counted(self._files[chunks], visible.lengths(field)[chunks], count)
        self._texts = Texts(lengths, field)

    def addends(self, found: Postings, term: str) -> Iterator[Addend]:
        """Yield what a term adds to every chunk of the files that hold it."""
        files = self._files[found.numbers]
        inside = files != NOWHERE
        if not inside.any():
            return
        held, members = np.unique(files[inside], return_inverse=True)
        frequencies = counted(members, found.frequencies[inside])
        scores = np.zeros(len(self._texts.lengths) + 1)  # the last for what is in no file
        scores[held] = self._field.weight * self._texts.scores(held, frequencies)
        places = np.flatnonzero(scores[self._files])
        yield Addend(f"{term} (file)", places, scores[self._files[places]])


class Windows:
    """The windows of turns: a turn with the two before and the two after it in its session."""

    def __init__(self, visible: Visible, field: Field) -> None:
        self._steps = visible.windows
        self._field = field
        turns = np.flatnonzero(visible.units == Unit.TURN)
        lengths = visible.lengths(field)
        around = sum(np.where(step[turns] != NOWHERE, lengths[step[turns]], 0.0) for step in self._steps)
        self._numbers = np.full(len(visible.records), NOWHERE)
        self._numbers[turns] = np.arange(len(turns))
        self._texts = Texts(np.asarray(around, np.float64), field)

    def addends(self, found: Postings, term: str) -> Iterator[Addend]:
        """Yield what a term adds to every turn whose window holds it."""
        targets = [step[found.numbers] for step in self._steps]
        reached = np.concatenate(targets)
        inside = reached != NOWHERE
        if not inside.any():
            return
        places, members = np.unique(reached[inside], return_inverse=True)
        frequencies = counted(members, np.tile(found.frequencies, len(targets))[inside])
        scores = self._texts.scores(self._numbers[places], frequencies)
        yield Addend(f"{term} (nearby)", places, self._field.weight * scores)


def counted(numbers: Integers, values: Floats, size: int = 0) -> Floats:
    """Add up the values of each number."""
    sums: Floats = np.bincount(numbers, values, size).astype(np.float64)
    return sums
