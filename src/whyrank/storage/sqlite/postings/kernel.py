"""Inner loops of the index: the compiled module from `kernel/`, or the same in numpy."""

from __future__ import annotations

import math
import sys
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from .format import Inverted, Text, inverted_words, joined, merged, only, pages, postings_of, read, words_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ..doc_values import Flags, Floats
    from .format import Part, PostingList

_FAR = 2**16 - 1  # signs: more than any vector has
_CHECKSUM_BYTES = 4
_VERSION = 15  # the same in kernel/kernel.h: a module left over from an earlier build is not used


class FieldTerms(NamedTuple):
    """Terms of one field and kind of text in a scope, with all parameters of their scores, for the kernel."""

    lengths: NDArray[np.uint32] | Floats
    per_term: float
    base: float
    weight: float
    own: Floats | float
    wanted: Flags | None
    terms: tuple[tuple[float, tuple[Part, ...]], ...]


class Kernel:
    """The interface of the compiled module `whyrank._kernel`, written in numpy."""

    def coded(
        self,
        vectors: NDArray[np.float32],
        codes: NDArray[np.int8],
        scales: NDArray[np.float32],
        errors: NDArray[np.float32],
        /,
    ) -> None:
        """Quantize each vector to int8 codes, a scale and an error; the error is NaN if it is not finite.

        Here no code decides anything: numpy compares float32 as fast.
        """
        errors[:] = np.inf

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
        return -1, -math.inf

    def cosines(
        self,
        vectors: NDArray[np.float32],
        places: NDArray[np.int64],
        question: NDArray[np.float64],
        out: NDArray[np.float64],
        /,
    ) -> None:
        """Write the products of some rows of vectors with a question, added up in the order numpy adds."""
        np.add.reduce(vectors[places].astype(np.float64) * question, axis=1, out=out)

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
        apart[:] = 0
        for word, asked in zip(signs, question.ravel(), strict=True):
            apart += np.bitwise_count(word ^ asked)
        counts += np.bincount(apart if mask is None else apart[mask], minlength=len(counts))
        if mask is not None:
            apart[~mask] = _FAR

    def under(
        self,
        signs: NDArray[np.uint64],
        places: NDArray[np.int64],
        numbers: NDArray[np.int32],
        sums: NDArray[np.float64],
        /,
    ) -> None:
        """Write the sums of the query's numbers under the sign bits of some rows."""
        columns = np.ascontiguousarray(signs[:, places].T)
        bits = np.unpackbits(columns.view(np.uint8), axis=1, bitorder="little")
        sums[:] = np.vecdot(bits.astype(np.float32), numbers.astype(np.float32))

    def pairs(self, listed: PostingList, follower: int, /) -> tuple[bytes, bytes] | None:
        """Find the places (int64) of a list where a word follows, and how often (float64)."""
        heard = np.flatnonzero(listed.followers == follower)
        if not len(heard):
            return None
        holders = np.searchsorted(np.cumsum(listed.frequencies, dtype=np.int64), heard, side="right")
        places, counts = np.unique(listed.numbers[holders], return_counts=True)
        return places.tobytes(), counts.astype(np.float64).tobytes()

    def gathered(
        self, parts: Sequence[Part], belonging: NDArray[np.int64], rows: int, groups: int, /
    ) -> tuple[bytes, bytes] | None:
        """Find the groups (int64) whose places hold a term, ascending, and how often (float64).

        Each row of `belonging` maps every place to its group. None if the groups must be sorted.
        """
        return None

    def sums(self, totals: NDArray[np.float64], kinds: Sequence[FieldTerms], /) -> None:
        """Add the contributions of terms to every place, in the order of the terms."""
        for kind in kinds:
            for idf, parts in kind.terms:
                found = joined(parts)
                if kind.wanted is not None:
                    found = found.only(kind.wanted)
                totals[found.places] += _worth(kind, idf, found.places, found.frequencies)

    def best(
        self,
        places: int,
        kinds: Sequence[FieldTerms],
        mask: NDArray[np.bool_] | None,
        wanted: int,
        /,
    ) -> tuple[bytes, bytes]:
        """Find the top `wanted` places (int64) by summed term scores (float64), ties with the last included."""
        totals = np.zeros(places)
        self.sums(totals, kinds)
        if mask is not None:
            totals *= mask
        lowest = np.partition(totals, places - wanted)[places - wanted] if wanted < places else 0.0
        found = np.flatnonzero((totals >= lowest) & (totals > 0.0))
        return found.astype(np.int64).tobytes(), totals[found].tobytes()

    def given(self, kinds: Sequence[FieldTerms], places: NDArray[np.int64], out: NDArray[np.float64], /) -> None:
        """Write the contribution of each term (row) of one kind of text to each of some places (column)."""
        [kind] = kinds
        for row, (idf, parts) in zip(out, kind.terms, strict=True):
            found = joined(parts)
            if not len(found.places):
                continue
            index = found.places.searchsorted(places)
            index[index == len(found.places)] = 0
            held = np.flatnonzero(found.places[index] == places)
            row[held] = _worth(kind, idf, places[held], found.frequencies[index[held]])

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
        parts = [_between(postings_of(read(page), begin), low, below) for begin, some in segments for page in some]
        if not parts:
            return []
        postings = merged(parts)
        if len(gone):
            postings = only(postings, ~gone[postings.numbers - first])
        return [(key, page[_CHECKSUM_BYTES:]) for key, page in pages(postings, first, page_bytes)]

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
        return None

    def inverted(self, texts: Sequence[Sequence[str]], numbers: NDArray[np.int64], /) -> tuple[bytes, ...]:
        """Turn tokens into postings: keys (int64), numbers (int64), frequencies (uint8), followers (uint32).

        Behind them come the different tokens in order, with a space between them.
        """
        found = [Text(number, tokens) for number, tokens in zip(numbers.tolist(), texts, strict=True)]
        words = " ".join(sorted(words_in(found))).encode("utf-8", errors="surrogatepass")
        return (*(part.tobytes() for part in inverted_words(found)), words)


def _worth(kind: FieldTerms, idf: float, places: NDArray[np.int64], often: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return field weight · idf · tf/(tf + K) · own weight for the places of a list."""
    saturation = kind.lengths[places] * kind.per_term
    saturation += kind.base
    saturation += often
    worth: NDArray[np.float64] = often / saturation * idf
    worth *= kind.weight
    worth *= kind.own if isinstance(kind.own, float) else kind.own[places]
    return worth


def _between(postings: Inverted, low: int, below: int | None) -> Inverted:
    inside = (postings.keys >= low) & (True if below is None else postings.keys < below)
    return postings if inside.all() else only(postings, inside)


def _compiled() -> Kernel | None:
    try:
        found = import_module("whyrank._kernel")
    except ImportError:
        return None
    # Stored numbers are little-endian and are read in place.
    return cast("Kernel", found) if found.VERSION == _VERSION and sys.byteorder == "little" else None


NUMPY = Kernel()
COMPILED = _compiled()
KERNEL = COMPILED or NUMPY
