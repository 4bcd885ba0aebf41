"""Is a fact known already? By its text, or because a stored one says nearly the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..analysis.sameness import numbers_in
from ..analysis.text import same_text
from ..columns import MemoryId
from ..ports import Entry, Store, Vector
from ..types import Memory, Scope, Where

if TYPE_CHECKING:
    from collections.abc import Iterator

SAME_COSINE = 0.85  # from here on two facts are taken to say the same

_NEIGHBOURS = 8  # the nearest may differ in a number; one behind it may not


@dataclass
class Familiar:
    """What a scope knows, and what was learned and is not in the store: of this chunk, or of a whole dry run."""

    store: Store
    scope: Scope
    space: str
    now: float
    same_cosine: float = SAME_COSINE
    _learned: dict[MemoryId, tuple[Memory, Vector | None]] = field(default_factory=dict)

    def reason(self, entry: Entry, vector: Vector | None) -> str | None:
        """Say why a fact need not be stored, if it need not."""
        return self._by_text(entry.memory) or self._by_meaning(entry.memory, vector)

    def learn(self, entries: Sequence[Entry], vectors: Mapping[str, Vector]) -> None:
        """Remember what was or would be stored."""
        for entry in entries:
            self._learned[entry.memory.id] = (entry.memory, vectors.get(entry.embed_hash))

    def leave_to_store(self) -> None:
        """Forget what was learned: it has been written."""
        self._learned.clear()

    def _by_text(self, memory: Memory) -> str | None:
        if memory.id in self._learned:
            return f"its text is stored already, as {memory.id}"
        for known in self.store.with_text(memory.text, self.scope):
            if known.superseded_by is not None:
                return f"its text was replaced by {known.superseded_by}"
            expired = known.expires is not None and known.expires <= self.now
            # What faded may come back; what was given an end by somebody stays ended.
            if not expired or known.expires_given or known.id != memory.id:
                return f"its text is stored already, as {known.id}"
        former = self.store.get([memory.id], frozenset({self.scope})).get(memory.id)
        if former is not None and same_text(former.text) != same_text(memory.text):
            return f"its text was changed since, in {former.id}: {former.text}"
        return None

    def _by_meaning(self, memory: Memory, vector: Vector | None) -> str | None:
        if vector is None:
            return None
        for cosine, known in self._near(vector):
            if cosine >= self.same_cosine and numbers_in(known.text) == numbers_in(memory.text):
                replaced = f", which was replaced by {known.superseded_by}" if known.superseded_by else ""
                return f"it says nearly the same as {known.id} (cosine {cosine:.2f}){replaced}: {known.text}"
        return None

    def _near(self, vector: Vector) -> Iterator[tuple[float, Memory]]:
        where = Where(frozenset({self.scope}), frozenset({"fact"}), include_superseded=True, now=self.now)
        run = self.store.nearest(vector, self.space, where, _NEIGHBOURS)
        found = self.store.get(run.ids, where.scopes)
        yield from ((near.score, found[near.id]) for near in run.candidates if near.id in found)
        for memory, learned in self._learned.values():
            if learned is not None:
                yield float(learned @ vector), memory
