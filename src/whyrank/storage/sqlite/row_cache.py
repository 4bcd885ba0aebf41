"""Cache of rows: locations of recent candidates, and recently read memories, for one generation."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...analysis.normalize import STRING_BYTES, ByteBoundedCache
from ...types.memory import Memory, MemoryId
from ...types.results import ContentKey
from .connection import Connection, Row, portions, rows_of
from .doc_values import code
from .rows import COMPARED_KEY, SELECT, STORED, fetched, legible_key, to_memory

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from .rows import FetchedRow

_PLACES_KEPT = 600  # those of the last few searches; more are slower to free, once cold, than to read again
_RUNS_KEPT = 4  # always kept, whatever their size: a search needs their places when all its runs are done
MEMORY_BYTES = 32 * 1024 * 1024  # of recently read rows, and their content keys
_ROW_BYTES = 2_000  # of a memory beside its texts: a value for each column, and those made of them
_KEY_SHARE = 3 / 8  # of these bytes, for content keys

_STORED = ", ".join(f"m.{column}" for column in STORED)

Place = tuple[int, str, int]  # row, scope, a number for the source


class Places(NamedTuple):
    """Locations of memories: their rows, scopes, and the codes of their sources."""

    ids: Sequence[MemoryId]
    rows: Sequence[int]
    scopes: Sequence[str]
    origins: Sequence[int]

    def by_id(self) -> dict[MemoryId, Place]:
        """Return the places by id."""
        ids, *columns = self
        return dict(zip(ids, zip(*columns, strict=True), strict=True))

    def inside(self, visible: AbstractSet[str]) -> Places:
        """Return the places in these scopes."""
        if visible >= {*self.scopes}:
            return self
        return self._at([place for place, scope in enumerate(self.scopes) if scope in visible])

    def _at(self, kept: Sequence[int]) -> Places:
        ids, rows, scopes, origins = self
        return Places(
            [ids[i] for i in kept], [rows[i] for i in kept], [scopes[i] for i in kept], [origins[i] for i in kept]
        )


class _Read(NamedTuple):
    """A memory as it was read, with its row if that is damaged."""

    memory: FetchedRow
    row: Row | None
    nbytes: int


class RowCache:
    """Places by id and lazily made memories by row, for one generation of the file."""

    def __init__(self, max_bytes: int = MEMORY_BYTES) -> None:
        self._generation = -1
        self._runs: deque[Places] = deque()
        self._places = 0  # of all runs together
        key_bytes = int(max_bytes * _KEY_SHARE)
        self._memories: ByteBoundedCache[int, _Read] = ByteBoundedCache(
            max_bytes - key_bytes, lambda _, read: read.nbytes
        )
        self._keys: ByteBoundedCache[int, ContentKey] = ByteBoundedCache(
            key_bytes, lambda _, key: len(key) * STRING_BYTES
        )
        self._turn = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Return the approximate memory of the rows and keys, in bytes."""
        return self._memories.nbytes + self._keys.nbytes

    def learn(self, generation: int, places: Places) -> None:
        """Store the places of the memories that a run has found, if it knows their scopes."""
        if all(places.scopes):
            with self._turn:
                self._prepare(generation)
                self._add(places)

    def places(self, connection: Connection, generation: int, ids: Sequence[MemoryId]) -> Places:
        """Return the places of those ids that exist."""
        with self._turn:
            self._prepare(generation)
            met = self._met(ids)
            if met is not None:
                return met
            known: dict[MemoryId, Place] = {}
            for run in self._runs:
                known |= run.by_id()
            known |= self._read(connection, [identity for identity in ids if identity not in known])
        ids = [identity for identity in ids if identity in known]
        if not ids:
            return Places((), (), (), ())
        return Places(ids, *zip(*map(known.__getitem__, ids), strict=True))

    def _met(self, ids: Sequence[MemoryId]) -> Places | None:
        """Return the places from the latest runs if they have all of these, as for the candidates of a search."""
        at: dict[MemoryId, int] = {}
        rows: list[int] = []
        scopes: list[str] = []
        origins: list[int] = []
        for run in reversed(self._runs):
            at |= zip(run.ids, range(len(rows), len(rows) + len(run.ids)), strict=True)
            rows += run.rows
            scopes += run.scopes
            origins += run.origins
            try:
                places = [*map(at.__getitem__, ids)]
            except KeyError:
                continue  # an earlier run may have them
            return Places(ids, [rows[i] for i in places], [scopes[i] for i in places], [origins[i] for i in places])
        return None

    def _read(self, connection: Connection, ids: Sequence[MemoryId]) -> dict[MemoryId, Place]:
        found = {}
        for part, marks in portions(ids):
            rows = rows_of(connection, f"SELECT id, row, scope, grouping FROM memories WHERE id IN ({marks})", part)
            found.update(
                {
                    identity: (row, scope, code(grouping if isinstance(grouping, str) else ""))
                    for identity, row, scope, grouping in rows
                }
            )
        if found:
            self._add(Places([*found], *zip(*found.values(), strict=True)))
        return found

    def _add(self, run: Places) -> None:
        if not run.ids:
            return  # it would never be evicted: it adds nothing to the places that are counted
        self._runs.append(run)
        self._places += len(run.ids)
        while len(self._runs) > _RUNS_KEPT and self._places > _PLACES_KEPT:
            self._places -= len(self._runs.popleft().ids)

    def memories(self, connection: Connection, generation: int, rows: Sequence[int]) -> dict[int, Memory]:
        """Return the memories of rows that exist; raise StoreDamaged for an unreadable one."""
        found = self._rows(connection, generation, rows).items()
        return {row: held.memory.memory if held.row is None else to_memory(held.row) for row, held in found}

    def fetched(self, connection: Connection, generation: int, rows: Sequence[int]) -> dict[int, FetchedRow]:
        """Return the memories of rows that exist, as far as they can be read."""
        return {row: held.memory for row, held in self._rows(connection, generation, rows).items()}

    def _rows(self, connection: Connection, generation: int, rows: Sequence[int]) -> dict[int, _Read]:
        with self._turn:
            self._prepare(generation)
            known = dict(zip(rows, self._memories.get_many(rows), strict=True))
            read: dict[int, _Read] = {}
            for part, marks in portions([row for row, held in known.items() if held is None]):
                wanted = f"SELECT {SELECT}, {_STORED}, m.row FROM memories AS m WHERE m.row IN ({marks})"
                found = rows_of(connection, wanted, part)
                for columns, memory in zip(found, fetched(found), strict=True):
                    read[columns[-1]] = _Read(memory, columns if memory.is_mended else None, _row_bytes(columns))
            self._memories.update(read)
            known.update(read)
            return {row: held for row, held in known.items() if held is not None}

    def content_keys(self, connection: Connection, generation: int, rows: Sequence[int]) -> dict[int, ContentKey]:
        """Return the content keys of rows that exist."""
        with self._turn:
            self._prepare(generation)
            known = dict(zip(rows, self._keys.get_many(rows), strict=True))
            missing = [row for row, key in known.items() if key is None]
            if missing:
                read = content_keys(connection, missing)
                self._keys.update(read)
                known.update(read)
            return {row: key for row, key in known.items() if key is not None}

    def _prepare(self, generation: int) -> None:
        if generation != self._generation:
            self._runs.clear()
            self._places = 0
            self._memories.clear()
            self._keys.clear()
        self._generation = generation


def _row_bytes(columns: Row) -> int:
    """Return the size of a row in bytes; texts count twice, for the row and for the memory made from it."""
    return _ROW_BYTES + 2 * sum(len(value) for value in columns if isinstance(value, str | bytes))


def content_keys(connection: Connection, rows: Sequence[int]) -> dict[int, ContentKey]:
    """Return the content keys of rows that exist."""
    keys: dict[int, ContentKey] = {}
    for part, marks in portions(rows):
        statement = f"SELECT m.row, {COMPARED_KEY} FROM memories AS m WHERE m.row IN ({marks})"
        keys.update((row, legible_key(key)) for row, *key in rows_of(connection, statement, part))
    return keys
