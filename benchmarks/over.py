"""What it costs to say what would flip two results: `why --over` beside a search, in milliseconds of CPU.

Generated notes of two chunks or so, every question asked once, as by somebody who has just searched and wonders about
the first and the fifth; by every recipe that ships, plain and with diversity, where every look places the pool anew,
and with a pool five times as large. All of it takes two minutes or so.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import whyrank
from whyrank.ranking.recipes import RECIPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

NOTES, WARM, SEED = 2_500, 5, 1
PAIRS, PAIRS_OF_OTHERS = 100, 40
SYLLABLES = ["ba", "ko", "ri", "ta", "nu", "sel", "mor", "vin", "dra", "pe"]
VOCABULARY, QUESTION_WORDS = 20_000, (5, 15)
SECTIONS, SECTION_WORDS = 2, 120
FIRST, SECOND = 0, 4  # the places that are compared
LIMIT_MS = 20.0
SETTINGS: dict[str, dict[str, Any]] = {"": {}, " + diversity": {"ranking_mmr_lambda": 0.7}}
LARGE_POOL = 500
LARGE = f"pool-{LARGE_POOL}"  # the default recipe with a pool that large


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


def cases(chosen: Sequence[str], pairs: int | None) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield what is measured: its name, how many pairs are asked about, and the settings."""
    for recipe in chosen:
        own = {"ranking_pool": LARGE_POOL} if recipe == LARGE else {"recipe": recipe}
        for name, settings in SETTINGS.items():
            usual = PAIRS if recipe == "default" else PAIRS_OF_OTHERS
            yield f"{recipe}{name}", pairs or usual, {**own, **settings}


def measured(engine: whyrank.Engine, ask: Callable[[], str], pairs: int) -> tuple[list[float], list[float]]:
    searches: list[float] = []
    answers: list[float] = []
    while len(answers) < WARM + pairs:
        question = ask()
        searching, found = spent(partial(engine.search, question, limit=10))
        if len(found) <= SECOND:
            continue  # a recipe may want every word
        answering, _ = spent(partial(engine.why, question, found[SECOND].id, over=found[FIRST].id))
        searches.append(searching)
        answers.append(answering)
    return searches[WARM:], answers[WARM:]


def p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]


def several(text: str) -> int:
    """Read how many pairs are wanted: of fewer than two nobody can say what 95 of 100 take."""
    pairs = int(text)
    if pairs < 2:
        raise argparse.ArgumentTypeError("give 2 or more")
    return pairs


def arguments() -> argparse.Namespace:
    every = [*RECIPES, LARGE]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.over", description=__doc__)
    parser.add_argument(
        "--recipe",
        action="append",
        choices=every,
        metavar="RECIPE",
        help=f"measure this one; may be given several times; all of them if none is: {', '.join(every)}",
    )
    usual = f"{PAIRS} by default, {PAIRS_OF_OTHERS} by others"
    parser.add_argument("--pairs", type=several, metavar="N", help=f"ask about so many pairs of results ({usual})")
    return parser.parse_args()


def main() -> None:
    asked = arguments()
    prose = Prose(random.Random(SEED))
    with tempfile.TemporaryDirectory(prefix="whyrank-bench-") as folder:
        place = Path(folder)
        notes = place / "notes"
        notes.mkdir()
        for number in range(NOTES):
            (notes / f"{number}.md").write_text(prose.note())
        with whyrank.open(place / "memory.db", workspace=place) as engine:
            engine.ingest(notes)
        print(f"{'ms of CPU':28}{'search p50':>12}{'p95':>8}   {'why --over p50':>16}{'p95':>8}")
        for name, pairs, settings in cases(asked.recipe or [*RECIPES, LARGE], asked.pairs):
            gc.collect()  # what the case before has left behind is not this one's
            with whyrank.open(place / "memory.db", workspace=place, **settings) as engine:
                searches, answers = measured(engine, prose.question, pairs)
            search, answer = (f"{statistics.median(times):8.1f}{p95(times):8.1f}" for times in (searches, answers))
            over = "" if p95(answers) < LIMIT_MS else "   over the limit"
            print(f"{name:28}{search:>20}   {answer:>24}{over}", flush=True)
    print(f"the limit is {LIMIT_MS:g} ms for 95 of 100, the search it begins with included")


if __name__ == "__main__":
    main()
