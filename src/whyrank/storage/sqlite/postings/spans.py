"""Which memories the segments of a scope hold, as far as what they say of themselves can be believed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..connection import Connection
from ..sealed import BrokenSeal
from .pages import MAX_SPAN

LIVE, MAKING = 0, 1
_HIGHEST = 2**53  # of numbers that were given out: one that is higher was damaged


class Segment(NamedTuple):
    """Postings of the memories from number `first` to number `last`."""

    segment: int
    first: int
    last: int
    memories: int

    @property
    def is_possible(self) -> bool:
        """Tell whether it says of itself what a segment can say."""
        return (
            all(isinstance(value, int) for value in self)
            and 0 < self.segment < _HIGHEST
            and 0 <= self.first <= self.last < self.first + MAX_SPAN
            and 0 <= self.memories <= MAX_SPAN
        )


class Span(NamedTuple):
    """The segments of a scope that answer, in the order of their numbers, and the number from which on all is fresh."""

    segments: Sequence[Segment]
    flushed: int


def span(connection: Connection, scope: str) -> Span:
    """Return what the segments of a scope hold; where they do not fit together, none of them can be believed."""
    rows = connection.execute(
        "SELECT segment, first, last, memories FROM posting_segments WHERE scope = ? AND state = ? ORDER BY first",
        (scope, LIVE),
    ).fetchall()
    known = connection.execute("SELECT flushed FROM posting_scopes WHERE scope = ?", (scope,)).fetchone()
    found = Span([Segment(*row) for row in rows], known[0] if known else 0)
    if not isinstance(found.flushed, int) or not all(segment.is_possible for segment in found.segments):
        raise BrokenSeal
    if not _fits(connection, scope, found):
        raise BrokenSeal
    return found


def live_segments(connection: Connection, scope: str) -> Sequence[Segment]:
    """Return the segments that answer, in the order of their numbers."""
    return span(connection, scope).segments


def _fits(connection: Connection, scope: str, found: Span) -> bool:
    """Tell whether segments overlap nowhere, and leave out no memory that is not fresh."""
    begin = 0
    for segment in found.segments:
        if segment.first < begin or _holds_any(connection, scope, begin, segment.first):
            return False
        begin = segment.last + 1
    return begin <= max(found.flushed, 0) and not _holds_any(connection, scope, begin, found.flushed)


def _holds_any(connection: Connection, scope: str, begin: int, end: int) -> bool:
    """Tell whether a scope has memories from one number to below another."""
    if begin >= end:
        return False
    query = "SELECT 1 FROM posting_tokens WHERE scope = ? AND number >= ? AND number < ? LIMIT 1"
    return connection.execute(query, (scope, begin, end)).fetchone() is not None
