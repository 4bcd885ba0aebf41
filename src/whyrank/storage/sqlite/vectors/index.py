"""Vector index: exact cosines for few visible vectors, else of a preselection by codes or signs."""

from __future__ import annotations

import math
import threading
from collections import Counter
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ....analysis.normalize import ByteBoundedCache
from ....formatting import counted, which
from ....protocols import LACKING, Vector
from ....types.memory import Notice, Scope
from ..database import foresee, place_mask, portions
from ..doc_values import NOWHERE, Flags, Floats, Integers, ScopeDocValues
from ..postings.kernel import NUMPY, Kernel
from ..top_k import (
    KeywordRun,
    Rows,
    ScoredOrdinals,
    Sums,
    View,
    cut,
    keep_only,
    nth_best,
    select_above,
    spare_rows,
    threshold,
)
from .checksums import is_vector
from .table import STEP_BACK, WORD_BITS, CachedVectors, Signs, blended, renewed, signs_of, vectors_asked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from ....types.memory import MemoryId
    from ....types.query import Where
    from ..database import Asked, Connection, Key

# float32 products of unit vectors are right to about 1e-6; closer scores are decided in float64.
SELECTION_MARGIN = 1e-5
_LIFT = 2.0  # makes every cosine positive, so that zero can stand for "has no vector"
# By signs: the rows compared by signs against numbers, and the number of those compared by whole vectors.
LOOKED_AT, LOOKED_AT_SHARE = 2_000, 1 / 250
COMPARED = 500
_FEW = 2  # up to this multiple of the wanted number, comparing all is faster than selecting
# Maximum number of candidates selected by codes; with more, whole vectors are compared: a tenth of all, or a few.
CHOSEN_SHARE, CHOSEN_FEW = 10, 1_000
FAR = 2**16 - 1  # signs: more than any vector has
_LARGEST_SUM = 2**24 - 1  # up to here float32 represents every whole number
EXACT_ROWS = 20_000  # up to here every visible vector is compared
CACHE_BYTES = 160 * 1024 * 1024
# Whole vectors of a large scope are worth their memory when it is queried often, as reading them takes a while.
WHOLE_SHARE = 0.8  # of the cache that one scope may take
ASKED_OFTEN = 4
_SCOPES_COUNTED = 4_096  # scopes whose queries are counted; then counting restarts

Selection = tuple[list[Integers], float]  # places by scope; all at or above the cosine are among them


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

    def select(self, view: View, space: str, vector: Vector, where: Where, limit: int | None) -> KeywordRun:
        """Return the nearest sources with exact cosines; searched exactly or by signs, by visible rows alone."""
        shelves = view.shelves(where.scopes)
        allowed = view.allowed(shelves, where)
        is_exact = limit is None or sum(shelf.count for shelf in shelves) <= EXACT_ROWS
        if view.is_remote:
            foresee(view.connection, self.asked(shelves, space))
        held = [self._open_vectors(view.connection, space, shelf, whole=is_exact) for shelf in shelves]
        visible = [  # None where every place is allowed and has a vector
            mask if own.is_full else own.has if mask is None else own.has & mask
            for own, mask in zip(held, allowed, strict=True)
        ]
        if is_exact or limit is None:
            rows = exact_rows(view.connection, self._kernel, shelves, held, visible, vector, limit)
        else:
            rows = rows_by_signs(view.connection, self._kernel, shelves, held, visible, vector, limit)
        is_whole = not any(own.lacking or own.found_damaged or len(own.damaged) for own in held)
        return KeywordRun(rows, () if is_whole else [*_notices(shelves, held, allowed)])

    def score(self, view: View, space: str, vector: Vector, keys: Sequence[Key], where: Where) -> Floats:
        """Return the exact cosine of each given memory; NaN where it has no vector."""
        shelves = view.shelves(where.scopes)
        whole = sum(shelf.count for shelf in shelves) <= EXACT_ROWS
        found = np.full(len(keys), np.nan)
        for shelf, places in zip(shelves, view.catalogue.locate(shelves, keys), strict=True):
            held = self._open_vectors(view.connection, space, shelf, whole=whole)
            there = places != NOWHERE
            there[there] = held.has[places[there]]
            found[there] = cosines_of(view.connection, self._kernel, shelf, held, places[there], vector)
        return found

    def vectors(
        self, view: View, space: str, ids: Sequence[MemoryId], keys: Sequence[Key], scopes: frozenset[Scope]
    ) -> dict[MemoryId, Vector]:
        """Return the vector of each given memory that has a sound one, turns blended with their previous turns."""
        shelves = view.shelves(scopes)
        whole = sum(shelf.count for shelf in shelves) <= EXACT_ROWS
        found: dict[MemoryId, Vector] = {}
        for shelf, places in zip(shelves, view.catalogue.locate(shelves, keys), strict=True):
            held = self._open_vectors(view.connection, space, shelf, whole=whole)
            there = places != NOWHERE
            there[there] = held.has[places[there]]
            if not there.any():
                continue
            own = places[there]
            read = held.vectors[own] if held.vectors is not None else fetched_vectors(view.connection, shelf, held, own)
            sound = ~np.isnan(read[:, 0])
            found.update(zip((ids[i] for i in np.flatnonzero(there)[sound].tolist()), read[sound], strict=True))
        return found

    def asked(self, shelves: Sequence[ScopeDocValues], space: str) -> Iterator[Asked]:
        """Yield the statements that read the vectors of scopes at their first query."""
        for shelf in shelves:
            if not any((space, shelf.scope, whole) in self._held for whole in (True, False)):
                yield from vectors_asked(space, shelf)

    def _open_vectors(self, connection: Connection, space: str, shelf: ScopeDocValues, whole: bool) -> CachedVectors:
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


def _notices(
    shelves: Sequence[ScopeDocValues], held: Sequence[CachedVectors], allowed: Sequence[Flags | None]
) -> Iterator[Notice]:
    """Yield notices on visible memories whose vector is damaged or missing."""
    damaged = lacking = 0
    for own, mask in zip(held, allowed, strict=True):
        broken = {*own.damaged.tolist(), *own.found_damaged}
        damaged += sum(mask is None or bool(mask[place]) for place in broken)
        lacking += sum(mask is None or bool(mask[place]) for place in own.lacking)
    if damaged:
        failing = counted(damaged, "vector fails its checksum and was", "vectors fail their checksum and were")
        yield Notice("vectors-damaged", f"{failing} left out; the next `whyrank ingest` creates them again")
    total = sum(shelf.count for shelf in shelves)
    if 0 < lacking < total:
        told = f"{lacking:,} of {counted(total, 'memory', 'memories')} {which(lacking, 'has', 'have')} no vector yet"
        yield Notice(LACKING, f"{told}, so only keywords and names find {which(lacking, 'it', 'them')}")


def exact_rows(
    connection: Connection,
    kernel: Kernel,
    shelves: Sequence[ScopeDocValues],
    held: Sequence[CachedVectors],
    visible: Sequence[Flags | None],
    vector: Vector,
    limit: int | None,
) -> Rows:
    """Compare every vector: codes or float32 select with a margin, float64 decides."""
    wanted = None if limit is None else limit + spare_rows(shelves)
    while True:
        by_codes = None if wanted is None else select_by_codes(kernel, held, visible, vector, wanted)
        places, floor = by_codes or _select_by_products(held, visible, vector, wanted)
        exact = _score_exactly(connection, kernel, shelves, held, places, vector)
        exact = keep_only(exact, exact.scores >= floor)  # NaN, of damaged vectors, is dropped
        rows = cut(connection, kernel, shelves, exact, limit, is_all=floor == -math.inf)
        if rows is not None or wanted is None:
            return rows or Rows()
        wanted *= 4


def select_by_codes(
    kernel: Kernel, held: Sequence[CachedVectors], visible: Sequence[Flags | None], vector: Vector, wanted: int
) -> Selection | None:
    """Select candidates by int8 codes; None if too many are close, or one has no codes."""
    places: list[Integers] = []
    floor = -math.inf
    for own, mask in zip(held, visible, strict=True):
        codes = own.codes
        if own.vectors is None:
            places.append(np.zeros(0, np.int64))
            continue
        fits = codes is not None and vector.dtype == np.float32 and vector.shape == codes.values.shape[1:]
        if codes is None or not fits or not codes.reach < np.inf:
            return None
        chosen = np.empty(max(CHOSEN_FEW, 2 * wanted, len(codes.scales) // CHOSEN_SHARE), np.int64)
        question = np.ascontiguousarray(vector)
        count, own_floor = kernel.nearest(
            codes.values, codes.scales, question, chosen, mask, wanted, codes.reach, codes.step
        )
        if count < 0:
            return None
        places.append(chosen[:count])
        floor = max(floor, own_floor)
    return (places, floor) if places else None


def _select_by_products(
    held: Sequence[CachedVectors], visible: Sequence[Flags | None], vector: Vector, wanted: int | None
) -> Selection:
    """Select candidates by products in float32."""
    coarse = [_products(own, mask, vector) for own, mask in zip(held, visible, strict=True)]
    lowest = 0.0 if wanted is None else threshold(coarse, wanted)
    chosen = select_above([Sums(own) for own in coarse], lowest - SELECTION_MARGIN)
    is_all = lowest <= 0.0 and (wanted is None or len(chosen.scores) <= wanted)
    if not is_all and wanted is not None and len(chosen.scores) > _FEW * wanted:
        lowest = nth_best(chosen.scores, wanted)
        chosen = keep_only(chosen, chosen.scores >= lowest - SELECTION_MARGIN)
    places = [chosen.places[chosen.shelves == number] for number in range(len(held))]
    return places, -math.inf if is_all else lowest - _LIFT - SELECTION_MARGIN / 2


def _products(held: CachedVectors, mask: Flags | None, vector: Vector) -> Floats:
    """Return cosines in float32, lifted above zero; zero for what is masked out or has no vector."""
    if held.vectors is None or not held.vectors.size:
        return np.zeros(len(held.has))
    # Row by row rather than as one product: BLAS would wake threads that go on spinning.
    cosines = np.vecdot(held.vectors, vector) + np.float32(_LIFT)
    if mask is not None:
        cosines[~mask] = 0.0
    return cosines  # type: ignore[no-any-return]


def _score_exactly(
    connection: Connection,
    kernel: Kernel,
    shelves: Sequence[ScopeDocValues],
    held: Sequence[CachedVectors],
    places: Sequence[Integers],
    vector: Vector,
) -> ScoredOrdinals:
    """Return the places of each scope with exact cosines; NaN where a vector is damaged."""
    if not places:
        return ScoredOrdinals(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    owners = np.repeat(np.arange(len(places)), [*map(len, places)])
    scores = [
        cosines_of(connection, kernel, shelf, own, here, vector)
        for shelf, own, here in zip(shelves, held, places, strict=True)
    ]
    return ScoredOrdinals(owners, np.concatenate(places), np.concatenate(scores))


def rows_by_signs(
    connection: Connection,
    kernel: Kernel,
    shelves: Sequence[ScopeDocValues],
    held: Sequence[CachedVectors],
    visible: Sequence[Flags | None],
    vector: Vector,
    limit: int,
) -> Rows:
    """Select by signs, rescore the nearest by signs against numbers, the best of these by whole vectors."""
    question, numbers = signs_of(vector[np.newaxis]), whole_numbers(vector)
    signs = [own.signs if len(own.signs) else np.zeros((len(question), len(own.has)), np.uint64) for own in held]
    looked = [apart(own, question, mask, kernel) for own, mask in zip(signs, visible, strict=True)]
    there = sum(int(own.counts.sum()) for own in looked)
    wanted = max(LOOKED_AT, int(sum(shelf.count for shelf in shelves) * LOOKED_AT_SHARE), 4 * limit)
    while True:
        places = nearest(looked, wanted)
        sums = [sums_under(own, here, numbers, kernel) for own, here in zip(signs, places, strict=True)]
        looked_at, compared = sum(map(len, places)), max(COMPARED, 4 * limit, wanted // 4)
        if looked_at > compared:  # the best of them, with ties of the last
            lowest = nth_best(np.concatenate(sums), compared)
            chosen = [here[own >= lowest] for here, own in zip(places, sums, strict=True)]
        else:
            chosen = places
        exact = _score_exactly(connection, kernel, shelves, held, chosen, vector)
        exact = keep_only(exact, np.isfinite(exact.scores))
        is_all = looked_at >= there and sum(map(len, chosen)) == looked_at
        rows = cut(connection, kernel, shelves, exact, limit, is_all)
        if rows is not None:
            return rows
        wanted *= 8


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
        return _vectors(connection, shelf.scope, held, places)
    before = shelf.windows[STEP_BACK][places]
    own = _vectors(connection, shelf.scope, held, places)
    has_before = before != NOWHERE
    has_before[has_before] = held.has[before[has_before]]
    if has_before.any():
        said = _vectors(connection, shelf.scope, held, before[has_before])
        if said.shape[1] == own.shape[1]:
            # A damaged previous turn is left out, and the turn stays as it is.
            sound = ~np.isnan(said).any(axis=1)
            mixing = np.flatnonzero(has_before)[sound]
            own[mixing] = blended(own[mixing], said[sound])
    return own


def _vectors(connection: Connection, scope: str, held: CachedVectors, places: Integers) -> NDArray[np.float32]:
    """Read vectors from the file; one that fails its checksum is NaN, and recorded as damaged."""
    wanted = places.tolist()
    blobs: dict[int, bytes] = {}
    for part, marks in portions(wanted):
        found = connection.execute(
            f"SELECT number, hash, checksum, vector FROM vectors WHERE scope = ? AND space = ? AND number IN ({marks})",
            (scope, held.space, *part),
        )
        bound = place_mask(scope, 0)
        blobs |= {
            number: vector[-1] for number, *vector in found if is_vector(None, place_mask(bound, number), *vector)
        }
    size = max(Counter(map(len, blobs.values())).items(), key=itemgetter(1), default=(0, 0))[0]
    blobs = {number: blob for number, blob in blobs.items() if len(blob) == size}
    missing = [i for i, number in enumerate(wanted) if number not in blobs]
    held.found_damaged.update(places[missing].tolist())
    if len(missing) == len(wanted):
        return np.full((len(wanted), 1), np.nan, np.float32)
    joined = b"".join(blobs.get(number, bytes(size)) for number in wanted)
    vectors = np.frombuffer(joined, "<f4").reshape(len(wanted), -1).copy()
    vectors[missing] = np.nan
    return vectors


class Apart(NamedTuple):
    """Hamming distance of each memory's signs from the query's, and the number of memories by distance.

    Places that are masked out are FAR, and not counted.
    """

    distances: NDArray[np.uint16]
    counts: Integers


def apart(signs: Signs, question: Signs, mask: Flags | None, kernel: Kernel) -> Apart:
    """Compute the Hamming distances of all memories' signs from the query's."""
    counts = np.zeros(len(question) * WORD_BITS + 1, np.int64)
    distances = np.empty(signs.shape[1], np.uint16)
    kernel.apart(signs, question, distances, counts, mask)
    return Apart(distances, counts)


def nearest(found: Sequence[Apart], wanted: int) -> list[Integers]:
    """Return the places nearest by signs in each scope, `wanted` in all, with ties of the last."""
    reached = np.cumsum(np.add.reduce([own.counts for own in found]))
    farthest = int(np.searchsorted(reached, min(wanted, int(reached[-1]))))
    return [np.flatnonzero(own.distances <= farthest) for own in found]


def whole_numbers(vector: Vector) -> NDArray[np.int32]:
    """Return a query vector in integers: their sums are the same in any order, and exact in float32."""
    peak = float(np.abs(vector).max(initial=0.0))
    numbers = np.zeros(-(-len(vector) // WORD_BITS) * WORD_BITS, np.int32)
    if 0.0 < peak < np.inf:
        numbers[: len(vector)] = np.rint(vector * (_LARGEST_SUM // len(vector) / peak))
    return numbers


def sums_under(signs: Signs, places: Integers, numbers: NDArray[np.int32], kernel: Kernel) -> Floats:
    """Return the sums of integers over the dimensions where the signs of some memories are positive."""
    sums = np.empty(len(places))
    kernel.under(signs, places, numbers, sums)
    return sums
