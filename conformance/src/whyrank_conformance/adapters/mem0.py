"""mem0: the open-source memory layer, without its language model and over Milvus Lite."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, ClassVar

from ..adapter import Adapter, Answer, Door, Found, Note, Question, Setup
from .served import EmbeddingServer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

os.environ["MEM0_TELEMETRY"] = "False"  # read when it is loaded
_EVERYBODY = "everybody"  # the user of notes without a scope; a search must name one

_NO_SAY = "Milvus Lite gives its BM25 with a minus, of which mem0 keeps nothing: over this store words have no say"


class Mem0(Adapter):
    """mem0 with `infer=False`, given our embedder as an OpenAI-compatible server."""

    name = "mem0"
    about = (
        "mem0 (open source) with infer=False over Milvus Lite: the BM25 of its default store needs files from a model "
        "hub; our embedder as an OpenAI-compatible server"
    )
    packages = ("mem0ai", "pymilvus", "milvus-lite")
    install = "pip install mem0ai pymilvus milvus-lite"
    call = 'memory.search(q, filters={"user_id": …}, top_k=n, threshold=…)'
    choices: ClassVar[Mapping[int, str]] = {
        1: _NO_SAY,
        5: _NO_SAY,
        6: "candidates come from the vectors; words only raise their scores",
        8: "the threshold (0.1 unless said otherwise) is held against the cosine alone",
        12: _NO_SAY,
        14: _NO_SAY,
    }
    promises = frozenset({"words", "vectors", "relevance", "threshold", "scopes", "abstention", "doors"})

    def open(self, setup: Setup) -> None:
        """Make an empty memory."""
        from mem0 import Memory

        self._server = EmbeddingServer(setup.embed)
        self._config = _config(setup, self._server.url)
        self._memory: Any = Memory.from_config(self._config)
        self._ids: dict[str, str] = {}  # of ours by theirs

    def add(self, notes: Sequence[Note]) -> None:
        """Add texts as they are."""
        for note in notes:
            added = self._memory.add(note.text, user_id=note.scope or _EVERYBODY, infer=False)
            self._ids[added["results"][0]["id"]] = note.id

    def delete(self, ids: Sequence[str]) -> None:
        """Delete by id."""
        for theirs in [theirs for theirs, ours in self._ids.items() if ours in ids]:
            self._memory.delete(theirs)

    def search(self, question: Question) -> Answer:
        """Search with its default threshold, or the one asked for."""
        found = self._memory.search(question.text, **_asked(question))
        return Answer(tuple(Found(self._ids[hit["id"]], hit["score"]) for hit in found["results"]))

    def close(self) -> None:
        """Close memory and server."""
        self._memory.vector_store.client.close()
        self._memory.close()
        self._server.close()

    def doors(self) -> Mapping[str, Door]:
        """Return the asynchronous library."""
        return {"AsyncMemory": lambda question: asyncio.run(self._asked_async(question))}

    async def _asked_async(self, question: Question) -> list[str]:
        from mem0 import AsyncMemory

        found = await AsyncMemory.from_config(self._config).search(question.text, **_asked(question))
        return [self._ids[hit["id"]] for hit in found["results"]]


def _asked(question: Question) -> dict[str, Any]:
    threshold = {} if question.minimum is None else {"threshold": question.minimum}
    return {"filters": {"user_id": question.scope or _EVERYBODY}, "top_k": question.limit, **threshold}


def _config(setup: Setup, url: str) -> dict[str, Any]:
    # One is asked for, and with infer=False never used.
    nobody = {"provider": "openai", "config": {"api_key": "none", "openai_base_url": url}}
    embedder = {"api_key": "none", "openai_base_url": url, "embedding_dims": setup.dimension}
    store = {
        "url": str(setup.folder / "milvus.db"),
        "token": "",
        "collection_name": "notes",
        "embedding_model_dims": setup.dimension,
        "metric_type": "COSINE",
    }
    return {
        "llm": nobody,
        "embedder": {"provider": "openai", "config": embedder},
        "vector_store": {"provider": "milvus", "config": store},
        "history_db_path": str(setup.folder / "history.db"),
    }
