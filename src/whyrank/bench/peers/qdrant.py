"""Qdrant Edge: Qdrant's engine in the process, sparse vectors for the words, a graph for the dense ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..contestant import Ability, Peer
from ..corpus import Written
from ..directions import DIMENSION

if TYPE_CHECKING:
    from ...ports import Vector

_NOTES_PER_CALL = 1_000
_POOL = 50


class QdrantEdge(Peer):
    """A Qdrant Edge shard: its own BM25 (which drops stop words) and HNSW, fused by reciprocal ranks."""

    name = "qdrant-edge"
    needs = ("qdrant-edge-py",)
    modules = ("qdrant_edge",)
    offers: frozenset[Ability] = frozenset({"keyword", "nearest", "search", "add"})
    _shard: Any

    def build(self, corpus: Written, folder: Path) -> None:
        """Upsert the notes, then let it index them."""
        from qdrant_edge import Bm25, EdgeShard, UpdateOperation

        shard, words, points = EdgeShard.create(str(folder), _config()), Bm25(), []
        for number, text in enumerate(corpus.notes()):
            points.append(_point(number, text, corpus.vectors[number], words))
            if len(points) == _NOTES_PER_CALL or number + 1 == len(corpus.vectors):
                shard.update(UpdateOperation.upsert_points(points))
                points = []
        shard.optimize()
        shard.flush()
        shard.close()

    def open(self, folder: Path) -> None:
        """Load the shard."""
        from qdrant_edge import Bm25, EdgeShard

        self._shard, self._words = EdgeShard.load(str(folder)), Bm25()

    def keyword(self, question: str, limit: int) -> list[int]:
        """Search the sparse vectors."""
        return self._query(limit, query=self._sparse(question))

    def nearest(self, vector: Vector, limit: int) -> list[int]:
        """Walk the graph."""
        return self._query(limit, query=_dense(vector))

    def search(self, question: str, vector: Vector, limit: int) -> list[int]:
        """Search both and fuse them."""
        from qdrant_edge import Fusion, Prefetch

        runs = [Prefetch(limit=_POOL, query=query) for query in (self._sparse(question), _dense(vector))]
        return self._query(limit, prefetches=runs, query=Fusion.Rrf(k=60), with_payload=True)

    def add(self, number: int, text: str, vector: Vector) -> None:
        """Upsert one note and flush."""
        from qdrant_edge import UpdateOperation

        self._shard.update(UpdateOperation.upsert_points([_point(number, text, vector, self._words)]))
        self._shard.flush()

    def close(self) -> None:
        """Close the shard."""
        self._shard.close()

    def _query(self, limit: int, **request: Any) -> list[int]:
        from qdrant_edge import QueryRequest

        return [point.id for point in self._shard.query(QueryRequest(limit=limit, **request))]

    def _sparse(self, question: str) -> Any:
        from qdrant_edge import Query

        return Query.Nearest(self._words.embed_query(question), using="words")


def _config() -> Any:
    from qdrant_edge import Distance, EdgeConfig, EdgeSparseVectorParams, EdgeVectorParams, Modifier

    return EdgeConfig(
        vectors={"dense": EdgeVectorParams(size=DIMENSION, distance=Distance.Cosine)},
        sparse_vectors={"words": EdgeSparseVectorParams(modifier=Modifier.Idf)},
    )


def _point(number: int, text: str, vector: Vector, words: Any) -> Any:
    from qdrant_edge import Point

    return Point(number, {"dense": vector.tolist(), "words": words.embed_document(text)}, {"text": text})


def _dense(vector: Vector) -> Any:
    from qdrant_edge import Query

    return Query.Nearest(vector.tolist(), using="dense")
