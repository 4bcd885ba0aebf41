"""Embedders by the names users type."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from pathlib import Path

from ..errors import ConfigError, WhyrankError
from ..ports import Embedder
from .minilm.files import Place, Precision

# Models that are fetched once, and how their weights are stored.
FETCHED: dict[str, Precision] = {"minilm": "fp16", "minilm-int8": "int8"}
SERVED = "openai"  # a model behind an OpenAI-compatible server, made from settings
DEFAULT = "wordllama"  # part of the installation
NAMES = (DEFAULT, *FETCHED, SERVED, "none")
# Which settings beside its name shape the vectors of a provider: they are kept with a space, so that its embedder
# can be made again. Never an address or a key, because a store may come from anywhere.
SHAPING: dict[str, tuple[str, ...]] = {SERVED: ("embedder.model", "embedder.dimension", "embedder.prompt")}


@cache  # an embedder has no state but its model, which need not be loaded twice
def embedder_named(name: str, models: Path = Path(), threads: int = 1) -> Embedder | None:
    """Return an embedder that runs here, or None for `none`, which is a mode of its own: keywords and names alone."""
    check_name(name)
    if name == SERVED:
        raise ConfigError(f"{name!r} is not part of the installation", "open an engine with its settings")
    if name == "none":
        return None
    if name == DEFAULT:
        from .wordllama import WordLlama

        return WordLlama()
    from .minilm.embedder import MiniLm

    return MiniLm(Place.below(models), FETCHED[name], threads)


@cache
def earlier_embedder(space: str) -> Embedder | None:
    """Return what makes the vectors of a space as an earlier whyrank made them, or None if none did, or it cannot."""
    if not space.startswith(f"{DEFAULT}/"):
        return None
    from .wordllama import earlier_wordllama

    try:
        return earlier_wordllama(space)
    except WhyrankError:  # its package is not here
        return None


def check_name(name: str) -> None:
    """Refuse a name that no embedder has, with a suggestion."""
    if name in NAMES:
        return
    close = get_close_matches(name, NAMES, n=1)
    meant = f"did you mean {close[0]!r}?" if close else f"the embedders are {', '.join(NAMES)}"
    raise ConfigError(f"there is no embedder {name!r}", meant)
