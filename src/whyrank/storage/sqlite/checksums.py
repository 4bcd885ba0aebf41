"""Checksums in front of bytes: derived data is never used unchecked."""

from __future__ import annotations

import zlib

_CHECKSUM_BYTES = 4
_MASK_LETTERS = 8  # of a hash in hexadecimal: as many as fit a checksum
_FLOAT_BYTES = 4


class ChecksumError(Exception):
    """Checksum mismatch of stored bytes; the reader derives them again from the texts."""


def add_checksum(body: bytes, *place: object) -> bytes:
    """Prepend a checksum; with a place given, it fails at any other place."""
    return (zlib.crc32(body) ^ _mask(place)).to_bytes(_CHECKSUM_BYTES, "little") + body


def _mask(place: tuple[object, ...]) -> int:
    return zlib.crc32(repr(place).encode("utf-8", errors="replace")) if place else 0


def checksum_of(blob: bytes) -> int:
    """Return the checksum in front of a blob."""
    return int.from_bytes(blob[:_CHECKSUM_BYTES], "little")


def check_body(blob: object, *place: object) -> memoryview:
    """Return the body of a checksummed blob, sealed for its place or, as in earlier versions, for any."""
    if not isinstance(blob, bytes):
        raise ChecksumError
    body = memoryview(blob)[_CHECKSUM_BYTES:]
    # An empty body is never sealed: its checksum is zero, which an emptied blob would pass.
    if not body or zlib.crc32(body) ^ checksum_of(blob) not in (0, _mask(place)):
        raise ChecksumError
    return body


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
