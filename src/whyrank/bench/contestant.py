"""What a contestant has to be able to do, and what the report calls it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from ..ports import Vector
    from .corpus import Written

Ability = Literal["keyword", "nearest", "search", "add"]
Key = int | str
OURS = "whyrank"
SHARED, ALONE = "one file for all scopes", "a store of its own"  # the two that compete where scopes are many


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
