"""LangChain: BM25 and a vector store in the process, fused by its ensemble retriever."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar

from ..adapter import Ability, Adapter, Answer, Door, Embed, Found, Note, Question, Setup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Ensemble(Adapter):
    """EnsembleRetriever over BM25Retriever and InMemoryVectorStore, equal weights, as its documentation has it."""

    name = "langchain-ensemble"
    about = "LangChain's EnsembleRetriever over BM25Retriever and InMemoryVectorStore, equal weights"
    packages = ("langchain-classic", "langchain-community", "rank-bm25")
    call = "EnsembleRetriever(retrievers=[bm25, vectors], weights=[0.5, 0.5]).invoke(q)[:n], each with k=n"
    promises = frozenset({"words", "vectors", "doors"})
    reasons: ClassVar[Mapping[Ability, str]] = {"scopes": "its BM25 retriever takes no filter"}
    choices: ClassVar[Mapping[int, str]] = {
        12: "words are split at spaces unless a preprocess_func is given",
        14: "words are split at spaces unless a preprocess_func is given, so that signs stay part of them",
        17: "each retriever has a k of its own; its documentation uses a small one",
    }

    def open(self, setup: Setup) -> None:
        """Make an empty vector store."""
        from langchain_core.vectorstores import InMemoryVectorStore

        self._vectors: Any = InMemoryVectorStore(_embeddings(setup.embed))
        self._notes: dict[str, Note] = {}

    def add(self, notes: Sequence[Note]) -> None:
        """Add to the vector store; the BM25 retriever is made of all notes when asked."""
        self._notes |= {note.id: note for note in notes}
        self._vectors.add_documents([_document(note) for note in notes])
        self._index()

    def delete(self, ids: Sequence[str]) -> None:
        """Delete from the vector store, and make the BM25 retriever anew."""
        self._vectors.delete(list(ids))
        for id in ids:
            del self._notes[id]
        self._index()

    def _index(self) -> None:
        from langchain_community.retrievers import BM25Retriever

        self._words: Any = BM25Retriever.from_documents([_document(note) for note in self._notes.values()])

    def search(self, question: Question) -> Answer:
        """Invoke the ensemble."""
        found = self._ensemble(question.limit).invoke(question.text)
        return Answer(tuple(Found(id) for id in _ids(found, question.limit)))

    def _ensemble(self, limit: int) -> Any:
        from langchain_classic.retrievers import EnsembleRetriever

        self._words.k = limit
        vectors = self._vectors.as_retriever(search_kwargs={"k": limit})
        return EnsembleRetriever(retrievers=[self._words, vectors], weights=[0.5, 0.5])

    def close(self) -> None:
        """Forget everything."""
        self._notes.clear()

    def doors(self) -> Mapping[str, Door]:
        """Return the asynchronous call."""
        return {"ainvoke": lambda question: asyncio.run(self._asked(question))}

    async def _asked(self, question: Question) -> list[str]:
        return _ids(await self._ensemble(question.limit).ainvoke(question.text), question.limit)


def _document(note: Note) -> Any:
    from langchain_core.documents import Document

    return Document(id=note.id, page_content=note.text, metadata={"id": note.id})


def _ids(found: Sequence[Any], limit: int) -> list[str]:
    return [document.metadata["id"] for document in found][:limit]


def _embeddings(embed: Embed) -> Any:
    from langchain_core.embeddings import Embeddings

    class Given(Embeddings):  # type: ignore[misc, unused-ignore]
        """The embedder we were given, as LangChain takes one."""

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            """Return one vector per text."""
            rows: list[list[float]] = embed(texts).tolist()
            return rows

        def embed_query(self, text: str) -> list[float]:
            """Return the vector of a question."""
            return self.embed_documents([text])[0]

    return Given()
