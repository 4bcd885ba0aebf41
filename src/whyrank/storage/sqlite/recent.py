"""Where memories met a moment ago are stored, and those that were read: kept as long as the file does not change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from ...columns import MemoryId
from ...hits import Awaited, Fetched, Held, HeldMemories, forgotten
from ...types import Memory, Scope
from .connection import Connection
from .records import code
from .rows import SELECT, fetched

_PLACES_KEPT = 2_000  # those of the last few searches; many more are slower to look up than to meet again
_MEMORIES_KEPT = 20_000
_PER_STATEMENT = 500
UNMET = -1  # the place of what is not known

Value = TypeVar("Value", int, str)


Read = Callable[[MemoryId, int], Memory | None]


class Stored(Awaited):
    """A memory in its row, read when somebody looks at it."""

    __slots__ = ("_read", "_row", "_scope", "id", "origin")

    def __init__(self, identity: MemoryId, row: int, scope: str, origin: int, read: Read) -> None:
        self.id = identity
        self.origin = origin
        self._row = row
        self._scope = scope
        self._read = read

    def read(self) -> Memory:
        """Return the memory, or what says that it was forgotten since it was found."""
        return self._read(self.id, self._row) or forgotten(self.id, Scope.parse(self._scope))


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

    def __init__(self, places: Places, read: Read, fetch: Callable[[Sequence[int]], Mapping[int, Fetched]]) -> None:
        ids, self.rows, scopes, origins = places
        super().__init__(
            ids, origins, lambda place: Stored(ids[place], places.rows[place], scopes[place], origins[place], read)
        )
        self._fetch = fetch

    def fetched(self, ids: Sequence[MemoryId]) -> Mapping[MemoryId, Held]:
        """Return those of these that are there, their rows read at once."""
        places = self.places
        rows = [self.rows[places[identity]] for identity in ids]
        found = self._fetch(rows)
        return {identity: found[row] for identity, row in zip(ids, rows, strict=True) if row in found}


class RecentMemories:
    """Places by id and memories by row, made when somebody looks at them, for one generation of the file."""

    def __init__(self) -> None:
        self._generation = -1
        self._met = _Met()
        self._memories: dict[int, Fetched] = {}
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
            at = self._met.at(ids)
            if UNMET not in at:
                return self._met.places(ids, at)
            unknown = [identity for identity, place in zip(ids, at, strict=True) if place == UNMET]
            for part, marks in _portions(unknown):
                found = connection.execute(
                    f"SELECT id, row, scope, grouping FROM memories WHERE id IN ({marks})", part
                ).fetchall()
                if found:
                    identities, rows, scopes, groupings = zip(*found, strict=True)
                    self._met.add(Places(identities, rows, scopes, [code(grouping) for grouping in groupings]))
            at = self._met.at(ids)
            there = [identity for identity, place in zip(ids, at, strict=True) if place != UNMET]
            return self._met.places(there, [place for place in at if place != UNMET])

    def memories(self, connection: Connection, generation: int, rows: Sequence[int]) -> dict[int, Memory]:
        """Return the memories of rows that exist."""
        return {row: held.read() for row, held in self.fetched(connection, generation, rows).items()}

    def fetched(self, connection: Connection, generation: int, rows: Sequence[int]) -> dict[int, Fetched]:
        """Return the same, each made when somebody looks at it."""
        with self._turn:
            self._prepare(generation)
            known = self._memories
            for part, marks in _portions([row for row in rows if row not in known]):
                found = connection.execute(
                    f"SELECT {SELECT}, m.row FROM memories AS m WHERE m.row IN ({marks})", part
                ).fetchall()
                known.update((columns[-1], fetched(columns)) for columns in found)
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

    def at(self, ids: Sequence[MemoryId]) -> list[int]:
        """Return where in the columns each of these ids stands; UNMET if it is not known."""
        return [self.numbers.get(identity, UNMET) for identity in ids]

    def places(self, ids: Sequence[MemoryId], at: Sequence[int]) -> Places:
        """Return the places of ids that stand here in the columns."""
        rows, scopes, origins = self._rows, self._scopes, self._origins
        return Places(ids, [rows[i] for i in at], [scopes[i] for i in at], [origins[i] for i in at])


def _portions(values: Sequence[Value]) -> Iterable[tuple[Sequence[Value], str]]:
    for start in range(0, len(values), _PER_STATEMENT):
        part = values[start : start + _PER_STATEMENT]
        yield part, ", ".join("?" * len(part))
