"""Where memories met a moment ago are stored, and those that were read: kept as long as the file does not change."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ...caches import STRING_BYTES, ByteBoundedCache
from ...columns import MemoryId
from ...errors import StoreError
from ...hits import Awaited, ContentKey, Fetched, Held, HeldMemories, forgotten, memory_of, unreadable
from ...kernel import Kernel
from ...types import Memory, Scope
from .connection import Connection, Row, rows_of
from .portions import portions
from .records import code
from .rows import COMPARED_KEY, SELECT, STORED, fetched, legible_key, to_memory

_PLACES_KEPT = 600  # those of the last few searches; more are slower to let go of, once cold, than to meet again
_RUNS_KEPT = 4  # whose places are not forgotten, however many: a search asks for them when all its runs are done
MEMORY_BYTES = 32 * 1024 * 1024  # of rows read lately, and what breaks ties between them
_ROW_BYTES = 2_000  # of a memory beside its texts: a value for each column, and those made of them
_KEY_SHARE = 3 / 8  # of these bytes, for what breaks ties

_STORED = ", ".join(f"m.{column}" for column in STORED)

Place = tuple[int, str, int]  # row, scope, a number for the source

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

    def __reduce__(self) -> tuple[Callable[[Held], Memory], tuple[Memory]]:
        """Return the memory to copy; that of a store that cannot be asked any more says so."""
        try:
            return memory_of, (self.read(),)
        except StoreError:
            return memory_of, (unreadable(self.id, Scope.parse(self._scope)),)


class Places(NamedTuple):
    """Where memories are stored: their rows, whose they are, and a number for the source each counts for."""

    ids: Sequence[MemoryId]
    rows: Sequence[int]
    scopes: Sequence[str]
    origins: Sequence[int]

    def by_id(self) -> dict[MemoryId, Place]:
        """Return the place of each."""
        ids, *columns = self
        return dict(zip(ids, zip(*columns, strict=True), strict=True))

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

    def __init__(
        self,
        places: Places,
        read: Read,
        fetch: Callable[[Sequence[int]], Mapping[int, Fetched]],
        keys: Callable[[Sequence[int]], Mapping[int, ContentKey]],
    ) -> None:
        ids, self.rows, scopes, origins = places
        super().__init__(
            ids, origins, lambda place: Stored(ids[place], places.rows[place], scopes[place], origins[place], read)
        )
        self._fetch = fetch
        self._keys = keys

    def at_hand(self) -> ReadMemories:
        """Return all of them, their rows read at once."""
        return ReadMemories(self.ids, self.rows, self.origins, self.fetched_at(range(len(self.ids))))

    def fetched(self, ids: Sequence[MemoryId]) -> Mapping[MemoryId, Held]:
        """Return those of these that are there, their rows read at once."""
        places = self.places
        rows = [self.rows[places[identity]] for identity in ids]
        found = self._fetch(rows)
        return {identity: found[row] for identity, row in zip(ids, rows, strict=True) if row in found}

    def fetched_at(self, places: Sequence[int]) -> Sequence[Held]:
        """Return those at some places of the order, the rows of those that are there read at once."""
        rows = [self.rows[place] for place in places]
        found = self._fetch(rows)
        return [found.get(row) or self._make(place) for row, place in zip(rows, places, strict=True)]

    def content_keys(self, ids: Sequence[MemoryId]) -> Sequence[ContentKey]:
        """Return what breaks ties between some of them, without making them."""
        places = self.places
        rows = [self.rows[places[identity]] for identity in ids]
        found = self._keys(rows)
        return [found[row] for row in rows] if len(found) == len(rows) else super().content_keys(ids)


class ReadMemories(HeldMemories):
    """Memories whose rows were read, and who need their store no more."""

    def __init__(
        self, ids: Sequence[MemoryId], rows: Sequence[int], origins: Sequence[object], read: Sequence[Held]
    ) -> None:
        super().__init__(ids, origins, read.__getitem__)
        self.rows = rows

    def fetched(self, ids: Sequence[MemoryId]) -> Mapping[MemoryId, Held]:
        """Return some of them."""
        places = self.places  # a row whose id was damaged is known by another there
        return {identity: self[identity] for identity in ids if identity in places}

    def fetched_at(self, places: Sequence[int]) -> Sequence[Held]:
        """Return those at some places of the order."""
        return self.at(places)

    def at_hand(self) -> ReadMemories:
        """Return themselves."""
        return self


Placed = StoredMemories | ReadMemories  # their rows are known


class _Read(NamedTuple):
    """A memory as it was read, with its row if that is damaged."""

    memory: Fetched
    row: Row | None
    nbytes: int


class RecentMemories:
    """Places by id and memories by row, made when somebody looks at them, for one generation of the file."""

    def __init__(self, kernel: Kernel | None = None, max_bytes: int = MEMORY_BYTES) -> None:
        self._kernel = kernel
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
        """Return about how much memory the rows and keys hold."""
        return self._memories.nbytes + self._keys.nbytes

    def learn(self, generation: int, places: Places) -> None:
        """Take note of memories that a run has met, if it says whose they are."""
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
        """Return where the latest runs have met all of these, as the runs of a search have its candidates."""
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
                continue  # an earlier run may know
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
            return  # it would never be let go of: it adds nothing to the places that are counted
        self._runs.append(run)
        self._places += len(run.ids)
        while len(self._runs) > _RUNS_KEPT and self._places > _PLACES_KEPT:
            self._places -= len(self._runs.popleft().ids)

    def memories(self, connection: Connection, generation: int, rows: Sequence[int]) -> dict[int, Memory]:
        """Return the memories of rows that exist; one that cannot be read as it was stored is an error."""
        found = self._rows(connection, generation, rows).items()
        return {row: held.memory.read() if held.row is None else to_memory(held.row) for row, held in found}

    def fetched(self, connection: Connection, generation: int, rows: Sequence[int]) -> dict[int, Fetched]:
        """Return the same, each made when somebody looks at it."""
        return {row: held.memory for row, held in self._rows(connection, generation, rows).items()}

    def _rows(self, connection: Connection, generation: int, rows: Sequence[int]) -> dict[int, _Read]:
        with self._turn:
            self._prepare(generation)
            known = dict(zip(rows, self._memories.get_many(rows), strict=True))
            read: dict[int, _Read] = {}
            for part, marks in portions([row for row, held in known.items() if held is None]):
                wanted = f"SELECT {SELECT}, {_STORED}, m.row FROM memories AS m WHERE m.row IN ({marks})"
                found = rows_of(connection, wanted, part)
                for columns, memory in zip(found, fetched(found, self._kernel), strict=True):
                    read[columns[-1]] = _Read(memory, columns if memory.is_mended else None, _row_bytes(columns))
            self._memories.update(read)
            known.update(read)
            return {row: held for row, held in known.items() if held is not None}

    def content_keys(self, connection: Connection, generation: int, rows: Sequence[int]) -> dict[int, ContentKey]:
        """Return what breaks ties between the memories of rows that exist."""
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
    """Count the bytes of a row: of its texts twice, as the row has them and as the memory made of it has them."""
    return _ROW_BYTES + 2 * sum(len(value) for value in columns if isinstance(value, str | bytes))


def content_keys(connection: Connection, rows: Sequence[int]) -> dict[int, ContentKey]:
    """Return what breaks ties between the memories of rows that exist."""
    keys: dict[int, ContentKey] = {}
    for part, marks in portions(rows):
        statement = f"SELECT m.row, {COMPARED_KEY} FROM memories AS m WHERE m.row IN ({marks})"
        keys.update((row, legible_key(key)) for row, *key in rows_of(connection, statement, part))
    return keys
