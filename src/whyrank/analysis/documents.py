"""What of a memory is searched by words, and what of it is embedded."""

from __future__ import annotations

from ..types import Memory


def searchable_text(memory: Memory) -> str:
    """Return the text whose words are indexed: what it is called, where it stands, what it says."""
    # A turn is not called after its log.
    called = memory.name or ("" if memory.is_turn else memory.title)
    return _joined(memory, called, " ".join(memory.headings), memory.summary)


def embedded_text(memory: Memory) -> str:
    """Return the text that is embedded: name and heading trail in front, so that a chunk knows its subject.

    The path stays out, so that a renamed file keeps its vectors.
    """
    if not (memory.name or memory.slug or memory.headings):  # as most facts
        return memory.text
    return _joined(memory, memory.name, " › ".join(memory.headings))


def _joined(memory: Memory, called: str, *context: str) -> str:
    # What a heading says already need not be said twice.
    name = "" if called in memory.headings else called
    return "\n".join(line for line in (name, memory.slug, *context, memory.text) if line)
