"""Posting lists and document records as bytes, each with a checksum."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....errors import StoreDamaged

_CHECKSUM_BYTES = 4
_BYTES_PER_POSTING = 5  # number u32, frequency u8
MAX_FREQUENCY = 255

RECORD = np.dtype(
    [
        ("row", "<i8"),
        ("unit", "<i1"),
        ("words", "<u4"),
        ("pairs", "<u4"),
        ("letters", "<u4"),
        ("group", "<u8"),
        ("session", "<u8"),
        ("position", "<i4"),
    ]
)
GONE = -1  # the unit of a record whose memory was removed


class Postings(NamedTuple):
    """The memories that hold a term, by ascending number, and how often each holds it."""

    numbers: NDArray[np.int64]
    frequencies: NDArray[np.float64]


NOTHING = Postings(np.zeros(0, np.int64), np.zeros(0, np.float64))


def encode(numbers: Iterable[int], frequencies: Iterable[int]) -> bytes:
    """Write one posting list."""
    body = (
        np.fromiter(numbers, "<u4").tobytes()
        + np.fromiter((min(frequency, MAX_FREQUENCY) for frequency in frequencies), "u1").tobytes()
    )
    return zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "little") + body


def decode(blob: bytes) -> Postings:
    """Read one posting list."""
    body = checked(blob)
    count = len(body) // _BYTES_PER_POSTING
    numbers = np.frombuffer(body, "<u4", count).astype(np.int64)
    return Postings(numbers, np.frombuffer(body, "u1", count, 4 * count).astype(np.float64))


def joined(lists: Iterable[Postings]) -> Postings:
    """Join lists whose numbers ascend from one to the next."""
    parts = list(lists)
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return NOTHING
    return Postings(np.concatenate([p.numbers for p in parts]), np.concatenate([p.frequencies for p in parts]))


def seal(body: bytes) -> bytes:
    """Put a checksum in front."""
    return zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "little") + body


def checked(blob: bytes) -> bytes:
    """Return what a checksum seals, or say that it is damaged."""
    body = blob[_CHECKSUM_BYTES:]
    if zlib.crc32(body) != int.from_bytes(blob[:_CHECKSUM_BYTES], "little"):
        raise StoreDamaged(
            "a block of the keyword index fails its checksum",
            'set keyword = "fts5" and back to "postings" to build it anew from the texts',
        )
    return body
