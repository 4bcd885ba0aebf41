"""What embedding models there are, and which of them can be used at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import WhyrankError
from .minilm.files import Place, Precision
from .providers import FETCHED, check_name

Progress = Callable[[int, int, str], None]

_ABOUT: dict[Precision, str] = {
    "fp16": "all-MiniLM-L6-v2: finds by meaning what words do not",
    "int8": "the same in bytes: two to three times as fast, a little less exact",
}


@dataclass(frozen=True)
class Model:
    """One model as a user chooses it; `needs` says what is missing before it can be used."""

    name: str
    about: str
    dimension: int
    languages: tuple[str, ...]
    bytes: int
    space: str = ""
    needs: str = ""

    @property
    def installed(self) -> bool:
        """Tell whether it can be used at once."""
        return not self.needs


def models(folder: Path, served: Model | None = None) -> tuple[Model, ...]:
    """Return all models, the default first, none last; `served` is the one behind a server, as settings have it."""
    return (_wordllama(), *(_minilm(name, folder) for name in FETCHED), *([served] if served else []), _NONE)


def fetch(name: str, folder: Path, progress: Progress) -> bool:
    """Get a model if it is not there; tell whether anything had to be done."""
    check_name(name)
    if name not in FETCHED:
        return False
    from .minilm.embedder import check_extra
    from .minilm.install import install, is_ready

    check_extra()  # better known before the download than after it
    place = Place.below(folder)
    was_ready = is_ready(place)
    install(place, progress)
    return not was_ready


_NONE = Model("none", "no vectors: words and names answer alone", 0, (), 0)


def _wordllama() -> Model:
    from .wordllama import DIMENSION, LANGUAGES, WordLlama

    model = Model("wordllama", "static vectors, part of the installation", DIMENSION, tuple(LANGUAGES), 0)
    try:
        embedder = WordLlama()
    except WhyrankError as error:
        return replace(model, needs=str(error))
    return replace(model, bytes=embedder.bytes(), space=embedder.fingerprint)


def _minilm(name: str, folder: Path) -> Model:
    from .minilm.embedder import LANGUAGES, fingerprint
    from .minilm.graph import WIDTH

    place, precision = Place.below(folder), FETCHED[name]
    file = place.graph(precision)
    return Model(
        name,
        _ABOUT[precision],
        WIDTH,
        tuple(LANGUAGES),
        file.stat().st_size if file.is_file() else 0,
        fingerprint(precision),
        _missing(name, place.is_ready(precision)),
    )


def _missing(name: str, is_fetched: bool) -> str:
    from .minilm.embedder import EXTRA, has_extra

    if not has_extra():
        return EXTRA
    return "" if is_fetched else f"whyrank model fetch {name}"
