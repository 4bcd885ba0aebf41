"""While one batch is written, the next is embedded: in order, once, and with nothing left behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

import numpy as np
import pytest
from numpy.typing import NDArray

from whyrank.errors import ProviderUnavailable
from whyrank.ingest.ahead import FIRST_PIECE, embedded_ahead
from whyrank.ingest.entries import entry_for
from whyrank.ingest.filling import PROVIDER, Desk
from whyrank.ports import Changes
from whyrank.testing.embedder import WordDirections
from whyrank.testing.memory_store import MemoryStore
from whyrank.types import Memory


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


def test_the_embedder_is_asked_in_a_thread_of_its_own_for_more_and_more() -> None:
    embedder = Embedder()
    stored(embedder, numbered(2, 60))
    assert [name.startswith("whyrank-embedding") for name in embedder.threads] == [True]
    # 8 + 16 + 32 + 4 of the first batch; then all 60 of the second fit into one piece
    assert [len(texts) for texts in embedder.asked] == [FIRST_PIECE, 16, 32, 4, 60]


def test_one_batch_needs_no_thread() -> None:
    embedder = Embedder()
    store, [changes] = stored(embedder, numbered(1, 20))
    assert changes.vectors == {}
    assert embedder.threads == {threading.current_thread().name}
    assert store.spaces() == {embedder.fingerprint: 20}


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


def test_who_is_interrupted_waits_for_the_piece_at_hand_and_leaves_no_thread() -> None:
    embedder = Embedder(seconds=0.05)

    def interrupted() -> Iterator[Changes]:
        yield from (*numbered(1, 1), batch(*(f"later {place}" for place in range(100))))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stored(embedder, interrupted())
    assert not is_left_behind()
    assert sum(map(len, embedder.asked)) < 101
