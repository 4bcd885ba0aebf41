"""Memories as resources: the most recent ones, and each by its id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...engine import Engine
from ...errors import NotFound
from ...types import Memory
from .. import fencing
from ..door import Door
from . import calls, texts

RECENT = "whyrank://recent"
MEMORY = f"{calls.MEMORY_ADDRESS}{{id}}"
RECENT_COUNT = 20
MIME_TYPE = "text/plain"


class Listed(NamedTuple):
    """One memory in the list of resources."""

    address: str
    name: str
    title: str


def listed(door: Door) -> list[Listed]:
    """Return the most recent memories for a list people pick from."""
    return [Listed(f"{calls.MEMORY_ADDRESS}{one.id}", one.id, _called(one)) for one in _recent(door)]


def _called(memory: Memory) -> str:
    return fencing.one_line(memory.title or memory.text, 80)


def read(door: Door, address: str) -> str:
    """Return the text of a resource."""
    if address == RECENT:
        return texts.recent(_recent(door))
    if not address.startswith(calls.MEMORY_ADDRESS):
        raise NotFound(f"there is no resource {address[:200]!r}", f"there are {RECENT} and {MEMORY}")
    engine = door.desk.reading()
    return texts.recent([engine.get(address.removeprefix(calls.MEMORY_ADDRESS), scope=door.seen({}))])


def _recent(door: Door) -> list[Memory]:
    return recent(door.desk.reading(), door.seen({}), RECENT_COUNT)


def recent(engine: Engine, scopes: Sequence[str], count: int) -> list[Memory]:
    """Return the memories with the latest dates, the latest first; what has no date comes last."""
    return engine.list(scope=scopes, sort="date", limit=count)
