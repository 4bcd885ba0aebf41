"""Bytes with a checksum in front: what is derived is never believed unseen."""

from __future__ import annotations

import zlib

_CHECKSUM_BYTES = 4
_MASK_LETTERS = 8  # of a hash in hexadecimal: as many as fit a checksum
_FLOAT_BYTES = 4


class BrokenSeal(Exception):
    """Sealed bytes are not those that were written; whoever reads them makes them anew from the texts."""


def seal(body: bytes, *place: object) -> bytes:
    """Put a checksum in front; with the place it is for, it is broken anywhere else."""
    return (zlib.crc32(body) ^ _mask(place)).to_bytes(_CHECKSUM_BYTES, "little") + body


def _mask(place: tuple[object, ...]) -> int:
    return zlib.crc32(repr(place).encode("utf-8", errors="replace")) if place else 0


def checksum_of(blob: bytes) -> int:
    """Return the checksum that stands in front."""
    return int.from_bytes(blob[:_CHECKSUM_BYTES], "little")


def unseal(blob: object, *place: object) -> memoryview:
    """Return what a checksum seals, for its place or, as earlier versions sealed everything, for any."""
    if not isinstance(blob, bytes):
        raise BrokenSeal
    body = memoryview(blob)[_CHECKSUM_BYTES:]
    # Nothing is never sealed: the checksum of nothing is zero, which an emptied blob would pass by.
    if not body or zlib.crc32(body) ^ checksum_of(blob) not in (0, _mask(place)):
        raise BrokenSeal
    return body


def vector_checksum(text_hash: str, blob: bytes) -> int:
    """Return the checksum of a vector, which is broken under the hash of another text."""
    return zlib.crc32(blob) ^ _hash_mask(text_hash)


def is_vector(size: int | None, text_hash: object, checksum: object, blob: object) -> bool:
    """Tell whether a vector is the one that was stored for a text, of so many bytes if that is known.

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
