"""Collection statistics: number and lengths of all visible texts, and document frequencies of terms.

Segments never change, and memories of one are only removed; so a cached frequency is valid while their count is equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ....analysis.normalize import ByteBoundedCache
from ...bm25 import GRAMS, K1, B, Field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from ..doc_values import Flags, Floats, Integers, ScopeDocValues
    from .format import Page

Around = Literal["own", "file", "window"]


@dataclass(frozen=True)
class Texts:
    """Texts of one kind and field over all visible scopes: their number and lengths."""

    field: Field
    lengths: Sequence[Floats]
    count: int

    @cached_property
    def average(self) -> float:
        """Return the mean length."""
        return float(sum(float(lengths.sum()) for lengths in self.lengths)) / self.count if self.count else 0.0

    def most(self, frequency: float, idf: float) -> float:
        """Return the maximum score of a term in any text: in the shortest, at its highest frequency."""
        prior = self.field.length_prior
        shortest = K1 * (1 - B + B * prior / (self.average + prior))
        return self.field.weight * idf * frequency / (frequency + shortest)

    @cached_property
    def saturation(self) -> tuple[float, float]:
        """Return the slope of K per term of a text, and its value for an empty text."""
        prior = self.field.length_prior
        per_term = K1 * B / (self.average + prior)
        return per_term, K1 * (1 - B) + per_term * prior


class CollectionStatistics:
    """Collection statistics over all visible scopes, against which the terms of a query are weighted."""

    def __init__(self, shelves: Sequence[ScopeDocValues]) -> None:
        self.shelves = shelves
        self.count = sum(shelf.count for shelf in shelves)
        # Where every memory is the only chunk of its file, the file is the same text and is not scored.
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
