"""What each term adds to the candidates of an answer: looked up when somebody reads it, as few trails are."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple
from weakref import ref

import numpy as np

from ..catalogue import Floats, Integers
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
        own = Scores(scores.library, scores.terms) if scores.is_simple else scores
        self._known: Floats | Callable[[], Floats] = partial(_written_out, own, placed, count)

    @property
    def table(self) -> Floats:
        """Return a row for each term, a column for each row."""
        known = self._known
        if not isinstance(known, np.ndarray):
            known = self._known = known()
        return known

    def __getitem__(self, place: int) -> Floats:
        return self.table[:, place]


def _written_out(scores: Scores, placed: Sequence[Placed], count: int) -> Floats:
    table = np.zeros((len(scores.labels), count))
    for number, here, places in placed:
        table[:, here] = scores.addends(number, places)
    return table


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
