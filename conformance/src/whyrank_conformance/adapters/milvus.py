"""Milvus Lite: Milvus in the process, its BM25 function over a text field, its own fusion of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ..adapter import Adapter, Answer, Found, Note, Question, Setup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LONGEST = 65_535  # bytes of a text field


class MilvusLite(Adapter):
    """A Milvus Lite collection with a BM25 function and dense vectors, asked by `hybrid_search`."""

    name = "milvus-lite"
    about = "Milvus Lite, hybrid_search over its BM25 function and dense vectors with RRFRanker()"
    packages = ("pymilvus", "milvus-lite")
    call = "client.hybrid_search(name, [AnnSearchRequest(…, limit=n) × 2], ranker=RRFRanker(), limit=n)"
    promises = frozenset({"words", "vectors", "scopes"})
    choices: ClassVar[Mapping[int, str]] = {
        12: "the analyzer of a text field is a setting (chinese, jieba); the standard one splits at spaces",
        17: "each request has a limit of its own; its documentation uses that of the results",
    }

    def open(self, setup: Setup) -> None:
        """Make an empty collection."""
        from pymilvus import MilvusClient

        self._embed = setup.embed
        self._client: Any = MilvusClient(str(setup.folder / "notes.db"))
        index = self._client.prepare_index_params()
        index.add_index(field_name="dense", index_type="AUTOINDEX", metric_type="COSINE")
        index.add_index(field_name="sparse", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
        self._client.create_collection("notes", schema=_schema(setup.dimension), index_params=index)

    def add(self, notes: Sequence[Note]) -> None:
        """Insert rows."""
        vectors = self._embed([note.text for note in notes])
        self._client.insert(
            "notes",
            [
                {"id": note.id, "text": note.text, "scope": note.scope, "dense": vector.tolist()}
                for note, vector in zip(notes, vectors, strict=True)
            ],
        )

    def delete(self, ids: Sequence[str]) -> None:
        """Delete by id."""
        self._client.delete("notes", ids=list(ids))

    def search(self, question: Question) -> Answer:
        """Ask both and let Milvus fuse them."""
        from pymilvus import AnnSearchRequest, RRFRanker

        where = f'scope == "{question.scope}"' if question.scope else None
        asked: list[tuple[str, Any]] = [
            ("dense", self._embed([question.text])[0].tolist()),
            ("sparse", question.text),
        ]
        runs = [
            AnnSearchRequest(data=[data], anns_field=name, param={}, limit=question.limit, expr=where)
            for name, data in asked
        ]
        [hits] = self._client.hybrid_search("notes", runs, ranker=RRFRanker(), limit=question.limit)
        return Answer(tuple(Found(hit["id"]) for hit in hits))

    def close(self) -> None:
        """Close the client."""
        self._client.close()


def _schema(dimension: int) -> Any:
    from pymilvus import DataType, Function, FunctionType, MilvusClient

    schema = MilvusClient.create_schema()
    schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=200)
    schema.add_field("text", DataType.VARCHAR, max_length=_LONGEST, enable_analyzer=True)
    schema.add_field("scope", DataType.VARCHAR, max_length=200)
    schema.add_field("dense", DataType.FLOAT_VECTOR, dim=dimension)
    schema.add_field("sparse", DataType.SPARSE_FLOAT_VECTOR)
    bm25 = Function(
        name="bm25", input_field_names=["text"], output_field_names=["sparse"], function_type=FunctionType.BM25
    )
    schema.add_function(bm25)
    return schema
