"""Chroma: a graph over vectors in the process, and a filter on what the text contains."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..contestant import Ability, Key, Peer
from ..corpus import Written
from ..words import FUNCTION_WORDS, OPENERS

if TYPE_CHECKING:
    from ...ports import Vector

_NOTES_PER_CALL = 5_000  # below its own limit
_FUNCTION_WORDS = frozenset({*FUNCTION_WORDS, *OPENERS})


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
        for start in range(0, len(texts), _NOTES_PER_CALL):
            part = slice(start, start + _NOTES_PER_CALL)
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
