"""The facade: one engine behind every door."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, overload

from . import config as settings
from .analysis.text import clean
from .arguments import (
    MAX_LISTED,
    Filters,
    Scopes,
    check_budget,
    check_category,
    check_count,
    check_importance,
    check_page,
    check_question,
    fact_text,
    moment,
    scope_of,
    scopes_of,
    storable,
    tags_of,
)  # fmt: skip
from .calibrations import Calibrating
from .columns import MemoryId
from .errors import ConfigError, NotFound, StoreError
from .hits import Results
from .ingest.entries import content_hash, entry_for, id_for
from .pinning import Pinning
from .ports import Changes, Embedder, Reranker, Store, StoreStatus, Vector
from .ranking.recipes import Recipe
from .ranking.reranking import Rerank
from .search.calibration import calibrated_owners
from .search.searcher import Searcher
from .search.why import Why, why
from .types import GLOBAL, Document, Memory, Query, Scope, Source, Where, visible

if TYPE_CHECKING:
    from .evaluation.pinboard import Pinboard
    from .evaluation.tuning import Tuning
    from .ingest.filling import Embedded, Progress
    from .ingest.ingestor import Report
    from .search.contrast import Contrast

_DOCUMENTS_PER_TRANSACTION = 256


class Engine(Calibrating, Pinning):
    """A memory that can be searched and can say why."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder | None,
        config: settings.Config,
        clock: Callable[[], float] = time.time,
        reranker: Reranker | None = None,
    ) -> None:
        self._store = store
        self._reranker = reranker
        self._embedder = embedder
        self._config = config
        self._clock = clock
        self._searcher = Searcher(store, embedder, config["language"])

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def config(self) -> settings.Config:
        """Return the settings this engine was opened with."""
        return self._config

    def ingest(
        self,
        *paths: str | Path,
        scope: str | Scope = GLOBAL,
        dry_run: bool = False,
        base: str | Path | None = None,
        progress: Progress | None = None,
    ) -> Report:
        """Index files and folders; unchanged files cost a stat, deleted ones vanish."""
        # Readers of markdown and ignore rules are of no use to a search, which should not wait for them.
        from .ingest.chunks import ChunkSize
        from .ingest.ingestor import Ingestor, Settings

        config = self._config
        reading = Settings(
            workspace=Path(base).absolute() if base is not None else config.notes,
            language=config["language"],
            size=ChunkSize(config["chunk.tokens"], config["chunk.overlap"]),
            max_bytes=config["ingest.max_bytes"],
        )
        owner = scope_of(scope)
        ingestor = Ingestor(self._store, self._embedder, reading, *([progress] if progress else []))
        report = ingestor.ingest([Path(path) for path in paths], owner, dry_run=dry_run)
        if not dry_run:
            report.remarks += [("calibration", remark) for remark in self._recalibrate([owner], progress)]
        return report

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
        vectors: dict[str, Vector] = {}
        if self._embedder is not None:
            texts = {entry.embed_hash: entry.embed_text for entry in entries}
            known = self._store.known_vectors(texts, self.space)
            missing = [key for key in texts if key not in known]
            rows = self._embedder.documents([texts[key] for key in missing])
            vectors = {key: row for key, row in zip(missing, rows, strict=True) if row.any()}
        replaced = {
            memory.supersedes: (memory.id, memory.created) for memory in memories if memory.supersedes is not None
        }
        superseded = {**changes.pop("superseded", {}), **replaced}
        self._store.write(Changes(put=entries, space=self.space, vectors=vectors, superseded=superseded, **changes))
        return len(memories)

    def forget(self, identity: MemoryId, *, scope: Scopes = None) -> None:
        """Remove one memory, by its exact id."""
        self.get(identity, scope=scope)
        self._store.write(Changes(remove=[identity]))

    def search(
        self,
        query: str,
        *,
        limit: int | None = None,
        offset: int = 0,
        recipe: str | Recipe | None = None,
        strict: bool = False,
        max_tokens: int | None = None,
        **filters: Any,
    ) -> Results:
        """Return the memories that answer a question, best first, each able to explain its rank."""
        check_budget(max_tokens)
        asked = replace(self._query(query, limit, offset, filters), strict=strict, max_tokens=max_tokens)
        chosen = self._recipe(recipe)
        results = self._searcher.search(asked, chosen)
        return replace(results, notices=(*results.notices, *self._config.unhonoured(recipe, chosen)))

    @overload
    def why(
        self,
        query: str,
        identity: MemoryId,
        *,
        over: None = None,
        limit: int | None = None,
        recipe: str | Recipe | None = None,
        **filters: Any,
    ) -> Why: ...
    @overload
    def why(
        self,
        query: str,
        identity: MemoryId,
        *,
        over: MemoryId,
        limit: int | None = None,
        recipe: str | Recipe | None = None,
        **filters: Any,
    ) -> Contrast: ...
    def why(
        self,
        query: str,
        identity: MemoryId,
        *,
        over: MemoryId | None = None,
        limit: int | None = None,
        recipe: str | Recipe | None = None,
        **filters: Any,
    ) -> Why | Contrast:
        """Explain the place of one memory among the results, or where it was lost; or what would put it `over` another.

        With `over` the answer is the smallest change, one setting at a time, that would make the two change places.
        """
        asked, chosen, wanted = self._query(query, limit, 0, filters), self._recipe(recipe), clean(identity).text
        if over is None:
            return why(self._searcher, asked, chosen, wanted)
        from .search.contrast import contrast  # what a search does not need it does not wait for

        return contrast(self._searcher, asked, chosen, wanted, clean(over).text)

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

    def _pinboard(self) -> Pinboard:
        from .evaluation.pinboard import Pinboard

        return Pinboard(self._config.pins, self)

    def tune(
        self,
        *,
        scope: Scopes = None,
        recipe: str | Recipe | None = None,
        queries: int = 600,
        seed: int = 1,
        apply: bool = False,
        progress: Progress | None = None,
    ) -> Tuning:
        """Fit the fusion to these memories, on up to so many made questions; write it only if told to."""
        from .rehearsal import Stage, tuned

        check_count("queries", queries)
        where = Filters(scope=scope).where(self._clock())
        with self._copied() as store:
            stage = Stage(store, self._embedder, self._config, where)
            tuning = tuned(stage, recipe, queries, seed, progress or (lambda *_: None))
        for key, value in tuning.changes.items() if apply else ():
            settings.save(self._config, key, value)
        return tuning

    @contextmanager
    def _copied(self) -> Iterator[Store]:
        """Open a copy of the store that may be changed and is thrown away."""
        from .storage.sqlite.copying import copy_store

        if not self._config.store.is_file():
            raise StoreError("only a store in a file can be copied", "open the store by its path")
        with tempfile.TemporaryDirectory(prefix="whyrank-copy-") as place:
            copy = Path(place) / "memory.db"
            copy_store(self._config.store, copy)
            with closing(open_store(copy, self._config["keyword"], self._config["cache.megabytes"])) as store:
                yield store

    def embed(self, progress: Progress | None = None) -> Embedded:
        """Give a vector to every memory that has none in this space; stopped and called again, it goes on."""
        from .ingest.filling import Embedded, embed_all

        if self._embedder is None:
            return Embedded("", 0, 0)
        done = embed_all(self._store, self._embedder, progress or (lambda done, total, label: None))
        if done.embedded:
            self._recalibrate(calibrated_owners(self._store))
        return done

    def status(self, space: str | None = None) -> StoreStatus:
        """Count what the store holds, and what is without a vector in this space or another."""
        return self._store.status(self.space if space is None else space)

    def close(self) -> None:
        """Release the store."""
        self._store.close()

    def _query(self, text: str, limit: int | None, offset: int, filters: Mapping[str, Any]) -> Query:
        size = self._config["limit"] if limit is None else limit
        check_question(text)
        check_page(size, offset)
        return Query(text, Filters(**filters).where(self._clock()), size, offset)

    def _recipe(self, recipe: str | Recipe | None) -> Recipe:
        chosen = self._config.recipe(recipe)
        if self._reranker is None:
            return chosen
        own = next((stage for stage in chosen.stages if isinstance(stage, Rerank)), Rerank())
        # A recipe that brings a reranker keeps it.
        return chosen.with_stages(own if own.reranker is not None else replace(own, reranker=self._reranker))


def open_store(path: Path, keyword: str, cache_megabytes: int) -> Store:
    """Open the store in a file, or make it."""
    from .storage.sqlite.store import SqliteStore

    try:
        if path.exists() and not path.is_file():
            kind = "a folder" if path.is_dir() else "no regular file"
            raise StoreError(f"{path} is {kind}", "name a file for the store, for instance memory.db")
        path.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise StoreError(f"{path} cannot be used: {said}", "choose another place with --store") from error
    return SqliteStore(path, keyword, cache_megabytes)
