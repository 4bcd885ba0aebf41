"""Bytes with a checksum in front: what is derived is never believed unseen."""

from __future__ import annotations

import zlib

_CHECKSUM_BYTES = 4


class BrokenSeal(Exception):
    """Sealed bytes are not those that were written; whoever reads them makes them anew from the texts."""


def seal(body: bytes) -> bytes:
    """Put a checksum in front."""
    return zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "little") + body


def checksum_of(blob: bytes) -> int:
    """Return the checksum that stands in front."""
    return int.from_bytes(blob[:_CHECKSUM_BYTES], "little")


def unseal(blob: object) -> memoryview:
    """Return what a checksum seals."""
    if not isinstance(blob, bytes):
        raise BrokenSeal
    body = memoryview(blob)[_CHECKSUM_BYTES:]
    # Nothing is never sealed: the checksum of nothing is zero, which an emptied blob would pass by.
    if not body or zlib.crc32(body) != checksum_of(blob):
        raise BrokenSeal
    return body
