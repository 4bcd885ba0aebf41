"""Ids from content, and the entries that analysis makes of memories for storage."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache

from ..analysis.document import READER_VERSION, content_hash, entries_for, entry_for
from ..analysis.normalize import same_bytes
from ..types.columns import MemoryId
from ..types.memory import GLOBAL, Scope

__all__ = ["READER_VERSION", "content_hash", "entries_for", "entry_for", "fingerprints", "id_for", "occurrences"]

_ID_BYTES = 10  # 80 bits: two of a million memories share an id once in a million stores
_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"  # of base 32 (RFC 4648), two at a time below
_PAIRS = [first + second for first in _LETTERS for second in _LETTERS]


def fingerprints(scope: Scope, text: str) -> tuple[MemoryId, str, str]:
    """Return the id, the `text_key` and the `content_hash` of a new fact, encoding its text once."""
    said = same_bytes(text)
    key = hashlib.blake2b(said, digest_size=16).hexdigest()
    letters = text.encode("utf-8", errors="replace")
    exact = key if said == letters else hashlib.blake2b(letters, digest_size=16).hexdigest()
    return _id(_EVERYBODYS if scope is GLOBAL else _place(scope, ""), said, _FIRST), key, exact


def id_for(scope: Scope, path: str, text: str, occurrence: int = 0) -> MemoryId:
    """Return the id of a memory: the same content at the same place has the same id in every store."""
    return _id(_place(scope, path), text.encode("utf-8", errors="replace"), _number(occurrence))


def _id(place: bytes, said: bytes, number: bytes) -> MemoryId:
    told = b"".join((place, len(said).to_bytes(8, "little"), said, number))
    bits = int.from_bytes(hashlib.blake2b(told, digest_size=_ID_BYTES).digest(), "big")
    pairs = _PAIRS
    return (
        f"m_{pairs[bits >> 70]}{pairs[bits >> 60 & 1023]}{pairs[bits >> 50 & 1023]}{pairs[bits >> 40 & 1023]}"
        f"{pairs[bits >> 30 & 1023]}{pairs[bits >> 20 & 1023]}{pairs[bits >> 10 & 1023]}{pairs[bits & 1023]}"
    )


@lru_cache(maxsize=64)  # many memories come from one place
def _place(scope: Scope, path: str) -> bytes:
    return _measured(str(scope)) + _measured(path)


@lru_cache(maxsize=8)  # a text seldom occurs at one place more than once
def _number(occurrence: int) -> bytes:
    return _measured(str(occurrence))


def _measured(text: str) -> bytes:
    """Return a text with its length in front: no two lists of texts give the same bytes."""
    data = text.encode("utf-8", errors="replace")
    return len(data).to_bytes(8, "little") + data


_EVERYBODYS, _FIRST = _place(GLOBAL, ""), _number(0)  # as nearly all facts have them


def occurrences(texts: Iterable[str]) -> Iterable[tuple[str, int]]:
    """Number equal texts, so that each gets an id of its own."""
    seen: dict[str, int] = {}
    for text in texts:
        number = seen.get(text, 0)
        yield text, number
        seen[text] = number + 1
