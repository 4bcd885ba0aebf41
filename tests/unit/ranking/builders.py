"""Short ways to build what ranking reads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from whyrank.analysis.names import name_words
from whyrank.analysis.query import analyse
from whyrank.types.memory import Memory, Scope, Source
from whyrank.types.query import Query, Statistics, Where
from whyrank.types.results import Context, Hit, Labels, Ranking, Signal
from whyrank.types.trail import Part, Step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whyrank.types.trail import NameMatch

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
    languages: Mapping[str, str] | None = None,
) -> Context:
    query = Query(text, where or Where(now=NOW), limit=10)
    found = {memory.id: memory for memory in memories}
    labels = {memory.id: _labels(memory) for memory in memories}
    return Context(
        query,
        analyse(text),
        found,
        signals or {},
        names or {},
        statistics,
        labels=labels,
        chats=chats or {},
        languages=languages or {},
    )


def _labels(memory: Memory) -> Labels:
    body = () if memory.summary else name_words(memory.text)
    return Labels(name_words(memory.name), name_words(memory.slug), name_words(memory.summary), body)


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
