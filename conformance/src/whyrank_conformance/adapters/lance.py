"""LanceDB: columns on disk, full-text search, and its own fusion of ranks."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, ClassVar

from ..adapter import Adapter, Answer, Door, Found, Note, Question, Setup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

os.environ.setdefault("LANCEDB_LOG", "error")  # read when it is loaded


class LanceDb(Adapter):
    """A LanceDB table with a full-text index, asked by its hybrid search with its default reranker."""

    name = "lancedb"
    about = "LanceDB, hybrid search with its default reranker (reciprocal ranks) and its default metric (L2)"
    packages = ("lancedb", "pyarrow")
    call = 'table.search(query_type="hybrid").vector(v).text(q).where(…).limit(n)'
    promises = frozenset({"words", "vectors", "scopes", "doors"})
    choices: ClassVar[Mapping[int, str]] = {
        12: "the full-text index splits at spaces and signs; other tokenizers (ngram, jieba, lindera) "
        "are a setting of the index",
        13: "the metric is a setting; its default is L2, for which lengths count",
        17: "each run brings as many candidates as results are asked for",
    }

    def open(self, setup: Setup) -> None:
        """Make an empty table."""
        import lancedb
        import pyarrow

        self._embed, self._place = setup.embed, str(setup.folder)
        vector = pyarrow.list_(pyarrow.float32(), setup.dimension)
        fields = [("id", pyarrow.string()), ("text", pyarrow.string()), ("scope", pyarrow.string()), ("vector", vector)]
        self._table: Any = lancedb.connect(self._place).create_table("notes", schema=pyarrow.schema(fields))

    def add(self, notes: Sequence[Note]) -> None:
        """Append rows, and index their words."""
        vectors = self._embed([note.text for note in notes])
        self._table.add(
            [
                {"id": note.id, "text": note.text, "scope": note.scope, "vector": vector.tolist()}
                for note, vector in zip(notes, vectors, strict=True)
            ]
        )
        self._table.create_fts_index("text", replace=True)

    def delete(self, ids: Sequence[str]) -> None:
        """Delete rows."""
        marks = ", ".join(f"'{id}'" for id in ids)
        self._table.delete(f"id IN ({marks})")

    def search(self, question: Question) -> Answer:
        """Search both, fused by LanceDB."""
        asked = self._table.search(query_type="hybrid").vector(self._embed([question.text])[0]).text(question.text)
        if question.scope:
            asked = asked.where(f"scope = '{question.scope}'")
        return Answer(tuple(Found(row["id"]) for row in asked.limit(question.limit).to_list()))

    def close(self) -> None:
        """Let the table go."""
        del self._table

    def doors(self) -> Mapping[str, Door]:
        """Return the asynchronous library."""
        return {"asynchronous library": lambda question: asyncio.run(self._asked(question))}

    async def _asked(self, question: Question) -> list[str]:
        import lancedb

        table = await (await lancedb.connect_async(self._place)).open_table("notes")
        vector = self._embed([question.text])[0].tolist()
        asked = table.query().nearest_to(vector).nearest_to_text(question.text).limit(question.limit)
        return [row["id"] for row in await asked.to_list()]
