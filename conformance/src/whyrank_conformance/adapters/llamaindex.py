"""LlamaIndex: a vector index and BM25 in the process, fused by its query fusion retriever."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar

from ..adapter import Adapter, Answer, Door, Embed, Found, Note, Question, Setup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Fusion(Adapter):
    """QueryFusionRetriever by reciprocal ranks, without questions made by a language model."""

    name = "llamaindex-fusion"
    about = "LlamaIndex's QueryFusionRetriever over VectorStoreIndex and BM25Retriever, reciprocal ranks, one query"
    packages = ("llama-index-core", "llama-index-retrievers-bm25")
    install = "pip install llama-index-retrievers-bm25 (in an environment of its own: it asks for an older pystemmer)"
    call = 'QueryFusionRetriever([…, …], mode="reciprocal_rerank", num_queries=1, similarity_top_k=n).retrieve(q)'
    promises = frozenset({"words", "vectors", "doors", "scopes"})
    choices: ClassVar[Mapping[int, str]] = {
        12: "its BM25 retriever splits at spaces and signs; token_pattern and language are settings",
        17: "each retriever has a similarity_top_k of its own; its documentation uses that of the results",
    }

    def open(self, setup: Setup) -> None:
        """Begin with nothing."""
        self._model = _embedding(setup.embed)
        self._notes: dict[str, Note] = {}

    def add(self, notes: Sequence[Note]) -> None:
        """Keep notes and index them."""
        self._notes |= {note.id: note for note in notes}
        self._built()

    def delete(self, ids: Sequence[str]) -> None:
        """Forget notes and index the others: its BM25 retriever cannot delete."""
        for id in ids:
            del self._notes[id]
        self._built()

    def _built(self) -> None:
        from llama_index.core import VectorStoreIndex

        self._nodes = [_node(note) for note in self._notes.values()]
        self._index: Any = VectorStoreIndex(self._nodes, embed_model=self._model)

    def search(self, question: Question) -> Answer:
        """Retrieve by both, fused."""
        found = self._fusion(question).retrieve(question.text)
        return Answer(tuple(Found(hit.node.node_id) for hit in found))

    def _fusion(self, question: Question) -> Any:
        from llama_index.core.llms import MockLLM
        from llama_index.core.retrievers import QueryFusionRetriever
        from llama_index.retrievers.bm25 import BM25Retriever

        within = {"filters": _within(question.scope)} if question.scope else {}
        count = min(question.limit, len(self._nodes))  # its BM25 raises if asked for more than there are
        runs = [
            self._index.as_retriever(similarity_top_k=question.limit, **within),
            BM25Retriever.from_defaults(nodes=self._nodes, similarity_top_k=count, **within),
        ]
        return QueryFusionRetriever(
            runs,
            llm=MockLLM(),  # one is asked for, and with one query never used
            mode="reciprocal_rerank",
            num_queries=1,
            similarity_top_k=question.limit,
            use_async=False,
        )

    def close(self) -> None:
        """Forget everything."""
        self._notes.clear()

    def doors(self) -> Mapping[str, Door]:
        """Return the asynchronous call."""
        return {"aretrieve": lambda question: asyncio.run(self._asked(question))}

    async def _asked(self, question: Question) -> list[str]:
        return [hit.node.node_id for hit in await self._fusion(question).aretrieve(question.text)]


def _node(note: Note) -> Any:
    from llama_index.core.schema import TextNode

    keys = ["scope"]
    return TextNode(
        id_=note.id,
        text=note.text,
        metadata={"scope": note.scope},
        excluded_embed_metadata_keys=keys,
        excluded_llm_metadata_keys=keys,
    )


def _within(scope: str) -> Any:
    from llama_index.core.vector_stores import ExactMatchFilter, MetadataFilters

    return MetadataFilters(filters=[ExactMatchFilter(key="scope", value=scope)])


def _embedding(embed: Embed) -> Any:
    from llama_index.core.embeddings import BaseEmbedding

    class Given(BaseEmbedding):  # type: ignore[misc, unused-ignore]
        """The embedder we were given, as LlamaIndex takes one."""

        def _get_text_embedding(self, text: str) -> list[float]:
            row: list[float] = embed([text])[0].tolist()
            return row

        def _get_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

    return Given(model_name="given")
