"""What of a memory is searched by words, and what of it is embedded."""

from __future__ import annotations

from ..types import Memory


def searchable_text(memory: Memory) -> str:
    """Return the text whose words are indexed: what it is called, where it stands, what it says."""
    lines = (_called(memory), memory.slug, " ".join(memory.headings), memory.summary, memory.text)
    return "\n".join(line for line in lines if line)


def embedded_text(memory: Memory) -> str:
    """Return the text that is embedded: the heading trail in front, so that a chunk knows its subject."""
    trail = " › ".join(memory.headings)
    lines = (_called(memory), trail, memory.summary, memory.text)
    return "\n".join(line for line in lines if line)


def _called(memory: Memory) -> str:
    """Return what the memory is called, unless its headings say so already; a turn is not called after its log."""
    called = memory.name or ("" if memory.is_turn else memory.title)
    return "" if called in memory.headings else called
