"""Chroma: a graph over vectors in the process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ..adapter import Ability, Adapter, Answer, Found, Note, Question, Setup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Chroma(Adapter):
    """A Chroma collection with its default metric."""

    name = "chroma"
    about = "Chroma in the process, a collection with its default metric (L2)"
    packages = ("chromadb",)
    call = "collection.query(query_embeddings=[v], n_results=n, where={…})"
    promises = frozenset({"vectors", "scopes"})
    reasons: ClassVar[Mapping[Ability, str]] = {
        "words": "in the process it searches vectors; words are a filter on documents, not a run"
    }
    choices: ClassVar[Mapping[int, str]] = {13: "the metric is a setting; its default is L2, for which lengths count"}

    def open(self, setup: Setup) -> None:
        """Make an empty collection."""
        import chromadb
        from chromadb.config import Settings

        self._embed = setup.embed
        client = chromadb.PersistentClient(str(setup.folder), settings=Settings(anonymized_telemetry=False))
        self._collection: Any = client.create_collection("notes", embedding_function=None)

    def add(self, notes: Sequence[Note]) -> None:
        """Add texts and vectors."""
        texts = [note.text for note in notes]
        self._collection.add(
            ids=[note.id for note in notes],
            documents=texts,
            embeddings=self._embed(texts),
            metadatas=[{"scope": note.scope} for note in notes],
        )

    def delete(self, ids: Sequence[str]) -> None:
        """Delete by id."""
        self._collection.delete(ids=list(ids))

    def search(self, question: Question) -> Answer:
        """Return the nearest."""
        found = self._collection.query(
            query_embeddings=self._embed([question.text]),
            n_results=question.limit,
            where={"scope": question.scope} if question.scope else None,
        )
        return Answer(tuple(Found(id) for id in found["ids"][0]))

    def close(self) -> None:
        """Let the collection go."""
        del self._collection
