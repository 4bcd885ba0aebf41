"""Lists of values for `IN (…)`, in a few lengths alone: SQLite reads every other text of a statement anew."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

# Reading a statement takes as long as fetching some dozen rows by it; naming a value twice takes next to nothing.
LENGTHS = (1, 8, 32, 64, 500)
_MARKS = {length: ", ".join("?" * length) for length in LENGTHS}


class Portion(NamedTuple):
    """The parameters of one statement and the marks that stand for them."""

    values: Sequence[int | str]
    marks: str


def portions(values: Sequence[int] | Sequence[str]) -> Iterator[Portion]:
    """Yield all values, as many at a time as one statement takes; the last is repeated up to a known length."""
    for start in range(0, len(values), LENGTHS[-1]):
        part = values[start : start + LENGTHS[-1]]
        length = LENGTHS[bisect_left(LENGTHS, len(part))]
        yield Portion([*part, *[part[-1]] * (length - len(part))], _MARKS[length])
