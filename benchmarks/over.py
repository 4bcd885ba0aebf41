"""What it costs to say what would flip two results: `why --over` beside a search, in milliseconds of CPU.

`python -m benchmarks.over`: generated notes of two chunks or so, every question asked once, as by somebody who has just
searched and wonders about the first and the fifth; plain, and with diversity, where every look places the pool anew.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import whyrank

NOTES, QUESTIONS, WARM, SEED = 2_500, 100, 5, 1
SYLLABLES = ["ba", "ko", "ri", "ta", "nu", "sel", "mor", "vin", "dra", "pe"]
VOCABULARY, QUESTION_WORDS = 20_000, (5, 15)
SECTIONS, SECTION_WORDS = 2, 120
FIRST, SECOND = 0, 4  # the places that are compared
LIMIT_MS = 20.0
SETTINGS: dict[str, dict[str, Any]] = {"plain": {}, "diversity 0.7": {"ranking_mmr_lambda": 0.7}}


class Prose:
    """Words as they are in texts: few are frequent, most are rare."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._words = ["".join(chance.choices(SYLLABLES, k=chance.randint(2, 5))) for _ in range(VOCABULARY)]
        self._often = [1 / (rank + 10) for rank in range(len(self._words))]

    def words(self, count: int) -> str:
        return " ".join(self._chance.choices(self._words, self._often, k=count))

    def note(self) -> str:
        sections = (f"## {self.words(3)}\n\n{self.words(SECTION_WORDS)}" for _ in range(SECTIONS))
        return "\n\n".join((f"# {self.words(4)}", *sections))

    def question(self) -> str:
        return self.words(self._chance.randint(*QUESTION_WORDS))


def spent(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    answer = work()
    return (time.process_time() - began) * 1000, answer


def measured(engine: whyrank.Engine, questions: list[str]) -> tuple[list[float], list[float]]:
    searches, answers = [], []
    for question in questions:
        searching, found = spent(partial(engine.search, question, limit=10))
        answering, _ = spent(partial(engine.why, question, found[SECOND].id, over=found[FIRST].id))
        searches.append(searching)
        answers.append(answering)
    return searches[WARM:], answers[WARM:]


def told(times: list[float]) -> str:
    return f"{statistics.median(times):8.1f}{statistics.quantiles(times, n=20)[-1]:8.1f}"


def main() -> None:
    prose = Prose(random.Random(SEED))
    with tempfile.TemporaryDirectory(prefix="whyrank-bench-") as folder:
        place = Path(folder)
        notes = place / "notes"
        notes.mkdir()
        for number in range(NOTES):
            (notes / f"{number}.md").write_text(prose.note())
        with whyrank.open(place / "memory.db", workspace=place) as engine:
            engine.ingest(notes)
        print(f"{'ms of CPU':16}{'search p50':>12}{'p95':>8}   {'why --over p50':>16}{'p95':>8}")
        for name, settings in SETTINGS.items():
            with whyrank.open(place / "memory.db", workspace=place, **settings) as engine:
                searches, answers = measured(engine, [prose.question() for _ in range(WARM + QUESTIONS)])
            print(f"{name:16}{told(searches):>20}   {told(answers):>24}")
    print(f"the limit is {LIMIT_MS:g} ms, the search it begins with included")


if __name__ == "__main__":
    main()
