"""Cursors name places, and nothing else is taken for one."""

from __future__ import annotations

import base64
import json

import pytest

from whyrank.interfaces.errors import BadRequest
from whyrank.interfaces.http.handlers import after, cursor_of
from whyrank.protocols import sorting_key
from whyrank.types.memory import ORDERS, Memory, Source

MEMORY = Memory("m_1", "tea", source=Source("notes/tea ☕.md", 3, 4, "hash"), created=1773480600.125, date=None)


def written(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize("order", ORDERS)
def test_a_cursor_names_the_place_of_its_memory(order: str) -> None:
    assert after(cursor_of(MEMORY, order), order) == sorting_key(MEMORY, order)  # type: ignore[arg-type]


@pytest.mark.parametrize("cursor", [
    "x", "%", "é", "A" * 5, written(None), written([]), written(["place"]), written(["created", 1.0, "p", 1, "h", "m"]),
    written(["place", 1, 1, "h", "m"]), written(["place", "p", "1", "h", "m"]), written(["place", "p", None, "h", "m"]),
    written(["place", "p", 10**30, "h", "m"]), written(["place", "\ud800", 1, "h", "m"]),
])  # fmt: skip
def test_what_is_no_cursor_of_this_list_is_refused(cursor: str) -> None:
    with pytest.raises(BadRequest, match="the cursor does not belong to this list"):
        after(cursor, "place")
