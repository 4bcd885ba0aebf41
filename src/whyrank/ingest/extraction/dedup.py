"""Skip facts that are known, and renew those still in the files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ...analysis.normalize import same_text
from ...analysis.similarity import numbers_in
from ...errors import StoreChanged
from ...protocols import Changes, Entry, Store, Vector
from ...types.columns import MemoryId
from ...types.lifetimes import expiry
from ...types.memory import Memory, Scope
from ...types.query import Where
from ..entries import entry_for
from .ledger import DECAY, LIFETIME_S, RENEWED_AFTER_S, PartRecord, as_note

if TYPE_CHECKING:
    from collections.abc import Iterator


SAME_COSINE = 0.85  # from here on two facts are taken to mean the same

_NEIGHBOURS = 8  # the nearest may differ in a number; one behind it may not


@dataclass
class Familiar:
    """Known facts of a scope, with those not in the store yet: of this chunk, or of a whole dry run."""

    store: Store
    scope: Scope
    space: str
    now: float
    same_cosine: float = SAME_COSINE
    _learned: dict[MemoryId, tuple[Memory, Vector | None]] = field(default_factory=dict)

    def reason(self, entry: Entry, vector: Vector | None) -> str | None:
        """Return the reason why a fact need not be stored, or None."""
        return self._by_text(entry.memory) or self._by_meaning(entry.memory, vector)

    def learn(self, entries: Sequence[Entry], vectors: Mapping[str, Vector]) -> None:
        """Add facts that were or would be stored."""
        for entry in entries:
            self._learned[entry.memory.id] = (entry.memory, vectors.get(entry.embed_hash))

    def leave_to_store(self) -> None:
        """Clear the added facts: they have been written."""
        self._learned.clear()

    def _by_text(self, memory: Memory) -> str | None:
        if memory.id in self._learned:
            return f"its text is stored already, as {memory.id}"
        for known in self.store.with_text(memory.text, self.scope):
            if known.superseded_by is not None:
                return f"its text was replaced by {known.superseded_by}"
            expired = known.expires is not None and known.expires <= self.now
            # A fact that expired by decay may come back; one with a given expiry stays expired.
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


_RECORDS_PER_TRANSACTION = 64


@dataclass(frozen=True)
class Renewal:
    """Renewal of the facts of a scope whose text is still in the files.

    `present` are the fingerprints of the parts now in the files, `looked_at` the records whose files this run has read.
    """

    store: Store
    scope: Scope
    now: float
    present: Collection[str]
    records: Mapping[str, PartRecord]
    looked_at: Collection[str]

    def fading(self) -> list[Memory]:
        """Return the living facts that rest on text which is gone, and on none that is there."""
        kept = {fact for record in self.records.values() if self._is_present(record) for fact in record.facts}
        gone = {fact for name, record in self.records.items() if self._is_gone(name, record) for fact in record.facts}
        where = Where(frozenset({self.scope}), now=self.now)
        found = self._facts(gone - kept)
        return sorted((fact for fact in found if where.allows(fact)), key=lambda fact: fact.content_key)

    def renew(self, language: str) -> int:
        """Postpone the expiry of facts still in the files, drop useless records; return the number of facts."""
        useless = [name for name, record in self.records.items() if self._is_useless(name, record)]
        if useless:
            self.store.write(Changes(drop_notes=useless))
        due = {name: record for name, record in self.records.items() if self._is_due(record)}
        names = list(due)
        return sum(
            self._renewed({name: due[name] for name in names[start : start + _RECORDS_PER_TRANSACTION]}, language)
            for start in range(0, len(names), _RECORDS_PER_TRANSACTION)
        )

    def _renewed(self, records: Mapping[str, PartRecord], language: str) -> int:
        ids = {fact for record in records.values() for fact in record.facts}
        facts = [fact for fact in self._facts(ids) if self._is_renewable(fact)]
        put = [entry_for(replace(fact, expires=expiry(DECAY, self.now)), language) for fact in facts]
        notes = {name: as_note(record.seen(self.now)) for name, record in records.items()}
        try:
            self.store.write(Changes(put=put, basis={fact.id: fact for fact in facts}, notes=notes))
        except StoreChanged:
            return 0  # another writer is changing these facts; there is time until the next run
        return len(facts)

    def _facts(self, ids: Collection[MemoryId]) -> list[Memory]:
        return list(self.store.get(ids, frozenset({self.scope})).values())

    def _is_present(self, record: PartRecord) -> bool:
        return record.fingerprint in self.present

    def _is_gone(self, name: str, record: PartRecord) -> bool:
        return name in self.looked_at and not self._is_present(record)

    def _is_useless(self, name: str, record: PartRecord) -> bool:
        return self._is_gone(name, record) and (record.outcome == "failed" or not record.is_fresh(self.now))

    def _is_due(self, record: PartRecord) -> bool:
        is_time = record.is_fresh(self.now) and self.now > record.at + RENEWED_AFTER_S
        return is_time and self._is_present(record)

    def _is_renewable(self, fact: Memory) -> bool:
        return fact.decay == DECAY and not fact.expires_given and (fact.expires or 0.0) < self.now + LIFETIME_S
