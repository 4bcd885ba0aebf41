"""What the facade does to have memories: adds and changes facts, takes in documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, TypeVar, Unpack

from .analysis.entries import reads_alike
from .analysis.text import same_text
from .arguments import fact_text, scope_of
from .arriving import NOTHING_GIVEN, Arriving, Given
from .columns import MemoryId
from .errors import ConfigError, Conflict, NotFound, StoreChanged
from .facts import (
    Added,
    Fields,
    Keys,
    Near,
    Outcome,
    alive_again,
    check_key,
    content_of,
    enriched,
    former,
    may_merge,
    read_fields,
    said,
    unapplied,
    unseen,
    with_fields,
    with_text,
)  # fmt: skip
from .ingest.entries import entries_for, entry_for, id_for
from .ports import Changes, Failure, Vector, Written
from .types import GLOBAL, Document, Memory, Notice, Scope, Where
from .unitvectors import unit_rows

_ATTEMPTS = 5  # of a change to a memory that others change at the same time
_NEAR_LOOKED_AT = 64
_NEAR_TOLD = 5  # of one fact; who wants more asks `near`
# What an embedder says may quote a text, and the text may be another's: who looks after the store is told by `status`.
_NEAR_UNKNOWN = Notice(
    "near-unknown", "near-duplicates were not looked for, because the embedder failed; `whyrank status` says why"
)
UNSAID: Any = "\0"  # no id and no text is that: None takes back what a fact replaces, leaving it out does not
Done = TypeVar("Done")


class Remembering(Arriving):
    """Facts that come and change."""

    @cached_property
    def _merges(self) -> bool:
        """Tell whether a fact becomes part of one that says almost the same."""
        return bool(self._config["dedup.near"] == "merge")

    def add(
        self,
        text: str,
        *,
        scope: str | Scope = GLOBAL,
        supersedes: MemoryId | str | None = None,
        key: str | None = None,
        **fields: Unpack[Fields],
    ) -> Memory:
        """Store a fact; the same text in the same scope is not stored twice. It is durable on return."""
        # It has no place to name near-duplicates, so they are looked for only where they would be merged.
        told = self._told(text, scope, supersedes, key, fields, looks_for_near=self._merges)
        return told if isinstance(told, Memory) else told.memory

    def remember(
        self,
        text: str,
        *,
        scope: str | Scope = GLOBAL,
        supersedes: MemoryId | str | None = None,
        key: str | None = None,
        **fields: Unpack[Fields],
    ) -> Added:
        """Store a fact as `add` does, and say what became of it and which facts are near.

        A write with a `key` happens once: the same again returns the same memory, another one is refused.
        """
        looks = self._config["dedup.near"] != "keep"
        told = self._told(text, scope, supersedes, key, fields, looks_for_near=looks)
        return Added(told, "stored", (), unseen(told, told.created)) if isinstance(told, Memory) else told

    def _told(
        self,
        text: str,
        scope: str | Scope,
        supersedes: str | None,
        key: str | None,
        fields: Fields,
        *,
        looks_for_near: bool,
    ) -> Added | Memory:
        """Store a fact and say what became of it; one that is new and has nothing beside it comes as it is."""
        stored, owner, given = fact_text(text), scope_of(scope), read_fields(fields)
        keys: Keys = {}
        if key is not None:
            keys = {(owner, check_key(key)): Written("", content_of(stored, supersedes, given))}
        done = NOTHING_GIVEN
        if supersedes is None and not looks_for_near:
            arrived = self._arrived(stored, owner, given, keys)
            if isinstance(arrived, Memory):
                return arrived
            done = arrived
        return tried(lambda: self._remembered(stored, owner, supersedes, given, keys, looks_for_near, done))

    def _remembered(
        self,
        text: str,
        owner: Scope,
        supersedes: str | None,
        fields: Mapping[str, Any],
        keys: Keys,
        looks_for_near: bool,
        done: Given,
    ) -> Added:
        with self._store.reading():  # one moment for all that is asked before something is made of it
            before = self._written_before(keys)
            if before is not None:
                return Added(before, "known")
            now = self._clock()
            known = self._same(text, owner, now)
            old = None if supersedes is None else self._replaceable(supersedes, owner, known)
            free = self._free_id(owner, text) if known is None else ""
        is_living = known is not None and Where(frozenset({owner}), now=now).allows(known)
        if known is not None and old is None and is_living:
            return replace(self._as_known(known, keys), notices=unapplied(known, fields))
        if known is not None and is_living:
            memory = known
        else:
            blank = Memory(free, "", scope=owner, created=now, date=now)
            base = blank if known is None else alive_again(known, now)
            memory = with_fields(with_text(base, text), {"decay": base.decay, **said(fields)}, now)
        if known is not None and memory == known and old is None:
            return replace(self._as_known(known, keys), notices=unseen(known, now))  # out of its time as before
        if old is not None:
            memory = replace(memory, supersedes=old.id)
        if looks_for_near:
            found = self._found_near(memory, {memory.id, old.id if old else ""}, now)
        else:
            found = _Found(space=done.space, failures=done.failures if known is None else {})
        into = next((one.memory for one in found.near if may_merge(memory, one.memory)), None)
        if self._config["dedup.near"] == "merge" and into is not None and known is None and old is None:
            return self._merged(into, found, memory, keys, now)
        given: dict[str, Any] = {"space": found.space, "vectors": found.vectors, "failures": found.failures}
        self._put_one(known, memory, keys, now, old=old, **given)
        outcome: Outcome = "stored" if known is None else "replacing" if is_living else "revived"
        kept = unapplied(known, fields) if known is not None and is_living else ()
        return Added(memory, outcome, found.near, (*found.notices, *kept, *unseen(memory, now)))

    def _put_one(
        self,
        before: Memory | None,
        memory: Memory,
        keys: Keys,
        now: float,
        *,
        old: Memory | None = None,
        freed: Memory | None = None,
        **more: Any,
    ) -> None:
        """Write one fact with all that hangs on it, in one transaction; over another than was read, none of it."""
        told = former(before, memory, now) if before is not None else None
        brought_back: dict[MemoryId, Any] = {}
        if before is not None and before.superseded_by is not None and memory.superseded_by is None:
            brought_back = {memory.id: None}
        others = [one for one in (old, freed) if one is not None]
        if freed is not None:
            brought_back[freed.id] = None
        changes: dict[str, Any] = {
            "superseded": {**brought_back, **({old.id: (memory.id, now)} if old is not None else {})},
            "basis": {memory.id: before, **{one.id: one for one in others}},
            "history": [told] if told is not None else [],
            "keys": _keyed(keys, memory.id),
        }
        if before is not None and not any(more.values()) and reads_alike(before, memory):
            self._store.write(Changes(revised=[memory], **changes))  # nothing is read, and nothing embedded
        else:
            self._write([memory], **changes, **more)

    def _written_before(self, keys: Keys) -> Memory | None:
        """Return what the same write came to before; a key that stood for another is refused."""
        for (owner, key), asked in keys.items():
            known = self._store.written(owner, key)
            if known is None:
                return None
            if known.content != asked.content:
                raise Conflict(f"the key {key!r} was used for another write", "give each write a key of its own")
            return self._store.get([known.memory], frozenset({owner})).get(known.memory)
        return None

    def _as_known(self, known: Memory, keys: Keys) -> Added:
        if keys:
            self._store.write(Changes(keys=_keyed(keys, known.id)))
        return Added(known, "known")

    def _same(self, text: str, owner: Scope, now: float) -> Memory | None:
        """Return the fact of a scope that says the same, rather one that lives."""
        where = Where(frozenset({owner}), now=now)
        return max(self._store.with_text(text, owner), key=lambda one: (where.allows(one), one.created), default=None)

    def _free_id(self, owner: Scope, text: str) -> MemoryId:
        """Return the id of a text, or its next one: an updated fact keeps the id of the text it had."""
        number = 0
        while True:
            identity = id_for(owner, "", same_text(text), number)
            if not self._store.get([identity], frozenset({owner})):
                return identity
            number += 1

    def _replaceable(self, replaced: str, owner: Scope, by: Memory | None) -> Memory | None:
        """Return the memory that is to be replaced, by its id or its text, one of its own scope that lives.

        None if the very fact that is to replace it has done so already: somebody says it once more.
        """
        try:
            old = self.get(replaced, scope=owner)
        except NotFound:
            found = self._same(replaced, owner, self._clock())
            if found is None:
                raise
            old = found
        if old.scope != owner:
            raise Conflict(f"{old.id} belongs to {old.scope}, not to {owner}", f"add this with scope {old.scope}")
        if by is not None and old.id == by.id:
            raise Conflict(f"{old.id} would replace itself", "give another text or another id")
        if by is not None and old.superseded_by == by.id:
            return None
        if old.superseded_by is not None:
            raise Conflict(f"{old.id} was replaced by {old.superseded_by} already", "replace that one")
        return old

    # -- near-duplicates -------------------------------------------------------------------------------------

    def near(self, text: str, *, scope: str | Scope = GLOBAL, cosine: float | None = None) -> Sequence[Near]:
        """Return the living facts of one scope that say almost the same, the nearest first."""
        memory = Memory("", fact_text(text), scope=scope_of(scope))
        least = self._config["dedup.cosine"] if cosine is None else cosine
        embedder = self._embedder
        if embedder is None:
            return []
        entry, space = entry_for(memory, self._config["language"]), embedder.fingerprint
        [vector] = unit_rows(embedder.documents([entry.embed_text]), 1, self._store.dimensions(space))
        return self._nearest_facts(vector if vector.any() else None, space, memory.scope, least, self._clock())[0]

    def _found_near(self, memory: Memory, apart: set[MemoryId], now: float) -> _Found:
        """Look for near-duplicates; an embedder that fails is a notice."""
        embedder = self._embedder  # once: another model may take over meanwhile
        if embedder is None:
            return _Found()
        entry, space = entry_for(memory, self._config["language"]), embedder.fingerprint
        done = self._attempt(embedder, {entry.embed_hash: entry.embed_text})
        if done.wrong:
            return _Found(space=space, vectors=done.vectors, failures=done.failures, notices=(_NEAR_UNKNOWN,))
        vector = done.vectors.get(entry.embed_hash)
        near, notices = self._nearest_facts(vector, space, memory.scope, self._config["dedup.cosine"], now)
        others = [one for one in near if one.memory.id not in apart]
        return _Found(tuple(others[:_NEAR_TOLD]), space, done.vectors, done.failures, notices)

    def _nearest_facts(
        self, vector: Vector | None, space: str, scope: Scope, least: float, now: float
    ) -> tuple[list[Near], tuple[Notice, ...]]:
        """Return the facts of one scope that are near a vector, and which could not be looked at.

        What has no direction is near nothing.
        """
        if vector is None:
            return [], ()
        only = frozenset({scope})
        where = Where(only, now=now)
        run = self._store.nearest(vector, space, where, _NEAR_LOOKED_AT)
        if len(run.candidates) >= _NEAR_LOOKED_AT and run.candidates[-1].score >= least:
            # Files may say it often: then facts are looked for by themselves, which costs more.
            run = self._store.nearest(vector, space, replace(where, kinds=frozenset({"fact"})), _NEAR_LOOKED_AT)
        close = {one.id: one.score for one in run.candidates if one.score >= least}
        held = self._store.get(close, only)
        facts = [Near(held[key], score) for key, score in close.items() if key in held and held[key].kind == "fact"]
        return facts, run.notices

    def _merged(self, before: Memory, found: _Found, memory: Memory, keys: Keys, now: float) -> Added:
        """Give what was said of a fact to the nearest one it may change."""
        after = enriched(before, memory, now)
        if after == before:
            self._as_known(before, keys)
        else:
            self._put_one(before, after, keys, now)
        return Added(after, "merged", found.near, found.notices)

    def add_documents(self, documents: Iterable[Document]) -> int:
        """Store documents that come without files, each in place of what its id held; return the number of memories."""
        from .ingest.ahead import embedded_ahead
        from .ingest.filling import Desk

        stored, owners = 0, set[Scope]()
        desk = Desk(self._store, self._embedder, self._clock) if self._embedder is not None else None
        with closing(embedded_ahead(desk, self._replacements(documents))) as batches:
            for changes in batches:
                self._keep(changes)
                stored += len(changes.put)
                owners |= {scope for scope, _ in changes.replace_files}
        self._store.settle(owners)
        self._recalibrate(sorted(owners))
        return stored

    def _replacements(self, documents: Iterable[Document]) -> Iterator[Changes]:
        """Yield documents in place of what their ids held, be it a file that was ingested under that name."""
        from .ingest.ahead import MEMORIES_PER_BATCH
        from .ingest.chunks import ChunkSize
        from .ingest.documents import memories_of

        size = ChunkSize(self._config["chunk.tokens"], self._config["chunk.overlap"])
        now, made, count = self._clock(), dict[tuple[Scope, str], list[Memory]](), 0
        for place, one in enumerate(documents):
            if not isinstance(one, Document):
                raise ConfigError(f"{one!r:.80} is no document", "give whyrank.Document(id, text, title=TITLE)")
            memories = made[one.scope, one.id] = [*memories_of(one, size, now, place)]
            count += len(memories)
            if count >= MEMORIES_PER_BATCH:
                yield self._in_place(made)
                made, count = {}, 0
        if made:
            yield self._in_place(made)

    def _in_place(self, made: Mapping[tuple[Scope, str], Sequence[Memory]]) -> Changes:
        entries = entries_for([*chain.from_iterable(made.values())], self._config["language"])
        return Changes(put=entries, replace_files=list(made), forget_files=list(made))

    def put(self, memories: Sequence[Memory]) -> None:
        """Store whole memories as they are given, for importers; one transaction."""
        replaced = {one.supersedes: (one.id, one.created) for one in memories if one.supersedes is not None}
        self._write(memories, superseded=replaced)

    def _write(self, memories: Sequence[Memory], **changes: Any) -> int:
        """Analyse and embed outside the transaction, then write everything at once; vectors may be known."""
        entries = [entry_for(memory, self._config["language"]) for memory in memories]
        self._keep(Changes(put=entries, **changes))
        return len(memories)


class _Found(NamedTuple):
    near: tuple[Near, ...] = ()
    space: str = ""
    vectors: Mapping[str, Vector] = {}
    failures: Mapping[str, Failure | None] = {}
    notices: tuple[Notice, ...] = ()


def tried(change: Callable[[], Done]) -> Done:
    """Make a change again if what it was based on changed on the way, a few times."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return change()
        except StoreChanged:
            continue
    return change()


def _keyed(keys: Keys, memory: MemoryId) -> Keys:
    return {place: Written(memory, written.content) for place, written in keys.items()}
