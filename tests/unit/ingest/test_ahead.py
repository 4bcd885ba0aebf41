"""While one batch is written, the next is embedded: in order, once, and with nothing left behind."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import pytest

from whyrank.analysis.document import entry_for
from whyrank.errors import ProviderUnavailable
from whyrank.ingest.embedding import PROVIDER, Desk
from whyrank.ingest.pipeline import MEMORIES_PER_BATCH, embedded_ahead
from whyrank.protocols import Changes
from whyrank.testing.fakes import WordDirections
from whyrank.testing.memory_store import MemoryStore
from whyrank.types.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray


class Embedder(WordDirections):
    """Remembers what it was given and in which thread; fails from some text on, and takes its time."""

    def __init__(self, fails_at: str = "nowhere", seconds: float = 0.0) -> None:
        super().__init__()
        self.asked: list[list[str]] = []
        self.threads: set[str] = set()
        self._fails_at = fails_at
        self._seconds = seconds

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked.append(list(texts))
        self.threads.add(threading.current_thread().name)
        time.sleep(self._seconds)
        if self._fails_at in texts:
            raise ProviderUnavailable("nobody is there")
        return super().documents(texts)


def batch(*texts: str) -> Changes:
    return Changes(put=[entry_for(Memory(f"m_{text}", text), "en") for text in texts])


def numbered(batches: int, each: int) -> list[Changes]:
    return [batch(*(f"note {number}.{place}" for place in range(each))) for number in range(batches)]


def stored(embedder: Embedder, batches: Iterable[Changes]) -> tuple[MemoryStore, list[Changes]]:
    store = MemoryStore()
    desk, seen = Desk(store, embedder, lambda: 1000.0), list[Changes]()
    with closing(embedded_ahead(desk, batches)) as ahead:
        for changes in ahead:
            desk.store_with_vectors(changes)
            seen.append(changes)
    return store, seen


def is_left_behind() -> bool:
    return any(thread.name.startswith("whyrank-embedding") for thread in threading.enumerate())


def test_batches_come_in_their_order_with_the_vectors_of_their_texts() -> None:
    embedder, batches = Embedder(), numbered(4, 20)
    store, seen = stored(embedder, batches)
    assert [changes.put for changes in seen] == [changes.put for changes in batches]
    for changes in seen:
        assert list(changes.vectors) == [entry.embed_hash for entry in changes.put]
        alone = WordDirections().documents([entry.embed_text for entry in changes.put])
        assert np.array_equal(np.stack(list(changes.vectors.values())), alone)
    assert store.spaces() == {embedder.fingerprint: 80}
    assert not is_left_behind()


def test_the_embedder_is_asked_in_a_thread_of_its_own_once_for_every_batch() -> None:
    embedder = Embedder()
    stored(embedder, numbered(3, 60))
    assert [name.startswith("whyrank-embedding") for name in embedder.threads] == [True]
    assert [len(texts) for texts in embedder.asked] == [60, 60, 60]


def test_one_batch_needs_no_thread() -> None:
    embedder = Embedder()
    store, [changes] = stored(embedder, numbered(1, 20))
    assert changes.vectors == {}
    assert embedder.threads == {threading.current_thread().name}
    assert store.spaces() == {embedder.fingerprint: 20}


def test_a_large_batch_is_embedded_before_the_next_is_made() -> None:
    begun = threading.Event()

    class Beginning(Embedder):
        def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
            begun.set()
            return super().documents(texts)

    def batches() -> Iterable[Changes]:
        yield numbered(1, MEMORIES_PER_BATCH)[0]
        assert begun.wait(10.0)
        yield batch("tea")

    embedder = Beginning()
    store, _ = stored(embedder, batches())
    assert [len(texts) for texts in embedder.asked] == [MEMORIES_PER_BATCH, 1]
    assert store.status(embedder.fingerprint).without_vector == 0


def test_a_large_batch_that_comes_alone_has_its_vectors_too() -> None:
    embedder = Embedder()
    store, seen = stored(embedder, numbered(1, MEMORIES_PER_BATCH))
    assert [len(changes.vectors) for changes in seen] == [MEMORIES_PER_BATCH]
    assert store.status(embedder.fingerprint).without_vector == 0


def test_without_an_embedder_batches_are_as_they_were() -> None:
    batches = numbered(3, 2)
    assert [*embedded_ahead(None, batches)] == batches
    assert [*embedded_ahead(None, ())] == []


def test_a_text_that_stands_in_two_batches_is_embedded_once() -> None:
    embedder = Embedder()
    same = [Changes(put=[entry_for(Memory(f"m_{number}", "tea"), "en")]) for number in range(3)]
    store, _ = stored(embedder, same)
    assert embedder.asked == [["tea"]]
    assert store.status(embedder.fingerprint).without_vector == 0


def test_a_text_whose_vector_went_meanwhile_is_embedded_again() -> None:
    store, embedder = MemoryStore(), Embedder()
    desk = Desk(store, embedder, lambda: 1000.0)
    desk.store_with_vectors(batch("tea"))
    gone = Changes(put=batch("milk").put, remove=["m_tea"])  # takes the last tea, and its vector, along
    again = Changes(put=[entry_for(Memory("m_again", "tea"), "en")])
    with closing(embedded_ahead(desk, [gone, again])) as ahead:
        for changes in ahead:
            desk.store_with_vectors(changes)
    assert store.status(embedder.fingerprint).without_vector == 0


def test_a_provider_that_fails_is_asked_once_and_everything_is_stored() -> None:
    embedder = Embedder(fails_at="note 1.0")
    store, seen = stored(embedder, numbered(4, 4))
    assert [len(changes.vectors) for changes in seen] == [4, 0, 0, 0]
    assert seen[1].failures[PROVIDER] is not None
    assert [texts[0] for texts in embedder.asked] == ["note 0.0", "note 1.0"]
    assert store.status(embedder.fingerprint).memories == 16
    assert store.status(embedder.fingerprint).without_vector == 12


class Waiting(Embedder):
    """Answers when it is let, and says that it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked, self.may_answer = threading.Event(), threading.Event()

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.is_asked.set()
        self.may_answer.wait()
        return super().documents(texts)


def test_who_is_interrupted_does_not_wait_for_the_embedder() -> None:
    embedder, main = Waiting(), threading.get_ident()

    def interrupt() -> None:
        embedder.is_asked.wait()
        signal.pthread_kill(main, signal.SIGUSR1)

    # Ctrl-C itself may be turned off where the tests run.
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):  # while it waits for the vectors of the first batch
        stored(embedder, numbered(3, 1))
    signal.signal(signal.SIGUSR1, before)
    assert is_left_behind()  # with what it was asked, and no longer than that
    embedder.may_answer.set()
    for thread in threading.enumerate():
        if thread.name.startswith("whyrank-embedding"):
            thread.join()
    assert embedder.asked == [["note 0.0"]]
