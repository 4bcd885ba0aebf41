"""memweave: markdown files, SQLite's FTS5 and sqlite-vec, a weighted sum."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..adapter import Ability, Adapter, Answer, Embed, Found, Note, Question, Setup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_EVERYBODY = "notes"  # the folder, and so the source, of notes without a scope


class Memweave(Adapter):
    """A memweave workspace with its defaults: 0.7 for vectors, 0.3 for words, a least score of 0.35."""

    name = "memweave"
    about = "memweave as it comes: hybrid search, 0.7 for vectors, 0.3 for words, a least score of 0.35"
    packages = ("memweave",)
    install = "pip install memweave (it needs Python 3.12)"
    call = "await mem.search(q, max_results=n, min_score=…, source_filter=…)"
    promises = frozenset({"words", "vectors", "relevance", "threshold", "scopes", "abstention"})
    reasons: ClassVar[Mapping[Ability, str]] = {"doors": "its command line cannot be given our embedder"}

    def open(self, setup: Setup) -> None:
        """Open an empty workspace."""
        _allow_extensions()
        from memweave import MemoryConfig, MemWeave

        self._folder = setup.folder
        self._loop = asyncio.new_event_loop()
        config = MemoryConfig(workspace_dir=str(setup.folder), progress=False)
        self._memory: Any = MemWeave(config, embedding_provider=_Given(setup.embed))
        self._files: dict[str, Path] = {}
        self._run(self._memory.open())

    def add(self, notes: Sequence[Note]) -> None:
        """Write one file for every note, and index them."""
        for note in notes:
            folder = self._folder / "memory" / (note.scope or _EVERYBODY)
            folder.mkdir(parents=True, exist_ok=True)
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
        asked: dict[str, Any] = {"source_filter": question.scope} if question.scope else {}
        if question.minimum is not None:
            asked["min_score"] = question.minimum
        found = self._run(self._memory.search(question.text, max_results=question.limit, **asked))
        return Answer(tuple(Found(Path(hit.path).stem, hit.score) for hit in found))

    def close(self) -> None:
        """Close the workspace."""
        self._run(self._memory.close())
        self._loop.close()

    def _run(self, awaited: Any) -> Any:
        return self._loop.run_until_complete(awaited)


def _allow_extensions() -> None:
    """Put pysqlite3 in the place of a Python's own SQLite that cannot load extensions: it has to load sqlite-vec."""
    if hasattr(sqlite3.Connection, "enable_load_extension") or find_spec("pysqlite3") is None:
        return
    sys.modules["sqlite3"] = import_module("pysqlite3")


class _Given:
    """The embedder we were given, as memweave takes one."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed

    async def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question."""
        return (await self.embed_batch([text]))[0]

    async def embed_batch(self, texts: list[str]) -> list[list[float]]:
        """Return one vector per text."""
        rows: list[list[float]] = self._embed(texts).tolist()
        return rows
