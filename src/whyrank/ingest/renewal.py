"""What stands in the files still is kept alive; what does not fades: nothing extracted is deleted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from ..columns import MemoryId
from ..errors import StoreChanged
from ..lifetimes import expiry
from ..ports import Changes, Store
from ..types import Memory, Scope, Where
from .asked import DECAY, LIFETIME_S, RENEWED_AFTER_S, Record, as_note
from .entries import entry_for

_RECORDS_PER_TRANSACTION = 64


@dataclass(frozen=True)
class Renewal:
    """The records of a scope against the parts that stand in the files now.

    `present` are the fingerprints of those parts, `looked_at` the records whose files this run has looked at.
    """

    store: Store
    scope: Scope
    now: float
    present: Collection[str]
    records: Mapping[str, Record]
    looked_at: Collection[str]

    def fading(self) -> list[Memory]:
        """Return the living facts that rest on text which is gone, and on none that is there."""
        kept = {fact for record in self.records.values() if self._is_present(record) for fact in record.facts}
        gone = {fact for name, record in self.records.items() if self._is_gone(name, record) for fact in record.facts}
        where = Where(frozenset({self.scope}), now=self.now)
        found = self._facts(gone - kept)
        return sorted((fact for fact in found if where.allows(fact)), key=lambda fact: fact.content_key)

    def renew(self, language: str) -> int:
        """Put off the expiry of facts whose text still stands, and drop records of no more use; return how many."""
        useless = [name for name, record in self.records.items() if self._is_useless(name, record)]
        if useless:
            self.store.write(Changes(drop_notes=useless))
        due = {name: record for name, record in self.records.items() if self._is_due(record)}
        names = list(due)
        return sum(
            self._renewed({name: due[name] for name in names[start : start + _RECORDS_PER_TRANSACTION]}, language)
            for start in range(0, len(names), _RECORDS_PER_TRANSACTION)
        )

    def _renewed(self, records: Mapping[str, Record], language: str) -> int:
        ids = {fact for record in records.values() for fact in record.facts}
        facts = [fact for fact in self._facts(ids) if self._is_renewable(fact)]
        put = [entry_for(replace(fact, expires=expiry(DECAY, self.now)), language) for fact in facts]
        notes = {name: as_note(record.seen(self.now)) for name, record in records.items()}
        try:
            self.store.write(Changes(put=put, basis={fact.id: fact for fact in facts}, notes=notes))
        except StoreChanged:
            return 0  # somebody is at work on these facts; there is time until the next run
        return len(facts)

    def _facts(self, ids: Collection[MemoryId]) -> list[Memory]:
        return list(self.store.get(ids, frozenset({self.scope})).values())

    def _is_present(self, record: Record) -> bool:
        return record.fingerprint in self.present

    def _is_gone(self, name: str, record: Record) -> bool:
        return name in self.looked_at and not self._is_present(record)

    def _is_useless(self, name: str, record: Record) -> bool:
        return self._is_gone(name, record) and (record.outcome == "failed" or not record.is_fresh(self.now))

    def _is_due(self, record: Record) -> bool:
        is_time = record.is_fresh(self.now) and self.now > record.at + RENEWED_AFTER_S
        return is_time and self._is_present(record)

    def _is_renewable(self, fact: Memory) -> bool:
        return fact.decay == DECAY and not fact.expires_given and (fact.expires or 0.0) < self.now + LIFETIME_S
