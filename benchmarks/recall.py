"""What a recall injects, and when it is silent: precision on answerable questions, silence on foreign ones.

    python -m benchmarks.recall DATA [--sets agent-memory …] [--embedders wordllama minilm] [--files 45] [--stores 5]
        [--confidence 0.2 0.5 0.8] [--limit 3] [--max-tokens 1200] [--questions 60]

DATA holds evaluation sets in the form that `whyrank eval` reads. Small stores are drawn out of each set as by `whyrank
eval --small`, each calibrated as a user's is. A turn is a question as it stands. Answerable questions are those of the
store itself; foreign ones are drawn from the other sets. A memory that is not judged relevant counts as irrelevant.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import whyrank
from whyrank.config.settings import SETTINGS
from whyrank.evaluation.abstention import calibrate_scopes
from whyrank.evaluation.datasets import load_set
from whyrank.evaluation.harness import fill
from whyrank.evaluation.small_stores import Draws, draw_stores, files_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from whyrank.evaluation.datasets import EvaluationSet, Question

SETS = ("agent-memory", "skills-registry", "scifact", "locomo-sessions")
_SEED = 1


@dataclass
class Tally:
    """Counts of one setting: of questions, and of the memories they were given."""

    answerable: int = 0
    foreign: int = 0
    right: int = 0  # questions that were given a relevant memory
    silent: int = 0  # answerable questions that were given nothing
    stained: int = 0  # answerable questions that were given something irrelevant
    injected: int = 0  # foreign questions that were given anything
    memories: Counter[bool] = field(default_factory=Counter)  # given to answerable questions, by their relevance
    tokens: int = 0

    def row(self) -> str:
        """Return the figures as a row of a table, in per cent."""
        given = sum(self.memories.values())
        shares = (
            _percent(self.right, self.answerable), _percent(self.silent, self.answerable),
            _percent(self.stained, self.answerable), _percent(self.memories[True], given),
            _percent(self.injected, self.foreign), str(round(self.tokens / max(1, self.answerable))),
        )  # fmt: skip
        return " | ".join(shares)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--embedders", nargs="+", default=["wordllama", "minilm"])
    parser.add_argument("--files", type=int, default=45)
    parser.add_argument("--stores", type=int, default=5)
    parser.add_argument("--confidence", type=float, nargs="+", default=[0.2, 0.5, 0.8])
    parser.add_argument("--limit", type=int, default=3)
    parser.add_argument("--max-tokens", type=int, default=SETTINGS["recall.max_tokens"].default)
    parser.add_argument("--questions", type=int, default=60, help="at most, of each kind and store")
    asked = parser.parse_args()
    sets = {name: load_set(asked.data / name) for name in asked.sets}
    print("| set | embedder | confidence from | right given | silent | something irrelevant | precision | foreign: "
          "injected | tokens |\n|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    for name, dataset in sets.items():
        others = [other for one, other in sets.items() if one != name]
        for embedder in asked.embedders:
            for confidence, tally in measured(dataset, others, embedder, asked).items():
                print(f"| {name} | {embedder} | {confidence} | {tally.row()} |", flush=True)


def measured(
    dataset: EvaluationSet, others: Sequence[EvaluationSet], embedder: str, asked: argparse.Namespace
) -> dict[float, Tally]:
    """Return what recalls gave in small stores of a set, by the least confidence."""
    tallies = {confidence: Tally() for confidence in asked.confidence}

    def opened(place: str, **settings: Any) -> AbstractContextManager[whyrank.Engine]:
        return whyrank.open(Path(place) / "memory.db", workspace=place, embedding=embedder, **settings)

    with tempfile.TemporaryDirectory() as place:
        files = files_of(dataset, lambda: opened(place))
    for number, store in enumerate(draw_stores(dataset, files, Draws(asked.files, asked.stores))):
        print(f"{dataset.name}, {embedder}: store {number + 1} of {asked.stores}", file=sys.stderr)
        chance = random.Random(f"{_SEED}/{number}")
        own, foreign = list(_drawn(store, others, chance, asked.questions))
        with tempfile.TemporaryDirectory() as place:
            with opened(place, calibration="manual") as memory:
                fill(memory, store)
                calibrate_scopes(memory, store)
            for confidence, tally in tallies.items():
                chosen = {
                    "recall_min_confidence": confidence, "recall_limit": asked.limit,
                    "recall_max_tokens": asked.max_tokens, "recall_log": False,
                }  # fmt: skip
                with opened(place, **chosen) as memory:
                    count(memory, store, own, foreign, tally)
    return tallies


def _drawn(
    store: EvaluationSet, others: Sequence[EvaluationSet], chance: random.Random, most: int
) -> Iterator[list[Question]]:
    yield chance.sample(store.questions, min(most, len(store.questions)))
    scopes = sorted({question.scope for question in store.questions})
    strangers = [question for other in others for question in chance.sample(other.questions, most // len(others))]
    yield [question._replace(scope=scopes[place % len(scopes)]) for place, question in enumerate(strangers)]


def count(
    memory: whyrank.Engine, store: EvaluationSet, own: Sequence[Question], foreign: Sequence[Question], tally: Tally
) -> None:
    """Recall for all questions of a store, and count what was given."""
    for question in own:
        reminder = memory.recall(question.text, scope=question.scope)
        judged = store.judgements[question.id]
        relevant = [judged.get(one.citation.partition("#")[0], 0) > 0 for one in reminder.memories]
        tally.answerable += 1
        tally.tokens += reminder.tokens
        tally.right += any(relevant)
        tally.silent += not relevant
        tally.stained += not all(relevant)
        tally.memories.update(relevant)
    tally.foreign += len(foreign)
    tally.injected += sum(bool(memory.recall(question.text, scope=question.scope)) for question in foreign)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f}" if whole else "–"


if __name__ == "__main__":
    main()
