"""MemPalace: verbatim drawers in Chroma, the nearest of which are ranked once more by their words."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..adapter import Adapter, Answer, Found, Note, Question, Setup
from .served import EmbeddingServer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_EVERYBODY = "notes"  # the wing of notes without a scope


class MemPalace(Adapter):
    """A palace with its defaults, given our embedder as an OpenAI-compatible server."""

    name = "mempalace"
    about = "MemPalace as it comes over Chroma, with our embedder as an OpenAI-compatible server"
    packages = ("mempalace", "chromadb")
    install = "pip install mempalace"
    call = "search_memories(q, palace, wing=…, n_results=n)"
    promises = frozenset({"words", "vectors", "scopes"})
    choices: ClassVar[Mapping[int, str]] = {
        6: "candidates come from the vectors unless candidate_strategy is union; its documentation says so"
    }

    def open(self, setup: Setup) -> None:
        """Make an empty palace."""
        self._server = EmbeddingServer(setup.embed)
        self._before = dict(os.environ)
        os.environ |= {
            "HOME": str(setup.folder),  # where it keeps its settings
            "MEMPALACE_EMBEDDING_MODEL": "openai-compat",
            "MEMPALACE_EMBEDDING_API_URL": self._server.url,
            "MEMPALACE_EMBEDDING_API_MODEL": "given",
        }
        from mempalace.palace import get_collection

        self._palace = str(setup.folder / "palace")
        self._drawers: Any = get_collection(self._palace)

    def add(self, notes: Sequence[Note]) -> None:
        """File one drawer for every note."""
        from mempalace.miner import add_drawer
        from mempalace.palace import get_collection

        for note in notes:
            add_drawer(self._drawers, note.scope or _EVERYBODY, "room", note.text, f"{note.id}.md", 0, "suite")
        self._drawers = get_collection(self._palace)

    def delete(self, ids: Sequence[str]) -> None:
        """Take drawers out."""
        for id in ids:
            self._drawers.delete(where={"source_file": f"{id}.md"})

    def search(self, question: Question) -> Answer:
        """Search as it comes."""
        from mempalace.searcher import search_memories

        within = {"wing": question.scope} if question.scope else {}
        found = search_memories(question.text, self._palace, n_results=question.limit, **within)
        if "results" not in found:
            raise RuntimeError(str(found))
        return Answer(tuple(Found(Path(hit["source_file"]).stem) for hit in found["results"]))

    def close(self) -> None:
        """Let the palace go, and stop the server."""
        del self._drawers
        self._server.close()
        os.environ.clear()
        os.environ.update(self._before)
