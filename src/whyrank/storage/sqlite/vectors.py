"""Vectors in the file: exact cosines while few are visible, signs first and exact cosines of the nearest above that."""

from __future__ import annotations

import math
import threading
import zlib
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ...columns import MemoryId
from ...errors import SpaceMismatch
from ...ports import Vector
from ...types import Notice, Scope, Where
from ...wording import counted
from .catalogue import BLOCK, NOWHERE, Flags, Floats, Integers, Shelf
from .connection import Connection
from .held import STEP_BACK, Held, blended, read_range, renewed
from .keyword import Found, View
from .queue import dimensions_key
from .sealed import seal
from .selection import Chosen, Rows, Sums, above, cut, nth_best, only, spare, threshold
from .signs import Signs, distances, nearest, signs_of

UNIT_TOLERANCE = 1e-3  # how far from 1 a length may be and still count as rounding
# float32 products of unit vectors are right to about 1e-6; what is closer than this is decided in float64.
SELECTION_MARGIN = 1e-5
_LIFT = 2.0  # makes every cosine positive, so that zero can stand for "has no vector"

EXACT_ROWS = 20_000  # up to here every visible vector is compared
# Above it: how many rows are looked at by signs against numbers, and how many of those by their whole vectors.
LOOKED_AT, LOOKED_AT_SHARE = 2_000, 1 / 250
COMPARED = 500
_FEW = 2  # times as many as are wanted are compared sooner than chosen from
CACHE_BYTES = 160 * 1024 * 1024
# Whole vectors of a scope are worth their memory when it is asked again and again, and reading them takes a while.
WHOLE_SHARE = 0.8  # of the cache that one scope may take
ASKED_OFTEN = 4
_ROWS_PER_STATEMENT = 500


class VectorIndex:
    """Nearest neighbours over the vectors of the file."""

    def __init__(self, cache_bytes: int = CACHE_BYTES) -> None:
        self._cache_bytes = cache_bytes
        self._held: OrderedDict[tuple[str, str, bool], Held] = OrderedDict()
        self._asked: Counter[tuple[str, str]] = Counter()
        self._turn = threading.Lock()

    def put(self, connection: Connection, space: str, vectors: Mapping[str, Vector]) -> None:
        """Store vectors by the hash of the text they embed; what does not fit the space is refused by name."""
        dimensions = _dimensions(connection, space, next(iter(vectors.values())))
        for text_hash, vector in vectors.items():
            length = _length(vector) if vector.shape == (dimensions,) else math.nan
            if not 0.0 < length < math.inf:
                raise _misfit(connection, text_hash, vector, dimensions)
            blob = _unit(vector, length).astype("<f4").tobytes()
            connection.execute(
                "INSERT INTO vectors (space, hash, checksum, vector) VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET checksum = excluded.checksum, vector = excluded.vector",
                (space, text_hash, zlib.crc32(blob), blob),
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
                        (space, scope, first, seal(found.entries.tobytes()), seal(found.signs.tobytes())),
                    )

    def select(self, view: View, space: str, vector: Vector, where: Where, limit: int | None) -> Found:
        """Return the nearest sources, with exact cosines; exact or by signs, depending on the visible rows alone."""
        shelves = view.shelves(where.scopes)
        allowed = view.allowed(shelves, where)
        is_few = sum(shelf.count for shelf in shelves) <= EXACT_ROWS
        if is_few or limit is None:
            held = [self._shelf(view.connection, space, shelf, whole=True) for shelf in shelves]
            rows = _exact(view.connection, shelves, held, allowed, vector, limit)
        else:
            held = [self._shelf(view.connection, space, shelf, whole=False) for shelf in shelves]
            rows = _by_signs(view.connection, shelves, held, allowed, vector, limit)
        return Found(rows, _damage(held, allowed))

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
                found[there] = _cosines(view.connection, shelf, held, places[there], vector)
            else:
                found = _cosines(view.connection, shelf, held, places, vector)
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
            read = held.vectors[own] if held.vectors is not None else _fetched(view.connection, shelf, held, own)
            pairs = zip(numbers[there].tolist(), read, strict=True)
            found.update((rows[row], vector) for row, vector in pairs if not np.isnan(vector[0]))
        return found

    def damaged(self, connection: Connection, space: str) -> list[str]:
        """Return the hashes of the texts whose vectors fail their checksum."""
        stored = connection.execute("SELECT hash, checksum, vector FROM vectors WHERE space = ?", (space,))
        return [text_hash for text_hash, checksum, blob in stored if zlib.crc32(blob) != checksum]

    def _shelf(self, connection: Connection, space: str, shelf: Shelf, whole: bool) -> Held:
        """Return what is held of a scope, read again only where it has changed."""
        with self._turn:
            whole = whole or self._is_worth_it(space, shelf)
            name = (space, shelf.scope, whole)
            known = self._held.get(name)
            if known is None or known.changed != shelf.changed:
                known = self._held[name] = renewed(connection, space, shelf, known, whole)
                self._held.move_to_end(name)
                kept = sum(held.nbytes for held in self._held.values())
                while kept > self._cache_bytes and len(self._held) > 1:
                    kept -= self._held.popitem(last=False)[1].nbytes
            self._held.move_to_end(name)
            return known

    def _is_worth_it(self, space: str, shelf: Shelf) -> bool:
        """Tell whether a scope too large for exact search is asked often enough to hold its vectors whole."""
        self._asked[space, shelf.scope] += 1
        signs = self._held.get((space, shelf.scope, False))
        dimensions = 64 * len(signs.signs) if signs is not None else 0
        fits = 0 < len(shelf) * dimensions * np.dtype(np.float32).itemsize <= WHOLE_SHARE * self._cache_bytes
        return (space, shelf.scope, True) in self._held or (fits and self._asked[space, shelf.scope] > ASKED_OFTEN)


# -- searching -----------------------------------------------------------------------------------------------------


def _exact(
    connection: Connection,
    shelves: Sequence[Shelf],
    held: Sequence[Held],
    allowed: Sequence[Flags | None],
    vector: Vector,
    limit: int | None,
) -> Rows:
    """Compare every vector: float32 selects with a margin, float64 decides."""
    coarse = [_coarse(own, mask, vector) for own, mask in zip(held, allowed, strict=True)]
    wanted = None if limit is None else limit + spare(shelves)
    while True:
        lowest = 0.0 if wanted is None else threshold(coarse, wanted)
        chosen = above([Sums(own) for own in coarse], lowest - SELECTION_MARGIN)
        is_all = lowest <= 0.0 and (wanted is None or len(chosen.scores) <= wanted)
        if not is_all and wanted is not None and len(chosen.scores) > _FEW * wanted:
            lowest = nth_best(chosen.scores, wanted)
            chosen = only(chosen, chosen.scores >= lowest - SELECTION_MARGIN)
        exact = _rescored(connection, shelves, held, chosen, vector)
        if not is_all:
            exact = only(exact, exact.scores + _LIFT >= lowest - SELECTION_MARGIN / 2)
        rows = cut(connection, shelves, exact, limit, is_all)
        if rows is not None or wanted is None:
            return rows or Rows()
        wanted *= 4


def _coarse(held: Held, mask: Flags | None, vector: Vector) -> Floats:
    if held.vectors is None or not held.vectors.size:
        return np.zeros(len(held.entries))
    # Row by row rather than as one product: BLAS would wake threads that go on spinning.
    cosines = np.vecdot(held.vectors, vector) + np.float32(_LIFT)
    if mask is not None or not held.is_full:
        cosines[~held.has if mask is None else ~(held.has & mask)] = 0.0
    return cosines  # type: ignore[no-any-return]


def _by_signs(
    connection: Connection,
    shelves: Sequence[Shelf],
    held: Sequence[Held],
    allowed: Sequence[Flags | None],
    vector: Vector,
    limit: int,
) -> Rows:
    """Look at the signs of all, at signs against numbers of the nearest, at whole vectors of the nearest of these."""
    question = signs_of(vector[np.newaxis])
    masks = [own.has if mask is None else own.has & mask for own, mask in zip(held, allowed, strict=True)]
    signs = [own.signs if len(own.signs) else np.zeros((len(question), len(own.entries)), np.uint64) for own in held]
    apart = [distances(own, question) for own in signs]
    visible = sum(shelf.count for shelf in shelves)
    wanted = max(LOOKED_AT, int(visible * LOOKED_AT_SHARE), 4 * limit)
    while True:
        places = nearest(apart, masks, wanted)
        chosen = _nearest_by_numbers(signs, places, vector, max(COMPARED, 4 * limit, wanted // 4))
        exact = _rescored(connection, shelves, held, chosen, vector)
        is_all = sum(map(len, places)) >= sum(int(np.count_nonzero(mask)) for mask in masks)
        rows = cut(connection, shelves, exact, limit, is_all and len(chosen.places) == sum(map(len, places)))
        if rows is not None:
            return rows
        wanted *= 8


def _nearest_by_numbers(signs: Sequence[Signs], places: Sequence[Integers], vector: Vector, wanted: int) -> Chosen:
    """Choose the best by the question's own numbers added up under each memory's signs; equals of the last as well."""
    numbers = np.concatenate([np.full(len(found), number) for number, found in enumerate(places)])
    columns = [np.ascontiguousarray(own[:, found].T) for own, found in zip(signs, places, strict=True)]
    bits = np.unpackbits(np.concatenate(columns).view(np.uint8), axis=1, bitorder="little")[:, : len(vector)]
    sums = np.vecdot(bits.astype(np.float32), vector).astype(np.float64)
    if len(sums) > wanted:
        kept = sums >= np.partition(sums, len(sums) - wanted)[len(sums) - wanted]
        return Chosen(numbers[kept], np.concatenate(places)[kept], sums[kept])
    return Chosen(numbers, np.concatenate(places), sums)


def _rescored(
    connection: Connection, shelves: Sequence[Shelf], held: Sequence[Held], chosen: Chosen, vector: Vector
) -> Chosen:
    if len(shelves) == 1:
        exact = Chosen(*chosen[:2], _cosines(connection, shelves[0], held[0], chosen.places, vector))
        return only(exact, np.isfinite(exact.scores))
    scores = np.zeros(len(chosen.places))
    for number, (shelf, own) in enumerate(zip(shelves, held, strict=True)):
        here = chosen.shelves == number
        scores[here] = _cosines(connection, shelf, own, chosen.places[here], vector)
    return only(Chosen(*chosen[:2], scores), ~np.isnan(scores))


def _cosines(connection: Connection, shelf: Shelf, held: Held, places: Integers, vector: Vector) -> Floats:
    """Return cosines in float64, each computed from its own row alone; no number where a vector is damaged."""
    if not len(places):
        return np.zeros(0)
    vectors = held.vectors[places] if held.vectors is not None else _fetched(connection, shelf, held, places)
    if vectors.shape[1] != len(vector):
        return np.full(len(places), np.nan)
    cosines: Floats = np.vecdot(vectors.astype(np.float64), vector.astype(np.float64))
    return cosines


def _fetched(connection: Connection, shelf: Shelf, held: Held, places: Integers) -> NDArray[np.float32]:
    """Read the vectors of some places from the file, turns mixed with what was said before."""
    if not len(shelf.turns):
        return _vectors(connection, held, places)
    before = shelf.windows[STEP_BACK][places]
    own = _vectors(connection, held, places)
    has_before = before != NOWHERE
    has_before[has_before] = held.has[before[has_before]]
    if has_before.any():
        said = _vectors(connection, held, before[has_before])
        if said.shape[1] == own.shape[1]:
            # A damaged turn before is left out, and the turn stays as it is.
            sound = ~np.isnan(said).any(axis=1)
            mixing = np.flatnonzero(has_before)[sound]
            own[mixing] = blended(own[mixing], said[sound])
    return own


def _vectors(connection: Connection, held: Held, places: Integers) -> NDArray[np.float32]:
    """Read vectors from the file; one that fails its checksum has no numbers, and is remembered as damaged."""
    wanted = held.entries[places].tolist()
    blobs: dict[int, bytes] = {}
    for start in range(0, len(wanted), _ROWS_PER_STATEMENT):
        part = wanted[start : start + _ROWS_PER_STATEMENT]
        marks = ", ".join("?" * len(part))
        found = connection.execute(f"SELECT entry, checksum, vector FROM vectors WHERE entry IN ({marks})", part)
        blobs |= {entry: blob for entry, checksum, blob in found if zlib.crc32(blob) == checksum}
    missing = [i for i, entry in enumerate(wanted) if entry not in blobs]
    held.found_damaged.update(places[missing].tolist())
    if len(missing) == len(wanted):
        return np.full((len(wanted), 1), np.nan, np.float32)
    size = len(next(iter(blobs.values())))
    joined = b"".join(blobs.get(entry, bytes(size)) for entry in wanted)
    vectors = np.frombuffer(joined, "<f4").reshape(len(wanted), -1).copy()
    vectors[missing] = np.nan
    return vectors


def _length(vector: Vector) -> float:
    wide = vector.astype(np.float64)
    return math.sqrt(wide.dot(wide))


def _unit(vector: Vector, length: float) -> Vector:
    return vector if abs(length - 1.0) <= UNIT_TOLERANCE else (vector / length).astype(np.float32)


def _dimensions(connection: Connection, space: str, vector: Vector) -> int:
    """Return how many dimensions a space has: as many as the first vector that was put into it."""
    key = dimensions_key(space)
    known = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
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
