"""Graphs over vectors: usearch and hnswlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..contestant import Ability, Peer
from ..corpus import NOTES_PER_BATCH, Written
from ..directions import DIMENSION

if TYPE_CHECKING:
    from ...ports import Vector

_LINKS = 16  # a node; both libraries' default
_BUILD_WIDTH, _SEARCH_WIDTH = 128, 128  # the search width that gives a recall of 0.99 and more


class Usearch(Peer):
    """The HNSW graph of usearch, on full vectors."""

    name = "usearch"
    needs = ("usearch",)
    modules = ("usearch.index",)
    offers: frozenset[Ability] = frozenset({"nearest"})
    _index: Any

    def build(self, corpus: Written, folder: Path) -> None:
        """Link the vectors and save the graph."""
        index = self._empty()
        for start in range(0, len(corpus.vectors), NOTES_PER_BATCH):
            rows = np.asarray(corpus.vectors[start : start + NOTES_PER_BATCH])
            index.add(np.arange(start, start + len(rows)), rows, threads=1)
        index.save(str(folder / "graph"))

    def open(self, folder: Path) -> None:
        """Read the graph."""
        self._index = self._empty()
        self._index.load(str(folder / "graph"))

    def nearest(self, vector: Vector, limit: int) -> list[int]:
        """Walk the graph."""
        numbers: list[int] = self._index.search(vector, limit, threads=1).keys.tolist()
        return numbers

    def _empty(self) -> Any:
        from usearch.index import Index

        return Index(
            ndim=DIMENSION,
            metric="ip",
            dtype="f32",
            connectivity=_LINKS,
            expansion_add=_BUILD_WIDTH,
            expansion_search=_SEARCH_WIDTH,
        )


class Hnswlib(Peer):
    """The HNSW graph of hnswlib, on full vectors."""

    name = "hnswlib"
    needs = ("hnswlib",)
    modules = ("hnswlib",)
    offers: frozenset[Ability] = frozenset({"nearest"})
    _index: Any

    def build(self, corpus: Written, folder: Path) -> None:
        """Link the vectors and save the graph."""
        import hnswlib

        index = hnswlib.Index(space="ip", dim=DIMENSION)
        index.init_index(max_elements=len(corpus.vectors), M=_LINKS, ef_construction=_BUILD_WIDTH)
        for start in range(0, len(corpus.vectors), NOTES_PER_BATCH):
            rows = np.asarray(corpus.vectors[start : start + NOTES_PER_BATCH])
            index.add_items(rows, np.arange(start, start + len(rows)), num_threads=1)
        index.save_index(str(folder / "graph"))

    def open(self, folder: Path) -> None:
        """Read the graph."""
        import hnswlib

        self._index = hnswlib.Index(space="ip", dim=DIMENSION)
        self._index.load_index(str(folder / "graph"))
        self._index.set_ef(_SEARCH_WIDTH)

    def nearest(self, vector: Vector, limit: int) -> list[int]:
        """Walk the graph."""
        labels, _ = self._index.knn_query(vector, k=limit, num_threads=1)
        numbers: list[int] = labels[0].tolist()
        return numbers
