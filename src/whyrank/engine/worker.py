"""The worker of a store: embedding, pruning, merges and reindexing, which no caller should wait for."""

from __future__ import annotations

import math
import queue
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, NamedTuple

from ..errors import StoreChanged, StoreFull, StoreLocked, StoreUnavailable
from ..ingest.embedding import Desk, worker_name
from ..search.confidence import calibrated_owners

if TYPE_CHECKING:
    from ..protocols import Embedder, Store
    from .memories import Memories
    from .spaces import Calibrator, IndexWriter, Serving

Chore = Literal["embed", "prune", "merge", "reindex", "calibrate", "wait"]

POLL_SECONDS = 10.0  # where nobody tells of new work, and for leases that end by their time
_CARE_SECONDS = 60.0  # between two looks for expired memories, merges and old terms, which scan more than one row
_GATHER_SECONDS = 0.05  # after a message: a batch of what is stored meanwhile costs as much as one text
_PASSING = (StoreUnavailable, StoreLocked, StoreFull, StoreChanged)  # errors that may be over in a moment


class Stopped(Exception):
    """Raised inside a chore when the worker was stopped; another one continues it."""


class Line(NamedTuple):
    """One line of a worker's log: how much of a chore was done, or why it waits, and until when."""

    chore: Chore
    amount: int = 0
    space: str = ""
    error: str = ""
    next_try: float | None = None


Log = Callable[[Line], None]


class Worker:
    """Does the work of a store that is due; any number of workers share it, on any number of hosts."""

    def __init__(
        self,
        store: Store,
        serving: Serving,
        writer: IndexWriter,
        calibrator: Calibrator,
        memories: Memories,
        clock: Callable[[], float],
        lease_seconds: float,
    ) -> None:
        self._store = store
        self._serving = serving
        self._writer = writer
        self._calibrator = calibrator
        self._memories = memories
        self._clock = clock
        self._lease_seconds = lease_seconds
        self.name = worker_name()
        self._is_stopped = False
        self._calls = queue.SimpleQueue[None]()  # its `put` may be called by a handler of signals
        self._next_try = math.inf  # of a provider that failed
        self._care_after = -math.inf

    def stop(self) -> None:
        """End `run` after the present batch; may be called by a handler of signals, or in any thread."""
        self._is_stopped = True
        self._wake()

    def _wake(self) -> None:
        self._calls.put(None)

    def run(self, log: Log, poll_seconds: float = POLL_SECONDS) -> Mapping[Chore, int]:
        """Work until `stop` is called, and sleep while nothing is due; return the counts by chore.

        While the store cannot be reached or is full, the worker waits.
        """
        done: Counter[Chore] = Counter()
        with self._store.listening(self._wake):
            while not self._is_stopped:
                try:
                    done.update(self._round(log, is_once=False))
                except _PASSING as error:
                    log(Line("wait", error=error.message, next_try=self._clock() + poll_seconds))
                self._sleep(poll_seconds)
        return dict(done)

    def run_once(self, log: Log) -> Mapping[Chore, int]:
        """Do all that is due, and return the counts by chore."""
        return self._round(log, is_once=True)

    def _sleep(self, seconds: float) -> None:
        """Wait for a message or a stop, at most so long, and take all messages there are."""
        if self._is_stopped:
            return
        until_next_try = max(0.0, self._next_try - self._clock())
        with suppress(queue.Empty):
            self._calls.get(timeout=min(seconds, until_next_try))
            if not self._is_stopped:
                time.sleep(_GATHER_SECONDS)
            while True:
                self._calls.get_nowait()

    def _round(self, log: Log, *, is_once: bool) -> dict[Chore, int]:
        done: Counter[Chore] = Counter()
        lines = self._lines(is_once)
        with suppress(Stopped):
            for line in lines:
                done[line.chore] += line.amount
                log(line)
        return dict(+done)

    def _lines(self, is_once: bool) -> Iterator[Line]:
        self._next_try = math.inf
        for embedder in self._embedders():
            yield from self._fill(embedder)
        now = self._clock()
        if is_once or now >= self._care_after:
            yield from self._prune()
            yield from self._reindex()
            yield from self._merge()
            self._care_after = now + _CARE_SECONDS

    def _go_on(self, *_: object) -> None:
        """Raise Stopped between two batches if the worker was stopped."""
        if self._is_stopped:
            raise Stopped

    # -- embedding -------------------------------------------------------------------------------------------

    def _embedders(self) -> Sequence[Embedder]:
        """Return the embedders of the spaces that need every vector: active, additional, and being filled."""
        active = self._serving.current()
        if active.embedder is None:
            return ()
        self._serving.adopt()
        filling = self._serving.roles().filling
        found = [active.embedder, active.added, None if filling is None else self._serving.made(filling)]
        return [*{one.fingerprint: one for one in found if one is not None}.values()]

    def _fill(self, embedder: Embedder) -> Iterator[Line]:
        """Embed the texts of a space that nobody else embeds, batch by batch."""
        desk, made = Desk(self._store, embedder, self._clock), 0
        while True:
            self._go_on()
            failure = desk.failure()
            if failure is not None and failure.next_try > self._clock():
                self._next_try = min(self._next_try, failure.next_try)
                break
            done = desk.embed_share(self.name, self._lease_seconds, has_failed=failure is not None)
            if done is None:
                break
            made += len(done.vectors)
            if done.vectors:
                yield Line("embed", len(done.vectors), desk.space)
            if done.wrong:
                failure = desk.failure()
                yield Line("embed", 0, desk.space, done.wrong, failure.next_try if failure else None)
        if made:
            remarks = self._calibrator.renew(calibrated_owners(self._store), is_embedded=True)
            yield from (Line("calibrate", error=remark) for remark in remarks)

    # -- care ------------------------------------------------------------------------------------------------

    def _prune(self) -> Iterator[Line]:
        """Remove expired memories of every scope."""
        self._go_on()
        if removed := self._memories.prune(every_scope=True, progress=self._go_on):
            yield Line("prune", len(removed))

    def _reindex(self) -> Iterator[Line]:
        """Index memories again that an earlier analyzer read."""
        self._go_on()
        if count := self._writer.reindex(self._go_on):
            yield Line("reindex", count)

    def _merge(self) -> Iterator[Line]:
        """Run due merges of the index, and finish purges."""
        self._go_on()
        if steps := self._store.settle(()):
            yield Line("merge", steps)
