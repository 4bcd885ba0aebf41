"""Cursors of keyset pagination: a page begins after the last memory of the one before, despite writes."""

from __future__ import annotations

import base64
import json
from typing import Any

from ...analysis.normalize import clean
from ...protocols import SortingKey, sorting_key
from ...types.memory import Memory, Order
from .request import BadRequest

MAX_CURSOR_CHARACTERS = 20_000  # a path may be long
# Types of the sort values before the content key (path, line, hash, id) in each order.
_FIRST: dict[Order, tuple[type, ...]] = {
    "place": (),
    "created": (float,),
    "date": (int, float),
    "importance": (int,),
    "recalls": (int,),
}
_CONTENT_KEY = (str, int, str, str)
_GREATEST = 2**62  # within the integer range of SQLite


def cursor_of(memory: Memory, order: Order) -> str:
    """Return the cursor of the position after a memory in a list of this order."""
    text = json.dumps([order, *sorting_key(memory, order)], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def after(cursor: str, order: Order) -> SortingKey:
    """Return the position of a cursor; a cursor issued for another order is refused."""
    place = _read(cursor)
    types = (str, *_FIRST[order], *_CONTENT_KEY)
    fits = isinstance(place, list) and len(place) == len(types) and all(map(_is_of, place, types))
    if not fits or place[0] != order:
        raise BadRequest(
            404, "cursor", "the cursor is none of this list", "give `next` of the page before, with its sort"
        )
    return tuple(place[1:])


def _read(cursor: str) -> Any:
    try:
        return json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, RecursionError):
        return None


def _is_of(value: object, kind: type) -> bool:
    if kind is str:
        return isinstance(value, str) and not clean(value).replaced
    return isinstance(value, int | float) and abs(value) < _GREATEST
