"""What a contestant has to be able to do, and which there are; none is imported before it is asked for."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module, metadata
from typing import TYPE_CHECKING, Literal, Protocol

from whyrank.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from whyrank.protocols import Vector

    from .corpus import Written

Ability = Literal["keyword", "nearest", "search", "add"]
Key = int | str
OURS = "whyrank"
SHARED, ALONE = "one file for all scopes", "a store of its own"  # the two that compete where scopes are many
# Where each contestant is written down.
PEERS: dict[str, tuple[str, str]] = {
    "whyrank without kernel": ("ours", "WithoutKernel"),
    "fts5+numpy": ("sqlite", "UsualRecipe"),
    "fts5 without stop words": ("sqlite", "WithoutStopWords"),
    "sqlite insert": ("sqlite", "BareInsert"),
    "sqlite-vec": ("sqlite", "SqliteVec"),
    "tantivy": ("indexes", "Tantivy"),
    "tantivy without stop words": ("indexes", "TantivyWithoutStopWords"),
    "bm25s": ("indexes", "Bm25s"),
    "usearch": ("indexes", "Usearch"),
    "hnswlib": ("indexes", "Hnswlib"),
    "lancedb": ("databases", "LanceDb"),
    "chroma": ("databases", "Chroma"),
    "qdrant-edge": ("databases", "QdrantEdge"),
    "txtai": ("databases", "Txtai"),
}
NOBODY = "none"
# Competes only if it is named: it runs our own code in the same process, and would keep it warm for us.
ONLY_IF_NAMED = frozenset({"whyrank without kernel"})


class Peer(Protocol):
    """An engine that holds notes: built once in a process of its own, then opened and asked."""

    name: str
    needs: tuple[str, ...]  # distributions
    modules: tuple[str, ...]  # what has to be imported before it is opened
    offers: frozenset[Ability]
    install: str = "pip install 'whyrank[peers]'"

    def build(self, corpus: Written, folder: Path) -> None:
        """Index the whole corpus into an empty folder, and leave everything on the disk."""

    def open(self, folder: Path) -> None:
        """Open what was built."""

    def keyword(self, question: str, limit: int) -> Sequence[Key]:
        """Return the notes that hold the question's words, best first."""
        raise _lacking(self, "keyword")

    def nearest(self, vector: Vector, limit: int) -> Sequence[Key]:
        """Return the notes whose vectors are nearest, best first."""
        raise _lacking(self, "nearest")

    def search(self, question: str, vector: Vector, limit: int) -> Sequence[Key]:
        """Return the best notes by words and vector, their texts read."""
        raise _lacking(self, "search")

    def add(self, number: int, text: str, vector: Vector) -> None:
        """Store one more note; it is durable on return."""
        raise _lacking(self, "add")

    def index(self) -> None:
        """Index what was added, where adding leaves that for later."""
        return

    def numbers(self, keys: Sequence[Key]) -> list[int]:
        """Return the numbers of notes that an answer named; not part of what is measured."""
        return [int(key) for key in keys]

    def close(self) -> None:
        """Release what was opened."""
        return


def _lacking(peer: Peer, ability: Ability) -> NotImplementedError:
    return NotImplementedError(f"{peer.name} does not offer {ability}")


def missing(peer: Peer) -> str:
    """Say what has to be installed before a contestant can run, or nothing."""
    absent = [name for name in peer.needs if _version(name) is None]
    return f"{', '.join(absent)} is not installed; {peer.install}" if absent else ""


def versions(peer: Peer) -> Mapping[str, str]:
    """Return the versions of what a contestant needs."""
    found = {name: _version(name) for name in peer.needs}
    return {name: version for name, version in found.items() if version is not None}


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def fused(runs: Sequence[Sequence[int]], limit: int, k: int = 60) -> list[int]:
    """Fuse lists by the sum of 1/(k + rank) (Cormack, Clarke and Büttcher, 2009), as most recipes do."""
    scores: dict[int, float] = {}
    for run in runs:
        for rank, number in enumerate(run, 1):
            scores[number] = scores.get(number, 0.0) + 1 / (k + rank)
    return sorted(scores, key=lambda number: (-scores[number], number))[:limit]


def peer_named(name: str) -> Peer:
    """Return a contestant by its name."""
    module, kind = PEERS[name]
    peer: Peer = getattr(import_module(f"{__package__}.{module}"), kind)()
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
