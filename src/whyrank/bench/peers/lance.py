"""LanceDB: columns on disk, a quantised vector index, full-text search, and its own fusion of ranks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..contestant import Ability, Peer
from ..corpus import NOTES_PER_BATCH, Written
from ..directions import DIMENSION

if TYPE_CHECKING:
    from ...ports import Vector

os.environ.setdefault("LANCEDB_LOG", "error")  # read when it is loaded; a warning for every question costs it time

_FEWEST_INDEXED = 5_000  # vectors; below that its exact scan is the better index
_REFINED = 10  # times as many candidates are compared in full: a recall of 0.99 and more


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
