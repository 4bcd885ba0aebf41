"""Checksums of vectors, which are bound to the memory and to the text that each belongs to."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from ..database import place_mask

if TYPE_CHECKING:
    from ..database import Connection

FLOAT_BYTES = 4
_MASK_LETTERS = 8  # of a hash in hexadecimal: as many as fit a checksum
PLACED = "typeof(scope) = 'text' AND typeof(number) = 'integer'"  # else the vector was damaged, and is an orphan
MOVED = "(checksum | ?1) - (checksum & ?1)"  # XOR, which SQLite has no sign for


def vector_checksum(scope: str, number: int, text_hash: str, blob: bytes) -> int:
    """Return the checksum of a vector, which fails for another memory and under the hash of another text."""
    return zlib.crc32(blob) ^ _hash_mask(text_hash) ^ place_mask(scope, number)


def is_vector(size: int | None, bound: int, text_hash: object, checksum: object, blob: object) -> bool:
    """Check a stored vector against its checksum and text hash, and its size in bytes if that is known.

    `bound` is the mask of its place. Earlier versions took the checksum of the vector alone.
    """
    if not isinstance(blob, bytes) or not isinstance(checksum, int) or not isinstance(text_hash, str):
        return False
    is_sized = len(blob) == size if size is not None else bool(blob) and not len(blob) % FLOAT_BYTES
    return is_sized and zlib.crc32(blob) ^ checksum ^ bound in (0, _hash_mask(text_hash))


def _hash_mask(text_hash: str) -> int:
    try:
        return int(text_hash[:_MASK_LETTERS], 16)
    except ValueError:  # no hash of ours
        return zlib.crc32(text_hash.encode("utf-8", errors="replace"))


def bind_vectors(connection: Connection) -> None:
    """Bind the checksums of vectors to their places, sound or not; an earlier schema had none."""
    places = connection.execute("SELECT scope, space, number FROM vectors").fetchall()
    connection.executemany(
        f"UPDATE vectors SET checksum = {MOVED} WHERE scope = ?2 AND space = ?3 AND number = ?4",
        [(place_mask(scope, number), scope, space, number) for scope, space, number in places],
    )
