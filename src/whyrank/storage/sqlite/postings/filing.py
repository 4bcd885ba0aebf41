"""Under which keys the pages of a segment are filed, as far as that can be believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from ...fields import Field
from ..connection import Connection, rows_of
from . import vocabulary
from .inversion import INDEXED

LOWEST_KEY = -(2**63)
# Pages that no segment can have; looked for from both ends of an index, which takes as long for many as for few.
_STRAY = """
SELECT 1 FROM posting_pages WHERE segment < 1
UNION ALL SELECT 1 FROM posting_pages WHERE segment > (SELECT coalesce(max(segment), 0) FROM posting_segments) LIMIT 1
"""
_FIELDS = frozenset({*(field.number for field in INDEXED), vocabulary.FIELD})


class Directory(NamedTuple):
    """The pages of one field of a segment: the lowest key of each, ascending, and its number."""

    firsts: Sequence[int]
    numbers: Sequence[int]


NO_PAGES = Directory((), ())


def one_unfiled(field: Field) -> Directory:
    """Return a directory of one page that is nowhere in the file, for all terms of a field."""
    return Directory((LOWEST_KEY,), (-1 - field.number,))


def filed(connection: Connection, segment: int) -> Mapping[int, Directory] | None:
    """Return the pages of a segment by field; None if they are filed as no writer files them."""
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
    return found if all(_are_in_order(field, found[field].numbers) for field in found) else None


def _are_in_order(field: int, numbers: Sequence[int]) -> bool:
    """Tell whether pages have numbers in the order of their keys; only the end of a list of words is written last."""
    return field == vocabulary.FIELD or all(one < other for one, other in pairwise(numbers))


def has_strays(connection: Connection) -> bool:
    """Tell whether some pages are filed under no segment there is: nobody knows whose they are."""
    return connection.execute(_STRAY).fetchone() is not None
