"""How every run is cut: by distinct sources, so that one long file cannot eat the pool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..columns import Candidate, MemoryId

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
