"""Embedders by the names users type."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache

from ..errors import ConfigError
from ..ports import Embedder

NAMES = ("wordllama", "none")


@cache  # an embedder has no state but its model, which need not be loaded twice
def embedder_named(name: str) -> Embedder | None:
    """Return an embedder, or None for `none`, which is a mode of its own: keywords and names alone."""
    if name == "none":
        return None
    if name == "wordllama":
        from .wordllama import WordLlama

        return WordLlama()
    close = get_close_matches(name, NAMES, n=1)
    meant = f"did you mean {close[0]!r}?" if close else f"the embedders are {', '.join(NAMES)}"
    raise ConfigError(f"there is no embedder {name!r}", meant)
