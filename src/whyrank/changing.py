"""What the facade does to change facts that are there: each keeps its id, and what it was is in its history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Unpack

from .analysis.text import same_text
from .arguments import Scopes, fact_text
from .columns import MemoryId
from .errors import Conflict
from .facts import NOTHING_CHANGED, Changed, Fields, read_fields, unseen, with_fields, with_text
from .remembering import UNSAID, Remembering, tried
from .types import Memory


class Changing(Remembering):
    """Facts that change."""

    def update(
        self,
        identity: MemoryId,
        *,
        text: str | None = None,
        supersedes: MemoryId | str | None = UNSAID,
        scope: Scopes = None,
        **fields: Unpack[Fields],
    ) -> Memory:
        """Change a fact, which keeps its id; what it was is in its history. A field given as None is taken back.

        With `supersedes=None` it replaces nothing any more, and what it had replaced is found again.
        """
        return self.revise(identity, text=text, supersedes=supersedes, scope=scope, **fields).memory

    def revise(
        self,
        identity: MemoryId,
        *,
        text: str | None = None,
        supersedes: MemoryId | str | None = UNSAID,
        scope: Scopes = None,
        **fields: Unpack[Fields],
    ) -> Changed:
        """Change a fact as `update` does, and say where that changed nothing, or nothing that a search finds."""
        stored = None if text is None else fact_text(text)
        given = read_fields(fields)
        return tried(lambda: self._updated(identity, stored, supersedes, scope, given))

    def _updated(
        self, identity: MemoryId, text: str | None, supersedes: str | None, scope: Scopes, given: Mapping[str, Any]
    ) -> Changed:
        with self._store.reading():  # one moment for all that is asked
            before, now = self.get(identity, scope=scope), self._clock()
            after, old, freed = self._becoming(before, text, supersedes, given, now)
        if after == before:
            return Changed(after, (NOTHING_CHANGED,))
        self._put_one(before, after, {}, now, old=old, freed=freed)
        return Changed(after, unseen(after, now))

    def _becoming(
        self, before: Memory, text: str | None, supersedes: str | None, given: Mapping[str, Any], now: float
    ) -> tuple[Memory, Memory | None, Memory | None]:
        """Return what a fact becomes, what it replaces then, and what it replaces no more."""
        identity = before.id
        if before.kind != "fact":
            raise Conflict(f"{identity} is a part of {before.source}", "change the file and ingest it again")
        after = with_fields(before, given, now)
        if text is not None and text != before.text:
            same = self._same(text, before.scope, now)
            if same is not None and same.id != before.id and same.superseded_by is None:
                raise Conflict(f"{same.id} says that already", "forget one of the two, or replace it")
            after = with_text(after, text)
        if supersedes is None:
            after = replace(after, supersedes=None)
        old = None
        if supersedes is not None and supersedes != UNSAID:
            old = self._replaceable(supersedes, before.scope, before)
        if old is not None and old.id in self._successors(before):
            raise Conflict(f"{old.id} replaced {before.id}, over others or by itself", "a circle has no latest fact")
        after = after if old is None else replace(after, supersedes=old.id)
        return after, old, self._freed(before, after)

    def _freed(self, before: Memory, after: Memory) -> Memory | None:
        """Return what a fact had replaced and replaces no more, if nothing else has replaced it since."""
        if before.supersedes is None or after.supersedes is not None:
            return None
        held = self._store.get([before.supersedes], frozenset({before.scope})).get(before.supersedes)
        if held is None or held.superseded_by != before.id:
            return None
        others = [one for one in self._store.with_text(held.text, held.scope) if one.superseded_by is None]
        saying = [one.id for one in others if one.id != before.id]
        if same_text(after.text) == same_text(held.text):
            saying.append(after.id)
        if saying:
            raise Conflict(
                f"{saying[0]} says what {held.id} says, which would be found again", "forget one of the two first"
            )
        return held

    def _successors(self, memory: Memory) -> set[MemoryId]:
        """Return what replaced a memory, what replaced that one, and so on."""
        met, sought = set[MemoryId](), memory.superseded_by
        while sought is not None and sought not in met:
            met.add(sought)
            found = self._store.get([sought], frozenset({memory.scope})).get(sought)
            sought = found.superseded_by if found is not None else None
        return met
