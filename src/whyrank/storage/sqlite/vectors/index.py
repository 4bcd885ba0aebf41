"""Vector index: exact cosines for few visible vectors, else of a preselection by signs."""

from __future__ import annotations

import math
import threading
from collections import Counter
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ....analysis.normalize import ByteBoundedCache
from ....errors import SpaceMismatch
from ....formatting import counted, which
from ....protocols import LACKING, Vector
from ....types.memory import Notice, Scope
from ..checksums import ChecksumError, add_checksum, check_body, is_vector, vector_checksum
from ..connection import portions
from ..doc_values import BLOCK, NOWHERE, Flags, Floats, Integers, ScopeDocValues
from ..embedding_queue import dimensions_key
from ..keyword import KeywordRun, View
from ..postings.loops import NUMPY, Kernel
from ..top_k import Rows, ScoredOrdinals, Sums, above, cut, nth_best, only, spare, threshold
from .cache import STEP_BACK, CachedVectors, blended, read_range, renewed, vector_bytes
from .quantization import apart, nearest, signs_of, sums_under, whole_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from ....types.memory import MemoryId
    from ....types.query import Where
    from ..connection import Connection

# float32 products of unit vectors are right to about 1e-6; closer scores are decided in float64.
SELECTION_MARGIN = 1e-5
_LIFT = 2.0  # makes every cosine positive, so that zero can stand for "has no vector"
# By signs: the rows compared by signs against numbers, and the number of those compared by whole vectors.
LOOKED_AT, LOOKED_AT_SHARE = 2_000, 1 / 250
COMPARED = 500
_FEW = 2  # up to this multiple of the wanted number, comparing all is faster than selecting


class _Look(NamedTuple):
    """Result of a preselection: every place with a cosine at or above the floor is among it."""

    chosen: ScoredOrdinals
    floor: float


def exact_rows(
    connection: Connection,
    kernel: Kernel,
    shelves: Sequence[ScopeDocValues],
    held: Sequence[CachedVectors],
    allowed: Sequence[Flags | None],
    vector: Vector,
    limit: int | None,
) -> Rows:
    """Compare every vector: codes or float32 select with a margin, float64 decides."""
    wanted = None if limit is None else limit + spare(shelves)
    while True:
        look = None if wanted is None else _by_codes(kernel, held, allowed, vector, wanted)
        chosen, floor = look or _by_numbers(held, allowed, vector, wanted)
        exact = _rescored(connection, kernel, shelves, held, chosen, vector)
        exact = only(exact, exact.scores >= floor)  # NaN, of damaged vectors, is dropped
        rows = cut(connection, kernel, shelves, exact, limit, is_all=floor == -math.inf)
        if rows is not None or wanted is None:
            return rows or Rows()
        wanted *= 4


def _by_codes(
    kernel: Kernel, held: Sequence[CachedVectors], allowed: Sequence[Flags | None], vector: Vector, wanted: int
) -> _Look | None:
    """Select candidates by codes; None where they cannot decide."""
    if not held:
        return None
    places: list[Integers] = []
    floor = -math.inf
    for own, mask in zip(held, allowed, strict=True):
        if own.vectors is None:
            places.append(np.zeros(0, np.int64))
            continue
        found = own.codes.may_be_nearest(kernel, vector, own.visible(mask), wanted) if own.codes is not None else None
        if found is None:
            return None
        places.append(found[0])
        floor = max(floor, found[1])
    return _Look(_placed(places, [np.zeros(len(own)) for own in places]), floor)


def _by_numbers(
    held: Sequence[CachedVectors], allowed: Sequence[Flags | None], vector: Vector, wanted: int | None
) -> _Look:
    """Select candidates by products in float32."""
    coarse = [_coarse(own, mask, vector) for own, mask in zip(held, allowed, strict=True)]
    lowest = 0.0 if wanted is None else threshold(coarse, wanted)
    chosen = above([Sums(own) for own in coarse], lowest - SELECTION_MARGIN)
    is_all = lowest <= 0.0 and (wanted is None or len(chosen.scores) <= wanted)
    if not is_all and wanted is not None and len(chosen.scores) > _FEW * wanted:
        lowest = nth_best(chosen.scores, wanted)
        chosen = only(chosen, chosen.scores >= lowest - SELECTION_MARGIN)
    return _Look(chosen, -math.inf if is_all else lowest - _LIFT - SELECTION_MARGIN / 2)


def _coarse(held: CachedVectors, mask: Flags | None, vector: Vector) -> Floats:
    if held.vectors is None or not held.vectors.size:
        return np.zeros(len(held.entries))
    # Row by row rather than as one product: BLAS would wake threads that go on spinning.
    cosines = np.vecdot(held.vectors, vector) + np.float32(_LIFT)
    visible = held.visible(mask)
    if visible is not None:
        cosines[~visible] = 0.0
    return cosines  # type: ignore[no-any-return]


def rows_by_signs(
    connection: Connection,
    kernel: Kernel,
    shelves: Sequence[ScopeDocValues],
    held: Sequence[CachedVectors],
    allowed: Sequence[Flags | None],
    vector: Vector,
    limit: int,
) -> Rows:
    """Select by signs, rescore the nearest by signs against numbers, the best of these by whole vectors."""
    question, numbers = signs_of(vector[np.newaxis]), whole_numbers(vector)
    signs = [own.signs if len(own.signs) else np.zeros((len(question), len(own.entries)), np.uint64) for own in held]
    masks = [own.visible(mask) for own, mask in zip(held, allowed, strict=True)]
    looked = [apart(own, question, mask, kernel) for own, mask in zip(signs, masks, strict=True)]
    there = sum(int(own.counts.sum()) for own in looked)
    wanted = max(LOOKED_AT, int(sum(shelf.count for shelf in shelves) * LOOKED_AT_SHARE), 4 * limit)
    while True:
        places = nearest(looked, wanted)
        sums = [sums_under(own, here, numbers, kernel) for own, here in zip(signs, places, strict=True)]
        chosen = _best(_placed(places, sums), max(COMPARED, 4 * limit, wanted // 4))
        exact = _rescored(connection, kernel, shelves, held, chosen, vector)
        exact = only(exact, np.isfinite(exact.scores))
        is_all = sum(map(len, places)) >= there
        rows = cut(connection, kernel, shelves, exact, limit, is_all and len(chosen.places) == sum(map(len, places)))
        if rows is not None:
            return rows
        wanted *= 8


def _placed(places: Sequence[Integers], scores: Sequence[Floats]) -> ScoredOrdinals:
    if len(places) == 1:
        return ScoredOrdinals(np.zeros(len(places[0]), np.int64), places[0], scores[0])
    numbers = np.repeat(np.arange(len(places)), [*map(len, places)])
    return ScoredOrdinals(numbers, np.concatenate(places), np.concatenate(scores))


def _best(chosen: ScoredOrdinals, wanted: int) -> ScoredOrdinals:
    """Keep the best candidates, with ties of the last."""
    if len(chosen.scores) <= wanted:
        return chosen
    return only(chosen, chosen.scores >= nth_best(chosen.scores, wanted))


def _rescored(
    connection: Connection,
    kernel: Kernel,
    shelves: Sequence[ScopeDocValues],
    held: Sequence[CachedVectors],
    chosen: ScoredOrdinals,
    vector: Vector,
) -> ScoredOrdinals:
    """Return the candidates with exact cosines; NaN where a vector is damaged."""
    if len(shelves) == 1:
        return ScoredOrdinals(*chosen[:2], cosines_of(connection, kernel, shelves[0], held[0], chosen.places, vector))
    scores = np.zeros(len(chosen.places))
    for number, (shelf, own) in enumerate(zip(shelves, held, strict=True)):
        here = chosen.shelves == number
        scores[here] = cosines_of(connection, kernel, shelf, own, chosen.places[here], vector)
    return ScoredOrdinals(*chosen[:2], scores)


def cosines_of(
    connection: Connection,
    kernel: Kernel,
    shelf: ScopeDocValues,
    held: CachedVectors,
    places: Integers,
    vector: Vector,
) -> Floats:
    """Return cosines in float64, each computed from its own row alone; NaN where a vector is damaged."""
    if not len(places):
        return np.zeros(0)
    question = vector.astype(np.float64)
    if held.vectors is not None and held.vectors.shape[1] == len(question):
        cosines = np.empty(len(places))
        kernel.cosines(held.vectors, places, question, cosines)
        return cosines
    vectors = held.vectors[places] if held.vectors is not None else fetched_vectors(connection, shelf, held, places)
    if vectors.shape[1] != len(question):
        return np.full(len(places), np.nan)
    # Products of float32 are exact here; their sum, unlike that of a matrix product, has a fixed order.
    products = vectors.astype(np.float64)
    products *= question
    sums: Floats = np.add.reduce(products, axis=1)
    return sums


def fetched_vectors(
    connection: Connection, shelf: ScopeDocValues, held: CachedVectors, places: Integers
) -> NDArray[np.float32]:
    """Read the vectors of some places from the file, turns blended with their previous turns."""
    if not len(shelf.turns):
        return _vectors(connection, held, places)
    before = shelf.windows[STEP_BACK][places]
    own = _vectors(connection, held, places)
    has_before = before != NOWHERE
    has_before[has_before] = held.has[before[has_before]]
    if has_before.any():
        said = _vectors(connection, held, before[has_before])
        if said.shape[1] == own.shape[1]:
            # A damaged previous turn is left out, and the turn stays as it is.
            sound = ~np.isnan(said).any(axis=1)
            mixing = np.flatnonzero(has_before)[sound]
            own[mixing] = blended(own[mixing], said[sound])
    return own


def _vectors(connection: Connection, held: CachedVectors, places: Integers) -> NDArray[np.float32]:
    """Read vectors from the file; one that fails its checksum is NaN, and recorded as damaged."""
    wanted = held.entries[places].tolist()
    blobs: dict[int, bytes] = {}
    for part, marks in portions(wanted):
        found = connection.execute(f"SELECT entry, hash, checksum, vector FROM vectors WHERE entry IN ({marks})", part)
        blobs |= {entry: vector[-1] for entry, *vector in found if is_vector(None, *vector)}
    size = max(Counter(map(len, blobs.values())).items(), key=itemgetter(1), default=(0, 0))[0]
    blobs = {entry: blob for entry, blob in blobs.items() if len(blob) == size}
    missing = [i for i, entry in enumerate(wanted) if entry not in blobs]
    held.found_damaged.update(places[missing].tolist())
    if len(missing) == len(wanted):
        return np.full((len(wanted), 1), np.nan, np.float32)
    joined = b"".join(blobs.get(entry, bytes(size)) for entry in wanted)
    vectors = np.frombuffer(joined, "<f4").reshape(len(wanted), -1).copy()
    vectors[missing] = np.nan
    return vectors


UNIT_TOLERANCE = 1e-3  # deviation of a length from 1 that counts as rounding
EXACT_ROWS = 20_000  # up to here every visible vector is compared
CACHE_BYTES = 160 * 1024 * 1024
# Whole vectors of a large scope are worth their memory when it is queried often, as reading them takes a while.
WHOLE_SHARE = 0.8  # of the cache that one scope may take
ASKED_OFTEN = 4
_SCOPES_COUNTED = 4_096  # scopes whose queries are counted; then counting restarts


class VectorIndex:
    """Nearest neighbours over the vectors of the file."""

    def __init__(self, cache_bytes: int = CACHE_BYTES, kernel: Kernel = NUMPY) -> None:
        self._cache_bytes = cache_bytes
        self._kernel = kernel
        self._held: ByteBoundedCache[tuple[str, str, bool], CachedVectors] = ByteBoundedCache(
            cache_bytes, lambda _, held: held.nbytes
        )
        self._asked: Counter[tuple[str, str]] = Counter()
        self._turn = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Return the memory of the cached vectors, in bytes."""
        return self._held.nbytes

    def put(self, connection: Connection, space: str, vectors: Mapping[str, Vector], *, opens: bool = True) -> None:
        """Store vectors by the hash of their text; raise SpaceMismatch, with the id, for one that misfits.

        The first vectors of a space create it, unless the caller expects it to exist (`opens` is False).
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
                            add_checksum(found.entries.tobytes(), space, scope, first),
                            add_checksum(found.signs.tobytes(), space, scope, first),
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
                named = np.flatnonzero(np.frombuffer(check_body(blob, space, scope, first), "<i8")).tolist()
            except (ChecksumError, ValueError):
                named = [0]
                living.discard(first)  # the block is unreadable, so it is written again
            if not all(first + place in living for place in named):
                stale.setdefault(space, []).append(first)
        return stale

    def make_signs_anew(self, connection: Connection) -> None:
        """Rewrite the signs of all full blocks, and of no others."""
        connection.execute("DELETE FROM sign_blocks")
        spaces = connection.execute("SELECT DISTINCT space FROM vectors").fetchall()
        scopes = connection.execute("SELECT scope, numbers FROM scopes").fetchall()
        for (space,) in spaces:
            self.close(connection, space, {scope: range(0, size, BLOCK) for scope, size in scopes})

    def select(self, view: View, space: str, vector: Vector, where: Where, limit: int | None) -> KeywordRun:
        """Return the nearest sources with exact cosines; searched exactly or by signs, by visible rows alone."""
        shelves = view.shelves(where.scopes)
        allowed = view.allowed(shelves, where)
        is_few = sum(shelf.count for shelf in shelves) <= EXACT_ROWS
        if is_few or limit is None:
            held = [self._shelf(view.connection, space, shelf, whole=True) for shelf in shelves]
            rows = exact_rows(view.connection, self._kernel, shelves, held, allowed, vector, limit)
        else:
            held = [self._shelf(view.connection, space, shelf, whole=False) for shelf in shelves]
            rows = rows_by_signs(view.connection, self._kernel, shelves, held, allowed, vector, limit)
        return KeywordRun(rows, [*_damage(held, allowed), *_lacking(shelves, held, allowed)])

    def score(self, view: View, space: str, vector: Vector, rows: Sequence[int], where: Where) -> Floats:
        """Return the exact cosine of each given row; NaN where it has no vector."""
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
        """Return the vector of each given row that has a sound one, turns blended with their previous turns."""
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
        """Return the hashes of texts whose vectors fail their checksum or differ in length from their space."""
        size = vector_bytes(connection, space)
        stored = connection.execute("SELECT hash, checksum, vector FROM vectors WHERE space = ?", (space,))
        return [text_hash for text_hash, *vector in stored if not is_vector(size, text_hash, *vector)]

    def _shelf(self, connection: Connection, space: str, shelf: ScopeDocValues, whole: bool) -> CachedVectors:
        """Return the cached vectors of a scope, read again only where it has changed."""
        with self._turn:
            whole = whole or self._is_worth_it(space, shelf)
            name = (space, shelf.scope, whole)
            known = self._held.get(name)
            if known is None or known.changed != shelf.changed:
                kernel = self._kernel if whole and shelf.count <= EXACT_ROWS else None
                known = renewed(connection, space, shelf, known, whole, kernel)
                self._held.put(name, known)
            return known

    def _is_worth_it(self, space: str, shelf: ScopeDocValues) -> bool:
        """Return whether a scope too large for exact search is queried often enough to cache whole vectors."""
        if len(self._asked) > _SCOPES_COUNTED:
            self._asked.clear()
        self._asked[space, shelf.scope] += 1
        signs = self._held.get((space, shelf.scope, False))
        dimensions = 64 * len(signs.signs) if signs is not None else 0
        fits = 0 < len(shelf) * dimensions * np.dtype(np.float32).itemsize <= WHOLE_SHARE * self._cache_bytes
        return (space, shelf.scope, True) in self._held or (fits and self._asked[space, shelf.scope] > ASKED_OFTEN)


def _blobs(connection: Connection, vectors: Mapping[str, Vector], dimensions: int) -> Iterable[tuple[str, bytes]]:
    """Return vectors as stored: in one pass if all have unit length, as nearly always, else one by one."""
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
    """Return the number of dimensions of a space: that of its first vector."""
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


def _lacking(
    shelves: Sequence[ScopeDocValues], held: Sequence[CachedVectors], allowed: Sequence[Flags | None]
) -> Iterable[Notice]:
    """Yield a notice on the visible memories without a vector, where others have one."""
    places = [(place, mask) for own, mask in zip(held, allowed, strict=True) for place in own.lacking]
    count, total = sum(mask is None or bool(mask[place]) for place, mask in places), sum(one.count for one in shelves)
    if 0 < count < total:
        lacking = f"{count:,} of {counted(total, 'memory', 'memories')} {which(count, 'has', 'have')} no vector yet"
        yield Notice(LACKING, f"{lacking}, and only words and names find {which(count, 'it', 'them')}")


def _damage(held: Sequence[CachedVectors], allowed: Sequence[Flags | None]) -> list[Notice]:
    """Return a notice on the visible vectors that are damaged."""
    count = 0
    for own, mask in zip(held, allowed, strict=True):
        damaged = {*own.damaged.tolist(), *own.found_damaged}
        count += sum(1 for place in damaged if mask is None or mask[place])
    if not count:
        return []
    failing = counted(count, "vector fails its checksum and was", "vectors fail their checksum and were")
    message = f"{failing} left out; the next `whyrank ingest` makes them anew"
    return [Notice("vectors-damaged", message)]
