"""Pool cuts by distinct sources, so that no long file fills the pool, and deterministic samples."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from zlib import crc32

from ..types.columns import Candidate, MemoryId


def spread(ids: Iterable[MemoryId], count: int) -> list[MemoryId]:
    """Return up to `count` of these ids, as if drawn; the same ids in any order give the same choice."""
    return heapq.nsmallest(count, ids, key=lambda identity: (crc32(identity.encode("utf-8", "replace")), identity))


CHUNKS_PER_SOURCE = 5  # further chunks of a file cannot change which file is found


class Scored(NamedTuple):
    """A memory with its score, the source it counts for, and its place in the order of ties."""

    score: float
    tie: tuple[str, int, str, MemoryId]
    group: str

    @property
    def id(self) -> MemoryId:
        """Return the memory's id."""
        return self.tie[-1]


def best(rows: Iterable[Scored], limit: int | None) -> tuple[Candidate, ...]:
    """Order rows by score, then by content key, and cut them at `limit` distinct sources."""
    ordered = sorted(rows, key=lambda row: (-row.score, row.tie))
    return tuple(Candidate(row.id, row.score) for row in cut(ordered, limit))


def cut(ordered: Iterable[Scored], limit: int | None) -> Iterator[Scored]:
    """Yield rows until `limit` sources were seen, a few rows of each; None yields all."""
    seen: Counter[str] = Counter()
    for row in ordered:
        if limit is not None:
            if seen[row.group] >= CHUNKS_PER_SOURCE:
                continue
            if row.group not in seen and len(seen) >= limit:
                return
            seen[row.group] += 1
        yield row
