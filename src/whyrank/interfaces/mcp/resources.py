"""Memories as resources: the most recent ones, and each by its id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...engine import Engine
from ...errors import NotFound
from ...types import Memory
from .. import fencing
from . import calls, texts

RECENT = "whyrank://recent"
MEMORY = f"{calls.MEMORY_ADDRESS}{{id}}"
RECENT_COUNT = 20
MIME_TYPE = "text/plain"

_HOUR = 3_600.0
_WIDER = 4.0  # each look back reaches so many times farther
_LOOKS = 10  # the last one reaches 30 years back
_READ_AT_MOST = 1_000  # of one look; more are looked at again, over a shorter time
_HALVINGS = 12


class Listed(NamedTuple):
    """One memory in the list of resources."""

    address: str
    name: str
    title: str


def listed(door: calls.Door, now: float) -> list[Listed]:
    """Return the most recent memories for a list people pick from."""
    return [Listed(f"{calls.MEMORY_ADDRESS}{one.id}", one.id, _called(one)) for one in _recent(door, now)]


def _called(memory: Memory) -> str:
    return fencing.one_line(memory.title or memory.text, 80)


def read(door: calls.Door, address: str, now: float) -> str:
    """Return the text of a resource."""
    if address == RECENT:
        return texts.recent(_recent(door, now))
    if not address.startswith(calls.MEMORY_ADDRESS):
        raise NotFound(f"there is no resource {address[:200]!r}", f"there are {RECENT} and {MEMORY}")
    engine = door.desk.reading()
    return texts.recent([engine.get(address.removeprefix(calls.MEMORY_ADDRESS), scope=door.seen({}))])


def _recent(door: calls.Door, now: float) -> list[Memory]:
    return recent(door.desk.reading(), door.seen({}), now, RECENT_COUNT)


def recent(engine: Engine, scopes: Sequence[str], now: float, count: int) -> list[Memory]:
    """Return the memories with the latest dates, the latest first; what has no date comes last.

    An engine lists by place, not by date. So the last hour is looked at, then the last four, and so on until there are
    enough; if that was far too many at once (a folder was ingested), the time is halved until they can be read.
    """
    few, enough = 0.0, _HOUR
    for _ in range(_LOOKS):
        found = engine.list(scope=scopes, since=now - enough, limit=_READ_AT_MOST)
        if len(found) >= count:
            break
        few, enough = enough, enough * _WIDER
    else:
        found = engine.list(scope=scopes, limit=_READ_AT_MOST)
        few = enough
    for _ in range(_HALVINGS if len(found) == _READ_AT_MOST and few < enough else 0):
        middle = (few + enough) / 2
        nearer = engine.list(scope=scopes, since=now - middle, limit=_READ_AT_MOST)
        if len(nearer) < count:
            few = middle
            continue
        found, enough = nearer, middle
        if len(found) < _READ_AT_MOST:
            break
    return sorted(found, key=lambda one: (-(one.date or 0.0), one.id))[:count]
