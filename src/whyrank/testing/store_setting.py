"""A store to be filled by the contract's tests, and memories to fill it with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..ingest.entries import content_hash, entry_for
from ..ports import Changes, Store
from ..types import GLOBAL, Memory, Run, Scope, Source, Where
from .embedder import WordDirections

USER, OTHER = Scope("user", "1"), Scope("user", "2")
MINE = frozenset({GLOBAL, USER})
NOW = 1_000_000.0


def fact(identity: str, text: str, **fields: object) -> Memory:
    """Return a memory for tests."""
    memory = Memory(identity, text, created=NOW - 10, date=NOW - 10, source=Source("", content_hash=content_hash(text)))
    return replace(memory, **fields)  # type: ignore[arg-type]  # the fields are those of Memory


def ids(run: Run) -> list[str]:
    """Return the ids of a run in order."""
    return list(run.ids)


class StoreSetting:
    """How the tests of a contract come to a filled store."""

    embedder = WordDirections()

    def open_store(self, folder: Path) -> Store:
        """Return an empty store below a folder."""
        raise NotImplementedError

    def filled(self, folder: Path, memories: Sequence[Memory]) -> Store:
        """Return a store that holds these memories, embedded."""
        store = self.open_store(folder)
        self.put(store, memories)
        return store

    def put(self, store: Store, memories: Sequence[Memory]) -> None:
        """Write memories with their vectors."""
        entries = [entry_for(memory, "en") for memory in memories]
        rows = self.embedder.documents([entry.embed_text for entry in entries])
        vectors = {entry.embed_hash: row for entry, row in zip(entries, rows, strict=True) if row.any()}
        store.write(Changes(put=entries, space=self.embedder.fingerprint, vectors=vectors))

    def where(self, **fields: object) -> Where:
        """Return a filter for the caller of the tests."""
        return replace(Where(scopes=MINE, now=NOW), **fields)  # type: ignore[arg-type]
