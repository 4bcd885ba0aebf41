"""The worker in this process: what it does in a round, what it leaves, and stores whose writers leave texts to it."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import whyrank
from whyrank.config.load import load
from whyrank.engine.engine import Engine
from whyrank.engine.spaces import Makers
from whyrank.errors import ProviderUnavailable, StoreUnavailable
from whyrank.storage.store import SqliteStore
from whyrank.testing.fakes import WordDirections
from whyrank.testing.memory_store import MemoryStore
from whyrank.types.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from whyrank.engine.worker import Line
    from whyrank.protocols import Embedder, Store

NOW = 1_700_000_000.0


class Moody(WordDirections):
    """Fails as long as it has an error, and counts its texts."""

    def __init__(self, dimension: int = 32, name: str = "moody") -> None:
        super().__init__(dimension, name)
        self.error: Exception | None = None
        self.embedded: list[str] = []

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.error is not None:
            raise self.error
        self.embedded += texts
        return super().documents(texts)


LARGE = Moody(48, "large")


class Clock:
    """The time, as a test sets it."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def embedder() -> Moody:
    return Moody()


def engine_over(store: Store, embedder: Embedder, clock: Clock, folder: Path, **more: Any) -> Engine:
    """Return an engine whose writers leave texts to workers."""
    config = load({"embedder.when": "worker", "calibration": "manual", **more}, workspace=folder)
    others = {"moody": embedder, "large": LARGE}
    makers = Makers(configured="moody", make=lambda provider, settings: others[provider])
    return Engine(store, embedder, config, clock, makers=makers)


@pytest.fixture
def engine(embedder: Moody, clock: Clock, tmp_path: Path) -> Iterator[Engine]:
    with engine_over(SqliteStore(tmp_path / "memory.db"), embedder, clock, tmp_path) as opened:
        yield opened


def once(engine: Engine) -> list[tuple[str, int]]:
    """Return what a worker did in one round."""
    found: list[tuple[str, int]] = []
    engine.maintenance.worker().run_once(lambda line: found.append((line.chore, line.amount)))
    return found


def test_a_write_stores_at_once_and_a_worker_embeds(engine: Engine, embedder: Moody, tmp_path: Path) -> None:
    (tmp_path / "boat.md").write_text("# The boat\n\nTar the hull in spring.\n", encoding="utf-8")
    report = engine.ingest(tmp_path / "boat.md")
    assert (embedder.embedded, report.embedded, report.without_vector) == ([], 0, 1)
    assert once(engine) == [("embed", 1)]
    first = engine.add("Suzy drinks green tea")
    engine.add("Suzy drinks black coffee")
    engine.update(first.id, text="Suzy drinks white tea")
    engine.add_documents([whyrank.Document("d", "The fence is mended", title="Fence")])
    assert len(embedder.embedded) == 1
    assert once(engine) == [("embed", 3)]
    assert len(embedder.embedded) == 4
    assert once(engine) == []


def test_a_search_finds_by_words_what_a_worker_has_yet_to_embed(engine: Engine) -> None:
    engine.add("Suzy drinks black coffee")
    once(engine)
    engine.add("Suzy drinks white tea")
    found = engine.search("white tea")
    assert found[0].memory.text == "Suzy drinks white tea"
    assert "vectors-missing" in {notice.code for notice in found.notices}
    once(engine)
    assert "vectors-missing" not in {notice.code for notice in engine.search("white tea").notices}


def test_a_report_on_near_duplicates_says_that_nothing_was_compared(engine: Engine) -> None:
    told = engine.facts.remember("Suzy drinks green tea")
    assert [notice.code for notice in told.notices] == ["near-unknown"]


def test_a_worker_prunes_and_merges(engine: Engine, clock: Clock) -> None:
    engine.add("the kettle is on", expires=NOW + 60)
    engine.add("the door is shut", scope="user:1", expires=NOW + 60)
    assert once(engine) == [("embed", 2)]
    clock.now += 61
    assert once(engine) == [("prune", 2)]
    assert engine.status().memories == 0


def test_a_failing_embedder_is_left_alone_until_its_time_and_the_rest_goes_on(
    engine: Engine, embedder: Moody, clock: Clock
) -> None:
    engine.add("the kettle is on")
    engine.add("the door is shut", expires=NOW + 1)
    clock.now += 2
    embedder.error = ProviderUnavailable("nobody is there")
    lines: list[Line] = []
    engine.maintenance.worker().run_once(lines.append)
    failed, pruned = lines
    assert (failed.chore, failed.error, failed.next_try) == ("embed", "nobody is there", clock.now + 1)
    assert (pruned.chore, pruned.amount) == ("prune", 1)
    embedder.error = None
    assert once(engine) == []  # not yet due
    clock.now += 1.5
    assert once(engine) == [("embed", 1)]
    assert engine.models.backlog().error == ""


def test_a_text_that_is_refused_keeps_no_other_from_its_vector(engine: Engine, embedder: Moody) -> None:
    engine.add("tea")
    engine.add("§§§")  # of which the embedder knows no part
    assert once(engine) == [("embed", 1)]
    assert (engine.models.backlog().waiting, engine.models.backlog().nowhere) == (0, 1)
    assert once(engine) == []


def test_the_additional_space_is_filled_too(engine: Engine) -> None:
    engine.add("the kettle is on")
    once(engine)
    engine.models.add("large")
    engine.add("the door is shut")
    assert once(engine) == [("embed", 1), ("embed", 1)]
    assert {state.vectors for state in engine.models.list()} == {2}


def test_a_space_whose_filling_was_interrupted_is_filled(engine: Engine, clock: Clock) -> None:
    engine.add("the kettle is on")
    once(engine)
    LARGE.error = ProviderUnavailable("nobody is there")
    with pytest.raises(ProviderUnavailable):
        engine.models.use("large")
    LARGE.error = None
    clock.now += 2
    assert once(engine) == [("embed", 1)]
    assert engine.status().spaces[LARGE.fingerprint] == 1
    assert engine.models.use("large").embedded == 0


def test_spaces_take_turns_batch_by_batch(engine: Engine, embedder: Moody) -> None:
    engine.models.add("large")
    engine.facts.import_memories([Memory(f"m_{number}", f"parcel {number}") for number in range(130)])
    lines: list[Line] = []
    engine.maintenance.worker().run_once(lines.append)
    spaces = (embedder.fingerprint, LARGE.fingerprint)
    assert [(line.space, line.amount) for line in lines] == [(space, n) for n in (64, 64, 2) for space in spaces]


@pytest.mark.parametrize("is_once", [True, False])
def test_expired_memories_are_removed_while_texts_keep_arriving(engine: Engine, clock: Clock, is_once: bool) -> None:
    engine.add("the kettle is on", expires=NOW + 100)
    worker, chores = engine.maintenance.worker(), list[str]()

    def log(line: Line) -> None:
        chores.append(line.chore)
        if line.chore == "prune" or len(chores) == 20:
            worker.stop()
        clock.now += 40
        engine.add(f"parcel {len(chores)}")

    began = time.monotonic()
    done = worker.run_once(log) if is_once else worker.run(log, poll_seconds=60)
    assert done["prune"] == 1
    assert chores[-1] == "prune"
    assert time.monotonic() - began < 30  # it does not sleep while there are texts


def test_two_workers_share_a_store_in_memory(embedder: Moody, clock: Clock, tmp_path: Path) -> None:
    store = MemoryStore()
    with engine_over(store, embedder, clock, tmp_path) as one, engine_over(store, embedder, clock, tmp_path) as two:
        for number in range(10):
            one.add(f"parcel {number}")
        workers = [threading.Thread(target=once, args=(engine,)) for engine in (one, two)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert sorted(embedder.embedded) == [f"parcel {number}" for number in range(10)]


class Away(MemoryStore):
    """Cannot be reached at first."""

    def __init__(self) -> None:
        super().__init__()
        self.tries = 0

    def claim(self, *arguments: Any, **options: Any) -> Any:
        self.tries += 1
        if self.tries == 1:
            raise StoreUnavailable("the server is being restarted")
        return super().claim(*arguments, **options)


def test_a_worker_waits_for_a_store_that_cannot_be_reached(embedder: Moody, clock: Clock, tmp_path: Path) -> None:
    with engine_over(Away(), embedder, clock, tmp_path) as engine:
        engine.add("the kettle is on")
        worker = engine.maintenance.worker()
        lines: list[Line] = []

        def log(line: Line) -> None:
            lines.append(line)
            if line.chore == "embed":
                worker.stop()

        assert worker.run(log, poll_seconds=0.1) == {"embed": 1}
    assert [(line.chore, line.error) for line in lines] == [
        ("wait", "the server is being restarted"),
        ("embed", ""),
    ]
    with engine_over(Away(), embedder, clock, tmp_path) as engine, pytest.raises(StoreUnavailable):
        once(engine)


def test_a_stopped_worker_ends_after_its_batch_and_leaves_the_rest(engine: Engine) -> None:
    for number in range(70):
        engine.add(f"parcel {number}")
    worker = engine.maintenance.worker()
    assert worker.run(lambda line: worker.stop()) == {"embed": 64}
    assert engine.status().without_vector == 6
    assert once(engine) == [("embed", 6)]


def test_a_sleeping_worker_is_stopped_at_once(engine: Engine) -> None:
    worker = engine.maintenance.worker()
    began = time.monotonic()
    threading.Timer(0.1, worker.stop).start()
    assert worker.run(lambda line: None, poll_seconds=60) == {}
    assert time.monotonic() - began < 30


def test_vectors_made_by_a_worker_are_calibrated(embedder: Moody, clock: Clock, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memory.db")
    words = ("kettle", "garden", "harbour", "lantern", "copper", "saddle", "window", "meadow", "candle", "anchor")
    notes = [f"The {one} stands beside the {two} near number {i}." for i, (one, two) in enumerate(
        (one, two) for one in words for two in words if one < two
    )]  # fmt: skip
    with engine_over(store, embedder, clock, tmp_path, calibration="automatic") as engine:
        engine.add_documents(whyrank.Document(str(place), text) for place, text in enumerate(notes))
        assert engine.models.calibrations() == []
        once(engine)
        assert [made.memories for made in engine.models.calibrations()] == [len(notes)]


def test_a_search_says_so_where_no_memory_has_a_vector_yet(tmp_path: Path) -> None:
    (tmp_path / "whyrank.toml").write_text('[embedder]\nwhen = "worker"\n', encoding="utf-8")
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path) as engine:
        engine.add("Suzy rides a blue bicycle")
        results = engine.search("cycling")
        assert (len(results), results.verdict) == (0, "nothing")
        assert [notice.code for notice in results.notices] == ["no-vectors"]
        engine.maintenance.worker().run_once(lambda line: None)
        assert engine.search("cycling").verdict == "found"
