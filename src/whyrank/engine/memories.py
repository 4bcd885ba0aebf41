"""Read, count, suggest and forget memories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..analysis.normalize import clean
from ..errors import NotFound
from ..protocols import UNREADABLE, Changes, Recall, SortingKey, Store
from ..search.confidence import notes_about
from ..search.explain import OF_A_SCOPE
from ..search.searcher import altered_notices
from ..types.memory import GLOBAL, REFRESHED, Former, Memory, MemoryId, Notice, Order, Scope, expiry
from ..types.query import Where
from .arguments import (
    MAX_LISTED,
    ListFilters,
    Scopes,
    check_counts,
    check_order,
    filters_of,
    identity_of,
    scope_of,
    scopes_of,
    visible_scopes,
)
from .recall_log import RecallLog, log_file
from .records import Forgotten, shown_in_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..config import load as settings
    from ..ingest.embedding import Progress
    from ..ingest.extraction.ledger import PartRecord


_MEMORIES_PER_TRANSACTION = 256  # so that a reader or another writer never waits long


class Memories:
    """Memories as they are stored: reading, listing, suggesting, expiry and deletion."""

    def __init__(self, store: Store, config: settings.Config, clock: Callable[[], float]) -> None:
        self._store = store
        self._config = config
        self._clock = clock

    def get(self, identity: MemoryId, *, scope: Scopes = None) -> Memory:
        """Return one memory; one outside the visible scopes counts as missing."""
        return self._all_of([identity], scope)[0]

    def _all_of(self, identities: Sequence[MemoryId], scope: Scopes) -> Sequence[Memory]:
        wanted = [identity_of(identity) for identity in identities]
        wanted = list(dict.fromkeys(wanted))
        found = self._store.get(wanted, visible_scopes(scope, self._store))
        for identity in wanted:
            if identity not in found:
                raise NotFound(f"there is no memory {identity!r}", f"`whyrank list` shows all ids; {OF_A_SCOPE}")
        return [found[identity] for identity in wanted]

    def find_fact(self, text: str, *, scope: Scopes = None) -> Memory | None:
        """Return the fact with the same text in these scopes alone, in their order; a living one is preferred."""
        now = self._clock()
        wanted, owners = clean(text).text, scopes_of(scope) or [GLOBAL]
        found = [one for owner in owners for one in self._store.with_text(wanted, owner)]
        return max(found, key=lambda one: Where(frozenset({one.scope}), now=now).allows(one), default=None)

    def suggest_id(self, identity: MemoryId, *, scope: Scopes = None) -> str | None:
        """Return the visible path or id nearest to one that does not exist, if one is near."""
        from ..search.explain import meant

        seen = visible_scopes(scope, self._store)
        where = Where(seen, include_superseded=True, include_expired=True, now=self._clock())
        return meant(self._store, where, identity_of(identity))

    def list(
        self,
        *,
        limit: int = 50,
        offset: int = 0,
        sort: Order = "place",
        after: SortingKey | None = None,
        **filters: Any,
    ) -> list[Memory]:
        """Return memories by file and line, or the latest, most important or most recalled first.

        With `after`, the `sorting_key` of a memory in that order, the list continues behind it.
        """
        check_counts(0, limit=limit, offset=offset)
        check_order(sort)
        where = filters_of(ListFilters, filters).for_store(self._store, self._clock())
        return self._store.browse(where, min(limit, MAX_LISTED), min(offset, MAX_LISTED), sort, after)

    def list_notices(self, shown: Iterable[Memory] = (), **filters: Any) -> tuple[Notice, ...]:
        """Return notices on what a list by these filters cannot show: facts in rows damaged before indexing.

        Also on memories left out because the tags of the filter were damaged; and on those of `shown` that could not be
        read whole.
        """
        where = filters_of(ListFilters, filters).for_store(self._store, self._clock())
        asked_nothing = self._store.keyword((), where, 1)
        lost = tuple(notice for notice in asked_nothing.notices if notice.code == UNREADABLE)
        listed = [*shown]
        read = self._store.fetch([memory.id for memory in listed], where.scopes)
        gone = {memory.id for memory in listed} - read.memories.keys()
        damaged = len(read.mended) + len(gone)
        partly = (shown_in_part(damaged),) if damaged else ()
        return (*lost, *partly, *altered_notices(len(read.altered)))

    def text_notices(self, shown: Iterable[Memory], *, scope: Scopes = None) -> tuple[Notice, ...]:
        """Return notices on memories whose texts are not as they were stored."""
        read = self._store.fetch([memory.id for memory in shown], visible_scopes(scope, self._store))
        return tuple(altered_notices(len(read.altered)))

    def extraction_rejects(self, *, scope: str | Scope = GLOBAL) -> Sequence[PartRecord]:
        """Return the extraction records of a scope with failed parts or with lines left out of the facts."""
        from ..ingest.extraction.ledger import records_of

        records = records_of(self._store, scope_of(scope)).values()
        wanted = (record for record in records if record.left_out or record.outcome == "failed")
        return sorted(wanted, key=lambda record: (record.path, record.start_line, record.at))

    def history(self, identity: MemoryId, *, scope: Scopes = None) -> Sequence[Former]:
        """Return the former states of a memory, one for each change, the latest last."""
        memory = self.get(identity, scope=scope)
        return self._store.history([memory.id], visible_scopes(scope, self._store)).get(memory.id, [])

    def replaced(self, identity: MemoryId, *, scope: Scopes = None) -> Sequence[Memory]:
        """Return the chain of memories that a memory superseded, the latest first."""
        chain: list[Memory] = []
        sought = self.get(identity, scope=scope).supersedes
        while sought is not None and sought not in {memory.id for memory in chain}:
            found = self._store.get([sought], visible_scopes(scope, self._store)).get(sought)
            if found is None:
                break
            chain.append(found)
            sought = found.supersedes
        return chain

    def mark_used(self, *identities: MemoryId, scope: Scopes = None) -> int:
        """Count a recall of memories, all or none; extend the expiry of those whose decay class allows it."""
        now = self._clock()
        memories = self._all_of(identities, scope)
        self._store.write(Changes(recalled=[Recall(one.id, now, _put_off(one, now)) for one in memories]))
        return len(memories)

    def forget(self, *identities: MemoryId, scope: Scopes = None, purge: bool = False) -> Forgotten:
        """Delete memories by their exact ids, all or none; with `purge` no byte of them stays."""
        from ..ingest.extraction.ledger import without_traces

        memories = self._all_of(identities, scope)
        notes = without_traces(self._store, memories) if purge else {}
        done = self._removed(
            len(memories), Changes(remove=[memory.id for memory in memories], notes=notes, purge=purge)
        )
        log, gone = RecallLog(log_file(self._config)), {memory.id for memory in memories}
        if purge and not log.erase_memories(gone):
            done = done._replace(remains=(*done.remains, f"{log.file} holds recalls of them: remove that file"))
        return done._replace(remains=(*done.remains, *_in_files(memories)))

    def forget_scope(self, scope: str | Scope, *, purge: bool = False) -> Forgotten:
        """Delete all of one scope in one transaction; with `purge` no byte of it stays."""
        from ..ingest.extraction.ledger import names_of

        owner = scope_of(scope)
        held = self._store.status("", frozenset({owner})).memories  # what waits to be indexed among them
        notes = [*notes_about(self._store, owner), *names_of(self._store, owner)]
        done = self._removed(held, Changes(clear=[owner], drop_notes=notes, purge=purge))
        log = RecallLog(log_file(self._config))
        if not log.erase(str(owner)):
            done = done._replace(remains=(*done.remains, f"{log.file} holds recalls of {owner}: remove that file"))
        return done._replace(remains=(*done.remains, *self._named_still(owner))) if purge else done

    def _named_still(self, owner: Scope) -> Iterator[str]:
        """Yield the places that still hold the name of a scope after its content was deleted."""
        if owner != GLOBAL:
            yield f"the store still lists the name of {owner} among the scopes it has known"
        if self._config.pins.is_file() and str(owner) in self._config.pins.read_text(
            encoding="utf-8", errors="replace"
        ):
            yield f"{self._config.pins} holds pins of {owner}: `whyrank pin --remove` removes them"

    def _removed(self, count: int, changes: Changes) -> Forgotten:
        self._store.write(changes)
        return Forgotten(count, self._store.purge() if changes.purge else ())

    def prune(
        self,
        *,
        scope: Scopes = None,
        every_scope: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Sequence[Memory]:
        """Delete and return the expired memories that the scope sees, or those of every scope."""
        now = self._clock()
        scopes = self._store.scopes() if every_scope else None
        where = Where(
            visible_scopes(scope, self._store) if scopes is None else scopes,
            include_superseded=True, only_expired=True, now=now,
        )  # fmt: skip
        past = self._store.browse(where, MAX_LISTED)
        expired = [one for one in past if one.expires is not None and one.expires <= now]  # others just hold no more
        for start in range(0, 0 if dry_run else len(expired), _MEMORIES_PER_TRANSACTION):
            part = expired[start : start + _MEMORIES_PER_TRANSACTION]
            self._store.write(Changes(prune={memory.id: now for memory in part}))
            if progress is not None:
                progress(start + len(part), len(expired), "")
        return expired


def _put_off(memory: Memory, now: float) -> float | None:
    """Return the new expiry of a recalled memory; None if it was given, is over, or is not renewed by use."""
    is_over = memory.expires is not None and memory.expires <= now
    if memory.decay not in REFRESHED or memory.expires_given or is_over:
        return None
    return expiry(memory.decay, now)


def _in_files(memories: Iterable[Memory]) -> Iterator[str]:
    """Yield the files that still hold forgotten memories."""
    sources = (memory.source for memory in memories if memory.kind == "chunk")
    for path in dict.fromkeys(source.path for source in sources if source is not None and source.path):
        yield (
            f"{path} still contains it: remove it there, or it comes back when the file has changed and is "
            f"ingested again"
        )
