"""The engine: the facade behind the Python API, the command line, HTTP and MCP."""

from __future__ import annotations

import time
import warnings
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property, wraps
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TextIO, TypeVar, overload

from ..analysis.document import READER_VERSION
from ..config import load as settings
from ..errors import ConfigError, ProviderError, StoreError, StoreTimeout, StoreUnavailable
from ..ingest.walk import settled
from ..ranking.recipes import Recipe
from ..ranking.stages import Rerank
from ..search.explain import Why, why
from ..search.searcher import Searcher, nothing_in_time
from ..types.memory import GLOBAL, Notice, Order, Scope
from .arguments import (
    UNSAID,
    Filters,
    Scopes,
    check_counts,
    identity_of,
    query_of,
    scope_of,
    scopes_of,
    share_of,
    storable,
    visible_scopes,
)
from .facts import Facts, Fields
from .maintenance import LOSSES, Maintenance, stale_notices
from .memories import Memories
from .models import Models
from .recall import Recaller
from .recall_log import log_file
from .records import Forgotten
from .spaces import Calibrator, IndexWriter, Makers, Serving, defers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
    from types import TracebackType
    from typing import Unpack

    from ..evaluation.pins import Pin, Pinboard, PinCheck
    from ..evaluation.tuning import Tuning
    from ..ingest.embedding import Progress
    from ..ingest.extraction.extractor import Extraction, ExtractionSettings
    from ..ingest.pipeline import Report, Settings
    from ..protocols import Embedder, Llm, Reranker, SortingKey, Store, StoreStatus
    from ..search.confidence import Calibration
    from ..search.expansion import Expander
    from ..search.explain import Contrast, Pooled
    from ..storage.sqlite.backups import Backup
    from ..storage.sqlite.check import Checkup
    from ..storage.store import IndexedStore
    from ..types.memory import Document, Former, Memory, MemoryId
    from ..types.query import Query
    from ..types.results import Results
    from .export import Imported
    from .worker import Worker

P = ParamSpec("P")
Done = TypeVar("Done")

# Former public names of the engine, each with the one that took its place; they go on working with a warning.
RENAMED = {
    "recalled": "mark_used",
    "remember": "facts.remember",
    "revise": "facts.revise",
    "near": "facts.near",
    "put": "facts.import_memories",
    "saying": "memories.find_fact",
    "meant": "memories.suggest_id",
    "unlisted": "memories.list_notices",
    "text_notices": "memories.text_notices",
    "replaced": "memories.replaced",
    "left_out": "memories.extraction_rejects",
    "forget_scope": "memories.forget_scope",
    "prune": "memories.prune",
    "pin": "pins.add",
    "unpin": "pins.remove",
    "check": "pins.check",
    "space": "models.space",
    "spaces": "models.list",
    "change_model": "models.use",
    "add_model": "models.add",
    "drop_model": "models.drop",
    "rollback_model": "models.rollback",
    "embed": "models.embed",
    "backlog": "models.backlog",
    "waiting_notices": "models.waiting_notices",
    "vector_notices": "models.notices",
    "has_earlier_vectors": "models.has_earlier_vectors",
    "renew_vectors": "models.reembed",
    "settle": "models.wait",
    "calibrations": "models.calibrations",
    "language_model": "models.language_model",
    "is_current": "maintenance.is_current",
    "old_words": "maintenance.stale_count",
    "read_anew": "maintenance.reindex",
    "word_notices": "maintenance.stale_notices",
    "damage_notices": "maintenance.damage_notices",
    "give_up_damaged": "maintenance.discard_damaged",
}


COLLABORATORS = ("facts", "maintenance", "memories", "models", "pins", "recall")


def asked_again(read: Callable[P, Done]) -> Callable[P, Done]:
    """Return a method that reads once more if the server was restarted, or replaced, in the middle of it."""

    @wraps(read)
    def reading(*args: P.args, **kwargs: P.kwargs) -> Done:
        try:
            return read(*args, **kwargs)
        except StoreUnavailable as error:
            if not error.may_pass:
                raise
            return read(*args, **kwargs)

    return reading


def current_name(name: str, callers: int) -> str:
    """Return the present name of a member; a former one warns in the code so many callers up."""
    if name in RENAMED:
        warnings.warn(f"Engine.{name} is now Engine.{RENAMED[name]}", DeprecationWarning, stacklevel=callers + 1)
    return RENAMED.get(name, name)


class Pins:
    """Good answers, recorded once and re-checked whenever anything has changed."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def board(self) -> Pinboard:
        """Return the pins file with the engine that answers its queries."""
        from ..evaluation.pins import Pinboard

        return Pinboard(self._engine.config.pins, self._engine)

    def add(
        self,
        query: str,
        identity: str,
        *,
        scope: Scopes = None,
        within: int | None = None,
        recipe: str | Recipe | None = None,
    ) -> Pin:
        """Record that a memory, or a file by its path, is a good answer to a query."""
        if within is not None:
            check_counts(1, within=within)
        return self.board().add(storable("query", query), identity, _named(scope), within, recipe)

    def remove(
        self, query: str, identity: str | None = None, *, scope: Scopes = None, all_scopes: bool = False
    ) -> list[Pin]:
        """Take out the pins of a query, or one of them."""
        return self.board().remove(query, identity, None if all_scopes else _named(scope))

    def check(
        self,
        *,
        scope: Scopes = None,
        all_scopes: bool = False,
        recipe: str | Recipe | None = None,
        progress: Callable[[int, int, str], None] | None = None,
    ) -> PinCheck:
        """Run every pinned query again, each in its own scopes, and report the state of the pins."""
        scopes = None if all_scopes else _named(scope)
        return self.board().check(scopes, recipe, progress or (lambda *_: None))

    def list(self, *, scope: Scopes = None, all_scopes: bool = False) -> list[Pin]:
        """Return the pins of the given scopes, or of all."""
        return self.board().pins(None if all_scopes else _named(scope))

    def __call__(self, *, scope: Scopes = None, all_scopes: bool = False) -> Sequence[Pin]:
        """Return the pins, as a former version did; `list` does it now."""
        warnings.warn("Engine.pins() is now Engine.pins.list()", DeprecationWarning, stacklevel=2)
        return self.list(scope=scope, all_scopes=all_scopes)


def _named(scope: Scopes) -> list[str]:
    return [str(one) for one in scopes_of(scope)]


class Engine:
    """A memory store that can be searched and explains its ranking.

    `facts`, `memories`, `pins`, `models` and `maintenance` hold what is asked for less often. `recall(turn)` says what
    an agent should be reminded of, and keeps a log.
    """

    def __init__(
        self,
        store: Store,
        embedder: Embedder | None,
        config: settings.Config,
        clock: Callable[[], float] = time.time,
        reranker: Reranker | None = None,
        makers: Makers | None = None,
        llm: Callable[[str | None], Llm] | None = None,
        serving: Serving | None = None,
    ) -> None:
        self.config = config  # the settings this engine was opened with; they never change
        self._store = store
        self._reranker = reranker
        self._serving = serving or Serving(store, embedder, makers or Makers())
        self._clock = clock
        self._language: str = config["language"]
        self._limit: int = config["limit"]
        self._timeout_ms: int | None = config["timeout_ms"]
        self._expands: bool = config["query_expansion.enabled"]
        self._policies: dict[str | None, tuple[Recipe, tuple[Notice, ...]]] = {}
        self._writer = IndexWriter(store, self._serving, config, clock)
        self._calibrator = Calibrator(store, self._serving, config, clock)
        self.pins = Pins(self)
        self.recall = Recaller(self.search, config, clock)
        self.memories = Memories(store, config, clock)
        self.facts = Facts(store, self._serving, self._writer, self._calibrator, self.memories, config, clock)
        self.models = Models(
            store, self._serving, self._calibrator, clock, llm, asked_with=self._asked_with, pinboard=self.pins.board
        )
        self.maintenance = Maintenance(store, config.store, self._writer, self.models, clock, self._worker)

    if not TYPE_CHECKING:  # for type checkers a former name is an error

        def __getattr__(self, name: str) -> Any:
            """Return a member by its former name, with a DeprecationWarning."""
            if name not in RENAMED:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return attrgetter(current_name(name, callers=2))(self)

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _worker(self, lease_seconds: float) -> Worker:
        from .worker import Worker  # of no use to a search, which should not wait for it

        return Worker(
            self._store, self._serving, self._writer, self._calibrator, self.memories, self._clock, lease_seconds
        )

    def close(self) -> None:
        """Stop background work and release the store."""
        self.models.close()
        self._store.close()

    # -- searching -------------------------------------------------------------------------------------------

    @asked_again
    def search(
        self,
        query: str,
        *,
        limit: int | None = None,
        offset: int = 0,
        recipe: str | Recipe | None = None,
        strict: bool = False,
        min_confidence: float | None = None,
        max_tokens: int | None = None,
        expand: bool | None = None,
        syntax: str = "plain",
        timeout_ms: int | None = None,
        **filters: Any,
    ) -> Results:
        """Return the memories that match a query, best first, each with the explanation of its rank.

        With `expand` a language model expands the query first; by default `query_expansion.enabled` decides. With
        `syntax="advanced"` the query knows AND, OR, NOT, parentheses, `word*` and `field:`. After `timeout_ms` the
        results are those found so far, with a notice of what is missing; by default the setting `timeout_ms` applies.
        With `strict` there are results only if the verdict is `found`; `min_confidence` (0 to 1) cuts hit by hit.
        """
        size = self._limit if limit is None else limit
        allowed_ms = self._timeout_ms if timeout_ms is None else timeout_ms
        asked = query_of(
            self._store,
            query,
            filters,
            self._clock(),
            size,
            offset,
            syntax,
            strict,
            max_tokens,
            min_confidence,
            allowed_ms,
        )
        chosen, unused = self._policy(recipe)
        widened: tuple[Notice, ...] = ()
        if self._expands if expand is None else expand:
            asked, widened = self._widened(asked)
        hint = self._serving.hint(asked.where.scopes)
        if asked.deadline is not None:
            hint = hint._replace(until=asked.deadline.end)
        try:
            with self._store.reading(hint):
                active = self._serving.current()
                results = Searcher(self._store, active.embedder, self._language, active.added).search(asked, chosen)
                readers = self._store.readers(asked.where.scopes)
        except StoreTimeout:  # of the wait for a connection; the searcher answers others
            if asked.deadline is None:
                raise
            late = nothing_in_time(asked, chosen, self._language, asked.deadline)
            return replace(late, notices=(*late.notices, *widened, *unused))
        said = (*widened, *unused, *active.notices)
        if readers.keys() - {READER_VERSION}:
            said = (*said, *stale_notices(readers))
        if met := [notice for notice in results.notices if notice.code in LOSSES]:
            self.maintenance.record_damage(met)
        return replace(results, notices=(*results.notices, *said)) if said else results

    @asked_again
    def pool(
        self,
        query: str,
        *,
        limit: int | None = None,
        offset: int = 0,
        recipe: str | Recipe | None = None,
        strict: bool = False,
        min_confidence: float | None = None,
        max_tokens: int | None = None,
        expand: bool | None = None,
        syntax: str = "plain",
        likeness: bool = False,
        **filters: Any,
    ) -> Pooled:
        """Return the candidate pool of a query with all inputs of the ranking, to be ranked by other settings.

        With `likeness` the pool includes the pairwise similarities that diversity needs.
        """
        from ..search.explain import pooled

        size = self._limit if limit is None else limit
        asked = query_of(
            self._store, query, filters, self._clock(), size, offset, syntax, strict, max_tokens, min_confidence
        )
        widened: tuple[Notice, ...] = ()
        if self._expands if expand is None else expand:
            asked, widened = self._widened(asked)
        base, wish = self.config.wishes(recipe)
        with self._store.reading(self._serving.hint(asked.where.scopes)):
            active = self._serving.current()
            searcher = Searcher(self._store, active.embedder, self._language, active.added)
            found = pooled(searcher, asked, base, wish, self._reranking(base), likeness=likeness)
            stale = self.maintenance.stale_notices(asked.where.scopes)
        unused = (*self.config.unhonoured(recipe, found.pool.recipe), *self.config.notices)
        said = (*found.results.notices, *widened, *unused, *active.notices, *stale)
        return replace(found, results=replace(found.results, notices=said))

    @overload
    def why(
        self,
        query: str,
        identity: MemoryId,
        *,
        over: None = None,
        limit: int | None = None,
        recipe: str | Recipe | None = None,
        expand: bool | None = None,
        syntax: str = "plain",
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
        expand: bool | None = None,
        syntax: str = "plain",
        **filters: Any,
    ) -> Contrast: ...
    @asked_again
    def why(
        self,
        query: str,
        identity: MemoryId,
        *,
        over: MemoryId | None = None,
        limit: int | None = None,
        recipe: str | Recipe | None = None,
        expand: bool | None = None,
        syntax: str = "plain",
        **filters: Any,
    ) -> Why | Contrast:
        """Explain the rank of a memory, or its loss; or find the change that puts it `over` another.

        With `over` the result is the smallest change, one setting at a time, that would make the two change places.
        """
        size = self._limit if limit is None else limit
        asked = query_of(self._store, query, filters, self._clock(), size, syntax=syntax)
        widened: tuple[Notice, ...] = ()
        if self._expands if expand is None else expand:
            asked, widened = self._widened(asked)
        chosen, wanted = self._recipe(recipe), identity_of(identity)
        with self._store.reading(self._serving.hint(asked.where.scopes)):
            active = self._serving.current()
            searcher = Searcher(self._store, active.embedder, self._language, active.added)
            if over is None:
                answer = why(searcher, asked, chosen, wanted)
                return replace(answer, details=(*answer.details, *(notice.message for notice in widened)))
            from ..search.explain import contrast

            compared = contrast(searcher, asked, chosen, wanted, identity_of(over))
            return replace(compared, notices=(*compared.notices, *widened))

    def _widened(self, query: Query) -> tuple[Query, tuple[Notice, ...]]:
        """Expand a query with a language model; no read transaction is open during the call."""
        expansion, notices = self._expander.widened(query.text, query.deadline)
        return replace(query, expansion=expansion), notices

    @cached_property
    def _expander(self) -> Expander:
        from ..search.expansion import Expander

        wish = {key: self.config[f"query_expansion.{key}"] for key in ("model", "mode", "timeout_ms")}
        return Expander(lambda: self.models.language_model(wish["model"]), wish["mode"], wish["timeout_ms"])

    def _policy(self, recipe: str | Recipe | None) -> tuple[Recipe, tuple[Notice, ...]]:
        """Return a recipe and the notices on settings it ignores; cached by name."""
        if not isinstance(recipe, Recipe) and recipe in self._policies:
            return self._policies[recipe]
        chosen = self._recipe(recipe)
        policy = chosen, (*self.config.unhonoured(recipe, chosen), *self.config.notices)
        if not isinstance(recipe, Recipe):
            self._policies[recipe] = policy
        return policy

    def _recipe(self, recipe: str | Recipe | None) -> Recipe:
        chosen = self.config.recipe(recipe)
        return chosen.with_stages(*self._reranking(chosen))

    def _reranking(self, chosen: Recipe) -> tuple[Rerank, ...]:
        """Return the stage that a reranker given to this engine adds to every recipe."""
        if self._reranker is None:
            return ()
        usual = Rerank(top=self.config["reranker.top"], deadline_ms=self.config["reranker.deadline_ms"])
        own = next((stage for stage in chosen.stages if isinstance(stage, Rerank)), usual)
        # A recipe that brings a reranker keeps it.
        return (own if own.reranker is not None else replace(own, reranker=self._reranker),)

    def _asked_with(self, embedder: Embedder) -> Engine:
        """Return an engine over the same store that searches with this embedder, whatever the active space."""
        serving = Serving(self._store, embedder, Makers(), is_fixed=True)
        return Engine(self._store, embedder, self.config, self._clock, self._reranker, serving=serving)

    # -- memories --------------------------------------------------------------------------------------------

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
        return self.facts.add(text, scope=scope, supersedes=supersedes, key=key, **fields)

    def update(
        self,
        identity: MemoryId,
        *,
        text: str | None = None,
        supersedes: MemoryId | str | None = UNSAID,
        scope: Scopes = None,
        **fields: Unpack[Fields],
    ) -> Memory:
        """Change a fact, which keeps its id and records its former state in its history. None clears a field.

        With `supersedes=None` it replaces nothing any more, and the memory it had replaced is found again.
        """
        return self.facts.revise(identity, text=text, supersedes=supersedes, scope=scope, **fields).memory

    def add_documents(self, documents: Iterable[Document]) -> int:
        """Store documents that have no files, each replacing the content of its id; return the memory count."""
        return self.facts.add_documents(documents)

    @asked_again
    def get(self, identity: MemoryId, *, scope: Scopes = None) -> Memory:
        """Return one memory; one outside the visible scopes counts as missing."""
        return self.memories.get(identity, scope=scope)

    @asked_again
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
        return self.memories.list(limit=limit, offset=offset, sort=sort, after=after, **filters)

    @asked_again
    def history(self, identity: MemoryId, *, scope: Scopes = None) -> Sequence[Former]:
        """Return the former states of a memory, one for each change, the latest last."""
        return self.memories.history(identity, scope=scope)

    def mark_used(self, *identities: MemoryId, scope: Scopes = None) -> int:
        """Count a use of memories, all or none; extend the expiry of those whose decay class allows it."""
        return self.memories.mark_used(*identities, scope=scope)

    def forget(self, *identities: MemoryId, scope: Scopes = None, purge: bool = False) -> Forgotten:
        """Delete memories by their exact ids, all or none; with `purge` no byte of them stays."""
        return self.memories.forget(*identities, scope=scope, purge=purge)

    # -- files -----------------------------------------------------------------------------------------------

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
        from ..ingest.pipeline import Ingestor

        if not paths:
            raise ConfigError("no path was named", "name files or folders; . is the current folder")
        if "" in paths:  # a variable of a shell that is not set; as a path it would be the whole folder one is in
            raise ConfigError("a path is empty", "name files or folders; . is the current folder")
        usual, owner = self._ingest_settings, scope_of(scope)
        chosen = usual if base is None else replace(usual, workspace=settled(base))
        if not dry_run:
            self._serving.adopt()
        embedder = self._serving.embedder
        ingestor = Ingestor(self._store, embedder, chosen, progress or (lambda *_: None), self._clock)
        report = ingestor.ingest([Path(path) for path in paths], owner, dry_run=dry_run)
        if not dry_run:
            self._writer.embed_added()
            self._store.settle([owner])
            if read := self._writer.reindex(progress):
                report.remarks.append(("words", f"{read} memories that were stored before were reindexed"))
            report.remarks += [("calibration", remark) for remark in self._calibrator.renew([owner], progress)]
        return report

    @cached_property
    def _ingest_settings(self) -> Settings:
        from ..ingest.documents import ChunkSize
        from ..ingest.pipeline import Settings

        return Settings(
            workspace=self.config.notes,
            language=self._language,
            size=ChunkSize(self.config["chunk.tokens"], self.config["chunk.overlap"]),
            max_bytes=self.config["ingest.max_bytes"],
            defers=defers(self.config),
        )

    def ingest_files(
        self,
        paths: str | Sequence[str] | None = None,
        *,
        workspace: str | Path | None = None,
        scope: str | Scope = GLOBAL,
        dry_run: bool = False,
        plan: bool = False,
        base: str | Path | None = None,
        progress: Progress | None = None,
    ) -> Extraction:
        """Extract facts from files that match patterns with the language model; finished parts are skipped.

        A dry run calls the model and stores nothing; a plan makes no calls and counts those that would be made.
        """
        from ..ingest.extraction.extractor import Extractor

        owner, model = scope_of(scope), self._extraction_model(is_needed=not plan)
        chosen = self._extraction_settings(paths, workspace, base)
        if not (dry_run or plan):
            self._serving.adopt()
        extractor = Extractor(self._store, self._serving.embedder, model, chosen, owner, self._clock)
        report = extractor.extract(dry_run=dry_run, plan=plan, progress=progress or (lambda *_: None))
        if report.stored and not dry_run:
            self._writer.embed_added()
            report.remarks += [("calibration", remark) for remark in self._calibrator.renew([owner])]
        return report

    def _extraction_model(self, *, is_needed: bool) -> Llm | None:
        """Return the language model of the settings; None where it is missing and not needed."""
        try:
            return self.models.language_model()
        except ProviderError:
            if is_needed:
                raise
            return None

    def _extraction_settings(
        self, paths: str | Sequence[str] | None, workspace: str | Path | None, base: str | Path | None
    ) -> ExtractionSettings:
        from ..ingest.extraction.extractor import ExtractionSettings
        from ..ingest.extraction.prompts import WindowSize
        from ..ingest.walk import parsed

        config = self.config
        folder = config.workspace if workspace is None else settled(workspace)
        check_workspace(folder)
        return ExtractionSettings(
            workspace=folder,
            base=config.notes if base is None else settled(base),
            patterns=parsed(config["ingest.paths"] if paths is None else paths),
            named=paths is not None,
            size=WindowSize(config["ingest.characters"], config["ingest.overlap"]),
            language=config["language"],
            max_bytes=config["ingest.max_bytes"],
            same_cosine=config["ingest.same_cosine"],
        )

    # -- care ------------------------------------------------------------------------------------------------

    def status(self, space: str | None = None, *, scope: Scopes = None) -> StoreStatus:
        """Count the memories of the store, or those a scope sees, and those without a vector in a space."""
        return self._store.status(self._serving.space if space is None else space, share_of(scope))

    def doctor(self, *, repair: bool = False, deep: bool = False, progress: Progress | None = None) -> Checkup:
        """Check the file, terms and vectors of the store; with `repair`, repair them.

        Derived data is rebuilt. Damaged memories are reported, never dropped silently; where the file had to be
        rewritten, the old file is kept beside the new one. A `deep` check derives everything again and compares it with
        the stored data.
        """
        return self.maintenance.check(repair=repair, deep=deep, progress=progress)

    def calibrate(self, *, scope: Scopes = None, progress: Progress | None = None) -> Calibration:
        """Calibrate the confidence thresholds on the memories visible to this scope."""
        return self._calibrator.calibrate(visible_scopes(scope, self._store), progress, self._serving.embedder)

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
        """Fit the fusion to these memories on up to `queries` synthetic queries; save it only with `apply`."""
        from ..evaluation.tuning import TuningSetup, tuned

        check_counts(1, queries=queries)
        where = Filters(scope=scope).for_store(self._store, self._clock())
        with self._copied() as store:
            stage = TuningSetup(store, self._serving.embedder, self.config, where)
            tuning = tuned(stage, recipe, queries, seed, progress or (lambda *_: None))
        for key, value in tuning.changes.items() if apply else ():
            settings.save(self.config, key, value)
        return tuning

    @contextmanager
    def _copied(self) -> Iterator[Store]:
        """Open a copy of the store that may be changed and is thrown away."""
        import tempfile  # of no use to a search, which should not wait for it

        from ..storage.sqlite.copies import copy_store

        file = self.config.store
        if not isinstance(file, Path) or not file.is_file():
            raise StoreError("only a store in a file can be copied", "open the store by its path")
        with tempfile.TemporaryDirectory(prefix="whyrank-copy-") as place:
            copy = Path(place) / "memory.db"
            copy_store(file, copy)
            with closing(open_store(copy, self.config["keyword"], self.config["cache.megabytes"])) as store:
                yield store

    def backup(self, path: str | Path, *, progress: Progress | None = None) -> Backup:
        """Copy a snapshot of the whole store into one file, which is verified before it is put in place.

        Others read and write meanwhile. An earlier backup is replaced; any other file is not.
        """
        from ..storage.sqlite.backups import write_backup

        file = self.config.store
        if not isinstance(file, Path) or not file.is_file():
            hint = "open the store by its path; one on a server is backed up by pg_dump, or by `whyrank export`"
            raise StoreError("only a store in a file can be backed up", hint)
        self._refuse_own(Path(path))
        return write_backup(file, Path(path), progress or (lambda *_: None))

    def export(
        self,
        out: str | Path | TextIO,
        *,
        scope: str | Scope = GLOBAL,
        every_scope: bool = False,
        progress: Progress | None = None,
        notices: MutableSequence[Notice] | None = None,
    ) -> int:
        """Export one scope, or every scope, as JSON lines to a file (atomically) or a stream.

        Return the number of memories. Damaged memories are written as far as they can be read, and reported in
        `notices`.
        """
        from .export import Exporter, write_lines, written_whole

        said: MutableSequence[Notice] = [] if notices is None else notices
        owners = sorted(self._store.scopes()) if every_scope else [scope_of(scope)]
        tick: Progress = progress or (lambda done, total, label: None)
        exporter = Exporter(self._store, self.pins.board(), self._clock)
        # Closed before the store is, also where the reader of a stream has gone.
        with closing(exporter.records(owners, every_scope, tick, said)) as records:
            if not isinstance(out, str | Path):
                return write_lines(out, records)
            self._refuse_own(Path(out))
            with written_whole(Path(out)) as file:
                return write_lines(file, records)

    def _refuse_own(self, file: Path) -> None:
        """Refuse to overwrite a file of the store with an export or a backup of it."""
        store = self.config.store_file
        own = {store.with_name(store.name + end) for end in ("", "-wal", "-shm", ".lock")}
        own |= {self.config.pins, log_file(self.config)}
        if file.absolute().resolve() in {path.resolve() for path in own}:
            raise ConfigError(f"{file} belongs to the store itself", "name another file")

    def import_from(
        self, format_name: str, path: str | Path, *, dry_run: bool = False, progress: Progress | None = None
    ) -> Imported:
        """Import memories from a file: `"whyrank"` reads the output of `export`, ids and history included.

        Stored memories do not change: those that the store holds with other content are skipped and reported. An
        interrupted import continues when called again.
        """
        from .export import Importer, items_in

        items = items_in(format_name, Path(path))
        importer = Importer(self._store, self._writer.write, self.pins.board(), self._language, self._clock())
        done = importer.run(items, self._store.scopes(), dry_run, progress or (lambda *_: None))
        if done.new and not dry_run:
            self._store.settle(done.scopes)
            self._calibrator.renew(sorted(done.scopes), progress)
        return done


def check_workspace(folder: Path) -> None:
    """Refuse a workspace that is not there."""
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}", "name the workspace with --workspace")


def open_store(
    place: Path | settings.StoreUrl, keyword: str, cache_megabytes: int, ballast_megabytes: int = 0
) -> IndexedStore:
    """Open the store in a file or on a server, or make it."""
    if not isinstance(place, Path):
        from ..storage.store import PostgresStore

        return PostgresStore(place.url, keyword, cache_megabytes)
    from ..storage.store import SqliteStore

    prepare_place(place)
    return SqliteStore(place, keyword, cache_megabytes, ballast_megabytes=ballast_megabytes)


def prepare_place(path: Path) -> None:
    """Make the folder of a store; refuse a path that can be no file, or leads nowhere."""
    with _usable(path):
        path.parent.mkdir(mode=0o700, exist_ok=True)


def check_store(place: Path | settings.StoreUrl) -> None:
    """Refuse a path or an address that can be no store, without touching it; it need not exist."""
    from ..storage.sqlite.schema import check_file

    if not isinstance(place, Path):
        from ..storage.postgres.pool import Address  # psycopg takes a tenth of a second to import

        Address.parse(place.url)
        return
    path = place
    with _usable(path):
        is_there = path.exists()
    if is_there:
        check_file(path)


@contextmanager
def _usable(path: Path) -> Iterator[None]:
    """Refuse a path that can be no file, or leads nowhere."""
    try:
        if path.exists() and not path.is_file():
            kind = "a folder" if path.is_dir() else "no regular file"
            raise StoreError(f"{path} is {kind}", "name a file for the store, for instance memory.db")
        home = settings.notes_of(path)  # a name that was mistyped should make no folders, but for the store's own
        if not home.exists():
            raise StoreError(
                f"there is no folder {home} for the store", "create it, or choose another place with --store"
            )
        yield
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise StoreError(f"{path} cannot be used: {said}", "choose another place with --store") from error
