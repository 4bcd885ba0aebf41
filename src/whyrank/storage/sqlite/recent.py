"""Where memories met a moment ago are stored, and those that were read: kept as long as the file does not change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from ...columns import MemoryId
from ...hits import HeldMemories
from ...types import Memory
from .connection import Connection
from .records import code
from .rows import SELECT, to_memory

_PLACES_KEPT = 2_000  # those of the last few searches; many more are slower to look up than to meet again
_MEMORIES_KEPT = 20_000
_PER_STATEMENT = 500

Value = TypeVar("Value", int, str)


Read = Callable[[MemoryId, int], Memory]


class Stored:
    """A memory in its row, read when somebody looks at it."""

    __slots__ = ("_read", "_row", "id", "origin")

    def __init__(self, identity: MemoryId, row: int, origin: int, read: Read) -> None:
        self.id = identity
        self.origin = origin
        self._row = row
        self._read = read

    def read(self) -> Memory:
        """Return the memory."""
        return self._read(self.id, self._row)


class Places(NamedTuple):
    """Where memories are stored: their rows, whose they are, and a number for the source each counts for."""

    ids: Sequence[MemoryId]
    rows: Sequence[int]
    scopes: Sequence[str]
    origins: Sequence[int]

    def inside(self, visible: set[str]) -> Places:
        """Keep what stands in one of these scopes."""
        if visible.issuperset(self.scopes):
            return self
        return self._at([place for place, scope in enumerate(self.scopes) if scope in visible])

    def _at(self, kept: Sequence[int]) -> Places:
        ids, rows, scopes, origins = self
        return Places(
            [ids[i] for i in kept], [rows[i] for i in kept], [scopes[i] for i in kept], [origins[i] for i in kept]
        )


class StoredMemories(HeldMemories):
    """Memories in their rows."""

    def __init__(self, places: Places, read: Read) -> None:
        ids, self.rows, _, origins = places
        super().__init__(ids, origins, lambda place: Stored(ids[place], places.rows[place], origins[place], read))


class RecentMemories:
    """Places by id and memories by row, for one generation of the file."""

    def __init__(self) -> None:
        self._generation = -1
        self._met = _Met()
        self._memories: dict[int, Memory] = {}
        self._turn = threading.Lock()

    def learn(self, generation: int, places: Places) -> None:
        """Take note of memories that a run has met, if it says whose they are."""
        if all(places.scopes):
            with self._turn:
                self._prepare(generation)
                self._met.add(places)

    def places(self, connection: Connection, generation: int, ids: Sequence[MemoryId]) -> Places:
        """Return the places of those ids that exist."""
        with self._turn:
            self._prepare(generation)
            unknown = [identity for identity in ids if identity not in self._met.numbers]
            for part, marks in _portions(unknown):
                found = connection.execute(
                    f"SELECT id, row, scope, grouping FROM memories WHERE id IN ({marks})", part
                ).fetchall()
                if found:
                    identities, rows, scopes, groupings = zip(*found, strict=True)
                    self._met.add(Places(identities, rows, scopes, [code(grouping) for grouping in groupings]))
            return self._met.places(ids)

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
        if generation != self._generation or len(self._met.numbers) > _PLACES_KEPT:
            self._met = _Met()
        if generation != self._generation or len(self._memories) > _MEMORIES_KEPT:
            self._memories = {}
        self._generation = generation


class _Met:
    """Places in columns that grow, and where in them each id stands."""

    def __init__(self) -> None:
        self.numbers: dict[MemoryId, int] = {}
        self._rows: list[int] = []
        self._scopes: list[str] = []
        self._origins: list[int] = []

    def add(self, places: Places) -> None:
        """Append some places."""
        self.numbers.update(zip(places.ids, range(len(self._rows), len(self._rows) + len(places.ids)), strict=True))
        self._rows += places.rows
        self._scopes += places.scopes
        self._origins += places.origins

    def places(self, ids: Sequence[MemoryId]) -> Places:
        """Return the places of those ids that are known."""
        known = self.numbers
        found = ids if all(identity in known for identity in ids) else [i for i in ids if i in known]
        at = [*map(known.__getitem__, found)]
        rows, scopes, origins = self._rows, self._scopes, self._origins
        return Places(found, [rows[i] for i in at], [scopes[i] for i in at], [origins[i] for i in at])


def _portions(values: Sequence[Value]) -> Iterable[tuple[Sequence[Value], str]]:
    for start in range(0, len(values), _PER_STATEMENT):
        part = values[start : start + _PER_STATEMENT]
        yield part, ", ".join("?" * len(part))
