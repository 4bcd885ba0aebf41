"""Add and update facts: duplicates, idempotency keys, supersession, history."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, TypeVar, Unpack

from ..analysis.document import (
    content_hash,
    embedded_text,
    entries_for,
    entry_for,
    fingerprints,
    id_for,
    may_be_one,
    reads_alike,
)
from ..analysis.normalize import same_text
from ..errors import ConfigError, Conflict, NotFound, StoreChanged, StoreUnavailable
from ..ingest.embedding import Attempt, Desk
from ..protocols import Arrival, Changes, Failure, Vector, Written
from ..types.memory import (
    GLOBAL,
    NEVER,
    TRUSTS,
    USUAL_IMPORTANCE,
    Document,
    Former,
    Memory,
    MemoryId,
    Notice,
    Scope,
    Source,
    expiry,
    unit_rows,
)
from ..types.query import Where
from .arguments import (
    UNSAID,
    Scopes,
    check_category,
    check_decay,
    check_importance,
    fact_text,
    metadata_of,
    moment,
    name_of,
    scope_of,
    storable,
    tags_of,
)
from .records import Added, Changed, Near, Outcome
from .spaces import defers

if TYPE_CHECKING:
    from ..config import load as settings
    from ..ingest.embedding import Progress
    from ..protocols import Store
    from .export import Imported, Item
    from .memories import Memories
    from .spaces import Calibrator, IndexWriter, Serving

MAX_KEY_CHARACTERS = 1_000
Keys = Mapping[tuple[Scope, str], Written]  # of writes, with what each came to


class Fields(TypedDict, total=False):
    """Fields of a fact beside its text; None, "", () or {} leaves a field unset, or clears it in an update."""

    name: str
    category: str
    tags: str | Sequence[str]
    entities: str | Sequence[str]
    importance: int | None
    decay: str
    date: object
    valid_from: object
    valid_until: object
    expires: object
    trust: str
    metadata: Mapping[str, object] | str | None
    subject: str
    attribute: str


NOTHING_CHANGED = Notice("nothing-changed", "it has these values already, so nothing was written")


def unseen(memory: Memory, now: float) -> tuple[Notice, ...]:
    """Return notices on why no search finds a fact that was just written; empty if searches find it."""
    notices = []
    if memory.superseded_by is not None:
        shown = f"it was replaced by {memory.superseded_by}, which searches show in its place"
        notices.append(
            Notice("replaced-already", f"{shown}; change that one, or bring this one back by adding its text")
        )
    if memory.expires is not None and memory.expires <= now:
        told = "it has expired already, so no search finds it"
        notices.append(Notice("expired-already", f"{told}; give a later expiry, or `whyrank prune` will remove it"))
    if memory.valid_until is not None and memory.valid_until <= now:
        told = "it is no longer valid, so only searches as of a time before its valid_until find it"
        notices.append(Notice("over-already", f"{told}; `whyrank list --expired` lists it"))
    if memory.valid_from is not None and memory.valid_from > now:
        told = "it is not valid yet, so no search finds it before its valid_from"
        notices.append(Notice("not-valid-yet", f"{told}; `whyrank list --as-of` with a later time lists it"))
    return tuple(notices)


def unapplied(known: Memory, fields: Mapping[str, Any]) -> tuple[Notice, ...]:
    """Return a notice that names the given fields not applied to a fact that is stored already."""
    names = [name for name, value in said(fields).items() if _says_more(known, name, value)]
    if not names:
        return ()
    told = f"it stays as it was stored; not applied: {', '.join(names)}"
    return (Notice("known-as-it-is", f"{told} (`whyrank update {known.id}` does that)"),)


def _says_more(known: Memory, name: str, value: Any) -> bool:
    held = getattr(known, name)
    if name == "trust":  # a less trusted repetition does not lower the trust
        return TRUSTS.index(value) < TRUSTS.index(held)
    return set(value) != set(held) if isinstance(value, tuple) else bool(value != held)


def alive_again(memory: Memory, now: float) -> Memory:
    """Return a fact without supersession, expiry and the validity bounds that exclude `now`."""
    begins, ends = memory.valid_from, memory.valid_until
    return replace(
        memory,
        superseded_by=None,
        superseded_at=None,
        expires=None,
        expires_given=False,
        valid_from=None if begins is not None and begins > now else begins,
        valid_until=None if ends is not None and ends <= now else ends,
    )


def read_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Validate and parse the fields of a fact; an unknown key or an invalid value is an error."""
    if not given:
        return {}
    unknown = sorted(given.keys() - _READERS.keys())
    if unknown:
        raise ConfigError(f"a fact has no {unknown[0]!r}", f"it has {', '.join(_READERS)}")
    return {key: _READERS[key](value) for key, value in given.items()}


def _name(value: str | None) -> str:
    return name_of("name", value or "")


def _category(value: str | None) -> str:
    check_category(value or "other")
    return value or "other"


def _importance(value: int | None) -> int | None:
    check_importance(value)
    return value


def _decay(value: str | None) -> str:
    check_decay(value)
    return value or ""


def _trust(value: str | None) -> str:
    if value and value not in TRUSTS:
        raise ConfigError(f"there is no trust {value!r}", f"it is one of {', '.join(TRUSTS)}")
    return value or "owner"


def _moment(name: str) -> Callable[[object], float | None]:
    return lambda value: moment(name, value)


_READERS: dict[str, Callable[[Any], Any]] = {
    "name": _name,
    "category": _category,
    "tags": lambda value: tags_of(value or ()),
    "entities": lambda value: tags_of(value or (), "entity"),
    "importance": _importance,
    "decay": _decay,
    **{name: _moment(name) for name in ("date", "valid_from", "valid_until", "expires")},
    "trust": _trust,
    "metadata": lambda value: metadata_of(value or {}),
    "subject": lambda value: name_of("subject", value or ""),
    "attribute": lambda value: name_of("attribute", value or ""),
}
_SAYS_NOTHING: tuple[object, ...] = (None, "", (), {})


def said(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are set: None, "", () and {} count as absent when a fact is added."""
    return {key: value for key, value in fields.items() if value not in _SAYS_NOTHING}


def with_fields(memory: Memory, fields: Mapping[str, Any], now: float) -> Memory:
    """Return a memory with these fields; its expiry follows its decay class unless it was given."""
    told = dict(fields)
    if "name" in fields:
        told["title"] = fields["name"]
    if fields.get("expires") is not None:
        told["expires_given"] = True
    elif "expires" in fields or ("decay" in fields and not fields.get("expires_given", memory.expires_given)):
        told |= {"expires": expiry(fields.get("decay", memory.decay), now), "expires_given": False}
    changed = replace(memory, **told)
    begin, end = changed.valid_from, changed.valid_until
    if begin is not None and end is not None and begin >= end:
        raise Conflict("valid_from is not before valid_until", "give an earlier or a later date")
    return changed


def new_fact(identity: MemoryId, exact: str, text: str, owner: Scope, fields: Mapping[str, Any], now: float) -> Memory:
    """Return a new fact; `exact` is the hash of its text."""
    source = Source("", content_hash=exact)
    blank = Memory(identity, text, scope=owner, source=source, created=now, date=now)
    told = said(fields) if fields else {}
    return with_fields(blank, told, now) if told else blank


def with_text(memory: Memory, text: str) -> Memory:
    """Return a memory with another text."""
    return replace(memory, text=text, source=Source("", content_hash=content_hash(text)))


def enriched(memory: Memory, other: Memory, now: float) -> Memory:
    """Return a memory merged with the fields of a duplicate; its expiry is counted from now again."""
    renewed = replace(memory, expires=expiry(memory.decay, now)) if not memory.expires_given else memory
    says_how_long = bool(other.decay) or other.expires_given
    lives = (renewed, other) if says_how_long else (renewed,)
    longest = max(lives, key=lambda one: math.inf if one.expires is None else one.expires)
    heaviest = max((memory, other), key=lambda one: one.importance or USUAL_IMPORTANCE)
    return replace(
        memory,
        name=memory.name or other.name,
        title=memory.title or other.title,
        category=other.category if memory.category == "other" else memory.category,
        tags=tuple(dict.fromkeys((*memory.tags, *other.tags))),
        entities=tuple(dict.fromkeys((*memory.entities, *other.entities))),
        importance=heaviest.importance if memory.importance and other.importance else _either(memory, other),
        decay=longest.decay,
        expires=longest.expires,
        expires_given=longest.expires_given,
        trust=min(memory.trust, other.trust, key=TRUSTS.index),
        metadata={**other.metadata, **memory.metadata},
        subject=memory.subject or other.subject,
        attribute=memory.attribute or other.attribute,
    )


def may_merge(said: Memory, into: Memory) -> bool:
    """Check that a fact may be merged into a near-duplicate.

    A less trusted fact may not change a more trusted one, and a possible correction stays a fact of its own.
    """
    is_trusted = TRUSTS.index(said.trust) <= TRUSTS.index(into.trust)
    return is_trusted and may_be_one(said.text, into.text)


def _either(memory: Memory, other: Memory) -> int | None:
    return memory.importance or other.importance


# Fields recorded in the history: all that `update` and `add` may change.
_TOLD = (
    "text", "name", "category", "tags", "entities", "importance", "decay", "date", "valid_from", "valid_until",
    "expires", "supersedes", "superseded_by", "superseded_at", "trust", "metadata", "subject", "attribute",
)  # fmt: skip


def former(before: Memory, after: Memory, now: float) -> Former | None:
    """Return the former values of the fields that a change changed; None if no recorded field changed."""
    pairs = ((name, getattr(before, name), getattr(after, name)) for name in _TOLD)
    was = {name: list(old) if isinstance(old, tuple) else old for name, old, new in pairs if old != new}
    return Former(before.id, now, was) if was else None


def check_key(key: str) -> str:
    """Validate the idempotency key of a write."""
    if not isinstance(key, str) or not storable("key", key).strip() or len(key) > MAX_KEY_CHARACTERS:
        raise ConfigError("the key is not valid", f"give a text of 1 to {MAX_KEY_CHARACTERS} characters")
    return key


def content_of(text: str, supersedes: MemoryId | None, fields: Mapping[str, Any]) -> str:
    """Return the fingerprint of a write request."""
    asked = repr((text, supersedes, sorted(said(fields).items())))
    return hashlib.blake2b(asked.encode("utf-8", errors="replace"), digest_size=16).hexdigest()


_QUICK_SECONDS = 0.001  # an embedder that takes no longer may be called in vain


class EmbedOutcome(NamedTuple):
    """Failures of the embedder for one fact, if any, and their space."""

    space: str = ""
    failures: Mapping[str, Failure | None] = {}


NOTHING_GIVEN = EmbedOutcome()


class Footing(NamedTuple):
    """Cached context for embedding new facts, valid while `note` (the recorded spaces) is unchanged.

    `has_added` is true if another space was added beside that one.
    """

    desk: Desk | None = None
    space: str = ""
    note: tuple[str, str] | None = None
    has_added: bool = False


_ATTEMPTS = 5  # of a change to a memory that others change at the same time
_AGAIN_SECONDS = 30.0  # to try again while the server of a store does not answer
_NEAR_LOOKED_AT = 64
_NEAR_TOLD = 5  # of one fact; `near` returns more
# The message of an embedder may quote a text of another tenant: the operator reads it in `status`.
_NEAR_UNKNOWN = Notice(
    "near-unknown",
    "near-duplicates were not searched for, because the embedder failed; `whyrank status` shows the error",
)
_NEAR_LATER = Notice("near-unknown", "near-duplicates were not searched for, because a worker embeds new texts later")
Done = TypeVar("Done")


class _Found(NamedTuple):
    near: tuple[Near, ...] = ()
    space: str = ""
    vectors: Mapping[str, Vector] = {}
    failures: Mapping[str, Failure | None] = {}
    notices: tuple[Notice, ...] = ()


def tried(change: Callable[[], Done]) -> Done:
    """Compute a change again on a version conflict, up to `_ATTEMPTS` times, or while a server is away for a moment."""
    conflicts, until = 0, time.monotonic() + _AGAIN_SECONDS
    while True:
        try:
            return change()
        except StoreChanged:
            conflicts += 1
            if conflicts == _ATTEMPTS:
                raise
        except StoreUnavailable as error:  # while memories were read that the change depends on
            if not error.may_pass or time.monotonic() > until:
                raise


def _keyed(keys: Keys, memory: MemoryId) -> Keys:
    return {place: Written(memory, written.content) for place, written in keys.items()}


class Facts:
    """Facts and documents: insertion with duplicate detection, updates, supersession."""

    def __init__(
        self,
        store: Store,
        serving: Serving,
        writer: IndexWriter,
        calibrator: Calibrator,
        memories: Memories,
        config: settings.Config,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._serving = serving
        self._writer = writer
        self._calibrator = calibrator
        self._memories = memories
        self._config = config
        self._clock = clock
        self._language: str = config["language"]
        self._near_policy: str = config["dedup.near"]  # keep, report or merge
        self._defers = defers(config)
        self._footing: Footing | None = None
        self._looks_first = True  # check for the id before the call of an embedder that is not known to be quick

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
        # The result cannot name near-duplicates, so the search for them runs only where they would be merged.
        told = self._told(text, scope, supersedes, key, fields, looks_for_near=self._near_policy == "merge")
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
        """Store a fact as `add` does, and return the outcome with its near-duplicates.

        A write with a `key` happens once: the same write again returns the same memory, another one is refused.
        """
        looks = self._near_policy != "keep"
        told = self._told(text, scope, supersedes, key, fields, looks_for_near=looks)
        return Added(told, "stored", (), unseen(told, told.created)) if isinstance(told, Memory) else told

    def revise(
        self,
        identity: MemoryId,
        *,
        text: str | None = None,
        supersedes: MemoryId | str | None = UNSAID,
        scope: Scopes = None,
        **fields: Unpack[Fields],
    ) -> Changed:
        """Change a fact, which keeps its id, with notices if nothing changed or if no search finds the result.

        None clears a field. With `supersedes=None` the memory it had replaced is found again.
        """
        stored = None if text is None else fact_text(text)
        given = read_fields(fields)
        return tried(lambda: self._updated(identity, stored, supersedes, scope, given))

    def near(self, text: str, *, scope: str | Scope = GLOBAL, cosine: float | None = None) -> Sequence[Near]:
        """Return the living near-duplicate facts of one scope, nearest first."""
        memory = Memory("", fact_text(text), scope=scope_of(scope))
        least = self._config["dedup.cosine"] if cosine is None else cosine
        embedder = self._serving.embedder
        if embedder is None:
            return []
        entry, space = entry_for(memory, self._language), embedder.fingerprint
        [vector] = unit_rows(embedder.documents([entry.embed_text]), 1, self._store.dimensions(space))
        return self._nearest_facts(vector if vector.any() else None, space, memory.scope, least, self._clock())[0]

    def add_documents(self, documents: Iterable[Document]) -> int:
        """Store documents that have no files, each replacing the content of its id; return the memory count."""
        from ..ingest.pipeline import embedded_ahead

        stored, owners = 0, set[Scope]()
        embedder = self._serving.embedder
        desk = Desk(self._store, embedder, self._clock, defers=self._defers) if embedder is not None else None
        with closing(embedded_ahead(desk, self._replacements(documents))) as batches:
            for changes in batches:
                self._writer.write(changes)
                stored += len(changes.put)
                owners |= {scope for scope, _ in changes.replace_files}
        self._store.settle(owners)
        self._calibrator.renew(sorted(owners))
        return stored

    def import_memories(self, memories: Sequence[Memory]) -> None:
        """Store whole memories as they are given, for importers; one transaction."""
        replaced = {one.supersedes: (one.id, one.created) for one in memories if one.supersedes is not None}
        self._write(memories, superseded=replaced)

    def import_records(
        self, items: Iterator[Item], *, dry_run: bool = False, progress: Progress | None = None
    ) -> Imported:
        """Store records of another system, 256 in a transaction; what the store holds under their ids stays.

        An interrupted import continues when called again with the same items.
        """
        from .export import Importer

        importer = Importer(self._store, self._writer.write, None, self._language, self._clock())
        done = importer.run(items, self._store.scopes(), dry_run, progress or (lambda *_: None))
        if done.new and not dry_run:
            self._store.settle(done.scopes)
            self._calibrator.renew(sorted(done.scopes), progress)
        return done

    def _arrived(self, text: str, owner: Scope, fields: Mapping[str, Any], keys: Keys) -> Memory | EmbedOutcome:
        """Insert a fact if it is new and needs no further checks; else return the failures of the embedder."""
        footing = self._footing or self._looked()
        if footing is None:
            return NOTHING_GIVEN
        desk, space, note, has_added = footing
        identity, _, exact = fingerprints(owner, text)
        memory = new_fact(identity, exact, text, owner, fields, self._clock())
        vector: Vector | None = None
        if desk is not None and not desk.defers:
            if self._looks_first and self._is_there(memory, owner):
                return NOTHING_GIVEN
            began = time.perf_counter()
            done = desk.attempt_one(embedded_text(memory) if fields else text)
            self._looks_first = time.perf_counter() - began > _QUICK_SECONDS
            if isinstance(done, Attempt):
                if done.failures:
                    self._footing = None
                    return EmbedOutcome(space, failures=done.failures)
                vector = next(iter(done.vectors.values()), None)
            else:
                vector = done
        key = None
        for (_, name), asked in keys.items():
            key = (name, Written(memory.id, asked.content))
        if self._store.take_in(Arrival(memory, self._language, space, vector, key, note)):
            if has_added:
                self._writer.embed_added([entry_for(memory, self._language)])
            return memory
        self._footing = None  # the spaces may have changed; the next call determines the context again
        return NOTHING_GIVEN

    def _is_there(self, memory: Memory, owner: Scope) -> bool:
        with self._store.reading():
            return bool(self._store.get([memory.id], frozenset({owner})))

    def _looked(self) -> Footing | None:
        """Determine the embedding context; None if the store records no spaces yet, or the embedder failed.

        None also while terms of an older analyzer wait to be reindexed, which is done along with other writes.
        """
        with self._store.reading():
            if not self._writer.is_reindexed():
                return None
            active, note = self._serving.current(), self._serving.note()
            embedder = active.embedder
            if embedder is None:
                self._footing = Footing()
            elif note is not None:
                dimension = self._store.dimensions(embedder.fingerprint)
                failures = self._store.failures(embedder.fingerprint)
                is_usual = self._defers or dimension is not None
                is_usual = is_usual and all(failure.next_try >= NEVER for failure in failures)
                desk = Desk(self._store, embedder, self._clock, dimension, self._defers)
                self._footing = Footing(desk, desk.space, note, active.added is not None) if is_usual else None
        return self._footing

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
        """Store a fact and return the outcome; a new fact from the fast path is returned as the bare memory."""
        stored, owner, given = fact_text(text), scope_of(scope), read_fields(fields)
        keys: Keys = {}
        if key is not None:
            keys = {(owner, check_key(key)): Written("", content_of(stored, supersedes, given))}
        done = NOTHING_GIVEN
        if supersedes is None and not looks_for_near:
            arrived = tried(lambda: self._arrived(stored, owner, given, keys))
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
        done: EmbedOutcome,
    ) -> Added:
        with self._store.reading():  # one snapshot for all reads before the change is computed
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
        if self._near_policy == "merge" and into is not None and known is None and old is None:
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
        """Write one fact and its dependent changes in one transaction; on a conflict nothing is written."""
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
            self._store.write(Changes(revised=[memory], **changes))  # terms and embedded text are unchanged
        else:
            self._write([memory], **changes, **more)

    def _written_before(self, keys: Keys) -> Memory | None:
        """Return the memory that the same keyed write stored before; a key used for another write is refused."""
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
        """Return the fact of a scope with the same text; a living one is preferred."""
        where = Where(frozenset({owner}), now=now)
        return max(self._store.with_text(text, owner), key=lambda one: (where.allows(one), one.created), default=None)

    def _free_id(self, owner: Scope, text: str) -> MemoryId:
        """Return the first free id of a text: an updated fact keeps the id of its former text."""
        number = 0
        while True:
            identity = id_for(owner, "", same_text(text), number)
            if not self._store.get([identity], frozenset({owner})):
                return identity
            number += 1

    def _replaceable(self, replaced: str, owner: Scope, by: Memory | None) -> Memory | None:
        """Return the living memory to supersede, by its id or its text, from the same scope.

        None if the new fact has superseded it already: the same write is repeated.
        """
        try:
            old = self._memories.get(replaced, scope=owner)
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

    def _found_near(self, memory: Memory, apart: set[MemoryId], now: float) -> _Found:
        """Find near-duplicates; a failure of the embedder becomes a notice."""
        embedder = self._serving.embedder  # once: another model may take over meanwhile
        if embedder is None:
            return _Found()
        if self._defers:
            return _Found(space=embedder.fingerprint, notices=(_NEAR_LATER,))
        entry, space = entry_for(memory, self._language), embedder.fingerprint
        # A provider that failed a moment ago is not called again.
        done = Desk(self._store, embedder, self._clock).attempt_in_time({entry.embed_hash: entry.embed_text})
        if done.wrong:
            return _Found(space=space, vectors=done.vectors, failures=done.failures, notices=(_NEAR_UNKNOWN,))
        vector = done.vectors.get(entry.embed_hash)
        near, notices = self._nearest_facts(vector, space, memory.scope, self._config["dedup.cosine"], now)
        others = [one for one in near if one.memory.id not in apart]
        return _Found(tuple(others[:_NEAR_TOLD]), space, done.vectors, done.failures, notices)

    def _nearest_facts(
        self, vector: Vector | None, space: str, scope: Scope, least: float, now: float
    ) -> tuple[list[Near], tuple[Notice, ...]]:
        """Return the facts of one scope near a vector, and notices on those that could not be read.

        A zero vector is near nothing.
        """
        if vector is None:
            return [], ()
        only = frozenset({scope})
        where = Where(only, now=now)
        run = self._store.nearest(vector, space, where, _NEAR_LOOKED_AT)
        if len(run.candidates) >= _NEAR_LOOKED_AT and run.candidates[-1].score >= least:
            # Chunks of files may fill the limit: search among facts alone, which costs more.
            run = self._store.nearest(vector, space, replace(where, kinds=frozenset({"fact"})), _NEAR_LOOKED_AT)
        close = {one.id: one.score for one in run.candidates if one.score >= least}
        held = self._store.get(close, only)
        facts = [Near(held[key], score) for key, score in close.items() if key in held and held[key].kind == "fact"]
        return facts, run.notices

    def _merged(self, before: Memory, found: _Found, memory: Memory, keys: Keys, now: float) -> Added:
        """Merge the fields of a fact into the nearest near-duplicate that it may change."""
        after = enriched(before, memory, now)
        if after == before:
            self._as_known(before, keys)
        else:
            self._put_one(before, after, keys, now)
        return Added(after, "merged", found.near, found.notices)

    def _replacements(self, documents: Iterable[Document]) -> Iterator[Changes]:
        """Yield batches of documents that replace the content of their ids, ingested files included."""
        from ..ingest.documents import ChunkSize, memories_of
        from ..ingest.pipeline import MEMORIES_PER_BATCH

        size = ChunkSize(self._config["chunk.tokens"], self._config["chunk.overlap"])
        now, made, count = self._clock(), dict[tuple[Scope, str], list[Memory]](), 0
        for place, one in enumerate(documents):
            if not isinstance(one, Document):
                raise ConfigError(f"{one!r:.80} is not a document", "give whyrank.Document(id, text, title=TITLE)")
            if one.tags or one.metadata:
                one = replace(one, tags=tags_of(one.tags), metadata=metadata_of(one.metadata))
            memories = made[one.scope, one.id] = [*memories_of(one, size, now, place)]
            count += len(memories)
            if count >= MEMORIES_PER_BATCH:
                yield self._in_place(made)
                made, count = {}, 0
        if made:
            yield self._in_place(made)

    def _in_place(self, made: Mapping[tuple[Scope, str], Sequence[Memory]]) -> Changes:
        entries = entries_for([*chain.from_iterable(made.values())], self._language)
        return Changes(put=entries, replace_files=list(made), forget_files=list(made))

    def _write(self, memories: Sequence[Memory], **changes: Any) -> int:
        """Analyze and embed outside the transaction, then write everything at once; vectors may be given."""
        entries = [entry_for(memory, self._language) for memory in memories]
        self._writer.write(Changes(put=entries, **changes))
        return len(memories)

    def _updated(
        self, identity: MemoryId, text: str | None, supersedes: str | None, scope: Scopes, given: Mapping[str, Any]
    ) -> Changed:
        with self._store.reading():  # one snapshot for all reads
            before, now = self._memories.get(identity, scope=scope), self._clock()
            after, old, freed = self._becoming(before, text, supersedes, given, now)
        if after == before:
            return Changed(after, (NOTHING_CHANGED,))
        self._put_one(before, after, {}, now, old=old, freed=freed)
        return Changed(after, unseen(after, now))

    def _becoming(
        self, before: Memory, text: str | None, supersedes: str | None, given: Mapping[str, Any], now: float
    ) -> tuple[Memory, Memory | None, Memory | None]:
        """Return the changed fact, the memory it supersedes now, and the one it no longer supersedes."""
        identity = before.id
        if before.kind != "fact":
            raise Conflict(f"{identity} is a part of {before.source}", "change the file and ingest it again")
        after = with_fields(before, given, now)
        if text is not None and text != before.text:
            same = self._same(text, before.scope, now)
            if same is not None and same.id != before.id and same.superseded_by is None:
                raise Conflict(f"{same.id} already has this text", "forget one of the two, or replace one")
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
        """Return the memory a fact no longer supersedes, if nothing else has superseded it since."""
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
        """Return the ids of the chain of memories that superseded a memory."""
        met, sought = set[MemoryId](), memory.superseded_by
        while sought is not None and sought not in met:
            met.add(sought)
            found = self._store.get([sought], frozenset({memory.scope})).get(sought)
            sought = found.superseded_by if found is not None else None
        return met
