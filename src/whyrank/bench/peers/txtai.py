"""txtai: a sparse index of its own and a dense one, averaged; it brings torch, so it is no part of the extra."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..contestant import Ability, Peer
from ..corpus import Written

if TYPE_CHECKING:
    from ...ports import Vector


class Txtai(Peer):
    """A txtai index with vectors given from outside."""

    name = "txtai"
    needs = ("txtai",)
    modules = ("txtai",)
    install = "pip install txtai (it brings torch, so it is no part of the extra)"
    offers: frozenset[Ability] = frozenset({"search"})
    _index: Any

    def build(self, corpus: Written, folder: Path) -> None:
        """Index texts and vectors, with the texts kept."""
        rows = iter(corpus.vectors)
        index = self._empty(lambda texts: np.stack([next(rows) for _ in texts]))
        index.index((number, text, None) for number, text in enumerate(corpus.notes()))
        index.save(str(folder))

    def open(self, folder: Path) -> None:
        """Load the index; a question's vector is the one that was given last."""
        self._index = self._empty(lambda texts: np.stack([self._asked] * len(texts)))
        self._index.load(str(folder), config={"transform": lambda texts: np.stack([self._asked] * len(texts))})

    def search(self, question: str, vector: Vector, limit: int) -> list[int]:
        """Search both indexes, averaged by txtai."""
        self._asked = vector
        return [int(found["id"]) for found in self._index.search(question, limit)]

    def close(self) -> None:
        """Close the index."""
        self._index.close()

    def _empty(self, transform: Any) -> Any:
        from txtai import Embeddings

        return Embeddings(method="external", transform=transform, hybrid=True, content=True)
