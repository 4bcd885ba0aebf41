"""Short ways to build what ranking reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from whyrank.analysis.names import name_words
from whyrank.analysis.query import analyse
from whyrank.hits import Context, Hit, Labels, Ranking
from whyrank.kernel import Compared
from whyrank.matches import NameMatch
from whyrank.trail import Part, Step
from whyrank.types import Memory, Query, Scope, Signal, Source, Statistics, Where

NOW = 1_700_000_000.0
DAY = 86_400.0


def memory(identity: str, text: str = "", path: str = "", **fields: object) -> Memory:
    source = Source(path, 1, 2, identity) if path else None
    made = Memory(identity, text or identity, kind="chunk" if path else "fact", source=source)
    return replace(made, **fields)  # type: ignore[arg-type]  # the fields are those of Memory


def context(
    *memories: Memory,
    text: str = "tea",
    signals: Mapping[str, Signal] | None = None,
    names: Mapping[str, NameMatch] | None = None,
    statistics: Statistics | None = None,
    where: Where | None = None,
    chats: Mapping[tuple[Scope, str], int] | None = None,
) -> Context:
    query = Query(text, where or Where(now=NOW), limit=10)
    found = {memory.id: memory for memory in memories}
    labels = {
        memory.id: Labels(name_words(memory.name), name_words(memory.slug), name_words(memory.summary))
        for memory in memories
    }
    return Context(
        query, analyse(text), found, signals or {}, names or {}, statistics, labels=labels, chats=chats or {}
    )


def hit(
    memory: Memory, score: float, cosine: float | None = None, coverage: float | None = None, rank: int | None = 1
) -> Hit:
    """Return a hit whose fusion step has this score and names this evidence."""
    parts = []
    if cosine is not None:
        parts.append(Part("vector", score, 1.0, score, raw=cosine, rank=rank))
    if coverage is not None:
        parts.append(Part("keyword", 0.0, 0.0, 0.0, raw=coverage, rank=rank, coverage=coverage))
    return Hit(memory).after(Step("fusion", "set", score, parts=tuple(parts)))


def ranking(*hits: Hit) -> Ranking:
    return Ranking(tuple(hits))


def known(likeness: NDArray[np.float64]) -> Compared:
    """Return memories that were all compared, so that nothing else is known of them."""
    size = len(likeness)
    nothing = np.empty((0, 0), np.float32), np.full(size, -1), np.empty((size, 0), np.uint64), np.zeros(size, np.int64)
    return Compared(*nothing, likeness.copy(), np.ones((size, size), np.bool_))
