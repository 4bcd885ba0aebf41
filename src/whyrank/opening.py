"""How an engine comes to its store, its embedder and its settings: the place that wires ports to providers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import config as settings
from .access import served_card, served_embedder, served_llm, served_model
from .arguments import check_page
from .checkups import Checkup
from .doctoring import is_usable, looked_at, room_for
from .embedding.missing import MissingModel
from .embedding.providers import DEFAULT, FETCHED, SERVED, SHAPING, earlier_embedder, embedder_named
from .engine import Engine, open_store, prepare_place
from .errors import ConfigError, MissingExtra, ProviderError, StoreDamaged, StoreError
from .hits import Ranking
from .places import settled
from .ports import Embedder, Llm, Reranker
from .ranking.foreign import rank_foreign
from .ranking.recipes import Recipe, recipe_named
from .serving import Makers
from .settings import SETTINGS, read
from .types import Run

if TYPE_CHECKING:
    from .ingest.filling import Progress
    from .storage.sqlite.backups import Restored

_NEVER_WRITTEN = "the first memory makes it; if it held some, something has emptied the file: look for a copy of it"
_STORE = "the store"  # as the origin of a setting


class AsyncEngine:
    """The same engine for asynchronous callers: every method is awaited and runs in a thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def __aenter__(self) -> AsyncEngine:
        return self

    async def __aexit__(self, *error: object) -> None:
        import asyncio

        await asyncio.to_thread(self._engine.close)

    def __getattr__(self, name: str) -> Any:
        import asyncio

        attribute = getattr(self._engine, name)
        return partial(asyncio.to_thread, attribute) if callable(attribute) else attribute


def open_engine(
    store: str | Path | None = None,
    *,
    workspace: str | Path | None = None,
    reranker: Reranker | None = None,
    llm: Llm | None = None,
    **options: Any,
) -> Engine:
    """Open a store, or make it; options are settings, with `_` for `.` (`chunk_tokens=200`)."""
    if reranker is not None and not callable(getattr(reranker, "scores", None)):
        raise ConfigError(f"{reranker!r} is no reranker", "give an object with a method scores(question, texts)")
    if llm is not None and not callable(getattr(llm, "complete", None)):
        raise ConfigError(f"{llm!r} is no language model", "give an object with a method complete(messages, …)")
    names = {key.replace(".", "_"): key for key in SETTINGS}
    given = {names.get(option, option): value for option, value in options.items()}
    if store is not None:
        given["store"] = str(settled(Path(store).expanduser()))
    config = settings.load(given, workspace=Path(workspace) if workspace is not None else None)
    # First, so that a model that is not there leaves no store behind.
    embedder = _embedder(config)
    opened = open_store(config.store, config["keyword"], config["cache.megabytes"], config["ballast.megabytes"])
    return Engine(
        opened,
        embedder,
        config,
        reranker=reranker,
        llm=_language_models(config, llm),
        makers=_makers(config),
    )


def doctor(
    store: str | Path | None = None,
    *,
    workspace: str | Path | None = None,
    repair: bool = False,
    deep: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> Checkup:
    """Look whether a store is in order, also one too damaged to be opened; with `repair`, mend what can be mended.

    A `deep` look makes all that is derived again, and compares it with what is stored.
    """
    given = {} if store is None else {"store": str(settled(Path(store).expanduser()))}
    place = settings.load(given, workspace=Path(workspace) if workspace is not None else None).store
    if not place.is_file():
        raise StoreError(f"there is no store at {place}", "name the file of a store")
    if not place.stat().st_size:
        raise StoreError(f"{place} is empty: a store that was never written", _NEVER_WRITTEN)
    findings, kept, compared = looked_at(place, repair, progress, deep=deep)
    if not is_usable(findings):
        return Checkup(findings, kept=kept, free_bytes=room_for(place))
    try:
        with open_engine(store, workspace=workspace, **options) as engine:
            inside = engine.cared_for(repair, progress)
            room = room_for(place)
            return inside._replace(findings=findings, kept=kept, compared=compared, free_bytes=room)
    except StoreDamaged as error:
        from .storage.sqlite.mending import unusable

        return Checkup((*findings, unusable(error)), kept=kept)


def restore(
    file: str | Path,
    store: str | Path | None = None,
    *,
    workspace: str | Path | None = None,
    keep: bool = True,
    progress: Progress | None = None,
) -> Restored:
    """Put the content of a backup into a store, in place of its own; those who have it open see it at once.

    A damaged or foreign file is refused before anything is touched. What the store held is kept beside it as a copy.
    """
    from .storage.sqlite.backups import restore_backup

    given = {} if store is None else {"store": str(settled(Path(store).expanduser()))}
    place = settings.load(given, workspace=Path(workspace) if workspace is not None else None).store
    prepare_place(place)
    return restore_backup(place, settled(Path(file).expanduser()), keep=keep, tick=progress or (lambda *_: None))


def check_backup(file: str | Path, store: Path) -> None:
    """Refuse what cannot be a backup for a store, without touching either."""
    from .storage.sqlite.backups import check_source

    check_source(store, settled(Path(file).expanduser()))


def count_memories(store: Path) -> int | None:
    """Count what is in the file of a store, also a damaged one: 0 if it is not there, None if nobody can say."""
    from .storage.sqlite.backups import count_held

    return count_held(store)


def _makers(config: settings.Config) -> Makers:
    """Say how the embedders of other spaces are made with these settings."""

    def make(provider: str, shaped_by: Mapping[str, object]) -> Embedder | None:
        kept = {key: value for key, value in shaped_by.items() if key in SHAPING.get(provider, ())}
        values = {key: settings.Value(read(key, value, _STORE), _STORE) for key, value in kept.items()}
        return _named(provider, replace(config, values={**config.values, **values}))

    def provider_of(space: str) -> str:
        from .embedding.models import models

        if earlier_embedder(space) is not None:
            return DEFAULT
        return next((model.name for model in models(config.models, served_card(config)) if model.space == space), "")

    return Makers(
        configured=config["embedding"],
        is_chosen=config.values["embedding"].origin != "default",
        settings=lambda provider: {key: config[key] for key in SHAPING.get(provider, ())},
        make=make,
        provider_of=provider_of,
        earlier=earlier_embedder,
    )


def _named(provider: str, config: settings.Config) -> Embedder | None:
    if provider == SERVED:
        return served_embedder(config)
    return embedder_named(provider, config.models, config["model.threads"])


def _language_models(config: settings.Config, given: Llm | None) -> Callable[[str | None], Llm]:
    """Return what gives a language model by name (None: that of the settings); none is made before it is asked for."""
    if given is not None:
        return lambda model: given
    made: dict[str | None, Llm] = {}

    def language_model(model: str | None) -> Llm:
        if model not in made:
            made[model] = served_llm(config, model)
        return made[model]

    return language_model


def _embedder(config: settings.Config) -> Embedder | None:
    """Return the embedder; where its model is not on this machine, a store that is there is served by words."""
    try:
        return _named(config["embedding"], config)
    except (ProviderError, MissingExtra) as error:
        if not config.store.is_file():
            raise
        return MissingModel(_fingerprint(config), error)


def _fingerprint(config: settings.Config) -> str:
    """Name the space of a model that cannot be used here."""
    if config["embedding"] == SERVED:
        return served_model(config).fingerprint if config["embedder.model"] else "openai/unset@served/own/no-prompt"
    from .embedding.minilm.embedder import fingerprint

    return fingerprint(FETCHED[config["embedding"]])


def fetch_model(name: str = "minilm", *, workspace: str | Path | None = None, progress: Progress | None = None) -> Path:
    """Get a model that is not part of the installation, once per machine; return the folder of all models."""
    from .embedding.models import fetch

    config = settings.load(workspace=Path(workspace) if workspace is not None else None)
    fetch(name, config.models, progress or (lambda done, total, label: None))
    return config.models


class Opening:
    """An asynchronous engine that is about to be opened: await it, or enter it with `async with`."""

    def __init__(self, make: Callable[[], Engine]) -> None:
        self._make = make
        self._opened: AsyncEngine | None = None

    def __await__(self) -> Generator[Any, None, AsyncEngine]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncEngine:
        self._opened = await self._open()
        return self._opened

    async def __aexit__(self, *error: object) -> None:
        if self._opened is not None:
            await self._opened.__aexit__(*error)

    async def _open(self) -> AsyncEngine:
        import asyncio

        return AsyncEngine(await asyncio.to_thread(self._make))


def open_engine_async(store: str | Path | None = None, **options: Any) -> Opening:
    """Open a store for asynchronous callers, by `async with open_async(…) as memory` or `await open_async(…)`."""
    return Opening(partial(open_engine, store, **options))


def rank(
    runs: Sequence[Run] | Mapping[str, Iterable[tuple[str, float]]],
    recipe: str | Recipe = "rrf",
    *,
    weights: Mapping[str, float] | None = None,
    limit: int = 10,
) -> Ranking:
    """Fuse and explain any engines' result lists: runs, or (id, score) pairs by the name of the run."""
    check_page(limit, 0)
    if isinstance(runs, Mapping):
        runs = [Run.of(name, pairs) for name, pairs in runs.items()]
    if not all(isinstance(run, Run) for run in runs):
        raise ConfigError("rank takes runs", 'make them with whyrank.Run.of("name", [(id, score), …])')
    return rank_foreign(runs, recipe if isinstance(recipe, Recipe) else recipe_named(recipe), weights, limit)
