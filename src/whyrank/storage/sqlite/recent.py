"""Memories read a moment ago, kept as long as the file does not change: a search meets each of them several times."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from ...types import Memory, MemoryId
from .connection import Connection
from .rows import SELECT, to_memory

_KEPT = 5_000
_PER_STATEMENT = 500


class RecentMemories:
    """A bounded cache of whole memories by row and by id, for one generation of the file."""

    def __init__(self) -> None:
        self._generation = -1
        self._by_row: dict[int, Memory] = {}
        self._rows: dict[MemoryId, int] = {}
        self._turn = threading.Lock()

    def ids(self, connection: Connection, generation: int, rows: Sequence[int]) -> list[MemoryId]:
        """Return the ids of rows that exist."""
        with self._turn:
            self._prepare(generation)
            self._read(connection, "row", [row for row in rows if row not in self._by_row])
            return [self._by_row[row].id for row in rows]

    def rows(self, connection: Connection, generation: int, ids: Iterable[MemoryId]) -> dict[int, MemoryId]:
        """Return the rows of those ids that exist."""
        with self._turn:
            self._prepare(generation)
            wanted = list(ids)
            self._read(connection, "id", [identity for identity in wanted if identity not in self._rows])
            return {self._rows[identity]: identity for identity in wanted if identity in self._rows}

    def by_id(self, connection: Connection, generation: int, ids: Sequence[MemoryId]) -> dict[MemoryId, Memory]:
        """Return the memories with these ids."""
        with self._turn:
            self._prepare(generation)
            self._read(connection, "id", [identity for identity in ids if identity not in self._rows])
            return {identity: self._by_row[self._rows[identity]] for identity in ids if identity in self._rows}

    def _prepare(self, generation: int) -> None:
        if generation != self._generation or len(self._by_row) > _KEPT:
            self._by_row, self._rows, self._generation = {}, {}, generation

    def _read(self, connection: Connection, column: str, values: Sequence[int] | Sequence[MemoryId]) -> None:
        for start in range(0, len(values), _PER_STATEMENT):
            part = values[start : start + _PER_STATEMENT]
            marks = ", ".join("?" * len(part))
            found = connection.execute(f"SELECT m.row, {SELECT} FROM memories AS m WHERE m.{column} IN ({marks})", part)
            for row, *columns in found:
                memory = to_memory(tuple(columns))
                self._by_row[row] = memory
                self._rows[memory.id] = row
