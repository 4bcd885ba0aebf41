"""Change the model of a store while others search it: every answer wholly from the old or the new space, no error.

    python -m benchmarks.switching [MEMORIES [READERS]]

The readers are processes of their own that ask the same questions in turn. What they may be answered is known: it is
what the store answers before the switch and what it answers after it, score by score.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whyrank.config.load import load
from whyrank.engine.engine import Engine
from whyrank.engine.spaces import Makers
from whyrank.providers.registry import embedder_named
from whyrank.storage.store import SqliteStore
from whyrank.testing.fakes import WordDirections
from whyrank.types.memory import Document

if TYPE_CHECKING:
    from whyrank.protocols import Embedder

MEMORIES, READERS, QUESTIONS = 10_000, 4, 40
WORDS = [f"{a}{b}{c}n" for a in "bdfgklmprst" for b in "aeiou" for c in "dklmnprstz"]
NEW = WordDirections(64, "switched-to")

READER = """
import sys
from benchmarks.switching import read
read(*sys.argv[1:])
"""

Answer = list[tuple[str, float]]


@dataclass(frozen=True)
class Outcome:
    """What the readers saw, and how long it took."""

    answers: int
    old: int
    new: int
    mixed: int
    errors: int
    seconds: float
    slowest_ms: float
    median_ms: float


def opened(folder: Path) -> Engine:
    """Open the store with both models at hand, the default among them."""
    models: dict[str, Embedder | None] = {"wordllama": embedder_named("wordllama"), "directions": NEW}
    makers = Makers("wordllama", make=lambda provider, settings: models[provider])
    config = load({"store": str(folder / "memory.db"), "calibration": "manual"}, workspace=folder, environment={})
    return Engine(SqliteStore(folder / "memory.db"), models["wordllama"], config, makers=makers)


def questions() -> list[str]:
    chance = random.Random(5)
    return [" ".join(chance.choices(WORDS, k=5)) for _ in range(QUESTIONS)]


def texts(count: int) -> list[str]:
    chance = random.Random(4)
    return [" ".join(chance.choices(WORDS, k=30)) for _ in range(count)]


def answer(engine: Engine, question: str) -> Answer:
    return [(hit.id, hit.score) for hit in engine.search(question, limit=10)]


def read(folder: str, out: str) -> None:
    """Ask until somebody takes the file away that says to go on; write down every answer."""
    place, asked = Path(folder), questions()
    with opened(place) as engine, Path(out).open("w", encoding="utf-8") as told:
        answer(engine, asked[0])  # what is loaded once is not counted
        (place / f"{Path(out).name}.ready").touch()
        number = 0
        while (place / "go-on").exists():
            start = time.perf_counter()
            try:
                said: dict[str, Any] = {"answer": answer(engine, asked[number % QUESTIONS])}
            except Exception as error:  # whatever it is, it is counted
                said = {"error": repr(error)}
            took = (time.perf_counter() - start) * 1000
            told.write(json.dumps({"question": number % QUESTIONS, "ms": took, **said}) + "\n")
            number += 1


def switched(folder: Path, memories: int, readers: int) -> Outcome:
    """Fill a store, let readers ask, change the model, and look at what they were answered."""
    asked = questions()
    with opened(folder) as engine:
        engine.add_documents(Document(f"d{number}", text) for number, text in enumerate(texts(memories)))
        before = [answer(engine, question) for question in asked]
        (folder / "go-on").touch()
        files = [folder / f"reader{number}" for number in range(readers)]
        command = [sys.executable, "-c", READER, str(folder)]
        running = [subprocess.Popen([*command, str(file)]) for file in files]
        while not all((folder / f"{file.name}.ready").exists() for file in files):
            time.sleep(0.02)
        time.sleep(0.5)
        start = time.perf_counter()
        assert engine.models.use("directions").switched
        seconds = time.perf_counter() - start
        time.sleep(1.0)
        (folder / "go-on").unlink()
        for process in running:
            process.wait()
        after = [answer(engine, question) for question in asked]
    told = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    return _judged(told, before, after, seconds)


def _judged(told: list[dict[str, Any]], before: list[Answer], after: list[Answer], seconds: float) -> Outcome:
    old = new = mixed = 0
    for one in told:
        if "error" in one:
            continue
        got = [(identity, score) for identity, score in one["answer"]]
        if got == before[one["question"]]:
            old += 1
        elif got == after[one["question"]]:
            new += 1
        else:
            mixed += 1
    took = [one["ms"] for one in told]
    errors = sum("error" in one for one in told)
    return Outcome(len(told), old, new, mixed, errors, seconds, max(took), statistics.median(took))


def main() -> None:
    memories = int(sys.argv[1]) if len(sys.argv) > 1 else MEMORIES
    readers = int(sys.argv[2]) if len(sys.argv) > 2 else READERS
    with tempfile.TemporaryDirectory(prefix="whyrank-switching-") as place:
        found = switched(Path(place), memories, readers)
    print(f"{memories} memories, {readers} readers: the model was changed in {found.seconds:.1f} s")
    print(f"{found.answers} answers: {found.old} old, {found.new} new, {found.mixed} mixed, {found.errors} errors")
    print(f"an answer took {found.median_ms:.1f} ms (median), {found.slowest_ms:.0f} ms (slowest)")


if __name__ == "__main__":
    main()
