"""The embedding models by name: construction, readiness, missing parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, cast

from ..errors import ConfigError, MissingExtra, ProviderError, ProviderUnavailable, WhyrankError
from ..protocols import Embedder, Reranker, Thresholds, Vector
from .names import DEFAULT, FETCHED, HUB_NAME, MULTILINGUAL, SERVED, check_name, folder_name, is_path, is_recorded_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .onnx.catalog import Installed


# Settings beside its name that shape the vectors of a provider: they are stored with a space, so that its embedder
# can be made again. Never an address or a key, because a store may come from anywhere.
SHAPING: dict[str, tuple[str, ...]] = {SERVED: ("embedder.model", "embedder.dimension", "embedder.prompt")}


@cache  # an embedder has no state but its model, which need not be loaded twice
def embedder_named(name: str, models: Path = Path(), threads: int = 1) -> Embedder | None:
    """Return a local embedder, or None for `none`, the mode with keywords and names alone."""
    check_name(name)
    if name == SERVED:
        raise ConfigError(f"{name!r} is not part of the installation", "open an engine with its settings")
    if name == "none":
        return None
    if name == DEFAULT:
        from .wordllama import WordLlama

        return WordLlama(models=models)
    if name == MULTILINGUAL:
        from .multilingual import ModelFolder, Multilingual

        return Multilingual(ModelFolder.below(models))
    from .onnx.catalog import find_model
    from .onnx.embedder import OnnxEmbedder, check_runtime, fetching_hint

    check_runtime(name)
    found = find_model(name, models)
    if found is None or found.description.kind != "embedding":
        raise ProviderError(f"{name} is not in {models}", fetching_hint(name))
    return OnnxEmbedder(found.description, found.folder, threads)


@cache
def reranker_named(name: str, models: Path, threads: int = 1) -> Reranker:
    """Return a local cross-encoder; nothing is loaded before its first use."""
    from .onnx.catalog import find_model
    from .onnx.embedder import CrossEncoder

    found = find_model(name, models)
    if found is None or found.description.kind != "reranker":
        raise ProviderError(f"the reranker {name} is not in {models}", f"`whyrank model rerank {name}` gets it")
    return CrossEncoder(found.description, found.folder, threads)


def fingerprint_of(name: str, models: Path) -> str:
    """Return the space name of a fetched model, even if it cannot be loaded."""
    if name == DEFAULT:
        from .wordllama import FINGERPRINT as DEFAULT_SPACE

        return DEFAULT_SPACE
    if name == MULTILINGUAL:
        from .multilingual import FINGERPRINT

        return FINGERPRINT
    from .onnx.catalog import find_model

    found = find_model(name, models)
    return found.description.fingerprint if found else f"{name.replace(':', '/', 1)}@unknown/0/no-prompt"


@cache
def earlier_embedder(space: str, models: Path | None = None) -> Embedder | None:
    """Return the embedder that made the vectors of a space in an earlier version; None if there is none."""
    if not space.startswith(f"{DEFAULT}/"):
        return None
    from .wordllama import earlier_wordllama

    try:
        return earlier_wordllama(space, models)
    except WhyrankError:  # its files are not here
        return None


Progress = Callable[[int, int, str], None]
Kind = Literal["embedding", "reranker"]


@dataclass(frozen=True)
class Model:
    """A model as shown to users; `needs` names what is missing before it can be used."""

    name: str
    about: str
    dimension: int
    languages: tuple[str, ...]
    bytes: int
    space: str = ""
    needs: str = ""
    licence: str = ""
    fetched_bytes: int = 0  # what has to be downloaded
    floor: float = 0.0
    kind: Kind = "embedding"

    @property
    def installed(self) -> bool:
        """Return true if the model can be used at once."""
        return not self.needs


class FetchedModel(NamedTuple):
    """Name of an installed model, and true if it had to be fetched."""

    name: str
    is_new: bool


def models(folder: Path, served: Model | None = None) -> tuple[Model, ...]:
    """Return all models, the default first, `none` last; `served` is the one behind a server, by settings."""
    from .onnx.catalog import find_model, recorded_models

    known = [found for name in FETCHED if (found := find_model(name, folder))]
    own, recorded = ([*map(_fetched, some)] for some in (known, recorded_models(folder)))
    return (_wordllama(folder), *own, _multilingual(folder), *recorded, *([served] if served else []), _NONE)


def model_named(name: str, folder: Path, served: Model | None = None) -> Model:
    """Return a model by name, or by the path of its folder; a missing one is a stub."""
    given = folder_name(Path(name)) if is_path(name) else name
    known = next((model for model in models(folder, served) if model.name == given), None)
    return known or Model(given, "a model in ONNX", 0, (), 0, needs=f"whyrank model fetch {name}")


def fetch(
    name: str,
    folder: Path,
    progress: Progress,
    *,
    kind: Kind = "embedding",
    pooling: str | None = None,
    prompt: str | None = None,
) -> FetchedModel:
    """Install a model if it is missing: by name, as hf:ORG/MODEL, or from the path of a folder."""
    if not is_path(name):
        check_name(name)
    if name in FETCHED:
        from .onnx.install import install_published

        return FetchedModel(name, install_published(name, folder, progress))
    if name == DEFAULT:
        from . import wordllama

        is_new = wordllama.install(folder, progress)
        earlier_embedder.cache_clear()
        return FetchedModel(name, is_new)
    if name == MULTILINGUAL:
        from . import multilingual as files

        return FetchedModel(name, files.install(files.ModelFolder.below(folder), progress))
    if not (is_path(name) or is_recorded_name(name)):
        return FetchedModel(name, False)
    from .onnx.install import install_from_folder, install_from_hub, installed_folder

    if HUB_NAME.fullmatch(name):
        found, is_new = install_from_hub(name, folder, progress, kind=kind, pooling=pooling, prompt=prompt)
    else:
        source = Path(name).expanduser() if is_path(name) else installed_folder(name, folder)
        found, is_new = install_from_folder(source, folder, kind=kind, pooling=pooling, prompt=prompt)
    embedder_named.cache_clear()  # it may have been described anew
    reranker_named.cache_clear()
    return FetchedModel(found.description.name, is_new)


_NONE = Model("none", "no vectors: keyword and name search only", 0, (), 0)


def _wordllama(folder: Path) -> Model:
    from .wordllama import DIMENSION, FETCH, FETCHED_BYTES, LANGUAGES, WordLlama

    about = "static vectors, included in the installation"
    model = Model("wordllama", about, DIMENSION, LANGUAGES, 0, licence="MIT")
    try:
        embedder = WordLlama(models=folder)
    except MissingExtra:
        return replace(model, needs=FETCH, fetched_bytes=FETCHED_BYTES)
    except WhyrankError as error:
        return replace(model, needs=str(error))
    return replace(model, bytes=embedder.bytes(), space=embedder.fingerprint)


def _fetched(installed: Installed) -> Model:
    from .onnx.conversion import EXTRA, has_package

    description, folder = installed
    needs = "" if description.is_at(folder) else f"whyrank model fetch {description.name}"
    return Model(
        name=description.name,
        about=description.about,
        dimension=description.dimension,
        languages=description.languages,
        bytes=description.bytes_at(folder),
        space=description.fingerprint if description.kind == "embedding" else "",
        needs=needs if has_package("onnxruntime") else EXTRA,
        licence=description.licence,
        fetched_bytes=description.fetched_bytes,
        floor=description.floor,
        kind=description.kind,
    )


def _multilingual(folder: Path) -> Model:
    from .multilingual import DIMENSION, FETCHED_BYTES, FINGERPRINT, LANGUAGES, ModelFolder, Multilingual

    files = ModelFolder.below(folder)
    return Model(
        name=MULTILINGUAL,
        about="USE-multilingual-3: finds by meaning across languages",
        dimension=DIMENSION,
        languages=LANGUAGES,
        bytes=files.bytes(),
        space=FINGERPRINT,
        needs="" if files.is_ready() else f"whyrank model fetch {MULTILINGUAL}",
        licence="Apache-2.0",
        fetched_bytes=FETCHED_BYTES,
        floor=Multilingual.floor,
    )


class MissingModel:
    """Placeholder for an embedder whose model is not installed on this machine."""

    thresholds = Thresholds(weak=0.35, found=0.7)  # never read: it makes no vectors

    def __init__(self, fingerprint: str, error: WhyrankError) -> None:
        self.fingerprint = fingerprint
        self.error = error

    floor = 0.0
    languages: tuple[str, ...] = ()

    def weight(self, language: str) -> float:
        """Return 0: a missing model has no vote."""
        return 0.0

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Raise ProviderUnavailable with the reason."""
        self._refuse()

    def query(self, text: str) -> Vector:
        """Raise ProviderUnavailable with the reason."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ProviderUnavailable(self.error.message, self.error.hint) from self.error


class MissingReranker:
    """Placeholder for a cross-encoder that is not installed on this machine."""

    def __init__(self, name: str, error: WhyrankError) -> None:
        self.name = name
        self.error = error

    def __repr__(self) -> str:
        return self.name

    def scores(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Raise ProviderUnavailable with the reason."""
        raise ProviderUnavailable(self.error.message, self.error.hint) from self.error


def with_cache(embedder: Embedder) -> Embedder:
    """Return the embedder with a cache of all its vectors; all other attributes are its own."""
    return cast("Embedder", _CachedEmbedder(embedder))


class _CachedEmbedder:
    """An unbounded cache: it lives as long as one evaluation, and holds the texts of its sets."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._documents: dict[str, Vector] = {}
        self._queries: dict[str, Vector] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        missing = [text for text in dict.fromkeys(texts) if text not in self._documents]
        if missing or not texts:
            rows = self._embedder.documents(missing)
            self._documents.update(zip(missing, rows, strict=True))
        import numpy as np

        return np.stack([self._documents[text] for text in texts]) if texts else rows

    def query(self, text: str) -> Vector:
        if text not in self._queries:
            self._queries[text] = self._embedder.query(text)
        return self._queries[text]
