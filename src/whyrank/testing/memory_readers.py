"""By which readers the entries of a store in dictionaries were made."""

from __future__ import annotations

from collections import Counter

from ..columns import MemoryId
from ..ports import Entry
from ..types import Memory, Scope


class MemoryReaders:
    """What each entry says of its reader."""

    _entries: dict[MemoryId, Entry]

    def readers(self, scopes: frozenset[Scope]) -> dict[int, int]:
        """Count what the scopes may see by the reader that made its words."""
        return dict(Counter(entry.reader for entry in self._entries.values() if entry.memory.scope in scopes))

    def read_before(self, reader: int, limit: int) -> list[Memory]:
        """Return up to `limit` memories whose words an earlier reader made."""
        return [entry.memory for entry in self._entries.values() if entry.reader < reader][:limit]
