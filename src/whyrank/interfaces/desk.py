"""One engine behind a server: opened when first asked, worked by a few threads, empty until something is stored."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from ..engine import Engine

Done = TypeVar("Done")
Open = Callable[[Path], Engine]

# Searches hold the interpreter most of the time, and every thread keeps a connection and its pages.
_READERS = 4
# A question that no short way answers, so that all is loaded which the questions to come may need.
_NOT_PLAIN = "Wärmen 🙂"


class Desk:
    """Gives its engine to whoever asks, from any thread."""

    def __init__(self, store: Path, open: Open) -> None:
        self._store = store
        self._open = open
        self._turn = threading.Lock()
        self._engine: Engine | None = None
        self._nothing: tuple[Engine, tempfile.TemporaryDirectory[str]] | None = None
        self._readers = ThreadPoolExecutor(_READERS, "whyrank-reader")
        # There is one writer at a time anyhow; any number that wait for a lock must keep no reader from a thread.
        self._writer = ThreadPoolExecutor(1, "whyrank-writer")
        # What writes for minutes does so in many transactions, between which facts are stored.
        self._patient = ThreadPoolExecutor(1, "whyrank-patient")

    @property
    def store(self) -> Path:
        """Return where the store is, or will be."""
        return self._store

    def reading(self) -> Engine:
        """Return the engine; as long as there is no store, one that holds nothing, because a question makes none."""
        with self._turn:
            if self._engine is None and os.path.lexists(self._store):
                self._engine = self._open(self._store)
            return self._engine or self._empty()

    def writing(self) -> Engine:
        """Return the engine; the store is made if it is not there."""
        with self._turn:
            if self._engine is None:
                self._engine = self._open(self._store)
            return self._engine

    def _empty(self) -> Engine:
        if self._nothing is None:
            place = tempfile.TemporaryDirectory(prefix="whyrank-empty-")
            self._nothing = self._open(Path(place.name) / "memory.db"), place
        return self._nothing[0]

    def warm(self) -> None:
        """Open a store that is there before anybody asks; if it cannot be, those who ask will hear why."""
        if os.path.lexists(self._store):
            self._readers.submit(lambda: self.reading().search(_NOT_PLAIN))

    def task(self, work: Callable[[], Done], *, writes: bool = False, takes_long: bool = False) -> asyncio.Future[Done]:
        """Begin work in a thread, so that whoever waits for it keeps nobody else waiting."""
        threads = self._patient if takes_long else self._writer if writes else self._readers
        return asyncio.get_running_loop().run_in_executor(threads, work)

    def leave(self) -> None:
        """Leave nothing behind, at once; what has begun is cut off, and the store keeps what it acknowledged."""
        if self._nothing is not None:
            self._nothing[1].cleanup()

    def close(self) -> None:
        """Let what has begun come to its end, and release the store."""
        for threads in (self._patient, self._writer, self._readers):
            threads.shutdown(cancel_futures=True)
        if self._nothing is not None:
            engine, place = self._nothing
            engine.close()
            place.cleanup()
        if self._engine is not None:
            self._engine.close()
