"""Change the model at any moment, kill whoever does it, and let others search meanwhile."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

from benchmarks.switching import NEW, answer, opened, questions, switched, texts
from whyrank.types.memory import Document

from .lanes import Counts, Lane

if TYPE_CHECKING:
    from pathlib import Path

KILLS = 5  # of a round
READERS = 2  # while a model is changed that nobody kills
MEMORIES = 600
STEPS = 10  # transactions of at most 64 memories, so that a kill can land between them

CHANGE = """
import sys, time
from pathlib import Path
from benchmarks.switching import opened
with opened(Path(sys.argv[1])) as engine:
    engine.models.use("directions", progress=lambda done, total, label: (print(done, flush=True), time.sleep(0.02)))
"""


def change_among_readers(folder: Path) -> Counts:
    """Change the model while others search: each answer is of one space only, and none an error."""
    found = switched(folder, 2_000, READERS)
    assert (found.mixed, found.errors) == (0, 0)
    assert found.old
    assert found.new
    return {"answers": found.answers}


def kill_change(folder: Path, number: int) -> Counts:
    """Kill a change of the model: it leaves the old or the new one, and goes on where it was."""
    asked = questions()[:5]
    with opened(folder) as engine:
        engine.add_documents(Document(f"d{place}", text) for place, text in enumerate(texts(MEMORIES)))
        before = [answer(engine, question) for question in asked]
    chance = random.Random(number)
    # The switch is 20 ms and little more behind the last step: half of the kills land around it.
    kill_after(folder, chance.randrange(1, STEPS) if number % 2 else STEPS, chance.uniform(0.0, 0.06))
    with opened(folder) as engine:
        there = engine.models.space
        kept = engine.status(NEW.fingerprint).spaces.get(NEW.fingerprint, 0)
        if there != NEW.fingerprint:
            assert [answer(engine, question) for question in asked] == before
        else:
            assert kept == MEMORIES
        change = engine.models.use("directions")
        assert change.embedded == MEMORIES - kept
        assert (engine.models.space, engine.status().without_vector) == (NEW.fingerprint, 0)
        engine.models.rollback()
        assert [answer(engine, question) for question in asked] == before
    return {"kills": 1, "kills_after_the_switch": there == NEW.fingerprint}


def kill_after(folder: Path, steps: int, seconds: float) -> None:
    """Begin to change the model in another process, and kill that some time after a step."""
    process = subprocess.Popen([sys.executable, "-c", CHANGE, str(folder)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    for _ in range(steps):
        assert process.stdout.readline()
    time.sleep(seconds)
    process.kill()
    process.wait()
    process.stdout.close()


def play(seed: int, folder: Path) -> Counts:
    counted = Counter[str]()
    for number in range(seed * KILLS, (seed + 1) * KILLS):
        (folder / str(number)).mkdir()
        counted.update(kill_change(folder / str(number), number))
    (folder / "readers").mkdir()
    counted.update(change_among_readers(folder / "readers"))
    return counted


LANE = Lane(
    "switch",
    "answers are of the old or the new model only, whoever changes it and is killed",
    play,
    {"kills": 100},
    seconds=900.0,
)
