"""Metadata of segments: the memories of each and the directory of its pages, validated on read."""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import pairwise
from struct import Struct
from struct import error as struct_error
from typing import NamedTuple

import numpy as np

from ...bm25 import Field
from ..checksums import ChecksumError, add_checksum, checksum_of
from ..connection import Connection, rows_of
from . import terms
from .format import INDEXED, MAX_SPAN

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
        """Check that the numbers of a segment are in range."""
        return (
            all(isinstance(value, int) for value in self)
            and 0 < self.segment < _HIGHEST
            and 0 <= self.first <= self.last < self.first + MAX_SPAN
            and 0 <= self.memories <= MAX_SPAN
        )


def directory_with(scope: str, segment: Segment, entries: bytes) -> bytes:
    """Return the directory of a segment: a checksummed head that repeats its row, and a list of its pages."""
    return _head(scope, segment, zlib.crc32(entries)) + entries


def entries_in(directory: bytes) -> bytes:
    """Return the list of pages of a directory whose head `span` has checked."""
    entries = directory[_HEAD_BYTES:]
    if _HEAD.unpack_from(directory, 4)[-1] != zlib.crc32(entries):
        raise ChecksumError
    return entries


def _head(scope: str, segment: Segment, checksum: int) -> bytes:
    return add_checksum(_HEAD.pack(*segment, zlib.crc32(scope.encode("utf-8", errors="replace")), checksum))


def _is_headed(scope: str, segment: Segment, head: bytes | None) -> bool:
    """Check a row against the head of its directory; segments of earlier versions have none."""
    if head is None:
        return True
    if not isinstance(scope, str) or not isinstance(head, bytes) or len(head) != _HEAD_BYTES:
        return False
    return head == _head(scope, segment, _HEAD.unpack_from(head, 4)[-1])


class SegmentSpan(NamedTuple):
    """The live segments of a scope by ascending number, and the number from which on all is fresh."""

    segments: Sequence[Segment]
    flushed: int


def span(connection: Connection, scope: str) -> SegmentSpan:
    """Return the live segments of a scope; raise ChecksumError if they do not fit together."""
    rows = connection.execute(
        f"SELECT segment, first, last, memories, substr(directory, 1, {_HEAD_BYTES}) FROM posting_segments "
        "WHERE scope = ? AND state = ? ORDER BY first",
        (scope, LIVE),
    ).fetchall()
    known = connection.execute("SELECT flushed FROM posting_scopes WHERE scope = ?", (scope,)).fetchone()
    found = SegmentSpan([Segment(*row[:4]) for row in rows], known[0] if known else 0)
    if not isinstance(found.flushed, int) or not all(segment.is_possible for segment in found.segments):
        raise ChecksumError
    if not all(_is_headed(scope, segment, row[4]) for segment, row in zip(found.segments, rows, strict=True)):
        raise ChecksumError
    if not _fits(connection, scope, found):
        raise ChecksumError
    return found


def live_segments(connection: Connection, scope: str) -> Sequence[Segment]:
    """Return the live segments, in the order of their numbers."""
    return span(connection, scope).segments


def _fits(connection: Connection, scope: str, found: SegmentSpan) -> bool:
    """Check that segments do not overlap, and leave out no flushed memory."""
    begin = 0
    for segment in found.segments:
        if segment.first < begin or _holds_any(connection, scope, begin, segment.first):
            return False
        begin = segment.last + 1
    return begin <= max(found.flushed, 0) and not _holds_any(connection, scope, begin, found.flushed)


def _holds_any(connection: Connection, scope: str, begin: int, end: int) -> bool:
    """Return whether a scope has memories from number `begin` to below `end`."""
    if begin >= end:
        return False
    query = "SELECT 1 FROM posting_tokens WHERE scope = ? AND number >= ? AND number < ? LIMIT 1"
    return connection.execute(query, (scope, begin, end)).fetchone() is not None


LOWEST_KEY = -(2**63)
# Pages that no segment can have; searched from both ends of an index, which takes as long for many as for few.
_STRAY = """
SELECT 1 FROM posting_pages WHERE segment < 1
UNION ALL SELECT 1 FROM posting_pages WHERE segment > (SELECT coalesce(max(segment), 0) FROM posting_segments) LIMIT 1
"""
_FIELDS = frozenset({*(field.number for field in INDEXED), terms.FIELD})
_PART = Struct("<2I")  # of a directory: a field and the number of its pages; their lowest keys and checksums follow
_CHECKSUM = "substr(page, 1, 4)"  # of a page, in SQL

Listed = Mapping[int, tuple[Sequence[int], Sequence[int]]]  # lowest keys and checksums of pages by field


class Directory(NamedTuple):
    """The pages of one field of a segment: the lowest key of each, ascending, its number, and its checksum."""

    firsts: Sequence[int]
    numbers: Sequence[int]
    checksums: Sequence[int] = ()  # none in a segment written by an earlier version

    def lists(self, first: int, page: object) -> bool:
        """Check a page against the checksum listed under its lowest key."""
        place = bisect_left(self.firsts, first)
        if place == len(self.firsts) or self.firsts[place] != first or not isinstance(page, bytes):
            return False
        return not self.checksums or self.checksums[place] == checksum_of(page)


NO_PAGES = Directory((), ())


def write_directory(connection: Connection, scope: str, segment: Segment) -> None:
    """Write the list of pages with checksums into the row of a segment, by which a lost page is detected."""
    rows = connection.execute(
        f"SELECT field, first_key, {_CHECKSUM} FROM posting_pages WHERE segment = ? ORDER BY field, first_key",
        (segment.segment,),
    ).fetchall()
    pages: dict[int, list[tuple[int, int]]] = {}
    for field, first, head in rows:
        pages.setdefault(field, []).append((first, checksum_of(head) if isinstance(head, bytes) else 0))
    entries = b"".join(
        _PART.pack(field, len(own))
        + np.array([first for first, _ in own], "<i8").tobytes()
        + np.array([checksum for _, checksum in own], "<u4").tobytes()
        for field, own in sorted(pages.items())
    )
    connection.execute(
        "UPDATE posting_segments SET directory = ? WHERE segment = ?",
        (directory_with(scope, segment, entries), segment.segment),
    )


def _listed(directory: bytes) -> Listed:
    """Decode the list of pages of a directory."""
    entries, at = entries_in(directory), 0
    found: dict[int, tuple[list[int], list[int]]] = {}
    while at < len(entries):
        field, count = _PART.unpack_from(entries, at)
        at += _PART.size
        firsts = np.frombuffer(entries, "<i8", count, at)
        checksums = np.frombuffer(entries, "<u4", count, at + firsts.nbytes)
        at += firsts.nbytes + checksums.nbytes
        found[field] = (firsts.tolist(), checksums.tolist())
    return found


def one_unfiled(field: Field) -> Directory:
    """Return a directory of one page that is not in the file, for all terms of a field."""
    return Directory((LOWEST_KEY,), (-1 - field.number,))


def filed(connection: Connection, segment: int) -> Mapping[int, Directory] | None:
    """Return the pages of a segment by field; None if a page is missing or misfiled."""
    rows = rows_of(
        connection,
        "SELECT segment, field, first_key, number FROM posting_pages WHERE segment > ? AND segment < ? "
        "ORDER BY segment, field, first_key",  # with pages misfiled between two segments
        (segment - 1, segment + 1),
    )
    if any(owner != segment or field not in _FIELDS or not isinstance(key, int) for owner, field, key, _ in rows):
        return None
    found: dict[int, Directory] = {}
    for field in _FIELDS:
        pages = [(key, number) for _, own, key, number in rows if own == field]
        if pages:
            found[field] = Directory(*zip(*pages, strict=True))
    if not all(_are_in_order(field, found[field].numbers) for field in found):
        return None
    listed = connection.execute("SELECT directory FROM posting_segments WHERE segment = ?", (segment,)).fetchone()
    return found if listed is None or listed[0] is None else _with_checksums(found, listed[0])


def _with_checksums(found: Mapping[int, Directory], directory: bytes) -> Mapping[int, Directory] | None:
    """Return pages with their listed checksums; None if the list differs from the pages."""
    try:
        listed = _listed(directory)
    except (ChecksumError, struct_error, ValueError, TypeError):
        return None
    if {field: [*pages.firsts] for field, pages in found.items()} != {
        field: keys for field, (keys, _) in listed.items()
    }:
        return None
    return {field: pages._replace(checksums=listed[field][1]) for field, pages in found.items()}


def _are_in_order(field: int, numbers: Sequence[int]) -> bool:
    """Check that page numbers follow their keys; only the end mark of a term dictionary is written last."""
    return field == terms.FIELD or all(one < other for one, other in pairwise(numbers))


def has_strays(connection: Connection) -> bool:
    """Return whether some pages belong to no existing segment: their owner is unknown."""
    return connection.execute(_STRAY).fetchone() is not None
