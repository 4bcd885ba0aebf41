"""The other engines, by name; none of them is imported before it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module

from ...errors import ConfigError
from ..contestant import Peer

# Where each contestant is written down.
PEERS: dict[str, tuple[str, str]] = {
    "whyrank without kernel": ("plain", "WithoutKernel"),
    "fts5+numpy": ("sqlite", "UsualRecipe"),
    "fts5 without stop words": ("sqlite", "WithoutStopWords"),
    "sqlite insert": ("sqlite", "BareInsert"),
    "sqlite-vec": ("sqlite", "SqliteVec"),
    "tantivy": ("keyword", "Tantivy"),
    "tantivy without stop words": ("keyword", "TantivyWithoutStopWords"),
    "bm25s": ("keyword", "Bm25s"),
    "usearch": ("graphs", "Usearch"),
    "hnswlib": ("graphs", "Hnswlib"),
    "lancedb": ("lance", "LanceDb"),
    "chroma": ("chroma", "Chroma"),
    "qdrant-edge": ("qdrant", "QdrantEdge"),
    "txtai": ("txtai", "Txtai"),
}
NOBODY = "none"
# Competes only if it is named: it runs our own code in the same process, and would keep it warm for us.
ONLY_IF_NAMED = frozenset({"whyrank without kernel"})


def peer_named(name: str) -> Peer:
    """Return a contestant by its name."""
    module, kind = PEERS[name]
    peer: Peer = getattr(import_module(f"{__name__}.{module}"), kind)()
    return peer


def chosen(names: Sequence[str] | None) -> list[str]:
    """Return the peers to compete with: those asked for, all others if nobody asked, or none."""
    if names is None:
        return [name for name in PEERS if name not in ONLY_IF_NAMED]
    if list(names) == [NOBODY]:
        return []
    for name in names:
        if name not in PEERS:
            close = get_close_matches(name, PEERS, n=1)
            meant = f"did you mean {close[0]!r}?" if close else f"the peers are {', '.join(PEERS)}, or {NOBODY}"
            raise ConfigError(f"there is no peer {name!r}", meant)
    return list(dict.fromkeys(names))
