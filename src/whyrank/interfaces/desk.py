"""One engine behind a server: opened when first asked, worked by a few threads, empty until something is stored.

A server of many tenants has a desk for each and keeps a bounded number of them open: the one that was idle longest is
closed for the next.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from ..embedding.providers import SERVED
from ..engine import Engine
from ..errors import WhyrankError

Done = TypeVar("Done")
Open = Callable[[Path], Engine]

# Searches hold the interpreter most of the time, and every thread keeps a connection and its pages.
_READERS = 4
# A question that no short way answers, so that all is loaded which the questions to come may need.
_NOT_PLAIN = "Wärmen 🙂"
_MOST_OPEN = 64  # stores of tenants at one time; each keeps pages in memory
_DESCRIPTORS = 16  # of one open store: the file and its log for each thread, the lock, the index of the log
_ROOM_SECONDS = 10.0  # to wait for another tenant's work to end before one store more than that is opened
_log = logging.getLogger(__name__)


class OpenStores:
    """The desks of a server that may have their store open, at most so many; those in use are never closed."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: OrderedDict[Desk, None] = OrderedDict()  # the least recently used first
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return len(self._open)

    def used(self, desk: Desk) -> None:
        """Take note that a desk that is open was used."""
        with self._changed:
            if desk in self._open:
                self._open.move_to_end(desk)
            self._changed.notify_all()

    def make_room(self, desk: Desk) -> None:
        """Close what was idle longest until one more may be open; if all are in use, wait for one of them a while."""
        until = time.monotonic() + _ROOM_SECONDS
        while True:
            with self._changed:
                left = until - time.monotonic()
                if desk in self._open or len(self._open) < self._most or left <= 0:
                    self._open[desk] = None
                    return
                idle = next((one for one in self._open if not one.is_busy), None)
                if idle is None:
                    self._changed.wait(left)
                    continue
                del self._open[idle]
            if not idle.rest():
                with self._changed:
                    self._open[idle] = None


def most_open_stores() -> int:
    """Return how many stores may be open: with half of the files a process may open, the rest being connections."""
    if sys.platform == "win32":
        return _MOST_OPEN
    import resource

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return _MOST_OPEN
    return max(2, min(_MOST_OPEN, files // 2 // _DESCRIPTORS))


class _Threads:
    """The threads of one desk."""

    def __init__(self) -> None:
        self.readers = ThreadPoolExecutor(_READERS, "whyrank-reader")
        # There is one writer at a time anyhow; any number that wait for a lock must keep no reader from a thread.
        self.writer = ThreadPoolExecutor(1, "whyrank-writer")
        # What writes for minutes does so in many transactions, between which facts are stored.
        self.patient = ThreadPoolExecutor(1, "whyrank-patient")

    def end(self, *, wait: bool) -> None:
        for threads in (self.patient, self.writer, self.readers):
            threads.shutdown(wait=wait, cancel_futures=True)


class Desk:
    """Gives its engine to whoever asks, from any thread; among many desks, each opens its store by their leave."""

    def __init__(self, store: Path, open: Open, among: OpenStores | None = None) -> None:
        self._store = store
        self._open = open
        self._among = among
        self._turn = threading.Lock()  # of whoever opens or closes the store
        self._engine: Engine | None = None
        self._nothing: tuple[Engine, tempfile.TemporaryDirectory[str]] | None = None
        self._failed = False
        self._counting = threading.Lock()
        self._tasks = 0
        self._threads: _Threads | None = None

    @property
    def store(self) -> Path:
        """Return where the store is, or will be."""
        return self._store

    @property
    def is_busy(self) -> bool:
        """Tell whether work has begun or waits here."""
        return self._tasks > 0

    @property
    def is_resting(self) -> bool:
        """Tell whether nothing is open here and nothing failed to open."""
        return self._engine is None and self._nothing is None and not self._failed

    def reading(self) -> Engine:
        """Return the engine; as long as there is no store, one that holds nothing, because a question makes none."""
        with self._turn:
            self._close_replaced()
            if self._engine is None and os.path.lexists(self._store):
                self._engine = self._opened(self._store)
            return self._engine or self._empty()

    def writing(self) -> Engine:
        """Return the engine; the store is made if it is not there."""
        with self._turn:
            self._close_replaced()
            if self._engine is None:
                self._engine = self._opened(self._store)
            return self._engine

    def _close_replaced(self) -> None:
        """Close an engine whose file was replaced, so that the new one is opened; a deleted one may come back."""
        if self._engine is not None and not self._engine.is_current and os.path.lexists(self._store):
            engine, self._engine = self._engine, None
            engine.close()

    def _opened(self, store: Path) -> Engine:
        if self._among is not None:
            self._among.make_room(self)
        self._failed = True
        engine = self._open(store)
        self._failed = False
        return engine

    def _empty(self) -> Engine:
        if self._nothing is None:
            place = tempfile.TemporaryDirectory(prefix="whyrank-empty-")
            self._nothing = self._opened(Path(place.name) / "memory.db"), place
        return self._nothing[0]

    def warm(self) -> None:
        """Open a store that is there before anybody asks; if it cannot be, those who ask will hear why."""
        if os.path.lexists(self._store):
            self._begun(lambda: self.probe(_NOT_PLAIN), lambda threads: threads.readers)

    def probe(self, question: str, limit: int | None = None) -> None:
        """Run a search of ours: it asks no language model and no served embedder, which may cost the user money."""
        engine = self.reading()
        is_served = engine.space.startswith(f"{SERVED}/")
        engine.search(question, limit=limit, expand=False, recipe="keyword" if is_served else None)

    def task(self, work: Callable[[], Done], *, writes: bool = False, takes_long: bool = False) -> asyncio.Future[Done]:
        """Begin work in a thread, so that whoever waits for it keeps nobody else waiting."""
        begun = self._begun(
            work, lambda threads: threads.patient if takes_long else threads.writer if writes else threads.readers
        )
        return asyncio.wrap_future(begun)

    def _begun(self, work: Callable[[], Done], chosen: Callable[[_Threads], ThreadPoolExecutor]) -> Future[Done]:
        with self._counting:
            self._threads = self._threads or _Threads()
            begun = chosen(self._threads).submit(work)
            self._tasks += 1
        begun.add_done_callback(self._ended)  # also of what was taken back before it began
        return begun

    def _ended(self, _: Future[Done]) -> None:
        with self._counting:
            self._tasks -= 1
        if self._among is not None:
            self._among.used(self)

    def rest(self) -> bool:
        """Close the store and end the threads until somebody asks again; not if somebody does now."""
        with self._turn:
            with self._counting:
                if self._tasks:
                    return False
                threads, self._threads = self._threads, None
            if threads is not None:
                threads.end(wait=False)  # none of them has work
            try:
                self._release()
            except WhyrankError as error:
                _log.warning("%s was not closed in order: %s", self._store, error)  # no matter of who wants its room
            return True

    def leave(self) -> None:
        """Leave nothing behind, at once; what has begun is cut off, and the store keeps what it acknowledged."""
        if self._nothing is not None:
            self._nothing[1].cleanup()

    def close(self) -> None:
        """Let what has begun come to its end, and release the store."""
        if self._threads is not None:
            self._threads.end(wait=True)
        self._release()

    def _release(self) -> None:
        if self._nothing is not None:
            engine, place = self._nothing
            self._nothing = None
            engine.close()
            place.cleanup()
        if self._engine is not None:
            engine, self._engine = self._engine, None
            engine.close()
