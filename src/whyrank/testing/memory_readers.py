"""What readers have made of the entries of a store in dictionaries, and by which they were made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from ..analysis.spellings import by_plain_spelling, typed_beginning
from ..columns import MemoryId
from ..ports import Entry
from ..types import Memory, Scope


class MemoryReaders:
    """The words of each entry, and its reader."""

    _entries: dict[MemoryId, Entry]

    def readers(self, scopes: frozenset[Scope]) -> dict[int, int]:
        """Count what the scopes may see by the reader that made its words."""
        return dict(Counter(entry.reader for entry in self._entries.values() if entry.memory.scope in scopes))

    def beginning(self, beginning: str, scopes: frozenset[Scope]) -> dict[str, int]:
        """Return the terms that begin so as typed, and how many memories hold each."""
        seen = [{*entry.tokens} for entry in self._entries.values() if entry.memory.scope in scopes]
        every = set[str]().union(*seen)
        typed = typed_beginning(by_plain_spelling(every), beginning)
        terms = typed | {token for token in every if token.startswith(beginning)}
        return {term: sum(term in tokens for tokens in seen) for term in sorted(terms)}

    def spelled(self, plain: Collection[str], scopes: frozenset[Scope]) -> dict[str, tuple[str, ...]]:
        """Return the tokens with accents that are these without."""
        seen = {token for entry in self._entries.values() if entry.memory.scope in scopes for token in entry.tokens}
        known = by_plain_spelling(sorted(seen))
        return {word: known[word] for word in plain if word in known}

    def read_before(self, reader: int, limit: int) -> list[Memory]:
        """Return up to `limit` memories whose words an earlier reader made."""
        return [entry.memory for entry in self._entries.values() if entry.reader < reader][:limit]
