"""Vectors for another space, batch by batch, going on where it was stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from whyrank.analysis.document import entry_for
from whyrank.errors import ProviderRefused, ProviderTimeout, ProviderUnavailable
from whyrank.ingest.embedding import NO_DIRECTION, Desk, Embedded, embed_all
from whyrank.protocols import Changes
from whyrank.testing.fakes import WordDirections
from whyrank.testing.memory_store import MemoryStore
from whyrank.types.memory import GLOBAL, Entry, Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

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


class Speechless(Counting):
    """Knows nothing of texts that end with a 7."""

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = super().documents(texts)
        return np.array([row * (not text.endswith("7")) for row, text in zip(rows, texts, strict=True)])


def test_a_text_without_direction_is_counted_and_does_not_stop_the_others(store: MemoryStore) -> None:
    # 7, 17, … 147: fifteen of them
    assert embed_all(store, Speechless(), lambda *told: None)[1:3] == (NOTES - 15, 15)


def test_a_text_without_direction_is_written_down_with_its_reason_and_asked_for_once(store: MemoryStore) -> None:
    embedder = Speechless()
    desk = Desk(store, embedder, lambda: 1_000.0)
    assert desk.fill()[1:3] == (NOTES - 15, 15)
    assert {(one.attempts, one.error) for one in store.failures(desk.space)} == {(1, NO_DIRECTION)}
    embedder.embedded.clear()
    assert desk.fill()[1:3] == (0, 15)
    again = entry_for(Memory("m_7", "note number 7", importance=5), "en")
    assert desk.store_with_vectors(Changes(put=[again])).wrong == ""
    assert (embedder.embedded, desk.is_due(), desk.failure()) == ([], False, None)
    assert embed_all(store, embedder, lambda *told: None)[1:3] == (0, 15)  # who says so asks again
    assert len(embedder.embedded) == 15


def test_a_text_that_has_a_direction_after_all_is_no_longer_written_down(store: MemoryStore) -> None:
    Desk(store, Speechless()).fill()
    assert embed_all(store, WordDirections(), lambda *told: None)[1:3] == (15, 0)
    assert store.failures(WordDirections().fingerprint) == []


# -- what fails, and what waits ----------------------------------------------------------------------------------------


class Faulty(WordDirections):
    """Fails as told: with an error for whatever holds a word, and with answers that make no sense."""

    def __init__(self, **errors: Exception) -> None:
        super().__init__()
        self.errors = errors
        self.asked: list[int] = []

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked.append(len(texts))
        for word, error in self.errors.items():
            if any(word in text for text in texts):
                raise error
        return super().documents(texts)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def entry(number: int, text: str) -> Entry:
    return entry_for(Memory(f"x_{number}", text), "en")


def test_a_provider_that_is_away_is_asked_once_and_then_left_alone_for_longer_and_longer(store: MemoryStore) -> None:
    embedder, clock = Faulty(note=ProviderUnavailable("nobody there")), Clock()
    desk = Desk(store, embedder, clock)
    assert desk.fill() == Embedded(desk.space, 0, NOTES, "nobody there")
    assert embedder.asked == [64]
    waits = []
    for _ in range(11):
        failure = desk.failure()
        assert failure is not None
        waits.append(failure.next_try - clock.now)
        desk.fill()
    # 1 s, doubled each time, and never more than 300
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_a_provider_that_asks_for_time_is_given_it(store: MemoryStore) -> None:
    desk = Desk(store, Faulty(note=ProviderUnavailable("slower", retry_after_s=77)), Clock())
    desk.fill()
    [failure] = store.failures(desk.space)
    assert failure.next_try == 1000 + 77


def test_a_text_is_stored_without_asking_a_provider_that_failed_a_moment_ago(store: MemoryStore) -> None:
    embedder, clock = Faulty(tea=ProviderTimeout("too slow")), Clock()
    desk = Desk(store, embedder, clock)
    assert desk.store_with_vectors(Changes(put=[entry(1, "green tea")])).error == "too slow"
    embedder.asked.clear()
    embedder.errors = {}
    assert desk.store_with_vectors(Changes(put=[entry(2, "black tea")])).error == "too slow"
    assert (embedder.asked, set(store.get(["x_1", "x_2"], frozenset({GLOBAL})))) == ([], {"x_1", "x_2"})
    clock.now += 1
    assert desk.store_with_vectors(Changes(put=[entry(3, "red tea")])).vectors
    desk.fill()
    assert (store.status(desk.space).without_vector, store.failures(desk.space)) == (0, [])


def test_a_text_that_is_refused_holds_up_no_other_and_is_visible(store: MemoryStore) -> None:
    poison, clock = Faulty(**{"number 7": ProviderRefused("too rude", status=400)}), Clock()
    desk = Desk(store, poison, clock)
    # "number 7" and 70 to 79 hold it: eleven texts
    assert desk.fill()[1:] == (NOTES - 11, 11, "")
    failures = store.failures(desk.space)
    assert {(failure.error, failure.attempts, failure.next_try) for failure in failures} == {("too rude", 1, 1060.0)}
    assert len(failures) == 11
    poison.asked.clear()
    desk.fill(all_texts=False)
    assert poison.asked == []  # not due yet
    clock.now += 60
    poison.errors = {}
    assert desk.fill(all_texts=False).embedded == 11
    assert store.failures(desk.space) == []


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refused_key_is_not_about_a_text(store: MemoryStore, status: int) -> None:
    embedder = Faulty(note=ProviderRefused("wrong key", status=status))
    assert Desk(store, embedder, Clock()).fill().error == "wrong key"
    assert embedder.asked == [64]


def test_a_provider_that_refuses_everything_is_not_asked_for_each_text(store: MemoryStore) -> None:
    embedder = Faulty(note=ProviderRefused("no", status=400))
    assert Desk(store, embedder, Clock()).fill().error == "no"
    assert embedder.asked == [64, 1, 1, 1, 1]  # together, then four alone


class Garbled(WordDirections):
    """Answers in another shape than was asked for."""

    def __init__(self, change: Callable[[NDArray[np.float32]], NDArray[np.float32]]) -> None:
        super().__init__()
        self.change: Callable[[NDArray[np.float32]], NDArray[np.float32]] | None = change

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = super().documents(texts)
        return rows if self.change is None else self.change(rows)


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[:, :-1],
        lambda rows: rows[:-1],
        lambda rows: rows * np.float32(np.nan),
        lambda rows: rows[0],
        lambda rows: np.full(rows.shape, "tea"),
    ],
    ids=["dimension", "count", "nan", "shape", "text"],
)
def test_nonsense_is_not_stored_and_the_texts_wait(
    store: MemoryStore, change: Callable[[NDArray[np.float32]], NDArray[np.float32]]
) -> None:
    embedder = Garbled(change)
    desk = Desk(store, embedder)
    embedder.change = None
    assert desk.store_with_vectors(Changes(put=[entry(1, "green tea")])).vectors
    embedder.change = change
    assert desk.fill().embedded == 0
    assert store.spaces() == {desk.space: 1}
    assert store.failures(desk.space)
    embedder.change = None
    assert desk.fill().embedded == NOTES
