"""memsearch: markdown files in Milvus Lite, BM25 and vectors fused by reciprocal ranks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..adapter import Adapter, Answer, Found, Note, Question, Setup
from .served import EmbeddingServer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_EVERYBODY = "notes"  # the folder of notes without a scope


class Memsearch(Adapter):
    """A memsearch index of a folder with its defaults, given our embedder as an OpenAI-compatible server."""

    name = "memsearch"
    about = "memsearch as it comes over Milvus Lite, with our embedder as an OpenAI-compatible server"
    packages = ("memsearch", "milvus-lite")
    install = "pip install memsearch milvus-lite"
    call = "await mem.search(q, top_k=n, source_prefix=…)"
    promises = frozenset({"words", "vectors", "scopes"})
    choices: ClassVar[Mapping[int, str]] = {
        12: "the text field has Milvus's standard analyzer, which splits at spaces",
        17: "each run brings as many candidates as results are asked for",
    }

    def open(self, setup: Setup) -> None:
        """Make an empty index of an empty folder."""
        from memsearch import MemSearch

        self._notes = setup.folder / "files"
        self._notes.mkdir()
        self._server = EmbeddingServer(setup.embed)
        self._loop = asyncio.new_event_loop()
        self._files: dict[str, Path] = {}
        self._memory: Any = MemSearch(
            [self._notes],
            embedding_provider="openai",
            embedding_model="given",  # of a name it does not know it asks the dimension
            embedding_base_url=self._server.url,
            embedding_api_key="none",
            milvus_uri=str(setup.folder / "milvus.db"),
        )

    def add(self, notes: Sequence[Note]) -> None:
        """Write one file for every note, and index them."""
        for note in notes:
            folder = self._notes / (note.scope or _EVERYBODY)
            folder.mkdir(exist_ok=True)
            self._files[note.id] = folder / f"{note.id}.md"
            self._files[note.id].write_text(note.text + "\n", encoding="utf-8")
        self._run(self._memory.index())

    def delete(self, ids: Sequence[str]) -> None:
        """Delete the files, and index what is left."""
        for id in ids:
            self._files.pop(id).unlink()
        self._run(self._memory.index())

    def search(self, question: Question) -> Answer:
        """Search as it comes."""
        within = {"source_prefix": self._notes / question.scope} if question.scope else {}
        found = self._run(self._memory.search(question.text, top_k=question.limit, **within))
        return Answer(tuple(Found(Path(hit["source"]).stem) for hit in found))

    def close(self) -> None:
        """Close index and server."""
        self._memory.close()
        self._loop.close()
        self._server.close()

    def _run(self, awaited: Any) -> Any:
        return self._loop.run_until_complete(awaited)
