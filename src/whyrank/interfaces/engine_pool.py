"""Engines of a server: opened on first use, run on a few threads, with the callers' permissions.

A server of many tenants keeps a bounded number of stores open: the one that was idle longest is closed for the next.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ..config.load import StoreUrl, is_there
from ..engine.arguments import scope_of
from ..errors import ConfigError, NotFound, WhyrankError
from ..providers.names import SERVED
from ..types.memory import GLOBAL, Memory
from ..types.query import SERVER_TIMEOUT_MS

if TYPE_CHECKING:
    from ..engine.engine import Engine

    Open = Callable[[Any], Engine]

Done = TypeVar("Done")

# Searches hold the interpreter lock most of the time, and every thread keeps a connection and its pages.
_READERS = 4
# A query without a shortcut, so that everything is loaded that later queries may need.
_NOT_PLAIN = "Wärmen 🙂"
_MOST_OPEN = 64  # stores of tenants at one time; each keeps pages in memory
_DESCRIPTORS = 16  # of one open store: the file and its log for each thread, the lock, the index of the log
_ROOM_SECONDS = 10.0  # to wait for another tenant's work to end before the limit is exceeded by one store
_log = logging.getLogger(__name__)


class EnginePool:
    """LRU pool of open stores, bounded by `most`; busy ones are never closed."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: OrderedDict[PooledEngine, None] = OrderedDict()  # the least recently used first
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return len(self._open)

    def used(self, pooled: PooledEngine) -> None:
        """Record the use of an open store."""
        with self._changed:
            if pooled in self._open:
                self._open.move_to_end(pooled)
            self._changed.notify_all()

    def make_room(self, pooled: PooledEngine) -> None:
        """Close stores idle longest until one more may be open; if all are busy, wait for one for a while."""
        until = time.monotonic() + _ROOM_SECONDS
        while True:
            with self._changed:
                left = until - time.monotonic()
                if pooled in self._open or len(self._open) < self._most or left <= 0:
                    self._open[pooled] = None
                    return
                idle = next((one for one in self._open if not one.is_busy), None)
                if idle is None:
                    self._changed.wait(left)
                    continue
                del self._open[idle]
            if not idle.rest():
                with self._changed:
                    self._open[idle] = None


def max_open_stores() -> int:
    """Return the limit of open stores: half of the file descriptors; the rest are for connections."""
    if sys.platform == "win32":
        return _MOST_OPEN
    import resource

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return _MOST_OPEN
    return max(2, min(_MOST_OPEN, files // 2 // _DESCRIPTORS))


Purpose = Literal["read", "write", "write for long"]


def _new_threads() -> dict[Purpose, ThreadPoolExecutor]:
    # SQLite has one writer at a time; writers that wait for the lock must not occupy the threads of readers.
    # Long writes run in many transactions, between which facts are stored.
    return {
        "write for long": ThreadPoolExecutor(1, "whyrank-patient"),
        "write": ThreadPoolExecutor(1, "whyrank-writer"),
        "read": ThreadPoolExecutor(_READERS, "whyrank-reader"),
    }


def _end(threads: Mapping[Purpose, ThreadPoolExecutor], *, wait: bool) -> None:
    for executor in threads.values():
        executor.shutdown(wait=wait, cancel_futures=True)


class PooledEngine:
    """One engine, opened on first use, from any thread; in a pool, opened when the limit allows."""

    def __init__(self, store: Path | StoreUrl, open: Open, pool: EnginePool | None = None) -> None:
        self._store = store
        self._open = open
        self._pool = pool
        self._turn = threading.Lock()  # held while the store is opened or closed
        self._engine: Engine | None = None
        self._nothing: tuple[Engine, tempfile.TemporaryDirectory[str]] | None = None
        self._failed = False
        self._counting = threading.Lock()
        self._tasks = 0
        self._threads: dict[Purpose, ThreadPoolExecutor] | None = None

    @property
    def store(self) -> Path | StoreUrl:
        """Return the path of the store, which may not exist yet, or its address."""
        return self._store

    @property
    def _is_there(self) -> bool:
        return is_there(self._store)

    @property
    def is_busy(self) -> bool:
        """Return whether work is running or queued."""
        return self._tasks > 0

    @property
    def is_resting(self) -> bool:
        """Return whether no engine is open and none failed to open."""
        return self._engine is None and self._nothing is None and not self._failed

    def reading(self) -> Engine:
        """Return the engine for reads; without a store, an empty temporary one: a search creates no store."""
        with self._turn:
            self._close_replaced()
            if self._engine is None and self._is_there:
                self._engine = self._opened(self._store)
            return self._engine or self._empty()

    def writing(self) -> Engine:
        """Return the engine for writes; the store is created if it does not exist."""
        with self._turn:
            self._close_replaced()
            if self._engine is None:
                self._engine = self._opened(self._store)
            return self._engine

    def _close_replaced(self) -> None:
        """Close an engine whose file was replaced, to open the new one; a deleted file may come back."""
        if self._engine is not None and not self._engine.maintenance.is_current and self._is_there:
            engine, self._engine = self._engine, None
            engine.close()

    def _opened(self, store: Path | StoreUrl) -> Engine:
        if self._pool is not None:
            self._pool.make_room(self)
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
        """Open an existing store before the first request; if that fails, the requests report the error."""
        if self._is_there:
            self._begun(lambda: self.probe(_NOT_PLAIN), "read")

    def probe(self, question: str, limit: int | None = None) -> None:
        """Run an internal search without language model or served embedder, which may cost the user money."""
        engine = self.reading()
        is_served = engine.models.space.startswith(f"{SERVED}/")
        engine.search(question, limit=limit, expand=False, recipe="keyword" if is_served else None)

    def task(self, work: Callable[[], Done], *, writes: bool = False, takes_long: bool = False) -> asyncio.Future[Done]:
        """Run work in a thread, so that a waiting caller does not block others."""
        return asyncio.wrap_future(self._begun(work, "write for long" if takes_long else "write" if writes else "read"))

    def _begun(self, work: Callable[[], Done], purpose: Purpose) -> Future[Done]:
        with self._counting:
            self._threads = self._threads or _new_threads()
            begun = self._threads[purpose].submit(work)
            self._tasks += 1
        begun.add_done_callback(self._ended)  # also called for a task cancelled before it began
        return begun

    def _ended(self, _: Future[Done]) -> None:
        with self._counting:
            self._tasks -= 1
        if self._pool is not None:
            self._pool.used(self)

    def rest(self) -> bool:
        """Close the store and end the threads until the next use; return False if work is pending."""
        with self._turn:
            with self._counting:
                if self._tasks:
                    return False
                threads, self._threads = self._threads, None
            if threads is not None:
                _end(threads, wait=False)  # none of them has work
            try:
                self._release()
            except WhyrankError as error:
                _log.warning("%s was not closed cleanly: %s", self._store, error)  # not for the caller
            return True

    def leave(self) -> None:
        """Remove the temporary store at once; running work is cut off, acknowledged writes are kept."""
        if self._nothing is not None:
            self._nothing[1].cleanup()

    def close(self) -> None:
        """Wait for running work, and release the store."""
        if self._threads is not None:
            _end(self._threads, wait=True)
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


Values = Mapping[str, Any]


@dataclass(frozen=True)
class Access:
    """One engine with the permissions of its callers; the scopes they request are in the values of a call."""

    pooled: PooledEngine
    scopes: tuple[str, ...] = ()
    is_multi_scope: bool = False
    is_read_only: bool = False
    workspace: Path | None = None  # folder from which files may be ingested, if any

    def seen(self, values: Values) -> list[str]:
        """Return the scopes a call sees besides the global one: those requested, else the server's own."""
        return list(values.get("scope") or self.scopes)

    def home(self, values: Values) -> str:
        """Return the scope a call writes to."""
        return next(iter(self.seen(values)), str(GLOBAL))

    def home_for(self, values: Values, engine: Engine) -> str:
        """Return the scope of a new fact: that of the fact it replaces, if that is one of the caller's own."""
        replaced, own = values.get("supersedes"), self.seen(values)
        if isinstance(replaced, str) and len(own) > 1:
            old = _replaced(engine, replaced, own)
            if old is not None and str(old.scope) in own:
                return str(old.scope)
        return self.home(values)

    def refuse_others(self, memories: Iterable[Memory], values: Values, done: str = "removed") -> None:
        """Refuse changes to memories outside the caller's own scopes, such as visible global ones."""
        own = {scope_of(scope) for scope in self.seen(values)} or {GLOBAL}
        for memory in memories:
            if memory.scope not in own:
                raise ConfigError(
                    f"{memory.id} is {memory.scope}, which this agent may not change; nothing was {done}",
                    "the owner of the store can do it on the command line",
                )


def _replaced(engine: Engine, named: str, own: list[str]) -> Memory | None:
    """Return the memory with this id or this text."""
    try:
        return engine.get(named, scope=own)
    except NotFound:
        return engine.memories.find_fact(named, scope=own)


def timeout_of(engine: Engine, values: Values) -> int:
    """Return the timeout of a search over a server in ms: requested, configured, or the default."""
    timeout_ms: int = values.get("timeout_ms") or engine.config["timeout_ms"] or SERVER_TIMEOUT_MS
    return timeout_ms
