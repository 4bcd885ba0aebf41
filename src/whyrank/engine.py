"""The facade: one engine behind every door."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, overload

from . import config as settings
from .arguments import (
    Filters,
    Scopes,
    check_budget,
    check_count,
    check_page,
    check_question,
    check_syntax,
    filters_of,
    identity_of,
    scope_of,
    share_of,
)  # fmt: skip
from .background import Background
from .changing import Changing
from .columns import MemoryId
from .deadline import Deadline
from .doctoring import Doctoring
from .errors import ConfigError, ProviderUnavailable, StoreError
from .extracting import Extracting
from .hits import Results
from .pinning import Pinning
from .places import settled
from .ports import Embedder, Llm, Reranker, Store, StoreStatus
from .ranking.recipes import Recipe
from .ranking.reranking import Rerank
from .search.searcher import Searcher
from .search.why import Why, why
from .serving import Always, Makers, Serving
from .types import GLOBAL, Notice, Query, Scope, Where

if TYPE_CHECKING:
    from .evaluation.pinboard import Pinboard
    from .evaluation.tuning import Tuning
    from .imports import Imported
    from .ingest.filling import Progress
    from .ingest.ingestor import Report
    from .search.contrast import Contrast
    from .search.expansion import Expander
    from .search.pooled import Pooled


class Engine(Changing, Extracting, Pinning, Doctoring):
    """A memory that can be searched and can say why."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder | None,
        config: settings.Config,
        clock: Callable[[], float] = time.time,
        reranker: Reranker | None = None,
        makers: Makers | None = None,
        llm: Callable[[str | None], Llm] | None = None,
    ) -> None:
        self._store = store
        self._llm = llm
        self._reranker = reranker
        self._serving = Serving(store, embedder, makers or Makers())
        self._background = Background()
        self._config = config
        self._clock = clock
        self._policies: dict[str | None, tuple[Recipe, tuple[Notice, ...]]] = {}

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
    def is_current(self) -> bool:
        """Tell whether the store that was opened is still the one under its name; if not, every call is refused."""
        return self._store.is_current

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

        if not paths:
            raise ConfigError("no path was named", "name files or folders; . is the folder you are in")
        if "" in paths:  # a variable of a shell that is not set; as a path it would be the whole folder one is in
            raise ConfigError("a path is empty", "name files or folders; . is the folder you are in")
        config = self._config
        reading = Settings(
            workspace=settled(base) if base is not None else config.notes,
            language=config["language"],
            size=ChunkSize(config["chunk.tokens"], config["chunk.overlap"]),
            max_bytes=config["ingest.max_bytes"],
        )
        owner = scope_of(scope)
        if not dry_run:
            self._serving.adopt()
        ingestor = Ingestor(self._store, self._embedder, reading, progress or (lambda *_: None), self._clock)
        report = ingestor.ingest([Path(path) for path in paths], owner, dry_run=dry_run)
        if not dry_run:
            self._store.settle([owner])
            if read := self.read_anew(progress):
                report.remarks.append(("words", f"those of {read} memories that were stored before were read anew"))
            report.remarks += [("calibration", remark) for remark in self._recalibrate([owner], progress)]
        return report

    def import_from(
        self, format_name: str, path: str | Path, *, dry_run: bool = False, progress: Progress | None = None
    ) -> Imported:
        """Take in what a file of another store holds: `"whyrank"` reads what `export` wrote, ids and history included.

        Nothing that is here changes: what the store holds otherwise is skipped and named. Called again it goes on.
        """
        from .imports import Importer, items_in  # of no use to a search, which should not wait for it

        items = items_in(format_name, Path(path))
        importer = Importer(self._store, self._keep, self._pinboard(), self._config["language"], self._clock())
        done = importer.run(items, self._every_scope(), dry_run, progress or (lambda *_: None))
        if done.new and not dry_run:
            self._store.settle(done.scopes)
            self._recalibrate(sorted(done.scopes), progress)
        return done

    def search(
        self,
        query: str,
        *,
        limit: int | None = None,
        offset: int = 0,
        recipe: str | Recipe | None = None,
        strict: bool = False,
        max_tokens: int | None = None,
        expand: bool | None = None,
        syntax: str = "plain",
        timeout_ms: int | None = None,
        **filters: Any,
    ) -> Results:
        """Return the memories that answer a question, best first, each able to explain its rank.

        With `expand` a language model widens the question first; unsaid, `query_expansion.enabled` counts. With
        `syntax="advanced"` the query knows AND, OR, NOT, parentheses, `word*` and `field:`. After `timeout_ms` the
        answer is what was found so far, and a notice says what is missing; unsaid, the setting `timeout_ms` counts.
        """
        check_budget(max_tokens)
        asked = self._query(query, limit, offset, filters, syntax, strict, max_tokens)
        allowed_ms = self._config["timeout_ms"] if timeout_ms is None else timeout_ms
        if allowed_ms is not None:
            check_count("timeout_ms", allowed_ms)
            asked = replace(asked, deadline=Deadline(allowed_ms))
        chosen, unused = self._policy(recipe)
        asked, widened = self._widened(asked, expand)
        with self._store.reading():
            results = self._searcher().search(asked, chosen)
            self._heard(results.notices)
            said = (*widened, *unused, *self._serving.notices(), *self.word_notices(asked.where.scopes))
        return replace(results, notices=(*results.notices, *said)) if said else results

    def pool(
        self,
        query: str,
        *,
        limit: int | None = None,
        offset: int = 0,
        recipe: str | Recipe | None = None,
        strict: bool = False,
        max_tokens: int | None = None,
        expand: bool | None = None,
        syntax: str = "plain",
        likeness: bool = False,
        **filters: Any,
    ) -> Pooled:
        """Return all that ranking knew of the candidates of a question, to be ranked again by other settings.

        With `likeness` it also knows how like each other they are, which diversity asks for.
        """
        from .search.pooled import pooled  # of no use to a search, which should not wait for it

        check_budget(max_tokens)
        asked = replace(self._query(query, limit, offset, filters, syntax), strict=strict, max_tokens=max_tokens)
        asked, widened = self._widened(asked, expand)
        base, wish = self._config.wishes(recipe)
        with self._store.reading():
            found = pooled(self._searcher(), asked, base, wish, self._reranking(base), likeness=likeness)
            said = (*widened, *self._config.unhonoured(recipe, found.pool.recipe), *self._config.notices)
            said = (*said, *self._serving.notices(), *self.word_notices(asked.where.scopes))
            results = replace(found.results, notices=(*found.results.notices, *said))
        return replace(found, results=results)

    def _searcher(self) -> Searcher:
        """Ask by the space that answers in the moment that is held: never by two."""
        return Searcher(self._store, self._embedder, self._config["language"])

    def _widened(self, query: Query, expand: bool | None) -> tuple[Query, tuple[Notice, ...]]:
        """Let a language model widen a question, if it shall; no store is held while that is waited for."""
        if not (self._config["query_expansion.enabled"] if expand is None else expand):
            return query, ()
        expansion, notices = self._expander.widened(query.text, query.deadline)
        return replace(query, expansion=expansion), notices

    @cached_property
    def _expander(self) -> Expander:
        from .search.expansion import Expander  # most questions are asked as they are

        wish = {key: self._config[f"query_expansion.{key}"] for key in ("model", "mode", "timeout_ms")}
        return Expander(lambda: self.language_model(wish["model"]), wish["mode"], wish["timeout_ms"])

    def language_model(self, name: str | None = None) -> Llm:
        """Return the language model this engine was given, or that of the settings, under this name if one is given."""
        if self._llm is None:
            raise ProviderUnavailable("this engine was made without a language model", "open it with whyrank.open")
        return self._llm(name)

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
        """Explain the place of one memory among the results, or where it was lost; or what would put it `over` another.

        With `over` the answer is the smallest change, one setting at a time, that would make the two change places.
        """
        asked, widened = self._widened(self._query(query, limit, 0, filters, syntax), expand)
        chosen, wanted = self._recipe(recipe), identity_of(identity)
        with self._store.reading():
            searcher = self._searcher()
            if over is None:
                answer = why(searcher, asked, chosen, wanted)
                return replace(answer, details=(*answer.details, *(notice.message for notice in widened)))
            from .search.contrast import contrast  # what a search does not need it does not wait for

            compared = contrast(searcher, asked, chosen, wanted, identity_of(over))
            return replace(compared, notices=(*compared.notices, *widened))

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
        import tempfile  # of no use to a search, which should not wait for it

        from .storage.sqlite.copying import copy_store

        if not self._config.store.is_file():
            raise StoreError("only a store in a file can be copied", "open the store by its path")
        with tempfile.TemporaryDirectory(prefix="whyrank-copy-") as place:
            copy = Path(place) / "memory.db"
            copy_store(self._config.store, copy)
            with closing(open_store(copy, self._config["keyword"], self._config["cache.megabytes"])) as store:
                yield store

    def _asked_with(self, embedder: Embedder) -> Engine:
        """Return an engine over the same store that asks by this embedder, whichever answers."""
        engine = Engine(self._store, embedder, self._config, self._clock, self._reranker)
        engine._serving = Always(self._store, embedder)
        return engine

    def status(self, space: str | None = None, *, scope: Scopes = None) -> StoreStatus:
        """Count what the store holds, or what of it a scope sees, and what is without a vector in a space."""
        return self._store.status(self.space if space is None else space, share_of(scope))

    def close(self) -> None:
        """Stop what is done in the background, and release the store."""
        self._background.close()
        self._store.close()

    def _query(
        self,
        text: str,
        limit: int | None,
        offset: int,
        filters: Mapping[str, Any],
        syntax: str = "plain",
        strict: bool = False,
        max_tokens: int | None = None,
    ) -> Query:
        size = self._config["limit"] if limit is None else limit
        check_question(text)
        check_page(size, offset)
        where = filters_of(Filters, filters).where(self._clock()) if filters else Where(now=self._clock())
        return Query(text, where, size, offset, strict, max_tokens, syntax=check_syntax(syntax))

    def _policy(self, recipe: str | Recipe | None) -> tuple[Recipe, tuple[Notice, ...]]:
        """Return the recipe asked for, and what must be said of the settings beside it: by name it stays what it is."""
        if not isinstance(recipe, Recipe) and recipe in self._policies:
            return self._policies[recipe]
        chosen = self._recipe(recipe)
        policy = chosen, (*self._config.unhonoured(recipe, chosen), *self._config.notices)
        if not isinstance(recipe, Recipe):
            self._policies[recipe] = policy
        return policy

    def _recipe(self, recipe: str | Recipe | None) -> Recipe:
        chosen = self._config.recipe(recipe)
        return chosen.with_stages(*self._reranking(chosen))

    def _reranking(self, chosen: Recipe) -> tuple[Rerank, ...]:
        """Return the stage that a reranker given to this engine adds to every recipe."""
        if self._reranker is None:
            return ()
        own = next((stage for stage in chosen.stages if isinstance(stage, Rerank)), Rerank())
        # A recipe that brings a reranker keeps it.
        return (own if own.reranker is not None else replace(own, reranker=self._reranker),)


def open_store(path: Path, keyword: str, cache_megabytes: int, ballast_megabytes: int = 0) -> Store:
    """Open the store in a file, or make it."""
    from .storage.sqlite.store import SqliteStore

    prepare_place(path)
    return SqliteStore(path, keyword, cache_megabytes, ballast_megabytes=ballast_megabytes)


def prepare_place(path: Path) -> None:
    """Make the folder of a store; refuse a path that can be no file, or leads nowhere."""
    with _usable(path):
        path.parent.mkdir(mode=0o700, exist_ok=True)


def check_store(path: Path) -> None:
    """Refuse what can be no store, without touching it; one that is not there yet can become one."""
    from .storage.sqlite.schema import check_file

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
                f"there is no folder {home} for the store", "make it, or choose another place with --store"
            )
        yield
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise StoreError(f"{path} cannot be used: {said}", "choose another place with --store") from error
