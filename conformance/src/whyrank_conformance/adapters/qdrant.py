"""Qdrant Edge: Qdrant's engine in the process, sparse vectors for the words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ..adapter import Adapter, Answer, Found, Ids, Note, Question, Setup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_POOL = 20  # of each run, at least; its examples fetch more than they return
_CONSTANT = 2  # of reciprocal ranks, the default of Qdrant's server; here it has to be given


class QdrantEdge(Adapter):
    """A Qdrant Edge shard: its own BM25 and cosines, fused by reciprocal ranks with the constant 2."""

    name = "qdrant-edge"
    about = "Qdrant Edge, its BM25 and dense vectors fused by reciprocal ranks with the constant 2"
    packages = ("qdrant-edge-py",)
    call = "shard.query(QueryRequest(prefetches=[Prefetch(limit=20, …) × 2], query=Fusion.Rrf(k=2), limit=n))"
    promises = frozenset({"words", "vectors", "scopes"})
    choices: ClassVar[Mapping[int, str]] = {
        12: "its tokenizer splits at word boundaries; others (multilingual) are a setting of Bm25"
    }

    def open(self, setup: Setup) -> None:
        """Make an empty shard."""
        from qdrant_edge import (
            Bm25,
            Distance,
            EdgeConfig,
            EdgeShard,
            EdgeSparseVectorParams,
            EdgeVectorParams,
            Modifier,
        )

        config = EdgeConfig(
            vectors={"dense": EdgeVectorParams(size=setup.dimension, distance=Distance.Cosine)},
            sparse_vectors={"words": EdgeSparseVectorParams(modifier=Modifier.Idf)},
        )
        self._shard: Any = EdgeShard.create(str(setup.folder), config)
        self._words, self._embed, self._ids = Bm25(), setup.embed, Ids()

    def add(self, notes: Sequence[Note]) -> None:
        """Upsert points."""
        from qdrant_edge import Point, UpdateOperation

        vectors = self._embed([note.text for note in notes])
        points = [
            Point(
                self._ids.number(note.id),
                {"dense": vector.tolist(), "words": self._words.embed_document(note.text)},
                {"scope": note.scope},
            )
            for note, vector in zip(notes, vectors, strict=True)
        ]
        self._shard.update(UpdateOperation.upsert_points(points))

    def delete(self, ids: Sequence[str]) -> None:
        """Delete points."""
        from qdrant_edge import UpdateOperation

        self._shard.update(UpdateOperation.delete_points([self._ids.number(id) for id in ids]))

    def search(self, question: Question) -> Answer:
        """Ask both runs and fuse them."""
        from qdrant_edge import Fusion, Prefetch, Query, QueryRequest

        runs = (
            Query.Nearest(self._words.embed_query(question.text), using="words"),
            Query.Nearest(self._embed([question.text])[0].tolist(), using="dense"),
        )
        where = _within(question.scope)
        fetched = [Prefetch(limit=max(_POOL, question.limit), query=run, filter=where) for run in runs]
        request = QueryRequest(limit=question.limit, prefetches=fetched, query=Fusion.Rrf(k=_CONSTANT), filter=where)
        return Answer(tuple(Found(self._ids.id(point.id)) for point in self._shard.query(request)))

    def close(self) -> None:
        """Close the shard."""
        self._shard.close()


def _within(scope: str) -> Any:
    from qdrant_edge import FieldCondition, Filter, MatchValue

    return Filter(must=[FieldCondition(key="scope", match=MatchValue(value=scope))]) if scope else None
