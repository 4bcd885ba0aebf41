"""Which vectors are nearest: all of them compared, or those alone whose signs are near."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernel import Kernel
from ...ports import Vector
from .catalogue import NOWHERE, Flags, Floats, Integers, Shelf
from .connection import Connection
from .held import STEP_BACK, Held, blended
from .sealed import is_vector
from .selection import Chosen, Rows, Sums, above, cut, nth_best, only, spare, threshold
from .signs import apart, nearest, signs_of, sums_under, whole_numbers

# float32 products of unit vectors are right to about 1e-6; what is closer than this is decided in float64.
SELECTION_MARGIN = 1e-5
_LIFT = 2.0  # makes every cosine positive, so that zero can stand for "has no vector"
# By signs: how many rows are looked at by signs against numbers, and how many of those by their whole vectors.
LOOKED_AT, LOOKED_AT_SHARE = 2_000, 1 / 250
COMPARED = 500
_FEW = 2  # times as many as are wanted are compared sooner than chosen from
_ROWS_PER_STATEMENT = 500


class _Look(NamedTuple):
    """What a first look has chosen: all whose cosine is at or above the floor are among it."""

    chosen: Chosen
    floor: float


def exact_rows(
    connection: Connection,
    kernel: Kernel | None,
    shelves: Sequence[Shelf],
    held: Sequence[Held],
    allowed: Sequence[Flags | None],
    vector: Vector,
    limit: int | None,
) -> Rows:
    """Compare every vector: codes or float32 select with a margin, float64 decides."""
    wanted = None if limit is None else limit + spare(shelves)
    while True:
        look = None if kernel is None or wanted is None else _by_codes(kernel, held, allowed, vector, wanted)
        chosen, floor = look or _by_numbers(held, allowed, vector, wanted)
        exact = _rescored(connection, kernel, shelves, held, chosen, vector)
        exact = only(exact, exact.scores >= floor)  # which no damaged one is
        rows = cut(connection, kernel, shelves, exact, limit, is_all=floor == -math.inf)
        if rows is not None or wanted is None:
            return rows or Rows()
        wanted *= 4


def _by_codes(
    kernel: Kernel, held: Sequence[Held], allowed: Sequence[Flags | None], vector: Vector, wanted: int
) -> _Look | None:
    """Choose by codes; None where they cannot tell."""
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


def _by_numbers(held: Sequence[Held], allowed: Sequence[Flags | None], vector: Vector, wanted: int | None) -> _Look:
    """Choose by products in float32."""
    coarse = [_coarse(own, mask, vector) for own, mask in zip(held, allowed, strict=True)]
    lowest = 0.0 if wanted is None else threshold(coarse, wanted)
    chosen = above([Sums(own) for own in coarse], lowest - SELECTION_MARGIN)
    is_all = lowest <= 0.0 and (wanted is None or len(chosen.scores) <= wanted)
    if not is_all and wanted is not None and len(chosen.scores) > _FEW * wanted:
        lowest = nth_best(chosen.scores, wanted)
        chosen = only(chosen, chosen.scores >= lowest - SELECTION_MARGIN)
    return _Look(chosen, -math.inf if is_all else lowest - _LIFT - SELECTION_MARGIN / 2)


def _coarse(held: Held, mask: Flags | None, vector: Vector) -> Floats:
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
    kernel: Kernel | None,
    shelves: Sequence[Shelf],
    held: Sequence[Held],
    allowed: Sequence[Flags | None],
    vector: Vector,
    limit: int,
) -> Rows:
    """Look at the signs of all, at signs against numbers of the nearest, at whole vectors of the nearest of these."""
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


def _placed(places: Sequence[Integers], scores: Sequence[Floats]) -> Chosen:
    if len(places) == 1:
        return Chosen(np.zeros(len(places[0]), np.int64), places[0], scores[0])
    numbers = np.repeat(np.arange(len(places)), [*map(len, places)])
    return Chosen(numbers, np.concatenate(places), np.concatenate(scores))


def _best(chosen: Chosen, wanted: int) -> Chosen:
    """Keep the best of what was chosen, and equals of the last as well."""
    if len(chosen.scores) <= wanted:
        return chosen
    return only(chosen, chosen.scores >= nth_best(chosen.scores, wanted))


def _rescored(
    connection: Connection,
    kernel: Kernel | None,
    shelves: Sequence[Shelf],
    held: Sequence[Held],
    chosen: Chosen,
    vector: Vector,
) -> Chosen:
    """Return what was chosen with exact cosines; no number where a vector is damaged."""
    if len(shelves) == 1:
        return Chosen(*chosen[:2], cosines_of(connection, kernel, shelves[0], held[0], chosen.places, vector))
    scores = np.zeros(len(chosen.places))
    for number, (shelf, own) in enumerate(zip(shelves, held, strict=True)):
        here = chosen.shelves == number
        scores[here] = cosines_of(connection, kernel, shelf, own, chosen.places[here], vector)
    return Chosen(*chosen[:2], scores)


def cosines_of(
    connection: Connection, kernel: Kernel | None, shelf: Shelf, held: Held, places: Integers, vector: Vector
) -> Floats:
    """Return cosines in float64, each computed from its own row alone; no number where a vector is damaged."""
    if not len(places):
        return np.zeros(0)
    question = vector.astype(np.float64)
    if kernel is not None and held.vectors is not None and held.vectors.shape[1] == len(question):
        cosines = np.empty(len(places))
        kernel.cosines(held.vectors, places, question, cosines)
        return cosines
    vectors = held.vectors[places] if held.vectors is not None else fetched_vectors(connection, shelf, held, places)
    if vectors.shape[1] != len(question):
        return np.full(len(places), np.nan)
    # Products of float32 are exact here; their sum, unlike that of a product of matrices, has an order of its own.
    products = vectors.astype(np.float64)
    products *= question
    sums: Floats = np.add.reduce(products, axis=1)
    return sums


def fetched_vectors(connection: Connection, shelf: Shelf, held: Held, places: Integers) -> NDArray[np.float32]:
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
