"""Change the model at any moment, kill whoever does it, and let others search meanwhile.

A few rounds run in the suite; `make soak` runs hundreds.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.switching import NEW, answer, opened, questions, switched, texts
from whyrank.types import Document

ROUNDS = 100 if os.environ.get("SOAK") else 4
MEMORIES = 600  # ten transactions, so that a kill can land between them

CHANGE = """
import sys, time
from pathlib import Path
from benchmarks.switching import opened
with opened(Path(sys.argv[1])) as engine:
    print("ready", flush=True)
    engine.change_model("directions", progress=lambda done, total, label: time.sleep(0.02))
    print("done", flush=True)
"""


def test_readers_get_answers_of_one_space_only_and_no_error(tmp_path: Path) -> None:
    found = switched(tmp_path, 2_000, 2)
    assert (found.mixed, found.errors) == (0, 0)
    assert found.old
    assert found.new


@pytest.mark.parametrize("number", range(ROUNDS))
def test_a_change_that_is_killed_leaves_the_old_or_the_new_model_and_goes_on(tmp_path: Path, number: int) -> None:
    asked = questions()[:5]
    with opened(tmp_path) as engine:
        engine.add_documents(Document(f"d{place}", text) for place, text in enumerate(texts(MEMORIES)))
        before = [answer(engine, question) for question in asked]
    # Ten steps of 20 ms and the switch after them: half of the kills land around its end.
    seconds = random.Random(number).uniform(0.01, 0.35) if number % 2 else random.Random(number).uniform(0.25, 0.5)
    kill_after(tmp_path, seconds)
    with opened(tmp_path) as engine:
        there = engine.space
        kept = engine.status(NEW.fingerprint).spaces.get(NEW.fingerprint, 0)
        if there != NEW.fingerprint:
            assert [answer(engine, question) for question in asked] == before
        else:
            assert kept == MEMORIES
        change = engine.change_model("directions")
        assert change.embedded == MEMORIES - kept
        assert (engine.space, engine.status().without_vector) == (NEW.fingerprint, 0)
        engine.rollback_model()
        assert [answer(engine, question) for question in asked] == before


def kill_after(folder: Path, seconds: float) -> None:
    """Begin to change the model in another process, and kill that."""
    process = subprocess.Popen([sys.executable, "-c", CHANGE, str(folder)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(seconds)
    process.kill()
    process.wait()
    process.stdout.close()
