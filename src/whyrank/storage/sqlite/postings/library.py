"""What a query's terms are weighed against: the texts of all visible scopes, how many there are and how long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from ...fields import GRAMS, Field
from ...lexical import K1, B
from ..catalogue import Floats, Integers, Shelf

Around = Literal["own", "file", "window"]


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

    def most(self, frequency: float, idf: float) -> float:
        """Return the most a term can score in any text: in the shortest, as often as it occurs anywhere."""
        prior = self.field.length_prior
        shortest = K1 * (1 - B + B * prior / (self.average + prior))
        return self.field.weight * idf * frequency / (frequency + shortest)

    @cached_property
    def saturation(self) -> tuple[float, float]:
        """Return what K gains with every term of a text, and what it is without any."""
        prior = self.field.length_prior
        per_term = K1 * B / (self.average + prior)
        return per_term, K1 * (1 - B) + per_term * prior

    def scores(self, shelf: int, texts: Integers, frequencies: Floats, idf: Floats) -> Floats:
        """Return field weight · idf · tf/(tf + K) for texts of a shelf that hold a term."""
        per_term, base = self.saturation
        saturation = self.lengths[shelf][texts]
        saturation *= per_term
        saturation += base
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
        self.has_letters = any(shelf.lengths[GRAMS.name].any() for shelf in shelves)
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
            case "window":
                turns = sum(len(shelf.turns) for shelf in self.shelves)
                return Texts(field, [shelf.window_lengths(field) for shelf in self.shelves], turns)
