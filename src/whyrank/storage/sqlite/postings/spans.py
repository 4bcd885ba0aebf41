"""Which memories the segments of a scope hold, as far as what they say of themselves can be believed."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from ..connection import Connection
from ..sealed import BrokenSeal, seal
from .pages import MAX_SPAN

LIVE, MAKING = 0, 1
_HIGHEST = 2**53  # of numbers that were given out: one that is higher was damaged
_HEAD = Struct("<4q2I")  # segment, first, last, memories, CRC-32 of the scope and of the list of pages
_HEAD_BYTES = 4 + _HEAD.size  # with its checksum


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


def directory_with(scope: str, segment: Segment, entries: bytes) -> bytes:
    """Return the directory of a segment: a sealed head that repeats its row, and the list of its pages."""
    return _head(scope, segment, zlib.crc32(entries)) + entries


def entries_in(directory: bytes) -> bytes:
    """Return the list of pages of a directory whose head `span` has checked."""
    entries = directory[_HEAD_BYTES:]
    if _HEAD.unpack_from(directory, 4)[-1] != zlib.crc32(entries):
        raise BrokenSeal
    return entries


def _head(scope: str, segment: Segment, checksum: int) -> bytes:
    return seal(_HEAD.pack(*segment, zlib.crc32(scope.encode("utf-8", errors="replace")), checksum))


def _is_headed(scope: str, segment: Segment, head: bytes | None) -> bool:
    """Tell whether a row says what its directory repeats; segments of earlier versions have none."""
    if head is None:
        return True
    if not isinstance(scope, str) or not isinstance(head, bytes) or len(head) != _HEAD_BYTES:
        return False
    return head == _head(scope, segment, _HEAD.unpack_from(head, 4)[-1])


class Span(NamedTuple):
    """The segments of a scope that answer, in the order of their numbers, and the number from which on all is fresh."""

    segments: Sequence[Segment]
    flushed: int


def span(connection: Connection, scope: str) -> Span:
    """Return what the segments of a scope hold; where they do not fit together, none of them can be believed."""
    rows = connection.execute(
        f"SELECT segment, first, last, memories, substr(directory, 1, {_HEAD_BYTES}) FROM posting_segments "
        "WHERE scope = ? AND state = ? ORDER BY first",
        (scope, LIVE),
    ).fetchall()
    known = connection.execute("SELECT flushed FROM posting_scopes WHERE scope = ?", (scope,)).fetchone()
    found = Span([Segment(*row[:4]) for row in rows], known[0] if known else 0)
    if not isinstance(found.flushed, int) or not all(segment.is_possible for segment in found.segments):
        raise BrokenSeal
    if not all(_is_headed(scope, segment, row[4]) for segment, row in zip(found.segments, rows, strict=True)):
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
