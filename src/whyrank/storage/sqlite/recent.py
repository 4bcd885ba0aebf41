"""Where memories met a moment ago are stored, and those that were read: kept as long as the file does not change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from ...types import Memory, MemoryId
from .connection import Connection
from .records import code
from .rows import SELECT, to_memory

_KEPT = 20_000
_PER_STATEMENT = 500

Value = TypeVar("Value", int, str)


# Where a memory is stored: its row, whose it is, and a number for the source it counts for.
Place = tuple[int, str, int]


class Stored:
    """A memory in its place, read when somebody looks at it."""

    __slots__ = ("_place", "_read", "id")

    def __init__(self, identity: MemoryId, place: Place, read: Callable[[MemoryId, int], Memory]) -> None:
        self.id = identity
        self._place = place
        self._read = read

    @property
    def origin(self) -> int:
        """Return a number for the source it counts for."""
        return self._place[2]

    def read(self) -> Memory:
        """Return the memory."""
        return self._read(self.id, self._place[0])


class RecentMemories:
    """Places by id and memories by row, for one generation of the file."""

    def __init__(self) -> None:
        self._generation = -1
        self._places: dict[MemoryId, Place] = {}
        self._memories: dict[int, Memory] = {}
        self._turn = threading.Lock()

    def learn(
        self,
        generation: int,
        ids: Sequence[MemoryId],
        rows: Sequence[int],
        scopes: Sequence[str],
        origins: Sequence[int],
    ) -> None:
        """Take note of memories that a run has met, if it says whose they are."""
        with self._turn:
            self._prepare(generation)
            if all(scopes):
                self._places.update(zip(ids, zip(rows, scopes, origins, strict=True), strict=True))

    def places(self, connection: Connection, generation: int, ids: Sequence[MemoryId]) -> dict[MemoryId, Place]:
        """Return the places of those ids that exist."""
        with self._turn:
            self._prepare(generation)
            known = self._places
            unknown = [identity for identity in ids if identity not in known]
            for part, marks in _portions(unknown):
                for identity, row, scope, grouping in connection.execute(
                    f"SELECT id, row, scope, grouping FROM memories WHERE id IN ({marks})", part
                ):
                    known[identity] = (row, scope, code(grouping))
            return {identity: known[identity] for identity in ids if identity in known}

    def memories(self, connection: Connection, generation: int, rows: Sequence[int]) -> dict[int, Memory]:
        """Return the memories of rows that exist."""
        with self._turn:
            self._prepare(generation)
            known = self._memories
            for part, marks in _portions([row for row in rows if row not in known]):
                for row, *columns in connection.execute(
                    f"SELECT m.row, {SELECT} FROM memories AS m WHERE m.row IN ({marks})", part
                ):
                    known[row] = to_memory(tuple(columns))
            return {row: known[row] for row in rows if row in known}

    def _prepare(self, generation: int) -> None:
        if generation != self._generation or len(self._places) + len(self._memories) > _KEPT:
            self._places, self._memories, self._generation = {}, {}, generation


def _portions(values: Sequence[Value]) -> Iterable[tuple[Sequence[Value], str]]:
    for start in range(0, len(values), _PER_STATEMENT):
        part = values[start : start + _PER_STATEMENT]
        yield part, ", ".join("?" * len(part))
