"""Open a store: wire settings, providers and storage into an engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from ..analysis.tokenizer import tokens_of
from ..config import load as settings
from ..config.load import OPENAI_KEY_VARIABLE, Config
from ..config.settings import SETTINGS, read
from ..errors import ConfigError, MissingExtra, ProviderError, ProviderUnavailable, StoreDamaged, StoreError
from ..ingest.walk import settled
from ..providers.endpoint import Endpoint, Key, Patience
from ..providers.names import DEFAULT, SERVED, prompts_of
from ..providers.registry import (
    SHAPING,
    MissingModel,
    MissingReranker,
    Model,
    earlier_embedder,
    embedder_named,
    fingerprint_of,
    reranker_named,
)
from ..ranking.diversity import Similarity
from ..ranking.external import ExternalLists, negative_scores, rank_foreign
from ..ranking.recipes import Recipe, recipe_named
from ..types.results import Run
from .arguments import check_counts
from .engine import COLLABORATORS, Engine, current_name, open_store, prepare_place
from .maintenance import is_usable, looked_at, room_for
from .spaces import Makers

if TYPE_CHECKING:
    from ..ingest.embedding import Progress
    from ..protocols import Embedder, Llm, Reranker
    from ..providers.openai import OpenAiChat, OpenAiEmbedder, ServedModel
    from ..storage.sqlite.backups import Restored
    from ..storage.sqlite.check import Checkup
    from ..types.memory import Notice
    from ..types.results import Ranking


OPENAI_URL = "https://api.openai.com/v1"
MOST_KEY_BYTES = 4_096
# A batch that is turned away for a while may take so many times as long as one that is not.
_TOTAL_PER_ATTEMPT = 4

Provider = Literal["embedder", "llm"]


def served_model(config: Config) -> ServedModel:
    """Return the settings of the served embedding model."""
    from ..providers.openai import ServedModel

    return ServedModel(
        model=_said(config, "embedder.model"),
        dimension=config["embedder.dimension"],
        prompts=prompts_of(config["embedder.prompt"]),
        weight=config["embedder.weight"],
        batch=config["embedder.batch"],
    )


def served_card(config: Config) -> Model:
    """Return the registry entry of the served embedding model."""
    missing = missing_settings(config, "embedder")
    model, host = config["embedder.model"], urlsplit(config["embedder.url"] or "").netloc
    about = f"{model} at {host}" if not missing else "a model behind an OpenAI-compatible server"
    return Model(
        SERVED,
        about,
        config["embedder.dimension"] or 0,
        (),
        0,
        served_model(config).fingerprint if model else "",
        " and ".join(f"whyrank config {key} …" for key in missing),
    )


def served_embedder(config: Config) -> OpenAiEmbedder:
    """Return the embedder behind an OpenAI-compatible server; no request is sent yet."""
    from ..providers.http import Transport
    from ..providers.openai import OpenAiEmbedder

    served = served_model(config)
    return OpenAiEmbedder(served, Transport(endpoint(config, "embedder"), _patience(config["embedder.timeout_s"])))


def served_llm(config: Config, model: str | None = None) -> OpenAiChat:
    """Return the language model of the settings, or another of the same server; no request is sent yet."""
    from ..providers.http import Transport
    from ..providers.openai import OpenAiChat

    name = model or _said(config, "llm.model")
    return OpenAiChat(name, Transport(endpoint(config, "llm"), _patience(config["llm.timeout_s"])))


def endpoint(config: Config, provider: Provider) -> Endpoint:
    """Return the URL of a provider and its API key, if there is one."""
    url = _said(config, f"{provider}.url")
    return Endpoint(url, provider, _key(config, provider, url))


def missing_settings(config: Config, provider: Provider) -> tuple[str, ...]:
    """Return the required settings of a provider that are not set."""
    return tuple(key for key in (f"{provider}.url", f"{provider}.model") if config[key] is None)


def _said(config: Config, key: str) -> str:
    value = config[key]
    if value is None:
        example = f"`whyrank config {key} …`" + (f", for instance {OPENAI_URL}" if key.endswith(".url") else "")
        raise ProviderUnavailable(f"{key} is not set", f"set it with {example}")
    return str(value)


def _patience(timeout_s: float) -> Patience:
    return Patience(total_s=_TOTAL_PER_ATTEMPT * timeout_s, attempt_s=timeout_s)


def _key(config: Config, provider: Provider, url: str) -> Key | None:
    """Return the key of the file, else of the environment; OpenAI's own variable is for OpenAI alone."""
    setting, variable = f"{provider}.key_file", f"WHYRANK_{provider.upper()}_KEY"
    if config[setting] is not None:
        return Key(_secret_in(config.place(setting), setting), setting)
    if variable in config.keys:
        return Key(config.keys[variable].strip(), variable)
    if url == OPENAI_URL and OPENAI_KEY_VARIABLE in config.keys:
        return Key(config.keys[OPENAI_KEY_VARIABLE].strip(), OPENAI_KEY_VARIABLE)
    return None


def _secret_in(file: Path, setting: str) -> str:
    try:
        if not file.is_file():
            raise ConfigError(f"{setting} = {str(file)!r} is not a file", "name a file that contains only the key")
        with file.open("rb") as opened:
            raw = opened.read(MOST_KEY_BYTES + 1)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or "it is not a path"
        raise ConfigError(f"{setting} = {str(file)!r} cannot be read: {said}", "check the path") from error
    if len(raw) > MOST_KEY_BYTES:
        raise ConfigError(f"{setting} = {str(file)!r} is too long for a key", "it must contain only the key")
    return raw.decode("ascii", errors="replace").strip()


_NEVER_WRITTEN = "the first memory creates it; if it held memories before, the file has been emptied: look for a copy"
_STORE = "the store"  # as the origin of a setting


class Awaited:
    """A method or collaborator of an engine for asynchronous callers: calls run in a thread."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Return an awaitable for the result of the call."""
        import asyncio

        return asyncio.to_thread(self._target, *arguments, **options)

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._target, name)
        return Awaited(attribute) if callable(attribute) else attribute


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
        attribute = attrgetter(current_name(name, callers=2))(self._engine)
        return Awaited(attribute) if callable(attribute) or name in COLLABORATORS else attribute


def open_engine(
    store: str | Path | settings.StoreUrl | None = None,
    *,
    workspace: str | Path | None = None,
    reranker: Reranker | None = None,
    llm: Llm | None = None,
    embedder: Embedder | None = None,
    clock: Callable[[], float] = time.time,
    **options: Any,
) -> Engine:
    """Open a store, or make it; options are settings, with `_` for `.` (`chunk_tokens=200`).

    An `embedder` that is given takes the place of the one that the setting `embedding` names; `clock` says what the
    time is, in seconds since 1970.
    """
    if reranker is not None and not callable(getattr(reranker, "scores", None)):
        raise ConfigError(f"{reranker!r} is not a reranker", "give an object with a method scores(question, texts)")
    if llm is not None and not callable(getattr(llm, "complete", None)):
        raise ConfigError(f"{llm!r} is not a language model", "give an object with a method complete(messages, …)")
    names = {key.replace(".", "_"): key for key in SETTINGS}
    given = {names.get(option, option): value for option, value in options.items()}
    if store is not None:
        given["store"] = settings.store_setting(store)
    config = settings.load(given, workspace=Path(workspace) if workspace is not None else None)
    # First, so that a model that is not there leaves no store behind.
    embedder = _embedder(config) if embedder is None else embedder
    opened = open_store(config.store, config["keyword"], config["cache.megabytes"], config["ballast.megabytes"])
    return Engine(
        opened,
        embedder,
        config,
        clock,
        reranker=reranker or _reranker(config),
        llm=_language_models(config, llm),
        makers=_makers(config),
    )


def doctor(
    store: str | Path | settings.StoreUrl | None = None,
    *,
    workspace: str | Path | None = None,
    repair: bool = False,
    deep: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> Checkup:
    """Check a store, also one too damaged to be opened; with `repair`, repair what is possible.

    A `deep` check derives everything again and compares it with the stored data.
    """
    from ..storage.sqlite.check import Checkup, unusable

    given = {} if store is None else {"store": settings.store_setting(store)}
    place = settings.load(given, workspace=Path(workspace) if workspace is not None else None).store
    if not isinstance(place, Path):
        with open_engine(store, workspace=workspace, **options) as engine:
            return engine.maintenance.check(repair=repair, deep=deep, progress=progress)
    if not place.is_file():
        raise StoreError(f"there is no store at {place}", "name the file of a store")
    if not place.stat().st_size:
        raise StoreError(f"{place} is empty: a store that was never written to", _NEVER_WRITTEN)
    findings, kept, compared = looked_at(place, repair, progress, deep=deep)
    if not is_usable(findings):
        return Checkup(findings, kept=kept, free_bytes=room_for(place))
    try:
        with open_engine(store, workspace=workspace, **options) as engine:
            inside = engine.maintenance.check_derived(repair, progress)
            room = room_for(place)
            return inside._replace(findings=findings, kept=kept, compared=compared, free_bytes=room)
    except StoreDamaged as error:
        return Checkup((*findings, unusable(error)), kept=kept)


def restore(
    file: str | Path,
    store: str | Path | settings.StoreUrl | None = None,
    *,
    workspace: str | Path | None = None,
    keep: bool = True,
    progress: Progress | None = None,
) -> Restored:
    """Replace the content of a store with a backup; processes that have the store open see it at once.

    A damaged or foreign file is refused before anything is touched. The old content of the store is kept beside it as a
    copy.
    """
    from ..storage.sqlite.backups import restore_backup
    from ..storage.store import SqliteStore

    given = {} if store is None else {"store": settings.store_setting(store)}
    place = settings.load(given, workspace=Path(workspace) if workspace is not None else None).store
    if not isinstance(place, Path):
        raise StoreError(
            f"{place} is restored by its server's own tools", "use pg_restore, or `whyrank import whyrank`"
        )
    prepare_place(place)

    def open_once(copy: Path, index: str) -> None:
        SqliteStore(copy, index).close()

    return restore_backup(
        place, settled(Path(file).expanduser()), open_once, keep=keep, tick=progress or (lambda *_: None)
    )


def check_backup(file: str | Path, store: Path) -> None:
    """Refuse a file that cannot be a backup for a store, without touching either."""
    from ..storage.sqlite.backups import check_source

    check_source(store, settled(Path(file).expanduser()))


def count_memories(store: Path) -> int | None:
    """Count the memories in the file of a store, even a damaged one: 0 if missing, None if unreadable."""
    from ..storage.sqlite.backups import count_held

    return count_held(store)


def _makers(config: settings.Config) -> Makers:
    """Return the factories of embedders for other spaces, by these settings."""

    def make(provider: str, shaped_by: Mapping[str, object]) -> Embedder | None:
        kept = {key: value for key, value in shaped_by.items() if key in SHAPING.get(provider, ())}
        values = {key: settings.Value(read(key, value, _STORE), _STORE) for key, value in kept.items()}
        return _named(provider, replace(config, values={**config.values, **values}))

    def provider_of(space: str) -> str:
        from ..providers.registry import models

        if earlier_embedder(space, config.models) is not None:
            return DEFAULT
        return next((model.name for model in models(config.models, served_card(config)) if model.space == space), "")

    return Makers(
        configured=config["embedding"],
        is_chosen=config.values["embedding"].origin != "default",
        settings=lambda provider: {key: config[key] for key in SHAPING.get(provider, ())},
        make=make,
        provider_of=provider_of,
        earlier=lambda space: earlier_embedder(space, config.models),
    )


def make_embedder(config: settings.Config) -> Embedder | None:
    """Make the embedder that the settings name; several stores may share it."""
    return _named(config["embedding"], config)


def _named(provider: str, config: settings.Config) -> Embedder | None:
    if provider == SERVED:
        return served_embedder(config)
    return embedder_named(provider, config.models, config["model.threads"])


def _language_models(config: settings.Config, given: Llm | None) -> Callable[[str | None], Llm]:
    """Return a function from a model name (None: the settings') to a language model, created on first use."""
    if given is not None:
        return lambda model: given
    made: dict[str | None, Llm] = {}

    def language_model(model: str | None) -> Llm:
        if model not in made:
            made[model] = served_llm(config, model)
        return made[model]

    return language_model


def _embedder(config: settings.Config) -> Embedder | None:
    """Return the embedder; if its model is missing, an existing store is searched by keywords alone."""
    try:
        return _named(config["embedding"], config)
    except (ProviderError, MissingExtra) as error:
        if not config.has_store:
            raise
        return MissingModel(_fingerprint(config), error)


def _fingerprint(config: settings.Config) -> str:
    """Return the name of the space of a model that is not available here."""
    if config["embedding"] == SERVED:
        return served_model(config).fingerprint if config["embedder.model"] else "openai/unset@served/own/no-prompt"
    return fingerprint_of(config["embedding"], config.models)


def _reranker(config: settings.Config) -> Reranker | None:
    """Return the cross-encoder of the settings; a missing one raises when it is used."""
    name = config["reranker.model"]
    if name is None:
        return None
    try:
        return reranker_named(name, config.models, config["model.threads"])
    except ProviderError as error:
        return MissingReranker(name, error)


def fetch_model(
    name: str = "minilm",
    *,
    workspace: str | Path | None = None,
    progress: Progress | None = None,
    pooling: str | None = None,
    prompt: str | None = None,
) -> Path:
    """Download a model that is not part of the installation, once per machine; return the models folder.

    By its name, as `hf:ORG/MODEL`, or by the path of a folder; pooling and prompt are for models that do not declare
    them.
    """
    from ..providers.registry import fetch

    config = settings.load(workspace=Path(workspace) if workspace is not None else None)
    fetch(name, config.models, progress or (lambda done, total, label: None), pooling=pooling, prompt=prompt)
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


def open_engine_async(store: str | Path | settings.StoreUrl | None = None, **options: Any) -> Opening:
    """Open a store for asyncio: `async with open_async(…) as memory` or `await open_async(…)`."""
    return Opening(partial(open_engine, store, **options))


def rank(
    runs: Sequence[Run] | Mapping[str, Iterable[tuple[str, float]]],
    recipe: str | Recipe = "rrf",
    *,
    weights: Mapping[str, float] | None = None,
    limit: int = 10,
    k: float | None = None,
    superseded: Iterable[str] | Mapping[str, str] = (),
    texts: Mapping[str, str] | None = None,
) -> Ranking:
    """Fuse and explain the result lists of any engines: runs, or (id, score) pairs by the name of the run.

    `k` is that of reciprocal rank fusion. `superseded` names ids or texts that were replaced; a mapping names the
    replacement. `texts` by id are for recipes that compare them: in `hybrid-mem` the same text counts once.
    """
    check_counts(0, limit=limit)
    notices: list[Notice] = []
    if isinstance(runs, Mapping):
        runs = [Run.of(name, pairs) for name, pairs in runs.items()]
        for run in runs:
            notices += negative_scores(run.name, [candidate.score for candidate in run.candidates])
    if not all(isinstance(run, Run) for run in runs):
        raise ConfigError("rank takes runs", 'make them with whyrank.Run.of("name", [(id, score), …])')
    chosen = recipe if isinstance(recipe, Recipe) else recipe_named(recipe)
    listed = ExternalLists(runs, weights or {}, texts, _replaced(superseded), _likeness(texts or {}, chosen))
    ranking = rank_foreign(listed, chosen, k, limit)
    return replace(ranking, notices=(*notices, *ranking.notices)) if notices else ranking


def _replaced(superseded: Iterable[str] | Mapping[str, str]) -> Mapping[str, str]:
    if isinstance(superseded, str):
        raise ConfigError(f"superseded is the text {superseded!r}", "give a list of ids or texts")
    return superseded if isinstance(superseded, Mapping) else dict.fromkeys(superseded, "")


def _likeness(texts: Mapping[str, str], recipe: Recipe) -> Similarity | None:
    """Return the terms of the texts for comparison, if a stage of the recipe needs similarities."""
    if "likeness" not in recipe.reads:
        return None
    return Similarity({}, {identity: frozenset(tokens_of(text)) for identity, text in texts.items()})
