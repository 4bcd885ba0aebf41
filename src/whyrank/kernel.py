"""Interface of the compiled kernel in `kernel/`; built without a C compiler, numpy does the same."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_VERSION = 14  # the same in kernel/kernel.h: a module left over from an earlier build is not used


class Kernel(Protocol):
    """Functions of the compiled module; each has a numpy twin beside its call site."""

    VERSION: int
    SEALS: int  # whether it is quick at checksums on this processor

    def coded(
        self,
        vectors: NDArray[np.float32],
        codes: NDArray[np.int8],
        scales: NDArray[np.float32],
        errors: NDArray[np.float32],
        /,
    ) -> None:
        """Quantize each vector to int8 codes, a scale and an error; the error is NaN if it is not finite."""

    def nearest(
        self,
        codes: NDArray[np.int8],
        scales: NDArray[np.float32],
        question: NDArray[np.float32],
        places: NDArray[np.int64],
        mask: NDArray[np.bool_] | None,
        wanted: int,
        reach: float,
        step: float,
        /,
    ) -> tuple[int, float]:
        """Write the places of the rows of codes that may be among the nearest `wanted`.

        No row may be farther than `reach` from its codes, and no scale above `step`. Returns how many places there are
        and the cosine from which on all are among them; −1 if they do not fit, or the question has no direction.
        """

    def cosines(
        self,
        vectors: NDArray[np.float32],
        places: NDArray[np.int64],
        question: NDArray[np.float64],
        out: NDArray[np.float64],
        /,
    ) -> None:
        """Write the products of some rows of vectors with a question, added up in the order numpy adds."""

    def apart(
        self,
        signs: NDArray[np.uint64],
        question: NDArray[np.uint64],
        apart: NDArray[np.uint16],
        counts: NDArray[np.int64],
        mask: NDArray[np.bool_] | None,
        /,
    ) -> None:
        """Write in how many signs each row differs from a question, and count how many rows differ in so many.

        What a mask does not allow is farther than all, and not counted.
        """

    def under(
        self,
        signs: NDArray[np.uint64],
        places: NDArray[np.int64],
        numbers: NDArray[np.int32],
        sums: NDArray[np.float64],
        /,
    ) -> None:
        """Write the sums of the query's numbers under the sign bits of some rows."""

    def sealed(self, blob: bytes, /) -> bool:
        """Check bytes against the checksum in front of them."""

    def listed(self, page: bytes, key: int, /) -> tuple[int, int, int, int, int] | None:
        """Find a term's postings in a page: positions and number of offsets and frequencies, of followers."""

    def pairs(self, listed: tuple[object, ...], follower: int, /) -> tuple[bytes, bytes] | None:
        """Find the places (int64) of a list where a word follows, and how often (float64)."""

    def living(self, parts: tuple[tuple[object, ...], ...], alive: NDArray[np.bool_], /) -> int:
        """Count the places of some lists that are alive."""

    def gathered(
        self, parts: tuple[tuple[object, ...], ...], belonging: NDArray[np.int64], rows: int, groups: int, /
    ) -> tuple[bytes, bytes] | None:
        """Find the groups (int64) whose places hold a term, ascending, and how often (float64).

        Each row of `belonging` maps every place to its group. None if the groups must be sorted.
        """

    def sums(self, totals: NDArray[np.float64], kinds: tuple[tuple[object, ...], ...], /) -> None:
        """Add the contributions of terms to every place, in the order of the terms."""

    def best(
        self,
        places: int,
        kinds: tuple[tuple[object, ...], ...],
        mask: NDArray[np.bool_] | None,
        wanted: int,
        /,
    ) -> tuple[bytes, bytes]:
        """Find the top `wanted` places (int64) by summed term scores (float64), ties with the last included."""

    def top(self, values: NDArray[np.float64], mask: NDArray[np.bool_] | None, wanted: int, /) -> tuple[bytes, bytes]:
        """Find the top `wanted` places of precomputed values, as `best` does."""

    def given(
        self, kinds: tuple[tuple[object, ...], ...], places: NDArray[np.int64], out: NDArray[np.float64], /
    ) -> None:
        """Write the contribution of each term (row) of one kind of text to each of some places (column)."""

    def merged_words(self, texts: list[bytes], low: int, below: int, /) -> bytes:
        """Merge texts of ordered words with a space between them: those with keys from `low` to below another."""

    def merged_pages(
        self,
        segments: tuple[tuple[int, tuple[bytes, ...]], ...],
        first: int,
        low: int,
        below: int | None,
        gone: NDArray[np.bool_],
        page_bytes: int,
        /,
    ) -> list[tuple[int, bytes]]:
        """Merge checksummed pages of segments into pages without checksums, each with its lowest key.

        Each segment comes with its first number. Keys are limited to `low` and, if given, below `below`; deleted
        numbers are left out: flags in `gone`, by number from `first` on.
        """

    def cut(
        self,
        shelves: NDArray[np.int64],
        places: NDArray[np.int64],
        scores: NDArray[np.float64],
        limit: int,
        is_all: bool,
        known: tuple[tuple[object, ...], ...],
        /,
    ) -> tuple[list[int], list[float], list[str], list[str], list[int]] | None:
        """Sort places by descending score and keep `limit`: rows, scores, ids, scopes, groups.

        The values of a place come from its entry of `known`, chosen by `shelves`. None if the tie-breakers do not
        separate equal scores, two of the places have one group, or there are too few places to decide.
        """

    def told(self, rows: Sequence[tuple[object, ...]], kinds: bytes, /) -> bytes:
        """Flag each row: a value of a type its column does not have, a non-empty list, a limit that is set."""

    def inverted(self, texts: Sequence[Sequence[str]], numbers: NDArray[np.int64], /) -> tuple[bytes, ...]:
        """Turn tokens into postings: keys (int64), numbers (int64), frequencies (uint8), followers (uint32).

        Behind them come the different tokens in order, with a space between them.
        """

    def means(self, table: NDArray[np.float32], rows: list[list[int]], out: NDArray[np.float32], size: int, /) -> None:
        """Write the mean of some rows of a table for each list of them; for an empty list nothing is written."""


def _compiled() -> Kernel | None:
    try:
        found = cast(Kernel, import_module("whyrank._kernel"))
    except ImportError:
        return None
    # Stored numbers are little-endian and are read in place.
    return found if found.VERSION == _VERSION and sys.byteorder == "little" else None


COMPILED = _compiled()
