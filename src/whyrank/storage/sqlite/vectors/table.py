"""Vectors in the file, with blocks of their signs; in memory whole, as int8 codes or as signs.

int8 codes read a quarter of the bytes of whole vectors; signs are one bit each, compared by Hamming distance.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ....errors import SpaceMismatch
from ..database import ChecksumError, add_checksum, check_body, meta_value, set_meta
from ..doc_values import BLOCK, NOWHERE, NUMBERS, Flags, Integers, ScopeDocValues, grow
from ..metadata import dimensions_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ....protocols import Vector
    from ..database import Asked, Connection
    from ..postings.kernel import Kernel

UNIT_TOLERANCE = 1e-3  # deviation of a length from 1 that counts as rounding
PREVIOUS_TURN_WEIGHT = 0.5  # of the turn before in a turn's vector
STEP_BACK = 1  # the row of a scope's windows that is one turn before

FAR_APART = 2  # times as many entries as are wanted: more between them would be read in vain
_FLOAT_BYTES = 4
READ_AT_ONCE = 1_024  # vectors: a megabyte, which stays in the CPU cache while it is copied

Range = tuple[int, int]
_MASK_LETTERS = 8  # of a hash in hexadecimal: as many as fit a checksum
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
    """The vectors of one scope in one space at one change: whole, or their signs, and the entry of each."""

    changed: int
    entries: Integers
    vectors: NDArray[np.float32] | None
    given_signs: Signs | None
    damaged: Integers
    epoch: int = 0
    codes: Codes | None = None
    found_damaged: set[int] = field(default_factory=set)  # found when whole vectors were read for a few
    lacking: Sequence[int] = ()  # places of memories that have no vector

    @cached_property
    def signs(self) -> Signs:
        """Return the signs: those that were read, or those of the whole vectors."""
        if self.given_signs is not None:
            return self.given_signs
        if self.vectors is not None:
            return signs_of(self.vectors)
        return np.zeros((0, len(self.entries)), np.uint64)

    @property
    def nbytes(self) -> int:
        """Return the memory of the arrays, in bytes."""
        made = self.vectors.nbytes // 32 if self.vectors is not None and self.given_signs is None else 0
        parts = (self.entries, self.vectors, self.given_signs, self.codes)
        return sum(part.nbytes for part in parts if part is not None) + made  # signs of whole vectors: a bit each

    @cached_property
    def has(self) -> Flags:
        """Return the mask of places that have a vector."""
        held: Flags = self.entries > 0
        return held

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
    held = replace(held, epoch=shelf.epoch, lacking=sorted({*lacking} - {*held.damaged.tolist()}))
    if kernel is None or held.vectors is None:
        return held
    if known is None or len(shelf.turns):  # turns are blended again, and it is unknown which of them have changed
        codes = codes_of(kernel, held.vectors, None, (), is_new=True)
    else:
        codes = codes_of(kernel, held.vectors, known.codes, ranges, _are_new(known, ranges))
    return replace(held, codes=codes if codes.reach < np.inf else None)  # else they can decide nothing


def _are_new(known: CachedVectors, ranges: Sequence[Range]) -> bool:
    """Return whether no known vector was changed: then spare capacity is shared with its readers."""
    return all(begin >= len(known.entries) for begin, _ in ranges)


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
    entries = np.zeros(len(shelf), np.int64)
    vectors: NDArray[np.float32] | None = None
    damaged = _still_damaged(known, ranges)
    if known is not None:
        entries[: len(known.entries)] = known.entries
        if known.vectors is not None:
            kept = known.vectors if _are_new(known, ranges) else known.vectors.copy()
            vectors = grow(kept, (len(shelf), kept.shape[1]), np.float32)
    named = _named_entries(connection, space, shelf) if known is None else None
    full = len(shelf) - len(shelf) % BLOCK  # the rest has no block of signs, which names entries
    for begin, end in _pieces(ranges if named is None else [(0, full), (full, len(shelf))], READ_AT_ONCE):
        found = None if named is None else _by_entries(connection, space, shelf.alive[begin:end], named[begin:end])
        found = found or read_range(connection, space, shelf.scope, begin, end)
        entries[begin:end] = found.entries
        damaged += found.damaged.tolist()
        if found.vectors is not None:
            if vectors is None:
                vectors = grow(None, (len(shelf), found.vectors.shape[1]), np.float32)
            vectors[begin:end] = found.vectors
    if vectors is not None and len(shelf.turns):
        vectors = mixed(vectors, entries, shelf)
    return CachedVectors(shelf.changed, entries, vectors, None, np.array(damaged, np.int64))


def _with_signs(
    connection: Connection, space: str, shelf: ScopeDocValues, known: CachedVectors | None, ranges: Sequence[Range]
) -> CachedVectors:
    if len(shelf.turns):
        held = _with_vectors(connection, space, shelf, None, [(0, len(shelf))])
        return CachedVectors(shelf.changed, held.entries, None, held.signs, held.damaged)
    entries = np.zeros(len(shelf), np.int64)
    if known is not None:
        entries[: len(known.entries)] = known.entries
    # The known signs may be in use elsewhere, or too short: the first change makes a copy.
    signs, is_shared = (known.given_signs if known is not None else None), True
    damaged = _still_damaged(known, ranges)
    blocks = _sign_blocks(connection, space, shelf.scope) if known is None else {}
    for begin, end in _pieces(ranges, BLOCK):
        found = blocks.get(begin) or read_range(connection, space, shelf.scope, begin, end)
        entries[begin:end] = found.entries[: end - begin]
        damaged += found.damaged.tolist()
        here = found.signs
        if len(here):
            if is_shared or signs is None:
                kept, signs = signs, np.zeros((len(here), len(shelf)), np.uint64)
                is_shared = False
                if kept is not None and len(kept) == len(here):
                    signs[:, : kept.shape[1]] = kept
            signs[:, begin:end] = here[:, : end - begin]
    return CachedVectors(shelf.changed, entries, None, signs, np.array(damaged, np.int64))


def _still_damaged(known: CachedVectors | None, ranges: Sequence[Range]) -> list[int]:
    """Return the places found damaged before, outside of the changed ranges."""
    before = known.damaged.tolist() if known else []
    return [number for number in before if not any(begin <= number < end for begin, end in ranges)]


def _pieces(ranges: Sequence[Range], size: int) -> Iterator[Range]:
    for begin, end in ranges:
        yield from ((first, min(first + size, end)) for first in range(begin, end, size))


def mixed(vectors: NDArray[np.float32], entries: Integers, shelf: ScopeDocValues) -> NDArray[np.float32]:
    """Blend half of the previous turn into each turn, which answers it; stored vectors stay unblended."""
    has = entries > 0
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


_SIGN_BLOCKS = "SELECT first, entries, signs FROM sign_blocks WHERE space = ? AND scope = ?"
_VECTORS = (
    "SELECT m.number, v.entry, v.hash, v.checksum, v.vector FROM memories AS m JOIN vectors AS v "
    "ON v.hash = m.embed_hash AND v.space = ? WHERE m.scope = ? AND m.number >= ? AND m.number < ? "
    "AND typeof(m.number) = 'integer'"
)


def vectors_asked(space: str, shelf: ScopeDocValues) -> tuple[Asked, Asked]:
    """Return the statements that read the signs of a scope, and the vectors that have none yet."""
    full = len(shelf) - len(shelf) % BLOCK
    return (_SIGN_BLOCKS, (space, shelf.scope)), (_VECTORS, (space, shelf.scope, full, len(shelf)))


def _sign_blocks(connection: Connection, space: str, scope: str) -> dict[int, CachedVectors]:
    """Read the stored blocks of signs; damaged ones are left out, and derived from the vectors."""
    rows = connection.execute(_SIGN_BLOCKS, (space, scope))
    read = ((first, signs_in(space, scope, first, entries, signs)) for first, entries, signs in rows)
    return {first: block for first, block in read if block is not None}


def signs_in(space: object, scope: object, first: object, entries: object, signs: object) -> CachedVectors | None:
    """Decode a stored block of signs; None if it fails its checksum or has a wrong place or size."""
    try:
        named = np.frombuffer(check_body(entries, space, scope, first), "<i8")
        bits = np.frombuffer(check_body(signs, space, scope, first), "<u8").reshape(-1, BLOCK)
    except (ChecksumError, ValueError):
        return None
    if not isinstance(first, int) or first < 0 or first % BLOCK or len(named) != BLOCK:
        return None
    return CachedVectors(0, named, None, bits, np.zeros(0, np.int64))


def _named_entries(connection: Connection, space: str, shelf: ScopeDocValues) -> Integers:
    """Return the entries of a scope's vectors from the blocks of signs; 0 where they are unknown."""
    named = np.zeros(len(shelf), np.int64)
    for first, block in _sign_blocks(connection, space, shelf.scope).items():
        if first + BLOCK <= len(shelf):
            named[first : first + BLOCK] = block.entries
    return named


def _by_entries(connection: Connection, space: str, alive: Flags, named: Integers) -> CachedVectors | None:
    """Read vectors in the order they are stored, without a join to their memories.

    That takes a third of the time. None where one is damaged or not at its entry, or they lie far apart.
    """
    wanted = named[alive]
    if not len(wanted) or not wanted.all():
        return None
    first, last = int(wanted.min()), int(wanted.max())
    if last - first >= FAR_APART * len(wanted):
        return None
    rows = connection.execute(
        "SELECT entry, hash, checksum, vector FROM vectors WHERE entry BETWEEN ? AND ? AND space = ? ORDER BY entry",
        (first, last, space),
    ).fetchall()
    size = vector_bytes(connection, space) or (len(rows[0][-1]) if rows and isinstance(rows[0][-1], bytes) else None)
    if not rows or not all(is_vector(size, *vector) for _, *vector in rows):
        return None
    stored = np.array([entry for entry, *_ in rows], np.int64)
    places = np.minimum(stored.searchsorted(wanted), len(stored) - 1)
    if not np.array_equal(stored[places], wanted):
        return None
    read = np.frombuffer(b"".join([blob for *_, blob in rows]), "<f4").reshape(len(rows), -1)
    nothing_damaged = np.zeros(0, np.int64)
    if len(read) == len(named) and np.array_equal(places, np.arange(len(named))):  # as they were written
        return CachedVectors(0, named, read, None, nothing_damaged)
    vectors = np.zeros((len(named), read.shape[1]), np.float32)
    vectors[alive] = read[places]
    return CachedVectors(0, np.where(alive, named, 0), vectors, None, nothing_damaged)


def read_range(connection: Connection, space: str, scope: str, begin: int, end: int) -> CachedVectors:
    """Read the vectors of the memories from number `begin` to below `end`."""
    rows = connection.execute(_VECTORS, (space, scope, begin, end)).fetchall()
    size = vector_bytes(connection, space)
    if not size:  # the most frequent one
        lengths = Counter(len(blob) for *_, blob in rows if isinstance(blob, bytes))
        size = max(lengths, key=lengths.__getitem__, default=None)
    are_sound = [is_vector(size, *vector) for _, _, *vector in rows]
    sound = [(row[0] - begin, row[1], row[4]) for row, is_sound in zip(rows, are_sound, strict=True) if is_sound]
    damaged = np.array([row[0] for row, is_sound in zip(rows, are_sound, strict=True) if not is_sound], np.int64)
    entries = np.zeros(end - begin, np.int64)
    if not sound:
        return CachedVectors(0, entries, None, None, damaged)
    places, numbers, blobs = zip(*sound, strict=True)
    entries[list(places)] = numbers
    found = np.frombuffer(b"".join(blobs), "<f4").reshape(len(blobs), -1)
    vectors = np.zeros((end - begin, found.shape[1]), np.float32)
    vectors[list(places)] = found
    return CachedVectors(0, entries, vectors, None, damaged)


def vector_bytes(connection: Connection, space: str) -> int | None:
    """Return the size in bytes of a vector of a space, if the file records it."""
    known = meta_value(connection, dimensions_key(space))
    return _FLOAT_BYTES * int(known) if isinstance(known, str) and known.isascii() and known.isdigit() else None


def damaged_vectors(connection: Connection, space: str) -> list[str]:
    """Return the hashes of texts whose vectors fail their checksum or differ in length from their space."""
    size = vector_bytes(connection, space)
    stored = connection.execute("SELECT hash, checksum, vector FROM vectors WHERE space = ?", (space,))
    return [text_hash for text_hash, *vector in stored if not is_vector(size, text_hash, *vector)]


def stale_signs(connection: Connection, scope: str) -> dict[str, list[int]]:
    """Return the first numbers of the blocks of a scope that hold signs of removed memories, by space."""
    blocks = connection.execute("SELECT space, first, entries FROM sign_blocks WHERE scope = ?", (scope,)).fetchall()
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


def vector_checksum(text_hash: str, blob: bytes) -> int:
    """Return the checksum of a vector, which fails under the hash of another text."""
    return zlib.crc32(blob) ^ _hash_mask(text_hash)


def is_vector(size: int | None, text_hash: object, checksum: object, blob: object) -> bool:
    """Check a stored vector against its checksum and text hash, and its size in bytes if that is known.

    Earlier versions took the checksum of the vector alone.
    """
    if not isinstance(blob, bytes) or not isinstance(checksum, int) or not isinstance(text_hash, str):
        return False
    is_sized = len(blob) == size if size is not None else bool(blob) and not len(blob) % _FLOAT_BYTES
    return is_sized and zlib.crc32(blob) ^ checksum in (0, _hash_mask(text_hash))


def _hash_mask(text_hash: str) -> int:
    try:
        return int(text_hash[:_MASK_LETTERS], 16)
    except ValueError:  # no hash of ours
        return zlib.crc32(text_hash.encode("utf-8", errors="replace"))


# -- writing ----------------------------------------------------------------------------------------------------------


_INSERT = "INSERT INTO vectors (space, hash, checksum, vector) VALUES (?, ?, ?, ?)"
_OR_REPLACE = " ON CONFLICT DO UPDATE SET checksum = excluded.checksum, vector = excluded.vector"


def put_vectors(
    connection: Connection, space: str, vectors: Mapping[str, Vector], *, opens: bool = True, are_new: bool = False
) -> None:
    """Store vectors by the hash of their text; raise SpaceMismatch, with the id, for one that misfits.

    The first vectors of a space create it, unless the caller expects it to exist (`opens` is False). Those that a
    caller knows to be new take the place of none, which is faster.
    """
    dimensions = _dimensions(connection, space, next(iter(vectors.values())), opens)
    connection.executemany(
        _INSERT if are_new else _INSERT + _OR_REPLACE,
        [(space, key, vector_checksum(key, blob), blob) for key, blob in _blobs(connection, vectors, dimensions)],
    )


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


def write_all_signs(connection: Connection) -> None:
    """Rewrite the signs of all full blocks, and of no others."""
    connection.execute("DELETE FROM sign_blocks")
    spaces = connection.execute("SELECT DISTINCT space FROM vectors").fetchall()
    scopes = connection.execute("SELECT scope, numbers FROM scopes").fetchall()
    for (space,) in spaces:
        write_signs(connection, space, {scope: range(0, size, BLOCK) for scope, size in scopes})
