"""Vectors for another space, batch by batch, going on where it was stopped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from whyrank.ingest.entries import entry_for
from whyrank.ingest.filling import Embedded, embed_all
from whyrank.ports import Changes
from whyrank.testing.embedder import WordDirections
from whyrank.testing.memory_store import MemoryStore
from whyrank.types import Memory

NOTES = 150  # three transactions of 64, 64 and 22


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    store = MemoryStore()
    memories = [Memory(f"m_{number}", f"note number {number}") for number in range(NOTES)]
    store.write(Changes(put=[entry_for(memory, "en") for memory in memories]))
    yield store
    store.close()


class Counting(WordDirections):
    """Remembers how many texts it embedded."""

    def __init__(self) -> None:
        super().__init__()
        self.embedded: list[str] = []

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.embedded += texts
        return super().documents(texts)


def test_every_memory_gets_a_vector_with_progress(store: MemoryStore) -> None:
    embedder, seen = Counting(), list[tuple[int, int]]()
    done = embed_all(store, embedder, lambda made, total, label: seen.append((made, total)))
    assert done == Embedded(embedder.fingerprint, NOTES, 0)
    assert seen == [(64, NOTES), (128, NOTES), (NOTES, NOTES)]
    assert store.spaces() == {embedder.fingerprint: NOTES}


def test_what_was_embedded_before_it_was_stopped_is_not_embedded_again(store: MemoryStore) -> None:
    embedder = Counting()

    def stop(made: int, total: int, label: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed_all(store, embedder, stop)
    assert store.spaces() == {embedder.fingerprint: 64}
    embedder.embedded.clear()
    assert embed_all(store, embedder, lambda *told: None).embedded == NOTES - 64
    assert len(embedder.embedded) == NOTES - 64


def test_nothing_to_do_is_done_at_once(store: MemoryStore) -> None:
    embed_all(store, WordDirections(), lambda *told: None)
    done = embed_all(store, WordDirections(), lambda *told: pytest.fail("something was embedded"))
    assert (done.embedded, done.without_vector) == (0, 0)


def test_a_text_without_direction_is_counted_and_does_not_stop_the_others(store: MemoryStore) -> None:
    class Speechless(WordDirections):
        def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
            rows = super().documents(texts)
            return np.array([row * (not text.endswith("7")) for row, text in zip(rows, texts, strict=True)])

    # 7, 17, … 147: fifteen of them
    assert embed_all(store, Speechless(), lambda *told: None)[1:3] == (NOTES - 15, 15)
