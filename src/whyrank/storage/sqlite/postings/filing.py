"""Under which keys the pages of a segment are filed, as far as that can be believed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import pairwise
from struct import Struct
from struct import error as struct_error
from typing import NamedTuple

import numpy as np

from ...fields import Field
from ..connection import Connection, rows_of
from ..sealed import BrokenSeal, checksum_of
from . import vocabulary
from .inversion import INDEXED
from .spans import Segment, directory_with, entries_in

LOWEST_KEY = -(2**63)
# Pages that no segment can have; looked for from both ends of an index, which takes as long for many as for few.
_STRAY = """
SELECT 1 FROM posting_pages WHERE segment < 1
UNION ALL SELECT 1 FROM posting_pages WHERE segment > (SELECT coalesce(max(segment), 0) FROM posting_segments) LIMIT 1
"""
_FIELDS = frozenset({*(field.number for field in INDEXED), vocabulary.FIELD})
_PART = Struct("<2I")  # of a directory: a field and how many pages it has; their lowest keys and checksums follow
_CHECKSUM = "substr(page, 1, 4)"  # of a page, in SQL

Listed = Mapping[int, tuple[Sequence[int], Sequence[int]]]  # lowest keys and checksums of pages by field


class Directory(NamedTuple):
    """The pages of one field of a segment: the lowest key of each, ascending, its number, and its checksum."""

    firsts: Sequence[int]
    numbers: Sequence[int]
    checksums: Sequence[int] = ()  # none where an earlier version has written the segment

    def lists(self, first: int, page: object) -> bool:
        """Tell whether a page is the one that is listed under its lowest key."""
        place = bisect_left(self.firsts, first)
        if place == len(self.firsts) or self.firsts[place] != first or not isinstance(page, bytes):
            return False
        return not self.checksums or self.checksums[place] == checksum_of(page)


NO_PAGES = Directory((), ())


def write_directory(connection: Connection, scope: str, segment: Segment) -> None:
    """List the pages of a segment in its row, each with its checksum: a page that is lost is missed from then on."""
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
    """Read the list of pages of a directory."""
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
    """Return a directory of one page that is nowhere in the file, for all terms of a field."""
    return Directory((LOWEST_KEY,), (-1 - field.number,))


def filed(connection: Connection, segment: int) -> Mapping[int, Directory] | None:
    """Return the pages of a segment by field; None if one is missing, or they are filed as no writer files them."""
    rows = rows_of(
        connection,
        "SELECT segment, field, first_key, number FROM posting_pages WHERE segment > ? AND segment < ? "
        "ORDER BY segment, field, first_key",  # with those that stand between two segments
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
    """Return pages with the checksums that are listed of them; None if others are listed than are there."""
    try:
        listed = _listed(directory)
    except (BrokenSeal, struct_error, ValueError, TypeError):
        return None
    if {field: [*pages.firsts] for field, pages in found.items()} != {
        field: keys for field, (keys, _) in listed.items()
    }:
        return None
    return {field: pages._replace(checksums=listed[field][1]) for field, pages in found.items()}


def _are_in_order(field: int, numbers: Sequence[int]) -> bool:
    """Tell whether pages have numbers in the order of their keys; only the end of a list of words is written last."""
    return field == vocabulary.FIELD or all(one < other for one, other in pairwise(numbers))


def has_strays(connection: Connection) -> bool:
    """Tell whether some pages are filed under no segment there is: nobody knows whose they are."""
    return connection.execute(_STRAY).fetchone() is not None
