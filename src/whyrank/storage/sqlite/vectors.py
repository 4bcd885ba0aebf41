"""Vectors in the file: exact cosines while few are visible, signs first and exact cosines of the nearest above that."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ...caches import ByteBoundedCache
from ...columns import MemoryId
from ...errors import SpaceMismatch
from ...kernel import COMPILED, Kernel
from ...ports import LACKING, Vector
from ...types import Notice, Scope, Where
from ...wording import counted, which
from .catalogue import BLOCK, NOWHERE, Flags, Floats, Shelf
from .comparing import cosines_of, exact_rows, fetched_vectors, rows_by_signs
from .connection import Connection
from .held import Held, read_range, renewed, vector_bytes
from .keyword import Found, View
from .queue import dimensions_key
from .sealed import BrokenSeal, is_vector, seal, unseal, vector_checksum

UNIT_TOLERANCE = 1e-3  # how far from 1 a length may be and still count as rounding
EXACT_ROWS = 20_000  # up to here every visible vector is compared
CACHE_BYTES = 160 * 1024 * 1024
# Whole vectors of a scope are worth their memory when it is asked again and again, and reading them takes a while.
WHOLE_SHARE = 0.8  # of the cache that one scope may take
ASKED_OFTEN = 4
_SCOPES_COUNTED = 4_096  # how often each was asked; then counting begins anew


class VectorIndex:
    """Nearest neighbours over the vectors of the file."""

    def __init__(self, cache_bytes: int = CACHE_BYTES, kernel: Kernel | None = COMPILED) -> None:
        self._cache_bytes = cache_bytes
        self._kernel = kernel
        self._held: ByteBoundedCache[tuple[str, str, bool], Held] = ByteBoundedCache(
            cache_bytes, lambda _, held: held.nbytes
        )
        self._asked: Counter[tuple[str, str]] = Counter()
        self._turn = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Return how much memory the vectors that are held take."""
        return self._held.nbytes

    def put(self, connection: Connection, space: str, vectors: Mapping[str, Vector], *, opens: bool = True) -> None:
        """Store vectors by the hash of the text they embed; what does not fit the space is refused by name.

        The first vectors of a space open it, unless they come from somebody who thought that it was there.
        """
        dimensions = _dimensions(connection, space, next(iter(vectors.values())), opens)
        connection.executemany(
            "INSERT INTO vectors (space, hash, checksum, vector) VALUES (?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET checksum = excluded.checksum, vector = excluded.vector",
            [(space, key, vector_checksum(key, blob), blob) for key, blob in _blobs(connection, vectors, dimensions)],
        )

    def close(self, connection: Connection, space: str, changed: Mapping[str, Iterable[int]]) -> None:
        """Write the signs of the full blocks that were changed."""
        for scope, numbers in changed.items():
            size = connection.execute("SELECT numbers FROM scopes WHERE scope = ?", (scope,)).fetchone()[0]
            for first in sorted({number - number % BLOCK for number in numbers}):
                if first + BLOCK <= size:
                    found = read_range(connection, space, scope, first, first + BLOCK)
                    if found.vectors is None:
                        place = (space, scope, first)
                        connection.execute("DELETE FROM sign_blocks WHERE space = ? AND scope = ? AND first = ?", place)
                        continue
                    connection.execute(
                        "INSERT INTO sign_blocks VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                        "entries = excluded.entries, signs = excluded.signs",
                        (
                            space,
                            scope,
                            first,
                            seal(found.entries.tobytes(), space, scope, first),
                            seal(found.signs.tobytes(), space, scope, first),
                        ),
                    )

    def stale_signs(self, connection: Connection, scope: str) -> dict[str, list[int]]:
        """Return the first numbers of the blocks of a scope that hold signs of removed memories, by space."""
        blocks = connection.execute(
            "SELECT space, first, entries FROM sign_blocks WHERE scope = ?", (scope,)
        ).fetchall()
        living = {number for (number,) in connection.execute("SELECT number FROM memories WHERE scope = ?", (scope,))}
        stale: dict[str, list[int]] = {}
        for space, first, blob in blocks:
            try:
                named = np.flatnonzero(np.frombuffer(unseal(blob, space, scope, first), "<i8")).tolist()
            except (BrokenSeal, ValueError):
                named = [0]
                living.discard(first)  # it cannot be read, so it is made anew
            if not all(first + place in living for place in named):
                stale.setdefault(space, []).append(first)
        return stale

    def make_signs_anew(self, connection: Connection) -> None:
        """Write the signs of all full blocks anew, and no others."""
        connection.execute("DELETE FROM sign_blocks")
        spaces = connection.execute("SELECT DISTINCT space FROM vectors").fetchall()
        scopes = connection.execute("SELECT scope, numbers FROM scopes").fetchall()
        for (space,) in spaces:
            self.close(connection, space, {scope: range(0, size, BLOCK) for scope, size in scopes})

    def select(self, view: View, space: str, vector: Vector, where: Where, limit: int | None) -> Found:
        """Return the nearest sources, with exact cosines; exact or by signs, depending on the visible rows alone."""
        shelves = view.shelves(where.scopes)
        allowed = view.allowed(shelves, where)
        is_few = sum(shelf.count for shelf in shelves) <= EXACT_ROWS
        if is_few or limit is None:
            held = [self._shelf(view.connection, space, shelf, whole=True) for shelf in shelves]
            rows = exact_rows(view.connection, self._kernel, shelves, held, allowed, vector, limit)
        else:
            held = [self._shelf(view.connection, space, shelf, whole=False) for shelf in shelves]
            rows = rows_by_signs(view.connection, self._kernel, shelves, held, allowed, vector, limit)
        return Found(rows, [*_damage(held, allowed), *_lacking(shelves, held, allowed)])

    def score(self, view: View, space: str, vector: Vector, rows: Sequence[int], where: Where) -> Floats:
        """Return the exact cosine of each given row; no number where it has no vector."""
        shelves = view.shelves(where.scopes)
        whole = sum(shelf.count for shelf in shelves) <= EXACT_ROWS
        found = np.full(len(rows), np.nan)
        for shelf, places in zip(shelves, view.catalogue.standing(shelves, rows), strict=True):
            held = self._shelf(view.connection, space, shelf, whole=whole)
            there = places != NOWHERE
            if not (held.is_full and there.all()):
                there[there] = held.has[places[there]]
                found[there] = cosines_of(view.connection, self._kernel, shelf, held, places[there], vector)
            else:
                found = cosines_of(view.connection, self._kernel, shelf, held, places, vector)
        return found

    def vectors(
        self, view: View, space: str, rows: Mapping[int, MemoryId], scopes: frozenset[Scope]
    ) -> dict[MemoryId, Vector]:
        """Return the vector of each given row that has a sound one, turns mixed with what was said before."""
        shelves = view.shelves(scopes)
        whole = sum(shelf.count for shelf in shelves) <= EXACT_ROWS
        numbers = np.array(list(rows), np.int64)
        found: dict[MemoryId, Vector] = {}
        for shelf in shelves:
            held = self._shelf(view.connection, space, shelf, whole=whole)
            places = shelf.places_of(numbers)
            there = places != NOWHERE
            there[there] = held.has[places[there]]
            if not there.any():
                continue
            own = places[there]
            read = held.vectors[own] if held.vectors is not None else fetched_vectors(view.connection, shelf, held, own)
            sound = ~np.isnan(read[:, 0])
            found.update(zip(map(rows.__getitem__, numbers[there][sound].tolist()), read[sound], strict=True))
        return found

    def damaged(self, connection: Connection, space: str) -> list[str]:
        """Return the hashes of the texts whose vectors fail their checksum, or have another length than their space."""
        size = vector_bytes(connection, space)
        stored = connection.execute("SELECT hash, checksum, vector FROM vectors WHERE space = ?", (space,))
        return [text_hash for text_hash, *vector in stored if not is_vector(size, text_hash, *vector)]

    def _shelf(self, connection: Connection, space: str, shelf: Shelf, whole: bool) -> Held:
        """Return what is held of a scope, read again only where it has changed."""
        with self._turn:
            whole = whole or self._is_worth_it(space, shelf)
            name = (space, shelf.scope, whole)
            known = self._held.get(name)
            if known is None or known.changed != shelf.changed:
                kernel = self._kernel if whole and shelf.count <= EXACT_ROWS else None
                known = renewed(connection, space, shelf, known, whole, kernel)
                self._held.put(name, known)
            return known

    def _is_worth_it(self, space: str, shelf: Shelf) -> bool:
        """Tell whether a scope too large for exact search is asked often enough to hold its vectors whole."""
        if len(self._asked) > _SCOPES_COUNTED:
            self._asked.clear()
        self._asked[space, shelf.scope] += 1
        signs = self._held.get((space, shelf.scope, False))
        dimensions = 64 * len(signs.signs) if signs is not None else 0
        fits = 0 < len(shelf) * dimensions * np.dtype(np.float32).itemsize <= WHOLE_SHARE * self._cache_bytes
        return (space, shelf.scope, True) in self._held or (fits and self._asked[space, shelf.scope] > ASKED_OFTEN)


def _blobs(connection: Connection, vectors: Mapping[str, Vector], dimensions: int) -> Iterable[tuple[str, bytes]]:
    """Return vectors as they are stored: all at once if they are at unit length, as nearly always, else one by one."""
    if all(vector.shape == (dimensions,) for vector in vectors.values()):
        table = np.array([*vectors.values()], "<f4")
        wide = table.astype(np.float64)
        if bool(np.all(np.abs(np.sqrt(np.vecdot(wide, wide)) - 1.0) <= UNIT_TOLERANCE)):
            return zip(vectors, map(bytes, table.view(f"V{table.itemsize * dimensions}").ravel()), strict=True)
    return [(key, _blob(connection, key, vector, dimensions)) for key, vector in vectors.items()]


def _blob(connection: Connection, text_hash: str, vector: Vector, dimensions: int) -> bytes:
    length = _length(vector) if vector.shape == (dimensions,) else math.nan
    if not 0.0 < length < math.inf:
        raise _misfit(connection, text_hash, vector, dimensions)
    return _unit(vector, length).astype("<f4").tobytes()


def _length(vector: Vector) -> float:
    wide = vector.astype(np.float64)
    return math.sqrt(wide.dot(wide))


def _unit(vector: Vector, length: float) -> Vector:
    return vector if abs(length - 1.0) <= UNIT_TOLERANCE else (vector / length).astype(np.float32)


def _dimensions(connection: Connection, space: str, vector: Vector, opens: bool) -> int:
    """Return how many dimensions a space has: as many as the first vector that was put into it."""
    key = dimensions_key(space)
    known = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    if known is None and not opens:
        raise SpaceMismatch(f"the space {space} was dropped", "look which there are; nothing was stored")
    if known is None:
        connection.execute("INSERT INTO meta VALUES (?, ?)", (key, str(vector.size)))
        return vector.size
    return int(known[0])


def _misfit(connection: Connection, text_hash: str, vector: Vector, dimensions: int) -> SpaceMismatch:
    owner = connection.execute("SELECT id FROM memories WHERE embed_hash = ?", (text_hash,)).fetchone()
    name = owner[0] if owner else text_hash
    if vector.shape != (dimensions,):
        return SpaceMismatch(
            f"the vector of {name} has {vector.size} dimensions, its space has {dimensions}",
            "check the embedder's output; nothing was stored",
        )
    return SpaceMismatch(
        f"the vector of {name} has no direction: it is zero, or holds what is no number",
        "check the embedder's output; nothing was stored",
    )


def _lacking(shelves: Sequence[Shelf], held: Sequence[Held], allowed: Sequence[Flags | None]) -> Iterable[Notice]:
    """Say how many of the memories the caller would see have no vector, where others have one."""
    places = [(place, mask) for own, mask in zip(held, allowed, strict=True) for place in own.lacking]
    count, total = sum(mask is None or bool(mask[place]) for place, mask in places), sum(one.count for one in shelves)
    if 0 < count < total:
        lacking = f"{count:,} of {counted(total, 'memory', 'memories')} {which(count, 'has', 'have')} no vector yet"
        yield Notice(LACKING, f"{lacking}, and only words and names find {which(count, 'it', 'them')}")


def _damage(held: Sequence[Held], allowed: Sequence[Flags | None]) -> list[Notice]:
    """Say how many of the vectors the caller would see are damaged."""
    count = 0
    for own, mask in zip(held, allowed, strict=True):
        damaged = {*own.damaged.tolist(), *own.found_damaged}
        count += sum(1 for place in damaged if mask is None or mask[place])
    if not count:
        return []
    failing = counted(count, "vector fails its checksum and was", "vectors fail their checksum and were")
    message = f"{failing} left out; the next `whyrank ingest` makes them anew"
    return [Notice("vectors-damaged", message)]
