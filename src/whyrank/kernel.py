"""Loops compiled from `kernel/`, where the package was built with a C compiler; numpy does the same elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_VERSION = 12  # the same in kernel/kernel.h: a module left over from an earlier build is not used


# What a piece of a text says: its only token; or else its tokens, how it leans, how many words stand alone in it, and
# what of a date it may be.
Told = str | tuple[tuple[str, ...], int, int, int]


class Compared(NamedTuple):
    """Memories and how like each other they are: a cell for two of them, written when they are compared."""

    vectors: NDArray[np.float32]
    which: NDArray[np.int64]  # row of the vectors each has, negative where it has none
    texts: NDArray[np.uint64]  # words as bits, a row for each, where not all have vectors
    lengths: NDArray[np.int64]
    alike: NDArray[np.float64]
    known: NDArray[np.bool_]


class Kernel(Protocol):
    """What the compiled module offers; each function has a twin in numpy beside the place that calls it."""

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
        """Write each vector as whole numbers of a scale, and how far they are from it; no number if it has none."""

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
        """Write what a question's numbers add up to under the signs of some rows."""

    def alike(self, compared: Compared, place: int, others: NDArray[np.int64], out: NDArray[np.float64], /) -> None:
        """Write how like one memory others are; those beyond the last are like nobody."""

    def contests(
        self,
        compared: Compared,
        members: NDArray[np.int64],
        turns: NDArray[np.int64],
        starts: NDArray[np.int64],
        scores: NDArray[np.float64],
        tiers: NDArray[np.int64],
        stands: NDArray[np.bool_],
        lambdas: NDArray[np.float64],
        pair: NDArray[np.int64],
        states: NDArray[np.uint8],
        most: int,
        by: float,
        /,
    ) -> bool:
        """Tell for each λ who of a pair is above, where diversity has the last word and so many of a file are shown.

        Tells whether all are decided; if not, turns are wanted to tell equals apart.
        """

    def placed(
        self,
        compared: Compared,
        members: NDArray[np.int64],
        turns: NDArray[np.int64],
        tiers: NDArray[np.int64],
        worth: NDArray[np.float64],
        wanted: NDArray[np.bool_],
        order: NDArray[np.int64],
        gains: NDArray[np.float64],
        others: float,
        most: int,
        /,
    ) -> int:
        """Place by diversity until so many, or all of those that are wanted, have their place: write who, and its gain.

        Returns how many are placed; a number below nothing if turns are wanted to tell equals apart.
        """

    def sealed(self, blob: bytes, /) -> bool:
        """Tell whether bytes are those that the checksum in front of them was made of."""

    def listed(self, page: bytes, key: int, /) -> tuple[int, int, int, int, int] | None:
        """Find the list of a term in a page: where offsets and frequencies stand, how many; followers, how many."""

    def pairs(self, listed: tuple[object, ...], follower: int, /) -> tuple[bytes, bytes] | None:
        """Find the places (int64) of a list where a word follows, and how often (float64)."""

    def living(self, parts: tuple[tuple[object, ...], ...], alive: NDArray[np.bool_], /) -> int:
        """Count the places of some lists that are alive."""

    def gathered(
        self, parts: tuple[tuple[object, ...], ...], belonging: NDArray[np.int64], rows: int, groups: int, /
    ) -> tuple[bytes, bytes] | None:
        """Find the groups (int64) whose places hold a term, ascending, and how often (float64).

        Each row of `belonging` says to which group every place belongs. None if they must be sorted.
        """

    def sums(self, totals: NDArray[np.float64], kinds: tuple[tuple[object, ...], ...], /) -> None:
        """Add what terms give to every place, in their order."""

    def best(
        self,
        places: int,
        kinds: tuple[tuple[object, ...], ...],
        mask: NDArray[np.bool_] | None,
        wanted: int,
        /,
    ) -> tuple[bytes, bytes]:
        """Find the `wanted` places (int64) that terms give most to, with their sums (float64), and all as good."""

    def top(self, values: NDArray[np.float64], mask: NDArray[np.bool_] | None, wanted: int, /) -> tuple[bytes, bytes]:
        """Find the same of values that are at hand."""

    def given(
        self, kinds: tuple[tuple[object, ...], ...], places: NDArray[np.int64], out: NDArray[np.float64], /
    ) -> None:
        """Write what each term (a row) of one kind of text gives to each of some places (a column)."""

    def pieces(self, stop_words: Iterable[str], leaning: Mapping[str, int], months: Iterable[str], /) -> object:
        """Make room for what the pieces of texts between two spaces say.

        Some words are no tokens, some lean to a language (1), away from it (-1) or neither (0), some are months.
        """

    def read(
        self, pieces: object, text: str, learn: Callable[[list[str], list[str], list[str]], list[Told]], /
    ) -> tuple[tuple[str, ...], int, int, int, int]:
        """Read the pieces of a text: their tokens, words, leanings and dates added up; and the room all pieces take.

        What new pieces say is learned, and kept: of plain words, and of words that others with letters of ASCII are
        taken apart into, the stems; then of all that may name a month, or are written otherwise. One that is a word
        with a capital or signs around it says what the word says, unless that is more than a token.
        """

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
        """Merge sealed pages of segments, each with its first number, into unsealed ones, each with its lowest key.

        Of the keys from `low` to below another, if one is given; without who is gone: flags by number from `first` on.
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
        """Order places by falling scores and keep `limit`: rows, scores, ids, scopes, groups, as each shelf knows them.

        None if what breaks ties does not tell equals apart, two of them have one group, or there are too few to tell.
        """

    def told(self, rows: Sequence[tuple[object, ...]], kinds: bytes, /) -> bytes:
        """Tell for each row whether a value is of a type its column has not, a list holds something, a limit is set."""

    def inverted(self, texts: Sequence[Sequence[str]], numbers: NDArray[np.int64], /) -> tuple[bytes, ...]:
        """Turn tokens into postings: keys (int64), numbers (int64), frequencies (uint8), followers (uint32).

        Behind them come the different tokens in order, with a space between them.
        """

    def blocks(self, lines: tuple[str, ...], start: int, /) -> tuple[list[tuple[int, int, int, str, bool]], int]:
        """Tell the blocks of markdown from a line on, and the line from which it takes the parser, or the end.

        Of each: where it starts and ends, the level and the title of a heading, and whether it stays whole.
        """

    def packed(
        self, lines: tuple[str, ...], blocks: tuple[tuple[int, int, int, str, bool], ...], tokens: int, overlap: int, /
    ) -> list[tuple[int, int, int, int, tuple[str, ...]]] | None:
        """Pack blocks that follow each other into chunks of so many tokens, whose ends the next ones repeat.

        Of each: where it starts and ends, its first and last line counted from 1, and the headings above it. None if a
        line is longer than a chunk.
        """

    def numbers(self, text: str, /) -> str | None:
        """Find the numbers of a text that have four digits in a row, and no more; None if others may be digits."""

    def spelled(self, text: str, /) -> str | None:
        """Spell a text plainly, as `embedding/spelling.py` does; nothing if it has letters other than ASCII's."""

    def means(self, table: NDArray[np.float32], rows: list[list[int]], out: NDArray[np.float32], size: int, /) -> None:
        """Write the mean of some rows of a table for each list of them; for an empty list nothing is written."""


def _compiled() -> Kernel | None:
    try:
        found = cast(Kernel, import_module("whyrank._kernel"))
    except ImportError:
        return None
    # What is stored has its lowest byte first, and is read as it is.
    return found if found.VERSION == _VERSION and sys.byteorder == "little" else None


COMPILED = _compiled()
