"""Cursors: where a page of a list ended, so that the next one begins there whatever has come or gone since."""

from __future__ import annotations

import base64
import json
from typing import Any

from ...analysis.text import clean
from ...ports import SortingKey, sorting_key
from ...types import Memory, Order
from .bodies import Refused

MAX_CURSOR_CHARACTERS = 20_000  # a path may be long
# What stands before the content key (path, line, hash, id) in each order.
_FIRST: dict[Order, tuple[type, ...]] = {
    "place": (),
    "created": (float,),
    "date": (int, float),
    "importance": (int,),
    "recalls": (int,),
}
_CONTENT_KEY = (str, int, str, str)
_GREATEST = 2**62  # what SQLite takes for a whole number


def cursor_of(memory: Memory, order: Order) -> str:
    """Return what names the place behind a memory in a list of this order."""
    text = json.dumps([order, *sorting_key(memory, order)], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def after(cursor: str, order: Order) -> SortingKey:
    """Return the place a cursor names; one that was not given out for this order is refused."""
    place = _read(cursor)
    types = (str, *_FIRST[order], *_CONTENT_KEY)
    fits = isinstance(place, list) and len(place) == len(types) and all(map(_is_of, place, types))
    if not fits or place[0] != order:
        raise Refused(404, "cursor", "the cursor is none of this list", "give `next` of the page before, with its sort")
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
