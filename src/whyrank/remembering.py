"""What the facade does with single memories: stores, reads, lists and forgets them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .analysis.text import clean
from .arguments import (
    MAX_LISTED,
    Filters,
    Scopes,
    check_category,
    check_importance,
    check_page,
    fact_text,
    moment,
    scope_of,
    scopes_of,
    storable,
    tags_of,
)  # fmt: skip
from .columns import MemoryId
from .errors import ConfigError, NotFound
from .ingest.entries import content_hash, entry_for, id_for
from .ports import Changes
from .spaces import Spaces
from .types import GLOBAL, Document, Memory, Scope, Source, Where, visible

_DOCUMENTS_PER_TRANSACTION = 256


class Remembering(Spaces):
    """Single memories and their life."""

    def add(
        self,
        text: str,
        *,
        scope: str | Scope = GLOBAL,
        name: str = "",
        category: str = "other",
        tags: str | Sequence[str] = (),
        importance: int | None = None,
        date: object = None,
        expires: object = None,
        supersedes: MemoryId | None = None,
    ) -> Memory:
        """Store a fact; the same text in the same scope is not stored twice. It is durable on return."""
        stored, owner = fact_text(text), scope_of(scope)
        check_category(category)
        check_importance(importance)
        identity = id_for(owner, "", " ".join(stored.casefold().split()))
        now = self._clock()
        known = self._store.get([identity], frozenset({owner})).get(identity)
        if known is not None and supersedes is None and Where(frozenset({owner}), now=now).allows(known):
            return known
        if supersedes is not None:
            self._check_replaceable(supersedes, identity, owner)
        given: dict[str, Any] = {
            "name": storable("name", name), "title": name, "category": category if category != "other" else "",
            "tags": tags_of(tags), "importance": importance, "date": moment("date", date),
            "expires": moment("expires", expires), "supersedes": supersedes,
        }  # fmt: skip
        base = known or Memory(identity, stored, scope=owner, created=now, date=now)
        source = Source("", content_hash=content_hash(stored))
        # What is said again keeps what was said of it before, and lives again.
        revived = replace(base, expires=None, superseded_by=None, superseded_at=None, source=source)
        memory = replace(revived, **{key: value for key, value in given.items() if value not in (None, "", ())})
        self._write([memory], superseded={identity: None} if known is not None else {})
        return memory

    def _check_replaceable(self, replaced: MemoryId, identity: MemoryId, owner: Scope) -> None:
        """A memory may be replaced by another one of its own scope only: for others it must stay as it is."""
        old = self.get(replaced, scope=owner)
        if old.scope != owner:
            raise ConfigError(f"{replaced} belongs to {old.scope}, not to {owner}", f"add this with scope {old.scope}")
        if old.superseded_by is not None:
            raise ConfigError(f"{replaced} was replaced by {old.superseded_by} already", "replace that one")
        if replaced == identity:
            raise ConfigError(f"{replaced} would replace itself", "give another text or another id")

    def add_documents(self, documents: Iterable[Document]) -> int:
        """Store documents that come without files, each in place of what its id held; return the number of memories."""
        from .ingest.chunks import ChunkSize
        from .ingest.documents import memories_of

        size = ChunkSize(self._config["chunk.tokens"], self._config["chunk.overlap"])
        now, stored, owners = self._clock(), 0, set[Scope]()
        pending: dict[tuple[Scope, str], list[Memory]] = {}
        for position, document in enumerate(documents):
            owners.add(document.scope)
            pending[document.scope, document.id] = list(memories_of(document, size, now, position))
            if len(pending) >= _DOCUMENTS_PER_TRANSACTION:
                stored += self._replace(pending)
                pending = {}
        stored += self._replace(pending)
        self._recalibrate(sorted(owners))
        return stored

    def _replace(self, documents: Mapping[tuple[Scope, str], Sequence[Memory]]) -> int:
        """Write documents in place of what their ids held, be it a file that was ingested under that name."""
        memories = [memory for made in documents.values() for memory in made]
        return self._write(memories, replace_files=list(documents), forget_files=list(documents))

    def put(self, memories: Sequence[Memory]) -> None:
        """Store whole memories as they are given, for importers; one transaction."""
        self._write(memories)

    def _write(self, memories: Sequence[Memory], **changes: Any) -> int:
        """Analyse and embed outside the transaction, then write everything at once."""
        entries = [entry_for(memory, self._config["language"]) for memory in memories]
        replaced = {
            memory.supersedes: (memory.id, memory.created) for memory in memories if memory.supersedes is not None
        }
        superseded = {**changes.pop("superseded", {}), **replaced}
        self._keep(Changes(put=entries, superseded=superseded, **changes))
        return len(memories)

    def forget(self, identity: MemoryId, *, scope: Scopes = None) -> None:
        """Remove one memory, by its exact id."""
        self.get(identity, scope=scope)
        self._store.write(Changes(remove=[identity]))

    def get(self, identity: MemoryId, *, scope: Scopes = None) -> Memory:
        """Return one memory; one that the scope may not see does not exist."""
        wanted = clean(identity).text
        memory = self._store.get([wanted], visible(scopes_of(scope))).get(wanted)
        if memory is None:
            raise NotFound(f"there is no memory {identity!r}", "`whyrank list` shows the ids there are")
        return memory

    def list(self, *, limit: int = 50, offset: int = 0, **filters: Any) -> list[Memory]:
        """Return memories in the order of their files and lines."""
        check_page(limit, offset)
        return self._store.browse(
            Filters(**filters).where(self._clock()), min(limit, MAX_LISTED), min(offset, MAX_LISTED)
        )
