"""Vectors in the file, with blocks of their signs; in memory whole, as int8 codes or as signs.

int8 codes read a quarter of the bytes of whole vectors; signs are one bit each, compared by Hamming distance.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ....errors import SpaceMismatch
from ..database import ChecksumError, add_checksum, check_body, mask_between, meta_value, place_mask, set_meta
from ..doc_values import BLOCK, NOWHERE, NUMBERS, Flags, Integers, ScopeDocValues, grow
from ..metadata import dimensions_key
from .checksums import FLOAT_BYTES, MOVED, PLACED, is_vector, vector_checksum

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ....protocols import Vector
    from ..database import Asked, Connection
    from ..postings.kernel import Kernel

UNIT_TOLERANCE = 1e-3  # deviation of a length from 1 that counts as rounding
PREVIOUS_TURN_WEIGHT = 0.5  # of the turn before in a turn's vector
STEP_BACK = 1  # the row of a scope's windows that is one turn before

READ_AT_ONCE = 1_024  # vectors: a megabyte, which stays in the CPU cache while it is copied

Range = tuple[int, int]
WORD_BITS = 64

Signs = NDArray[np.uint64]  # a row per 64 dimensions, a column per memory: one pass per row of bits, all in order


def signs_of(vectors: NDArray[np.float32]) -> Signs:
    """Return the signs of vectors, column by column; missing dimensions count as negative."""
    count, dimensions = vectors.shape
    bits = np.packbits(vectors > 0, axis=1, bitorder="little")
    words = -(-dimensions // WORD_BITS)
    padded = np.zeros((count, words * 8), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(padded.view("<u8").T)


# -- codes and signs --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Codes:
    """int8 codes of each vector, their scale, and the distance of the decoded row from the vector."""

    values: NDArray[np.int8]
    scales: NDArray[np.float32]
    errors: NDArray[np.float32]

    @cached_property
    def reach(self) -> float:
        """Return the largest distance of any vector from its codes."""
        return float(self.errors.max(initial=0.0))

    @cached_property
    def step(self) -> float:
        """Return the largest scale."""
        return float(self.scales.max(initial=0.0))

    @property
    def nbytes(self) -> int:
        """Return the memory of the arrays, in bytes."""
        return self.values.nbytes + self.scales.nbytes + self.errors.nbytes


def codes_of(
    kernel: Kernel, vectors: NDArray[np.float32], known: Codes | None, changed: Iterable[tuple[int, int]], is_new: bool
) -> Codes:
    """Return the codes of vectors: the known ones, computed again in the changed ranges.

    Where all changes are new vectors, spare capacity is shared with readers of the known ones.
    """
    if known is None or known.values.shape[1:] != vectors.shape[1:]:
        known, changed = None, [(0, len(vectors))]
    elif not is_new:
        known = Codes(known.values.copy(), known.scales.copy(), known.errors.copy())
    codes = Codes(
        grow(known.values if known else None, vectors.shape, np.int8),
        grow(known.scales if known else None, vectors.shape[:1], np.float32),
        grow(known.errors if known else None, vectors.shape[:1], np.float32),
    )
    for begin, end in changed:
        kernel.coded(vectors[begin:end], codes.values[begin:end], codes.scales[begin:end], codes.errors[begin:end])
    return codes


# -- the vectors of a scope in memory ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CachedVectors:
    """The vectors of one scope in one space at one change: whole, or their signs, and which places have one."""

    changed: int
    has: Flags
    vectors: NDArray[np.float32] | None
    given_signs: Signs | None
    damaged: Integers
    epoch: int = 0
    codes: Codes | None = None
    found_damaged: set[int] = field(default_factory=set)  # found when whole vectors were read for a few
    lacking: Sequence[int] = ()  # places of memories that have no vector
    space: str = ""

    @cached_property
    def signs(self) -> Signs:
        """Return the signs: those that were read, or those of the whole vectors."""
        if self.given_signs is not None:
            return self.given_signs
        if self.vectors is not None:
            return signs_of(self.vectors)
        return np.zeros((0, len(self.has)), np.uint64)

    @property
    def nbytes(self) -> int:
        """Return the memory of the arrays, in bytes."""
        made = self.vectors.nbytes // 32 if self.vectors is not None and self.given_signs is None else 0
        parts = (self.has, self.vectors, self.given_signs, self.codes)
        return sum(part.nbytes for part in parts if part is not None) + made  # signs of whole vectors: a bit each

    @cached_property
    def is_full(self) -> bool:
        """Return whether every place has a vector."""
        return bool(self.has.all())


def renewed(
    connection: Connection,
    space: str,
    shelf: ScopeDocValues,
    known: CachedVectors | None,
    whole: bool,
    kernel: Kernel | None = None,
) -> CachedVectors:
    """Read the changes of a scope and merge them into the known vectors; a kernel computes codes."""
    if known is not None and (known.changed > shelf.changed or known.epoch != shelf.epoch):
        known = None
    ranges = _changed_ranges(connection, shelf, known)
    read = _with_vectors if whole else _with_signs
    held = read(connection, space, shelf, known, ranges)
    lacking = np.flatnonzero(shelf.alive & ~held.has).tolist()
    held = replace(held, space=space, epoch=shelf.epoch, lacking=sorted({*lacking} - {*held.damaged.tolist()}))
    if kernel is None or held.vectors is None:
        return held
    if known is None or len(shelf.turns):  # turns are blended again, and it is unknown which of them have changed
        codes = codes_of(kernel, held.vectors, None, (), is_new=True)
    else:
        codes = codes_of(kernel, held.vectors, known.codes, ranges, _are_new(known, ranges))
    return replace(held, codes=codes if codes.reach < np.inf else None)  # else they can decide nothing


def _are_new(known: CachedVectors, ranges: Sequence[Range]) -> bool:
    """Return whether no known vector was changed: then spare capacity is shared with its readers."""
    return all(begin >= len(known.has) for begin, _ in ranges)


def _changed_ranges(connection: Connection, shelf: ScopeDocValues, known: CachedVectors | None) -> list[Range]:
    if known is None:
        return [(0, len(shelf))] if len(shelf) else []
    rows = connection.execute(
        "SELECT first FROM records WHERE scope = ? AND changed > ? ORDER BY first", (shelf.scope, known.changed)
    )
    return [(first, min(first + BLOCK, len(shelf))) for (first,) in rows if first < len(shelf)]


def _with_vectors(
    connection: Connection, space: str, shelf: ScopeDocValues, known: CachedVectors | None, ranges: Sequence[Range]
) -> CachedVectors:
    if known is not None and len(shelf.turns):
        # Blended vectors must not be blended again: turns are always blended from the stored vectors.
        known, ranges = None, [(0, len(shelf))]
    has = np.zeros(len(shelf), np.bool_)
    vectors: NDArray[np.float32] | None = None
    damaged = _still_damaged(known, ranges)
    if known is not None:
        has[: len(known.has)] = known.has
        if known.vectors is not None:
            kept = known.vectors if _are_new(known, ranges) else known.vectors.copy()
            vectors = grow(kept, (len(shelf), kept.shape[1]), np.float32)
    for begin, end in _pieces(ranges, READ_AT_ONCE):
        found = read_range(connection, space, shelf.scope, begin, end)
        has[begin:end] = found.has
        damaged += found.damaged.tolist()
        if found.vectors is not None:
            if vectors is None:
                vectors = grow(None, (len(shelf), found.vectors.shape[1]), np.float32)
            vectors[begin:end] = found.vectors
    if vectors is not None and len(shelf.turns):
        vectors = mixed(vectors, has, shelf)
    return CachedVectors(shelf.changed, has, vectors, None, np.array(damaged, np.int64))


def _with_signs(
    connection: Connection, space: str, shelf: ScopeDocValues, known: CachedVectors | None, ranges: Sequence[Range]
) -> CachedVectors:
    if len(shelf.turns):
        held = _with_vectors(connection, space, shelf, None, [(0, len(shelf))])
        return CachedVectors(shelf.changed, held.has, None, held.signs, held.damaged)
    has = np.zeros(len(shelf), np.bool_)
    if known is not None:
        has[: len(known.has)] = known.has
    # The known signs may be in use elsewhere, or too short: the first change makes a copy.
    signs, is_shared = (known.given_signs if known is not None else None), True
    damaged = _still_damaged(known, ranges)
    blocks = _sign_blocks(connection, space, shelf.scope) if known is None else {}
    for begin, end in _pieces(ranges, BLOCK):
        found = blocks.get(begin) or read_range(connection, space, shelf.scope, begin, end)
        has[begin:end] = found.has[: end - begin]
        damaged += found.damaged.tolist()
        here = found.signs
        if len(here):
            if is_shared or signs is None:
                kept, signs = signs, np.zeros((len(here), len(shelf)), np.uint64)
                is_shared = False
                if kept is not None and len(kept) == len(here):
                    signs[:, : kept.shape[1]] = kept
            signs[:, begin:end] = here[:, : end - begin]
    return CachedVectors(shelf.changed, has, None, signs, np.array(damaged, np.int64))


def _still_damaged(known: CachedVectors | None, ranges: Sequence[Range]) -> list[int]:
    """Return the places found damaged before, outside of the changed ranges."""
    before = known.damaged.tolist() if known else []
    return [number for number in before if not any(begin <= number < end for begin, end in ranges)]


def _pieces(ranges: Sequence[Range], size: int) -> Iterator[Range]:
    for begin, end in ranges:
        yield from ((first, min(first + size, end)) for first in range(begin, end, size))


def mixed(vectors: NDArray[np.float32], has: Flags, shelf: ScopeDocValues) -> NDArray[np.float32]:
    """Blend half of the previous turn into each turn, which answers it; stored vectors stay unblended."""
    before = shelf.windows[STEP_BACK]
    turns = shelf.turns[(before[shelf.turns] != NOWHERE) & has[shelf.turns]]
    turns = turns[has[before[turns]]]
    together = vectors.copy()
    together[turns] = blended(vectors[turns], vectors[before[turns]])
    return together


def blended(turns: NDArray[np.float32], before: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return turns plus half of their previous turns, at unit length."""
    sums = turns + np.float32(PREVIOUS_TURN_WEIGHT) * before
    lengths = np.linalg.norm(sums.astype(np.float64), axis=1, keepdims=True)
    return (sums / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)


# -- reading ----------------------------------------------------------------------------------------------------------


_SIGN_BLOCKS = "SELECT first, present, signs FROM sign_blocks WHERE scope = ? AND space = ?"
_VECTORS = (
    "SELECT number, hash, checksum, vector FROM vectors WHERE scope = ? AND space = ? AND number >= ? AND number < ? "
    "AND typeof(number) = 'integer'"
)


def vectors_asked(space: str, shelf: ScopeDocValues) -> tuple[Asked, Asked]:
    """Return the statements that read the signs of a scope, and the vectors that have none yet."""
    full = len(shelf) - len(shelf) % BLOCK
    return (_SIGN_BLOCKS, (shelf.scope, space)), (_VECTORS, (shelf.scope, space, full, len(shelf)))


def _sign_blocks(connection: Connection, space: str, scope: str) -> dict[int, CachedVectors]:
    """Read the stored blocks of signs; damaged ones are left out, and derived from the vectors."""
    rows = connection.execute(_SIGN_BLOCKS, (scope, space))
    read = ((first, signs_in(space, scope, first, present, signs)) for first, present, signs in rows)
    return {first: block for first, block in read if block is not None}


def signs_in(space: object, scope: object, first: object, present: object, signs: object) -> CachedVectors | None:
    """Decode a stored block of signs; None if it fails its checksum or has a wrong place or size."""
    try:
        has = _present(present, space, scope, first)
        bits = np.frombuffer(check_body(signs, space, scope, first), "<u8").reshape(-1, BLOCK)
    except (ChecksumError, ValueError):
        return None
    if not isinstance(first, int) or first < 0 or first % BLOCK or len(has) != BLOCK:
        return None
    return CachedVectors(0, has, None, bits, np.zeros(0, np.int64))


def _present(blob: object, space: object, scope: object, first: object) -> Flags:
    """Decode which memories of a block of signs have a vector."""
    bits = np.frombuffer(check_body(blob, space, scope, first), np.uint8)
    return np.unpackbits(bits, bitorder="little").view(np.bool_)


def read_range(connection: Connection, space: str, scope: str, begin: int, end: int) -> CachedVectors:
    """Read the vectors of the memories from number `begin` to below `end`."""
    rows = connection.execute(_VECTORS, (scope, space, begin, end)).fetchall()
    size = vector_bytes(connection, space)
    if not size:  # the most frequent one
        lengths = Counter(len(blob) for *_, blob in rows if isinstance(blob, bytes))
        size = max(lengths, key=lengths.__getitem__, default=None)
    bound = place_mask(scope, 0)
    are_sound = [is_vector(size, place_mask(bound, number), *vector) for number, *vector in rows]
    sound = [(row[0] - begin, row[-1]) for row, is_sound in zip(rows, are_sound, strict=True) if is_sound]
    damaged = np.array([row[0] for row, is_sound in zip(rows, are_sound, strict=True) if not is_sound], np.int64)
    has = np.zeros(end - begin, np.bool_)
    if not sound:
        return CachedVectors(0, has, None, None, damaged)
    places, blobs = zip(*sound, strict=True)
    has[list(places)] = True
    found = np.frombuffer(b"".join(blobs), "<f4").reshape(len(blobs), -1)
    if len(found) == len(has) and places == tuple(range(len(has))):  # all of them, in their order
        return CachedVectors(0, has, found, None, damaged)
    vectors = np.zeros((end - begin, found.shape[1]), np.float32)
    vectors[list(places)] = found
    return CachedVectors(0, has, vectors, None, damaged)


def vector_bytes(connection: Connection, space: str) -> int | None:
    """Return the size in bytes of a vector of a space, if the file records it."""
    known = meta_value(connection, dimensions_key(space))
    return FLOAT_BYTES * int(known) if isinstance(known, str) and known.isascii() and known.isdigit() else None


def damaged_vectors(connection: Connection, space: str) -> dict[str, list[int]]:
    """Return the memories whose vectors fail their checksum or misfit their space: their numbers, by scope."""
    size, found = vector_bytes(connection, space), defaultdict[str, list[int]](list)
    stored = connection.execute(
        f"SELECT scope, number, hash, checksum, vector FROM vectors WHERE space = ? AND {PLACED}", (space,)
    )
    for scope, number, *vector in stored:
        if not is_vector(size, place_mask(scope, number), *vector):
            found[scope].append(number)
    return found


def stale_signs(connection: Connection, scope: str) -> dict[str, list[int]]:
    """Return the first numbers of the blocks of a scope that hold signs of removed memories, by space."""
    blocks = connection.execute("SELECT space, first, present FROM sign_blocks WHERE scope = ?", (scope,)).fetchall()
    living = {number for (number,) in connection.execute("SELECT number FROM memories WHERE scope = ?", (scope,))}
    stale: dict[str, list[int]] = {}
    for space, first, blob in blocks:
        try:
            places = np.flatnonzero(_present(blob, space, scope, first)).tolist()
        except (ChecksumError, ValueError):
            places = [0]
            living.discard(first)  # the block is unreadable, so it is written again
        if not all(first + place in living for place in places):
            stale.setdefault(space, []).append(first)
    return stale


# -- writing ----------------------------------------------------------------------------------------------------------


Holder = tuple[str, int, str]  # scope and number of a memory, and the hash of its embedded text
_INSERT = "INSERT INTO vectors (scope, space, number, hash, checksum, vector) VALUES (?, ?, ?, ?, ?, ?)"
_OR_REPLACE = " ON CONFLICT DO UPDATE SET hash = excluded.hash, checksum = excluded.checksum, vector = excluded.vector"
_TAKE_OVER = (
    f"INSERT INTO vectors (scope, space, number, hash, checksum, vector) "
    f"SELECT scope, space, ?2, hash, {MOVED}, vector "
    "FROM vectors WHERE scope = ?3 AND number = ?4 AND hash = ?5 ON CONFLICT DO NOTHING"
)
_RENUMBER = f"UPDATE vectors SET number = ?2, checksum = {MOVED} WHERE scope = ?3 AND number = ?4"


def put_vectors(
    connection: Connection,
    space: str,
    vectors: Mapping[str, Vector],
    holders: Iterable[Holder],
    *,
    opens: bool = True,
) -> None:
    """Store the vectors of embedded texts for the memories that hold these; raise SpaceMismatch for one that misfits.

    The first vectors of a space create it, unless the caller expects it to exist (`opens` is False).
    """
    dimensions = _dimensions(connection, space, next(iter(vectors.values())), opens)
    blobs = dict(_blobs(connection, vectors, dimensions))
    connection.executemany(
        _INSERT + _OR_REPLACE,
        [
            (scope, space, number, key, vector_checksum(scope, number, key, blobs[key]), blobs[key])
            for scope, number, key in sorted(holders)  # so that those of a scope lie together, as they are read
            if key in blobs
        ],
    )


def take_over_vectors(connection: Connection, moves: Iterable[tuple[str, int, int, str]]) -> None:
    """Give memories the vectors, of every space, of others with the same text: scope, from, to, hash."""
    connection.executemany(
        _TAKE_OVER, [(mask_between(scope, old, new), new, scope, old, key) for scope, old, new, key in moves]
    )


def renumber_vectors(connection: Connection, scope: str, moves: Iterable[tuple[int, str, int]]) -> None:
    """Move the vectors of a scope to new numbers: new, scope, old."""
    connection.executemany(_RENUMBER, [(mask_between(scope, old, new), new, scope, old) for new, _, old in moves])


def _blobs(connection: Connection, vectors: Mapping[str, Vector], dimensions: int) -> Iterable[tuple[str, bytes]]:
    """Return vectors as stored: in one pass if all have unit length, as nearly always, else one by one."""
    if all(vector.shape == (dimensions,) for vector in vectors.values()):
        table = np.array([*vectors.values()], "<f4")
        wide = table.astype(np.float64)
        if bool(np.all(np.abs(np.sqrt(np.vecdot(wide, wide)) - 1.0) <= UNIT_TOLERANCE)):
            return zip(vectors, map(bytes, table.view(f"V{table.itemsize * dimensions}").ravel()), strict=True)
    return [(key, _blob(connection, key, vector, dimensions)) for key, vector in vectors.items()]


def _blob(connection: Connection, text_hash: str, vector: Vector, dimensions: int) -> bytes:
    """Return a vector at unit length, as it is stored."""
    length = float(np.linalg.norm(vector.astype(np.float64))) if vector.shape == (dimensions,) else math.nan
    if not 0.0 < length < math.inf:
        raise _misfit(connection, text_hash, vector, dimensions)
    return (vector if abs(length - 1.0) <= UNIT_TOLERANCE else vector / length).astype("<f4").tobytes()


def _dimensions(connection: Connection, space: str, vector: Vector, opens: bool) -> int:
    """Return the number of dimensions of a space: that of its first vector."""
    key = dimensions_key(space)
    known = meta_value(connection, key)
    if known is None and not opens:
        raise SpaceMismatch(f"the space {space} was dropped", "`whyrank status` lists the spaces; nothing was stored")
    if known is None:
        set_meta(connection, key, str(vector.size))
        return vector.size
    return int(known)


def _misfit(connection: Connection, text_hash: str, vector: Vector, dimensions: int) -> SpaceMismatch:
    owner = connection.execute("SELECT id FROM memories WHERE embed_hash = ?", (text_hash,)).fetchone()
    name = owner[0] if owner else text_hash
    if vector.shape != (dimensions,):
        return SpaceMismatch(
            f"the vector of {name} has {vector.size} dimensions, its space has {dimensions}",
            "check the embedder's output; nothing was stored",
        )
    return SpaceMismatch(
        f"the vector of {name} has no direction: it is zero, or contains values that are not numbers",
        "check the embedder's output; nothing was stored",
    )


def write_signs(
    connection: Connection,
    space: str,
    changed: Mapping[str, Iterable[int]],
    size_of: Callable[[str], int] | None = None,
) -> None:
    """Write the signs of the full blocks that were changed; sizes are read if they are not known."""
    for scope, numbers in changed.items():
        size = size_of(scope) if size_of else connection.execute(NUMBERS, (scope,)).fetchone()[0]
        for first in sorted({number - number % BLOCK for number in numbers}):
            if first + BLOCK <= size:
                found = read_range(connection, space, scope, first, first + BLOCK)
                place = (scope, space, first)
                if found.vectors is None:
                    connection.execute("DELETE FROM sign_blocks WHERE scope = ? AND space = ? AND first = ?", place)
                    continue
                present = np.packbits(found.has, bitorder="little").tobytes()
                connection.execute(
                    "INSERT INTO sign_blocks (scope, space, first, present, signs) VALUES (?, ?, ?, ?, ?) "
                    "ON CONFLICT DO UPDATE SET present = excluded.present, signs = excluded.signs",
                    (
                        *place,
                        add_checksum(present, space, scope, first),
                        add_checksum(found.signs.tobytes(), space, scope, first),
                    ),
                )


def write_all_signs(connection: Connection) -> None:
    """Rewrite the signs of all full blocks, and of no others."""
    connection.execute("DELETE FROM sign_blocks")
    spaces = connection.execute("SELECT DISTINCT space FROM vectors").fetchall()
    scopes = connection.execute("SELECT scope, numbers FROM scopes").fetchall()
    for (space,) in spaces:
        write_signs(connection, space, {scope: range(0, size, BLOCK) for scope, size in scopes})


SIGNS_DUE = "signs due"  # key of `meta`: a migration has left the blocks of signs to be written


def write_due_signs(connection: Connection) -> None:
    """Write the signs of all full blocks, if a migration has left that to be done."""
    if meta_value(connection, SIGNS_DUE) is not None:
        write_all_signs(connection)
        connection.execute("DELETE FROM meta WHERE key = ?", (SIGNS_DUE,))
