"""The engines there are adapters for, by name; none of them is imported before it is asked for."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from ..adapter import Adapter
from ..errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

OURS = "whyrank"
# Where each adapter is written down.
_WRITTEN: Mapping[str, tuple[str, str]] = {
    OURS: ("whyrank", "Whyrank"),
    f"{OURS}-fts5": ("whyrank", "WhyrankFts5"),
    "fts5+numpy before": ("usual", "Before"),
    "fts5+numpy after": ("usual", "After"),
    "lancedb": ("lance", "LanceDb"),
    "chroma": ("chroma", "Chroma"),
    "txtai": ("txtai", "Txtai"),
    "qdrant-edge": ("qdrant", "QdrantEdge"),
    "milvus-lite": ("milvus", "MilvusLite"),
    "langchain-ensemble": ("langchain", "Ensemble"),
    "llamaindex-fusion": ("llamaindex", "Fusion"),
    "haystack-joiner": ("haystack", "Joiner"),
    "memweave": ("memweave", "Memweave"),
    "mem0": ("mem0", "Mem0"),
    "memsearch": ("memsearch", "Memsearch"),
    "mempalace": ("mempalace", "MemPalace"),
}
# Recipes that whyrank ships besides its default.
RECIPES = (
    "rrf", "keyword", "vector", "openclaw", "openclaw-2026-02", "hybrid-mem", "clawhub", "clawhub-266", "openvault",
)  # fmt: skip
_RECIPES = {f"{OURS}-{recipe}": recipe for recipe in RECIPES}
ENGINES: tuple[str, ...] = (OURS, f"{OURS}-fts5", *_RECIPES, *(name for name in _WRITTEN if OURS not in name))

# Engines that people use for agents' memory and that could not be asked, and why.
UNASKED: Mapping[str, str] = {
    "graphiti": "needs a graph database and a language model before anything is stored",
    "cognee": "needs a language model before anything is stored",
    "letta": "needs a server of its own; its repository has been archived",
    "hindsight": "needs PostgreSQL and a language model before anything is stored",
    "basic-memory": "takes its embedder from a list; the models of that list are fetched from a hub",
    "engram-search": "fetches its embedder and its cross-encoder from a hub",
    "qmd": "is written for Node, and fetches its models from a hub",
    "OpenClaw": "is written for Node; its recipe is asked as fts5+numpy before and as whyrank-openclaw-2026-02",
    "qdrant-client (local mode)": "its BM25 needs files from a hub; Qdrant's engine is asked as qdrant-edge",
}


def engine_named(name: str) -> Callable[[], Adapter]:
    """Return what makes an engine: one there is an adapter for, or `module:Class` of somebody else's."""
    if name in _RECIPES:
        from .whyrank import with_recipe

        return with_recipe(_RECIPES[name])
    if name in _WRITTEN:
        module, kind = _WRITTEN[name]
        return _class(f"{__name__}.{module}", kind)
    if ":" in name:
        return _others(name)
    close = get_close_matches(name, ENGINES, n=1)
    meant = f"did you mean {close[0]!r}?" if close else "--list names them; or give module:Class"
    raise UsageError(f"there is no engine {name!r}", meant)


def chosen(names: Sequence[str] | None) -> list[str]:
    """Return the engines asked for, whyrank itself if nobody asked; `all` is every one there is an adapter for."""
    asked = [OURS] if names is None else [one for name in names for one in (ENGINES if name == "all" else (name,))]
    for name in asked:
        engine_named(name)
    return list(dict.fromkeys(asked))


def _others(name: str) -> Callable[[], Adapter]:
    """Import an adapter from where Python finds it, the current folder included."""
    module, _, kind = name.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = _class(module, kind)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"{name!r} cannot be imported: {error}", "give module:Class of an adapter") from error
    if not (isinstance(found, type) and issubclass(found, Adapter)):
        raise UsageError(f"{name!r} is no adapter", "subclass whyrank_conformance.Adapter")
    return found


def _class(module: str, kind: str) -> Callable[[], Adapter]:
    made: Callable[[], Adapter] = getattr(import_module(module), kind)
    return made
