"""The engine: the facade behind the Python API, the command line, HTTP and MCP."""

from __future__ import annotations

import time
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from ..analysis.names import probe_for
from ..config import load as settings
from ..errors import ConfigError, ProviderError, ProviderUnavailable, StoreError
from ..ingest.paths import settled
from ..protocols import ALTERED, UNREADABLE, Embedder, Llm, Reranker, Store, StoreStatus
from ..ranking.recipes import Recipe
from ..ranking.stages import Rerank
from ..search.explain import Why, why
from ..search.searcher import Searcher
from ..types.memory import GLOBAL, Notice, Scope
from ..types.query import Deadline, Query, Where
from .arguments import (
    Filters,
    Scopes,
    check_budget,
    check_count,
    check_page,
    check_question,
    check_share,
    check_syntax,
    filters_of,
    identity_of,
    scope_of,
    scopes_of,
    share_of,
    storable,
)
from .facts import Changing
from .maintenance import Rereading
from .spaces import Always, Background, Makers, Serving, Spaces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType

    from ..evaluation.pins import Pin, Pinboard, PinCheck
    from ..evaluation.tuning import Tuning
    from ..ingest.embedding import Progress
    from ..ingest.extraction.extractor import Extraction, ExtractionSettings
    from ..ingest.extraction.ledger import PartRecord
    from ..ingest.pipeline import Report
    from ..search.expansion import Expander
    from ..search.explain import Contrast, Pooled
    from ..storage.sqlite.check import Checkup, Compared, Finding
    from ..types.columns import MemoryId
    from ..types.results import Results
    from .export import Imported


class Pinning:
    """Good answers, recorded once and re-checked whenever anything has changed."""

    def _pinboard(self) -> Pinboard:
        raise NotImplementedError

    def pin(
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
            check_count("within", within)
        return self._pinboard().add(storable("query", query), identity, _named(scope), within, recipe)

    def pins(self, *, scope: Scopes = None, all_scopes: bool = False) -> list[Pin]:
        """Return the pins of the given scopes, or of all."""
        return self._pinboard().pins(None if all_scopes else _named(scope))

    def unpin(
        self, query: str, identity: str | None = None, *, scope: Scopes = None, all_scopes: bool = False
    ) -> list[Pin]:
        """Take out the pins of a query, or one of them."""
        return self._pinboard().remove(query, identity, None if all_scopes else _named(scope))

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
        return self._pinboard().check(scopes, recipe, progress or (lambda *_: None))


def _named(scope: Scopes) -> list[str]:
    return [str(one) for one in scopes_of(scope)]


class Extracting(Spaces):
    """Facts from the files of a workspace."""

    _llm: Callable[[str | None], Llm] | None

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

        owner, model = scope_of(scope), self._language_model(is_needed=not plan)
        chosen = self._extraction_settings(paths, workspace, base)
        if not (dry_run or plan):
            self._serving.adopt()
        extractor = Extractor(self._store, self._embedder, model, chosen, owner, self._clock)
        report = extractor.extract(dry_run=dry_run, plan=plan, progress=progress or (lambda *_: None))
        if report.stored and not dry_run:
            self._fill_added()
            report.remarks += [("calibration", remark) for remark in self._recalibrate([owner])]
        return report

    def _language_model(self, *, is_needed: bool) -> Llm | None:
        """Return the language model of the settings; None where it is missing and not needed."""
        try:
            return self._llm(None) if self._llm is not None else None
        except ProviderError:
            if is_needed:
                raise
            return None

    def left_out(self, *, scope: str | Scope = GLOBAL) -> list[PartRecord]:
        """Return the extraction records of a scope with failed parts or with lines left out of the facts."""
        from ..ingest.extraction.ledger import records_of

        records = records_of(self._store, scope_of(scope)).values()
        wanted = (record for record in records if record.left_out or record.outcome == "failed")
        return sorted(wanted, key=lambda record: (record.path, record.start_line, record.at))

    def _extraction_settings(
        self, paths: str | Sequence[str] | None, workspace: str | Path | None, base: str | Path | None
    ) -> ExtractionSettings:
        from ..ingest.extraction.extractor import ExtractionSettings
        from ..ingest.extraction.prompts import WindowSize
        from ..ingest.walk import parsed

        config = self._config
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


def check_workspace(folder: Path) -> None:
    """Refuse a workspace that is not there."""
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}", "name the workspace with --workspace")


_LOSSES = frozenset({UNREADABLE, ALTERED})  # what no repair can make anew


class Doctoring(Rereading):
    """Integrity check and repair of a store: its file, its terms, its vectors."""

    _met: tuple[Notice, ...] = ()  # damage met by searches since the last repair

    def doctor(self, *, repair: bool = False, deep: bool = False, progress: Progress | None = None) -> Checkup:
        """Check the file, terms and vectors of the store; with `repair`, mend them.

        Derived data is rebuilt. Damaged memories are reported, never dropped silently; where the file had to be
        rewritten, the old file is kept beside the new one. A `deep` check derives everything again and compares it with
        the stored data.
        """
        from ..storage.sqlite.check import Checkup

        findings, kept, compared = looked_at(self._config.store, repair, progress, deep=deep)
        self._met = () if repair else self._met
        inside = self.cared_for(repair, progress) if is_usable(findings) else Checkup()
        room = room_for(self._config.store)
        return inside._replace(findings=findings, kept=kept, compared=compared, free_bytes=room)

    def damage_notices(self) -> tuple[Notice, ...]:
        """Return notices of known damage without a full check: rows set aside, and damage the last search met."""
        where = Where(self._every_scope(), now=self._clock())
        aside = self._store.named(probe_for("?"), where, 1).notices
        return tuple(one for one in dict.fromkeys((*aside, *self._met)) if one.code in _LOSSES)

    def _heard(self, notices: Sequence[Notice]) -> None:
        """Remember the damage that a search met; a search that met none leaves the earlier notices in place."""
        self._met = tuple(one for one in notices if one.code in _LOSSES) or self._met

    def give_up_damaged(self) -> tuple[str, ...]:
        """Delete the memories that were set aside because they cannot be read; return their ids."""
        from ..storage.sqlite.repair import discard_damaged

        return discard_damaged(self._config.store) if self._config.store.is_file() else ()

    def cared_for(self, repair: bool, progress: Progress | None) -> Checkup:
        """Check for terms and vectors that an earlier version made; with `repair`, make them again."""
        from ..storage.sqlite.check import Checkup

        read = self.read_anew(progress) if repair else 0
        embedded = self.renew_vectors(progress) + self.embed(progress).embedded if repair else 0
        return Checkup(
            looked_inside=True,
            old_words=self.old_words(),
            waiting=self.backlog().waiting,
            read_anew=read,
            embedded=embedded,
            has_earlier_vectors=self.has_earlier_vectors(),
        )


def looked_at(
    store: Path, repair: bool, progress: Progress | None, *, deep: bool = False
) -> tuple[tuple[Finding, ...], str, Compared | None]:
    """Return the findings on the file of a store, the path of the kept old file, and the deep comparison.

    The path is empty unless the file was rewritten. A store that is not in a file has no findings.
    """
    from ..storage.sqlite.check import check_disk, check_store
    from ..storage.sqlite.repair import DeepCheck, repair_store

    if not store.is_file():
        return (), "", None
    tick = progress or (lambda *_: None)
    findings, kept = repair_store(store, tick) if repair else (check_store(store, tick), "")
    if not deep or not is_usable(findings):
        return (*findings, *check_disk(store)), kept, None
    from ..storage.sqlite.reanalysis import compare

    differing, compared = compare(store, tick)
    if differing and repair:
        differing, again = repair_store(store, tick, DeepCheck(differing, lambda path, tick: compare(path, tick)[0]))
        kept = again or kept
    return (*findings, *differing, *check_disk(store)), kept, compared


def room_for(store: Path) -> int | None:
    """Return how many bytes are left on the disk of a store; None for one that is in no file."""
    from ..storage.sqlite.disk import free_bytes

    return free_bytes(store) if store.is_file() else None


def is_usable(findings: Sequence[Finding]) -> bool:
    """Check that a store may be opened and written to: writing over damaged pages may damage more."""
    return not any(
        finding.code in ("schema", "pages", "hopeless", "unusable") and not finding.mended for finding in findings
    )


class Engine(Changing, Extracting, Pinning, Doctoring):
    """A memory store that can be searched and explains its ranking."""

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
        """Check that the opened store is still the file under its name; if not, every call is refused."""
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
        from ..ingest.documents import ChunkSize
        from ..ingest.pipeline import Ingestor, Settings

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
            self._fill_added()
            self._store.settle([owner])
            if read := self.read_anew(progress):
                report.remarks.append(("words", f"those of {read} memories that were stored before were read anew"))
            report.remarks += [("calibration", remark) for remark in self._recalibrate([owner], progress)]
        return report

    def import_from(
        self, format_name: str, path: str | Path, *, dry_run: bool = False, progress: Progress | None = None
    ) -> Imported:
        """Import memories from a file: `"whyrank"` reads the output of `export`, ids and history included.

        Stored memories do not change: those that the store holds with other content are skipped and reported. An
        interrupted import continues when called again.
        """
        from .export import Importer, items_in

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
        check_budget(max_tokens)
        check_share("min_confidence", min_confidence)
        asked = self._query(query, limit, offset, filters, syntax, strict, max_tokens)
        asked = asked if min_confidence is None else replace(asked, min_confidence=min_confidence)
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

        check_budget(max_tokens)
        check_share("min_confidence", min_confidence)
        asked = self._query(query, limit, offset, filters, syntax, strict, max_tokens)
        asked = replace(asked, min_confidence=min_confidence)
        asked, widened = self._widened(asked, expand)
        base, wish = self._config.wishes(recipe)
        with self._store.reading():
            found = pooled(self._searcher(), asked, base, wish, self._reranking(base), likeness=likeness)
            said = (*widened, *self._config.unhonoured(recipe, found.pool.recipe), *self._config.notices)
            said = (*said, *self._serving.notices(), *self.word_notices(asked.where.scopes))
            results = replace(found.results, notices=(*found.results.notices, *said))
        return replace(found, results=results)

    def _searcher(self) -> Searcher:
        """Return a searcher over the space that answers in the held snapshot: never over two."""
        return Searcher(self._store, self._embedder, self._config["language"], self._serving.added())

    def _widened(self, query: Query, expand: bool | None) -> tuple[Query, tuple[Notice, ...]]:
        """Expand a query with a language model if enabled; no read transaction is open during the call."""
        if not (self._config["query_expansion.enabled"] if expand is None else expand):
            return query, ()
        expansion, notices = self._expander.widened(query.text, query.deadline)
        return replace(query, expansion=expansion), notices

    @cached_property
    def _expander(self) -> Expander:
        from ..search.expansion import Expander

        wish = {key: self._config[f"query_expansion.{key}"] for key in ("model", "mode", "timeout_ms")}
        return Expander(lambda: self.language_model(wish["model"]), wish["mode"], wish["timeout_ms"])

    def language_model(self, name: str | None = None) -> Llm:
        """Return the language model of this engine or its settings, or the model of the given name."""
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
        """Explain the rank of a memory, or its loss; or find the change that puts it `over` another.

        With `over` the result is the smallest change, one setting at a time, that would make the two change places.
        """
        asked, widened = self._widened(self._query(query, limit, 0, filters, syntax), expand)
        chosen, wanted = self._recipe(recipe), identity_of(identity)
        with self._store.reading():
            searcher = self._searcher()
            if over is None:
                answer = why(searcher, asked, chosen, wanted)
                return replace(answer, details=(*answer.details, *(notice.message for notice in widened)))
            from ..search.explain import contrast

            compared = contrast(searcher, asked, chosen, wanted, identity_of(over))
            return replace(compared, notices=(*compared.notices, *widened))

    def _pinboard(self) -> Pinboard:
        from ..evaluation.pins import Pinboard

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
        """Fit the fusion to these memories on up to `queries` synthetic queries; save it only with `apply`."""
        from ..evaluation.tuning import TuningSetup, tuned

        check_count("queries", queries)
        where = Filters(scope=scope).where(self._clock())
        with self._copied() as store:
            stage = TuningSetup(store, self._embedder, self._config, where)
            tuning = tuned(stage, recipe, queries, seed, progress or (lambda *_: None))
        for key, value in tuning.changes.items() if apply else ():
            settings.save(self._config, key, value)
        return tuning

    @contextmanager
    def _copied(self) -> Iterator[Store]:
        """Open a copy of the store that may be changed and is thrown away."""
        import tempfile  # of no use to a search, which should not wait for it

        from ..storage.sqlite.copies import copy_store

        if not self._config.store.is_file():
            raise StoreError("only a store in a file can be copied", "open the store by its path")
        with tempfile.TemporaryDirectory(prefix="whyrank-copy-") as place:
            copy = Path(place) / "memory.db"
            copy_store(self._config.store, copy)
            with closing(open_store(copy, self._config["keyword"], self._config["cache.megabytes"])) as store:
                yield store

    def _asked_with(self, embedder: Embedder) -> Engine:
        """Return an engine over the same store that searches with this embedder, whatever the active space."""
        engine = Engine(self._store, embedder, self._config, self._clock, self._reranker)
        engine._serving = Always(self._store, embedder)
        return engine

    def status(self, space: str | None = None, *, scope: Scopes = None) -> StoreStatus:
        """Count the memories of the store, or those a scope sees, and those without a vector in a space."""
        return self._store.status(self.space if space is None else space, share_of(scope))

    def close(self) -> None:
        """Stop background work and release the store."""
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
        """Return a recipe and the notices on settings it ignores; cached by name."""
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
        usual = Rerank(top=self._config["reranker.top"], deadline_ms=self._config["reranker.deadline_ms"])
        own = next((stage for stage in chosen.stages if isinstance(stage, Rerank)), usual)
        # A recipe that brings a reranker keeps it.
        return (own if own.reranker is not None else replace(own, reranker=self._reranker),)


def open_store(path: Path, keyword: str, cache_megabytes: int, ballast_megabytes: int = 0) -> Store:
    """Open the store in a file, or make it."""
    from ..storage.sqlite.store import SqliteStore

    prepare_place(path)
    return SqliteStore(path, keyword, cache_megabytes, ballast_megabytes=ballast_megabytes)


def prepare_place(path: Path) -> None:
    """Make the folder of a store; refuse a path that can be no file, or leads nowhere."""
    with _usable(path):
        path.parent.mkdir(mode=0o700, exist_ok=True)


def check_store(path: Path) -> None:
    """Refuse a path that can be no store, without touching it; a path that does not exist is accepted."""
    from ..storage.sqlite.schema import check_file

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
