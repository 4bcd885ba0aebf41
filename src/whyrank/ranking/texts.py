"""Which memories have the same text: capitals and white space do not count."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

from ..columns import MemoryId
from ..types import Memory

_OPENING = 8  # words; most texts that begin with the same ones are the same

Key = TypeVar("Key", bound=Hashable)


def text_key(memory: Memory) -> str:
    """Return what two memories with the same text have in common."""
    return " ".join(memory.text.casefold().split())


def same_texts(memories: Iterable[Memory]) -> list[list[MemoryId]]:
    """Return the memories whose text another one has as well, those of one text together.

    Long texts are folded only where they begin alike.
    """
    alike = _grouped((_opening(memory), memory) for memory in memories)
    same = (_grouped((text_key(memory), memory) for memory in group) for group in alike)
    return [[memory.id for memory in group] for groups in same for group in groups]


def _opening(memory: Memory) -> str:
    return " ".join(memory.text.split(None, _OPENING)[:_OPENING]).casefold()


def _grouped(pairs: Iterable[tuple[Key, Memory]]) -> list[list[Memory]]:
    """Return what has its key in common with another."""
    groups: dict[Key, list[Memory]] = {}
    for key, memory in pairs:
        groups.setdefault(key, []).append(memory)
    return [group for group in groups.values() if len(group) > 1]
