"""Analyzer version of every memory, as ranges of rows: rows only ever ascend.

A memory that is stored again gets a new row, so a reindexed memory leaves its range, and an empty range is dropped.
Rows before the first range belong to stores that did not record the version.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...errors import StoreDamaged
from ...types.memory import UNKNOWN_READER
from .rows import SELECT, to_memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...types.memory import Memory
    from .connection import Connection
    from .doc_values import ScopeDocValues

KEY = "readers"
_NO_END = 2**63 - 1  # behind the last row there can be


class Stretch(NamedTuple):
    """A range of rows indexed by one analyzer version, given by its first row."""

    first: int
    reader: int


Stretches = tuple[Stretch, ...]


@lru_cache(maxsize=16)
def stretches_in(text: str | None) -> Stretches:
    """Parse the stored ranges; malformed JSON counts as an unknown analyzer version."""
    try:
        found = [Stretch(int(first), int(reader)) for first, reader in json.loads(text or "[]")]
    except (ValueError, TypeError):
        return (Stretch(0, UNKNOWN_READER),)
    return tuple(found) if found and found[0].first == 0 else (Stretch(0, UNKNOWN_READER), *found)


def counts(shelves: Sequence[ScopeDocValues], stretches: Stretches) -> dict[int, int]:
    """Count the memories of some scopes by analyzer version."""
    if len(stretches) == 1:
        held = sum(shelf.count for shelf in shelves)
        return {stretches[0].reader: held} if held else {}
    firsts = [stretch.first for stretch in stretches]
    found: dict[int, int] = {}
    for shelf in shelves:
        places = np.searchsorted(firsts, shelf.rows[shelf.alive], side="right") - 1
        for stretch, count in zip(stretches, np.bincount(places, minlength=len(stretches)).tolist(), strict=True):
            if count:
                found[stretch.reader] = found.get(stretch.reader, 0) + count
    return found


def read_before(connection: Connection, reader: int) -> Iterator[Memory]:
    """Yield the memories indexed by an older analyzer version; unreadable rows are skipped."""
    known = _stretches(connection)
    for stretch, end in _with_ends(known):
        if stretch.reader >= reader:
            continue
        rows = connection.execute(
            f"SELECT {SELECT} FROM memories AS m WHERE m.row >= ? AND m.row < ? ORDER BY m.row", (stretch.first, end)
        )
        for row in rows:
            try:
                yield to_memory(row)
            except StoreDamaged:
                continue


class Marks:
    """Analyzer versions of the rows that one transaction writes."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: Stretches | None = None
        self._changed = False

    def put(self, row: int, reader: int) -> None:
        """Record the analyzer version of a row, which must follow all others."""
        if self._known is None:
            self._known = _stretches(self._connection)
        if self._known[-1].reader != reader:
            self._known = (*self._known, Stretch(row, reader))
            self._changed = True

    def close(self) -> None:
        """Write the ranges to `meta`, without those that hold no row any more."""
        if self._known is None or (len(self._known) == 1 and not self._changed):
            return
        living = self._living(self._known)
        if self._changed or living != self._known:
            self._connection.execute(
                "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
                (KEY, json.dumps(living)),
            )

    def _living(self, known: Stretches) -> Stretches:
        """Return the ranges that hold a row, and the last one, which receives the rows to come."""
        kept: list[Stretch] = []
        for stretch, end in _with_ends(known):
            place = (stretch.first, end)
            held = self._connection.execute("SELECT 1 FROM memories WHERE row >= ? AND row < ? LIMIT 1", place)
            is_over = end != _NO_END and held.fetchone() is None
            if not is_over and (not kept or kept[-1].reader != stretch.reader):
                kept.append(Stretch(stretch.first if kept else 0, stretch.reader))
        return tuple(kept)


def _stretches(connection: Connection) -> Stretches:
    stored = connection.execute("SELECT value FROM meta WHERE key = ?", (KEY,)).fetchone()
    return stretches_in(stored[0] if stored else None)


def _with_ends(known: Stretches) -> Iterator[tuple[Stretch, int]]:
    ends = (*(stretch.first for stretch in known[1:]), _NO_END)
    return zip(known, ends, strict=True)
