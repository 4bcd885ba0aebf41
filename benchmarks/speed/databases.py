"""Databases that search by words and vectors in the process: LanceDB, Chroma, Qdrant Edge and txtai."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from .corpus import DIMENSION, FUNCTION_WORDS, NOTES_PER_BATCH, OPENERS, Written
from .peers import Ability, Key, Peer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from whyrank.protocols import Vector

os.environ.setdefault("LANCEDB_LOG", "error")  # read when it is loaded; a warning for every question costs it time

_FEWEST_INDEXED = 5_000  # vectors; below that its exact scan is the better index
_REFINED = 10  # times as many candidates are compared in full: a recall of 0.99 and more
_CHROMA_NOTES_PER_CALL = 5_000  # below its own limit
_FUNCTION_WORDS = frozenset({*FUNCTION_WORDS, *OPENERS})
_QDRANT_NOTES_PER_CALL = 1_000
_POOL = 50


class LanceDb(Peer):
    """A LanceDB table with IVF_RQ, its best index at these sizes, and its full-text index."""

    name = "lancedb"
    needs = ("lancedb", "pyarrow")
    modules = ("lancedb",)
    offers: frozenset[Ability] = frozenset({"keyword", "nearest", "search", "add"})
    _table: Any

    def build(self, corpus: Written, folder: Path) -> None:
        """Write the rows, then both indexes."""
        import lancedb
        import pyarrow

        schema = pyarrow.schema(
            [
                ("number", pyarrow.int64()),
                ("text", pyarrow.string()),
                ("vector", pyarrow.list_(pyarrow.float32(), DIMENSION)),
            ]
        )
        table = lancedb.connect(str(folder)).create_table("notes", data=_batches(corpus, schema), schema=schema)
        table.create_fts_index("text")
        if len(corpus.vectors) >= _FEWEST_INDEXED:
            self._index_vectors(table)

    def _index_vectors(self, table: Any) -> None:
        from lancedb.index import IvfRq

        table.create_index("vector", config=IvfRq(distance_type="cosine"))

    def open(self, folder: Path) -> None:
        """Open the table."""
        import lancedb
        from lancedb.rerankers import RRFReranker

        self._table = lancedb.connect(str(folder)).open_table("notes")
        self._fusion = RRFReranker(K=60)

    def keyword(self, question: str, limit: int) -> list[int]:
        """Search the words."""
        return _numbers(self._table.search(question, query_type="fts").select(["number", "_score"]).limit(limit))

    def nearest(self, vector: Vector, limit: int) -> list[int]:
        """Search the vectors."""
        asked = self._table.search(vector, vector_column_name="vector").distance_type("cosine")
        return _numbers(asked.refine_factor(_REFINED).select(["number", "_distance"]).limit(limit))

    def search(self, question: str, vector: Vector, limit: int) -> list[int]:
        """Search both, fused by LanceDB."""
        asked = self._table.search(query_type="hybrid", vector_column_name="vector").vector(vector).text(question)
        refined = asked.distance_type("cosine").refine_factor(_REFINED)
        return _numbers(refined.rerank(self._fusion).select(["number", "text"]).limit(limit))

    def add(self, number: int, text: str, vector: Vector) -> None:
        """Append a row."""
        self._table.add([{"number": number, "text": text, "vector": vector}])


def _batches(corpus: Written, schema: Any) -> Iterator[Any]:
    import pyarrow

    texts, start = [], 0
    for number, text in enumerate(corpus.notes(), 1):
        texts.append(text)
        if len(texts) == NOTES_PER_BATCH or number == len(corpus.vectors):
            flat = pyarrow.array(corpus.vectors[start:number].reshape(-1))
            vectors = pyarrow.FixedSizeListArray.from_arrays(flat, DIMENSION)
            yield pyarrow.RecordBatch.from_arrays(
                [pyarrow.array(range(start, number)), pyarrow.array(texts), vectors], schema=schema
            )
            texts, start = [], number


def _numbers(asked: Any) -> list[int]:
    numbers: list[int] = asked.to_arrow()["number"].to_pylist()
    return numbers


class Chroma(Peer):
    """A Chroma collection; it has no hybrid search in the process, so the words become a filter on the texts."""

    name = "chroma"
    needs = ("chromadb",)
    modules = ("chromadb",)
    offers: frozenset[Ability] = frozenset({"nearest", "search", "add"})
    _collection: Any

    def build(self, corpus: Written, folder: Path) -> None:
        """Add texts and vectors in the largest batches it takes."""
        collection = self._opened(folder)
        texts = list(corpus.notes())
        for start in range(0, len(texts), _CHROMA_NOTES_PER_CALL):
            part = slice(start, start + _CHROMA_NOTES_PER_CALL)
            ids = [str(number) for number in range(len(texts))[part]]
            collection.add(ids=ids, documents=texts[part], embeddings=corpus.vectors[part])

    def open(self, folder: Path) -> None:
        """Open the collection."""
        self._collection = self._opened(folder)

    def _opened(self, folder: Path) -> Any:
        import chromadb
        from chromadb.config import Settings

        settings = Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(str(folder), settings=settings)
        return client.get_or_create_collection("notes", configuration={"hnsw": {"space": "cosine"}})

    def nearest(self, vector: Vector, limit: int) -> Sequence[Key]:
        """Walk the graph."""
        return self._query(vector, limit, include=[])

    def search(self, question: str, vector: Vector, limit: int) -> Sequence[Key]:
        """Walk the graph among the notes whose text contains any word of the question that is no function word."""
        words = [word for word in question.split() if word not in _FUNCTION_WORDS]
        parts = [{"$contains": word} for word in words]
        held = {"$or": parts} if len(parts) > 1 else parts[0] if parts else None
        return self._query(vector, limit, include=["documents"], where_document=held)

    def _query(self, vector: Vector, limit: int, **options: Any) -> list[Key]:
        found = self._collection.query(query_embeddings=[vector], n_results=limit, **options)
        ids: list[Key] = found["ids"][0]
        return ids

    def add(self, number: int, text: str, vector: Vector) -> None:
        """Add one note."""
        self._collection.add(ids=[str(number)], documents=[text], embeddings=[vector])


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
            if len(points) == _QDRANT_NOTES_PER_CALL or number + 1 == len(corpus.vectors):
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


class Txtai(Peer):
    """A sparse index and a dense one, averaged, with vectors given from outside; it brings torch: it is in no extra."""

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
