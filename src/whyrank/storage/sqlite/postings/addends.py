"""What each term adds to the candidates of an answer: looked up when somebody reads it, as few trails are."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple
from weakref import ref

import numpy as np

from ....kernel import Kernel
from ....types import Repeats
from ..catalogue import Floats, Integers
from .asked import Asked, Known, by_term
from .library import Library
from .scores import Scores

_UNREAD_KEPT = 64  # answers that may wait for a reader: writing out all of them takes some hundredths of a second


class Placed(NamedTuple):
    """Which of some rows stand on a shelf, and where."""

    shelf: int
    here: Integers
    places: Integers


class Addends:
    """What each term adds to each of some rows; once written out, it holds no more than these numbers."""

    def __init__(self, scores: Scores, placed: Sequence[Placed], count: int) -> None:
        # While it waits, it has scores of its own: those of a search hold sums for every memory there is.
        look = partial(_looked_up, scores.library, scores.terms, scores.kernel)
        self._known: Floats | Callable[[], Floats] = (
            partial(look, placed, count) if scores.is_simple else partial(_written_out, scores, placed, count)
        )

    @property
    def table(self) -> Floats:
        """Return a row for each term, a column for each row."""
        known = self._known
        if not isinstance(known, np.ndarray):
            known = self._known = known()
        return known

    def __getitem__(self, place: int) -> Floats:
        return self.table[:, place]


def _looked_up(
    library: Library, terms: Sequence[Asked], kernel: Kernel | None, placed: Sequence[Placed], count: int
) -> Floats:
    return _written_out(Scores(library, terms, kernel=kernel), placed, count)


def _written_out(scores: Scores, placed: Sequence[Placed], count: int) -> Floats:
    table = np.zeros((scores.count, count))
    every = range(len(scores.terms))
    return _with_speaker(scores, placed, _with_terms(scores, placed, table, every))


def _with_terms(scores: Scores, placed: Sequence[Placed], table: Floats, chosen: Sequence[int]) -> Floats:
    """Write the rows of some terms into a table that is nobody's yet."""
    for number, here, places in placed if chosen else ():
        table[np.ix_(np.array(chosen), here)] = scores.of_terms(number, places, chosen)
    return table


def _with_speaker(scores: Scores, placed: Sequence[Placed], table: Floats) -> Floats:
    for number, here, places in placed if scores.speaker is not None else ():
        table[-1, here] = scores.of_speaker(number, places, table[:-1, here])
    return table


class Written:
    """Rows of addends that nobody has put together, because nobody may ask for those of a memory."""

    def __init__(self, rows: Sequence[Floats]) -> None:
        self._rows = rows

    def __getitem__(self, place: int) -> Floats:
        return np.array([row[place] for row in self._rows])


@dataclass(frozen=True)
class Scored:
    """A question and what its terms add to its candidates, for whoever asks for the same without one of its words."""

    moment: object
    asked: frozenset[str]
    repeats: Repeats
    terms: Sequence[Asked]
    rows: Sequence[int]
    placed: Sequence[Placed]
    addends: Addends

    def covers(self, moment: object, terms: Sequence[str], repeats: Repeats) -> bool:
        """Tell whether a question asks for some of these words and for nothing else."""
        return self.moment == moment and self.asked.issuperset(terms) and self.repeats == repeats

    def serves(self, scores: Scores, moment: object, terms: Sequence[str], repeats: Repeats) -> bool:
        """Tell whether that question is quicker to answer from here: unless its simple sums are at hand."""
        is_less = len(terms) < len(self.asked)
        return (is_less or not scores.is_simple) and self.covers(moment, terms, repeats)

    def without(self, scores: Scores) -> Floats:
        """Return the table of a question that lacks some of the terms; what it has besides is looked up."""
        table = np.zeros((scores.count, len(self.rows)))
        for number, row in enumerate(self.rows_of(scores)):
            table[number] = row
        return _with_speaker(scores, self.placed, table)

    def rows_of(self, scores: Scores) -> list[Floats]:
        """Return what each term of such a question adds, as far as it names no speaker."""
        table, places = self.addends.table, self._places
        known = [places.get(id(asked)) for asked in scores.terms]
        new = [i for i, place in enumerate(known) if place is None]
        found = iter(self._looked_up(scores, new) if new else ())
        return [next(found) if place is None else table[place] for place in known]

    def _looked_up(self, scores: Scores, terms: Sequence[int]) -> Floats:
        table = np.zeros((len(terms), len(self.rows)))
        for number, here, places in self.placed:
            table[:, here] = scores.of_terms(number, places, terms)
        return table

    @cached_property
    def by_term(self) -> Known:
        """Return what its terms have found, for whoever asks for one of them again."""
        return by_term(self.terms)

    @cached_property
    def _places(self) -> dict[int, int]:
        return {id(asked): place for place, asked in enumerate(self.terms)}


class Unread:
    """The addends of late answers that somebody may still hold: they share the lists of the index while these last."""

    def __init__(self) -> None:
        self._waiting: deque[ref[Addends]] = deque()

    def add(self, addends: Addends) -> None:
        """Let addends wait for a reader; of too many the first are written out."""
        self._waiting.append(ref(addends))
        while len(self._waiting) > _UNREAD_KEPT:
            self._write_out()

    def settle(self) -> None:
        """Write all of them out before the index goes on to other lists, so that no answer keeps the old ones."""
        while self._waiting:
            self._write_out()

    def _write_out(self) -> None:
        try:
            addends = self._waiting.popleft()()
        except IndexError:  # another thread has written out the last one
            return
        if addends is not None:
            addends.table  # noqa: B018 — read once, it lets go of the index
