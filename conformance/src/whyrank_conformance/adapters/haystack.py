"""Haystack: its in-memory store, a BM25 and an embedding retriever, joined."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar

from ..adapter import Adapter, Answer, Found, Note, Question, Setup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # read when it is loaded


class Joiner(Adapter):
    """DocumentJoiner by reciprocal ranks over InMemoryBM25Retriever and InMemoryEmbeddingRetriever."""

    name = "haystack-joiner"
    about = "Haystack's DocumentJoiner (reciprocal_rank_fusion) over its in-memory BM25 and embedding retrievers"
    packages = ("haystack-ai",)
    call = 'DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=n).run([bm25.run(…), vectors.run(…)])'
    promises = frozenset({"words", "vectors", "scopes"})
    choices: ClassVar[Mapping[int, str]] = {
        13: "the similarity is a setting of the store; its default is the dot product, for which lengths count",
        17: "each retriever has a top_k of its own (10 as they come)",
    }

    def open(self, setup: Setup) -> None:
        """Make an empty store."""
        from haystack.document_stores.in_memory import InMemoryDocumentStore

        self._embed = setup.embed
        self._store: Any = InMemoryDocumentStore()

    def add(self, notes: Sequence[Note]) -> None:
        """Write documents."""
        from haystack import Document

        vectors = self._embed([note.text for note in notes])
        self._store.write_documents(
            [
                Document(id=note.id, content=note.text, embedding=vector.tolist(), meta={"scope": note.scope})
                for note, vector in zip(notes, vectors, strict=True)
            ]
        )

    def delete(self, ids: Sequence[str]) -> None:
        """Delete documents."""
        self._store.delete_documents(list(ids))

    def search(self, question: Question) -> Answer:
        """Retrieve by both, with as many as they bring by default or are asked for, and join."""
        from haystack.components.joiners import DocumentJoiner
        from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever

        within = _within(question.scope)
        pool = {"top_k": max(10, question.limit), "filters": within}
        words = InMemoryBM25Retriever(self._store, **pool).run(query=question.text)
        vector = self._embed([question.text])[0].tolist()
        near = InMemoryEmbeddingRetriever(self._store, **pool).run(query_embedding=vector)
        joiner = DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=question.limit)
        joined = joiner.run(documents=[words["documents"], near["documents"]])
        return Answer(tuple(Found(document.id) for document in joined["documents"]))

    def close(self) -> None:
        """Let the store go."""
        del self._store


def _within(scope: str) -> Any:
    return {"field": "meta.scope", "operator": "==", "value": scope} if scope else None
