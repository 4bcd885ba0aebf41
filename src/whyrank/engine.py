"""The facade: one engine behind every door, and the only place that wires ports to providers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from . import config as settings
from .analysis.text import clean
from .embedding.providers import embedder_named
from .errors import ConfigError, NotFound, StoreError
from .ingest.chunks import ChunkSize
from .ingest.documents import memories_of
from .ingest.entries import content_hash, entry_for, id_for
from .ingest.ingestor import Ingestor, Progress, Report, Settings
from .ports import Changes, Embedder, Store, StoreStatus, Vector
from .ranking.foreign import rank_foreign
from .ranking.recipes import Recipe, recipe_named
from .search.searcher import Searcher
from .search.why import Why, why
from .types import (
    CATEGORIES,
    GLOBAL,
    KINDS,
    Document,
    Memory,
    MemoryId,
    Query,
    Ranking,
    Results,
    Run,
    Scope,
    Source,
    Where,
    visible,
)

Scopes = str | Scope | Iterable[str | Scope] | None
_MEMORIES_PER_TRANSACTION = 256
STORE_FOLDER = ".whyrank"


@dataclass(frozen=True)
class Filters:
    """What a caller may ask of the memories that answer."""

    scope: Scopes = None
    kind: str | None = None
    tags: Sequence[str] = ()
    path: str | None = None
    since: object = None
    before: object = None
    as_of: object = None
    include_superseded: bool = False

    def where(self, now: float) -> Where:
        """Return the filter the stores understand; refuse what makes no sense."""
        if self.kind is not None and self.kind not in KINDS:
            raise ConfigError(f"there is no kind {self.kind!r}", f"the kinds are {', '.join(KINDS)}")
        return Where(
            scopes=visible(_scopes(self.scope)),
            kinds=frozenset({self.kind} if self.kind else ()),
            tags=frozenset(self.tags),
            path=self.path,
            since=_moment("since", self.since),
            before=_moment("before", self.before),
            as_of=_moment("as_of", self.as_of),
            include_superseded=self.include_superseded,
            now=now,
        )


class Engine:
    """A memory that can be searched and can say why."""

    def __init__(
        self, store: Store, embedder: Embedder | None, config: settings.Config, clock: Callable[[], float] = time.time
    ) -> None:
        self._store = store
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

    @property
    def space(self) -> str:
        """Return the name of the embedding space, or nothing without an embedder."""
        return self._embedder.fingerprint if self._embedder else ""

    def ingest(
        self,
        *paths: str | Path,
        scope: str | Scope = GLOBAL,
        dry_run: bool = False,
        base: str | Path | None = None,
        progress: Progress | None = None,
    ) -> Report:
        """Index files and folders; unchanged files cost a stat, deleted ones vanish."""
        config = self._config
        reading = Settings(
            workspace=Path(base).absolute() if base is not None else _workspace_of(config),
            language=config["language"],
            size=ChunkSize(config["chunk.tokens"], config["chunk.overlap"]),
            max_bytes=config["ingest.max_bytes"],
        )
        ingestor = Ingestor(self._store, self._embedder, reading, *([progress] if progress else []))
        return ingestor.ingest([Path(path) for path in paths], _scope(scope), dry_run=dry_run)

    def add(
        self,
        text: str,
        *,
        scope: str | Scope = GLOBAL,
        name: str = "",
        category: str = "other",
        tags: Sequence[str] = (),
        importance: int | None = None,
        date: object = None,
        expires: object = None,
        supersedes: MemoryId | None = None,
    ) -> Memory:
        """Store a fact; the same text in the same scope is not stored twice. It is durable on return."""
        stored = _storable(text)
        owner = _scope(scope)
        if category not in CATEGORIES:
            raise ConfigError(f"there is no category {category!r}", f"the categories are {', '.join(CATEGORIES)}")
        if importance is not None and importance not in range(1, 6):
            raise ConfigError(f"importance is {importance}", "give a whole number from 1 to 5")
        identity = id_for(owner, "", " ".join(stored.casefold().split()))
        known = self._store.get([identity], frozenset({owner})).get(identity)
        if known is not None:
            return known
        if supersedes is not None:
            self.get(supersedes, scope=owner)
        now = self._clock()
        memory = Memory(
            id=identity, text=stored, name=name, title=name, scope=owner, category=category, tags=tuple(tags),
            source=Source("", content_hash=content_hash(stored)), importance=importance, created=now,
            date=_moment("date", date) or now, expires=_moment("expires", expires), supersedes=supersedes,
        )  # fmt: skip
        self.put([memory])
        return memory

    def add_documents(self, documents: Iterable[Document]) -> int:
        """Store documents that come without files; return how many memories they made."""
        size = ChunkSize(self._config["chunk.tokens"], self._config["chunk.overlap"])
        memories = list(memories_of(documents, size, self._clock()))
        for start in range(0, len(memories), _MEMORIES_PER_TRANSACTION):
            self.put(memories[start : start + _MEMORIES_PER_TRANSACTION])
        return len(memories)

    def put(self, memories: Sequence[Memory]) -> None:
        """Store whole memories as they are given, for importers and evaluation; one transaction."""
        entries = [entry_for(memory, self._config["language"]) for memory in memories]
        vectors: dict[str, Vector] = {}
        if self._embedder is not None:
            texts = {entry.embed_hash: entry.embed_text for entry in entries}
            missing = [key for key in texts if key not in self._store.known_vectors(texts, self.space)]
            rows = self._embedder.documents([texts[key] for key in missing])
            vectors = {key: row for key, row in zip(missing, rows, strict=True) if row.any()}
        replaced = {
            memory.supersedes: (memory.id, memory.created) for memory in memories if memory.supersedes is not None
        }
        self._store.write(Changes(put=entries, space=self.space, vectors=vectors, superseded=replaced))

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
        **filters: Any,
    ) -> Results:
        """Return the memories that answer a question, best first, each able to explain its rank."""
        asked = self._query(query, limit, offset, strict, filters)
        return self._searcher.search(asked, self._recipe(recipe))

    def why(
        self,
        query: str,
        identity: MemoryId,
        *,
        limit: int | None = None,
        recipe: str | Recipe | None = None,
        **filters: Any,
    ) -> Why:
        """Explain the place of one memory among the results, or where it was lost."""
        asked = self._query(query, limit, 0, False, filters)
        return why(self._searcher, asked, self._recipe(recipe), identity)

    def get(self, identity: MemoryId, *, scope: Scopes = None) -> Memory:
        """Return one memory; one that the scope may not see does not exist."""
        memory = self._store.get([identity], visible(_scopes(scope))).get(identity)
        if memory is None:
            raise NotFound(f"there is no memory {identity!r}", "`whyrank list` shows the ids there are")
        return memory

    def list(self, *, limit: int = 50, offset: int = 0, **filters: Any) -> list[Memory]:
        """Return memories in the order of their files and lines."""
        _check_page(limit, offset)
        return self._store.browse(Filters(**filters).where(self._clock()), limit, offset)

    def status(self) -> StoreStatus:
        """Count what the store holds."""
        return self._store.status(self.space)

    def close(self) -> None:
        """Release the store."""
        self._store.close()

    def _query(self, text: str, limit: int | None, offset: int, strict: bool, filters: Mapping[str, Any]) -> Query:
        size = self._config["limit"] if limit is None else limit
        _check_page(size, offset)
        return Query(text, Filters(**filters).where(self._clock()), size, offset, strict)

    def _recipe(self, recipe: str | Recipe | None) -> Recipe:
        return recipe if isinstance(recipe, Recipe) else self._config.recipe(recipe)


class AsyncEngine:
    """The same engine for asynchronous callers: every method runs in a thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def __aenter__(self) -> AsyncEngine:
        return self

    async def __aexit__(self, *error: object) -> None:
        await asyncio.to_thread(self._engine.close)

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        return partial(asyncio.to_thread, getattr(self._engine, name))


def open_engine(store: str | Path | None = None, *, workspace: str | Path | None = None, **options: Any) -> Engine:
    """Open a store, or make it; options are settings, with `_` for `.` (`chunk_tokens=200`)."""
    names = {key.replace(".", "_"): key for key in settings.SETTINGS}
    given = {names.get(option, option): value for option, value in options.items()}
    if store is not None:
        given["store"] = str(Path(store).expanduser().absolute())
    config = settings.load(given, workspace=Path(workspace) if workspace is not None else None)
    return Engine(_open_store(config.store), embedder_named(config["embedding"]), config)


async def open_engine_async(store: str | Path | None = None, **options: Any) -> AsyncEngine:
    """Open a store for asynchronous callers."""
    return AsyncEngine(await asyncio.to_thread(open_engine, store, **options))


def rank(
    runs: Sequence[Run], recipe: str | Recipe = "rrf", *, weights: Mapping[str, float] | None = None, limit: int = 10
) -> Ranking:
    """Fuse and explain any engines' result lists."""
    _check_page(limit, 0)
    return rank_foreign(runs, recipe if isinstance(recipe, Recipe) else recipe_named(recipe), weights, limit)


def _open_store(path: Path) -> Store:
    from .storage.sqlite.store import SqliteStore

    if path.is_dir():
        raise StoreError(f"{path} is a folder", "name a file for the store, for instance memory.db")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"{path.parent} cannot be made: {error.strerror}", "choose another place with --store"
        ) from error
    return SqliteStore(path)


def _workspace_of(config: settings.Config) -> Path:
    """Return the folder paths are stored relative to: the store's own, wherever one stands."""
    folder = config.store.parent
    return folder.parent if folder.name == STORE_FOLDER else folder


def _scope(scope: str | Scope) -> Scope:
    if isinstance(scope, Scope):
        return scope
    try:
        return Scope.parse(scope)
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _scopes(scopes: Scopes) -> list[Scope]:
    if scopes is None:
        return []
    return [_scope(scopes)] if isinstance(scopes, str | Scope) else [_scope(scope) for scope in scopes]


def _moment(name: str, value: object) -> float | None:
    from .ingest.dates import parse_date

    if value is None:
        return None
    moment = parse_date(value)
    if moment is None:
        raise ConfigError(f"{name} is {value!r}, which is no date", "write it as 2026-03-14 or 2026-03-14T09:30")
    return moment


def _check_page(limit: int, offset: int) -> None:
    if limit < 0 or offset < 0:
        raise ConfigError(f"limit is {limit}, offset is {offset}", "give 0 or more")


def _storable(text: str) -> str:
    cleaned = clean(text)
    if cleaned.replaced:
        raise ConfigError("the text holds a NUL or a lone surrogate", "remove it; nothing was stored")
    if not text.strip():
        raise ConfigError("the text is empty", "give some text")
    return text.strip()
