"""Term statistics remembered for as long as the store does not change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ...caches import ByteBoundedCache
from ...types import Scope

_SCOPES_KEPT = 64
_TERM_BYTES = 256 * 1024  # of the frequencies of one set of scopes, some five hundred terms
_INTEGER_BYTES = 32


@dataclass
class Counts:
    """What was counted for one set of scopes at one generation."""

    generation: int
    _size: tuple[int, int] | None = None
    _accented: Mapping[str, tuple[str, ...]] | None = None
    _frequencies: ByteBoundedCache[str, int] = field(
        default_factory=lambda: ByteBoundedCache(_TERM_BYTES, lambda term, _: len(term) + _INTEGER_BYTES)
    )

    @property
    def nbytes(self) -> int:
        """Return about how much memory the counts hold."""
        return self._frequencies.nbytes + sum(map(len, self._accented or ()))

    def size(self, count: Callable[[], tuple[int, int]]) -> tuple[int, int]:
        """Return how many memories there are and how many tokens they hold."""
        size = self._size or count()
        self._size = size
        return size

    def accented(self, read: Callable[[], Mapping[str, tuple[str, ...]]]) -> Mapping[str, tuple[str, ...]]:
        """Return the tokens with accents, by how they are typed without."""
        found = read() if self._accented is None else self._accented
        self._accented = found
        return found

    def frequency(self, term: str, count: Callable[[], int]) -> int:
        """Return how many memories hold a term."""
        known = self._frequencies.get(term)
        if known is None:
            known = count()
            self._frequencies.put(term, known)
        return known


class ScopeCounts:
    """Counts by scopes; another generation begins anew."""

    def __init__(self) -> None:
        self._counts: dict[frozenset[Scope], Counts] = {}
        self._turn = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Return about how much memory the counts of all scopes hold."""
        return sum(counts.nbytes for counts in [*self._counts.values()])

    def of(self, generation: int, scopes: frozenset[Scope]) -> Counts:
        """Return what was counted for these scopes, if it still holds."""
        with self._turn:
            counts = self._counts.get(scopes)
            if counts is None or counts.generation != generation:
                if len(self._counts) >= _SCOPES_KEPT:
                    self._counts.clear()
                counts = self._counts[scopes] = Counts(generation)
            return counts
