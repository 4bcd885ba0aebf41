"""Cache of a scope's vectors: whole vectors or their signs, refreshed only where the file has changed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..checksums import ChecksumError, check_body, is_vector
from ..doc_values import BLOCK, NOWHERE, Flags, Integers, ScopeDocValues, grow
from ..embedding_queue import dimensions_key
from .quantization import Codes, Signs, codes_of, signs_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from ..connection import Connection
    from ..postings.kernel import Kernel

PREVIOUS_TURN_WEIGHT = 0.5  # of the turn before in a turn's vector
STEP_BACK = 1  # the row of a scope's windows that is one turn before

FAR_APART = 2  # times as many entries as are wanted: more between them would be read in vain
_FLOAT_BYTES = 4
READ_AT_ONCE = 1_024  # vectors: a megabyte, which stays in the CPU cache while it is copied

Range = tuple[int, int]


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

    def visible(self, mask: Flags | None) -> Flags | None:
        """Return the mask of allowed places that have a vector; None if all places are and do."""
        if self.is_full:
            return mask
        return self.has if mask is None else self.has & mask


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
    if kernel is None:
        return held
    codes = _codes(kernel, shelf, held, known, ranges)
    # Codes that can decide nothing are not kept.
    return replace(held, codes=codes if codes is not None and codes.reach < np.inf else None)


def _codes(
    kernel: Kernel, shelf: ScopeDocValues, held: CachedVectors, known: CachedVectors | None, ranges: Sequence[Range]
) -> Codes | None:
    if held.vectors is None:
        return None
    if known is None or len(shelf.turns):  # turns are blended again, and it is unknown which of them have changed
        return codes_of(kernel, held.vectors, None, (), is_new=True)
    return codes_of(kernel, held.vectors, known.codes, ranges, _are_new(known, ranges))


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
    for begin, end in _pieces(ranges if named is None else _blocks_and_rest(shelf), READ_AT_ONCE):
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
            signs = _roomy_signs(signs, len(here), len(shelf)) if is_shared else signs
            is_shared = False
            assert signs is not None
            signs[:, begin:end] = here[:, : end - begin]
    return CachedVectors(shelf.changed, entries, None, signs, np.array(damaged, np.int64))


def _roomy_signs(signs: Signs | None, words: int, size: int) -> Signs:
    grow = np.zeros((words, size), np.uint64)
    if signs is not None and len(signs) == words:
        grow[:, : signs.shape[1]] = signs
    return grow


def _still_damaged(known: CachedVectors | None, ranges: Sequence[Range]) -> list[int]:
    """Return the places found damaged before, outside of the changed ranges."""
    before = known.damaged.tolist() if known else []
    return [number for number in before if not any(begin <= number < end for begin, end in ranges)]


def _pieces(ranges: Sequence[Range], size: int) -> Iterator[Range]:
    for begin, end in ranges:
        yield from ((first, min(first + size, end)) for first in range(begin, end, size))


def _sign_blocks(connection: Connection, space: str, scope: str) -> dict[int, CachedVectors]:
    """Read the stored blocks of signs; damaged ones are left out, and derived from the vectors."""
    rows = connection.execute(
        "SELECT first, entries, signs FROM sign_blocks WHERE space = ? AND scope = ?", (space, scope)
    )
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


def _blocks_and_rest(shelf: ScopeDocValues) -> list[Range]:
    full = len(shelf) - len(shelf) % BLOCK
    return [(begin, end) for begin, end in ((0, full), (full, len(shelf))) if begin < end]


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
    rows = connection.execute(
        "SELECT m.number, v.entry, v.hash, v.checksum, v.vector FROM memories AS m JOIN vectors AS v "
        "ON v.hash = m.embed_hash AND v.space = ? WHERE m.scope = ? AND m.number >= ? AND m.number < ? "
        "AND typeof(m.number) = 'integer'",
        (space, scope, begin, end),
    ).fetchall()
    size = vector_bytes(connection, space) or _usual_size([blob for *_, blob in rows])
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
    known = connection.execute("SELECT value FROM meta WHERE key = ?", (dimensions_key(space),)).fetchone()
    is_said = known is not None and isinstance(known[0], str) and known[0].isascii() and known[0].isdigit()
    return _FLOAT_BYTES * int(known[0]) if is_said else None


def _usual_size(blobs: Sequence[object]) -> int | None:
    """Return the most frequent vector size."""
    lengths = Counter(len(blob) for blob in blobs if isinstance(blob, bytes))
    return lengths.most_common(1)[0][0] if lengths else None


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
