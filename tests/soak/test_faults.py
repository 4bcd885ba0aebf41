"""A real server that misbehaves two hundred times: every fact ends embedded or visibly queued, and search stays up."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest

import whyrank
from tests.faulty_server import FAULTS, Fault, FaultyServer, seeded_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FAULTS_PLANNED = 200
SLOW: tuple[Fault, ...] = ("hang", "drip", "drip-headers", "huge")  # each takes its time-out; two of each will do
SEEDS = (1,)


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer(most_letters=400, hang_s=2.0) as server:
        yield server


def opened(folder: Path, url: str, timeout_s: float, clock: Callable[[], float] = time.time) -> whyrank.Engine:
    return whyrank.open(
        folder / "memory.db",
        workspace=folder,
        embedding="openai",
        embedder_url=url,
        embedder_model="directions",
        embedder_dimension=32,
        embedder_timeout_s=timeout_s,
        calibration="manual",
        clock=clock,
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_every_fact_ends_embedded_or_visibly_queued_and_search_stays_up(
    tmp_path: Path, server: FaultyServer, seed: int
) -> None:
    chance, stored = random.Random(seed), dict[str, str]()
    server.plan = [*seeded_plan(seed, 8, SLOW), *seeded_plan(seed, FAULTS_PLANNED - 8, FAULTS, among=60, never=SLOW)]
    random.Random(seed).shuffle(server.plan)
    moment = 1_000_000.0
    with opened(tmp_path, server.url, 0.1, lambda: moment) as engine:
        poison = engine.add("poison " + "x" * 500)  # longer than the server ever takes
        number = 0
        while server.plan:
            text = f"Crate {number} from {chance.choice(('Oslo', 'Porto', 'Split'))} waits on quay {number * 7}"
            stored[engine.add(text).id] = text
            asked = chance.choice(list(stored))
            found = engine.search(stored[asked], limit=5)
            assert asked in {hit.id for hit in found}  # by its words, whatever the server does
            moment += chance.choice((0.5, 30.0, 400.0))
            number += 1
            status = engine.status()
            assert status.memories == len(stored) + 1
            assert status.without_vector == engine.models.backlog().waiting
            if status.without_vector:
                assert engine.models.backlog().error
    with opened(tmp_path, server.url, 30.0) as engine:
        done = engine.models.embed()
        behind = engine.models.backlog()
        assert (done.error, behind.waiting, behind.refused) == ("", 1, 1)  # all but the poison
        assert "longer than the context" in behind.error
        assert engine.status().spaces == {engine.models.space: len(stored)}
        for identity, text in stored.items():
            assert engine.search(text, recipe="vector", limit=1)[0].id == identity
        assert engine.search("poison " + "x" * 500)[0].id == poison.id
