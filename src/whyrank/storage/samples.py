"""Memories from all over a store: a choice that depends on nothing but which memories there are."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from zlib import crc32

from ..columns import MemoryId


def spread(ids: Iterable[MemoryId], count: int) -> list[MemoryId]:
    """Return up to `count` of these ids, as if drawn; the same ids in any order give the same choice."""
    return heapq.nsmallest(count, ids, key=lambda identity: (crc32(identity.encode("utf-8", "replace")), identity))
