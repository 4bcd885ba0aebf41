"""Small stores drawn at random from a set: a few dozen files, and the queries that they answer."""

from __future__ import annotations

import hashlib
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from statistics import fmean, median_low
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..errors import ConfigError
from . import harness
from .abstention import (
    ALL_OTHER_SETS,
    Calibrated,
    calibrate_scopes,
    check_unanswerable,
    foreign_names,
    unanswerable_questions,
)
from .harness import SINGLE_RUNS, Evaluation, Judged, Line, Tick, fill, lines_asked, measure, unknown
from .measures import MEASURES, Comparison, compare

if TYPE_CHECKING:
    from pathlib import Path

    from .datasets import EvaluationSet, Question

DRAWS = 10
SEED = 1
RELEVANT_SHARE = 0.25  # of a store's files, at least: of 11 files out of 5,000, hardly one would answer a question
ANSWERABLE = "answerable questions"
VERDICTS = ("nothing", "weak", "found")  # the most cautious first

Files = Mapping[str, Sequence[str]]  # the documents that each file holds
Tallies = dict[str, dict[str, list[str]]]  # the verdicts on each query of each group, one for every store it ran on


class Holder(Calibrated, Protocol):
    """Engine protocol for small stores: search, calibration and dry-run ingest."""

    def ingest(self, *paths: str | Path, base: str | Path | None = None, dry_run: bool = False) -> Any:
        """Index files, or list those that would be indexed."""


OpenStore = Callable[[], AbstractContextManager[Holder]]


class Draws(NamedTuple):
    """Size and number of the stores to draw, and the seed."""

    files: int
    stores: int = DRAWS
    seed: int = SEED


class Shares(NamedTuple):
    """Number of queries, each counted once, and the share of every verdict."""

    questions: int
    nothing: float
    weak: float
    found: float


@dataclass
class SmallStores:
    """Results of the stores of one size; figures of a query are means over the stores it ran on."""

    draws: Draws
    evaluation: Evaluation
    asked: int  # questions, summed over the stores
    unasked: int  # stores that answer no question
    uncalibrated: int  # stores with a scope that has too few memories to calibrate by
    verdicts: Mapping[str, Shares]


def evaluate_small(
    dataset: EvaluationSet,
    files: Files,
    draws: Draws,
    recipes: Sequence[str],
    open_store: OpenStore,
    tick: Tick,
    others: Sequence[EvaluationSet] | None = None,
) -> SmallStores:
    """Draw stores, index each, and run the queries it answers; with `others`, also unanswerable ones."""
    slips = unknown(dataset)
    if others is not None:
        check_unanswerable(dataset, others)
    stores = [store for store in draw_stores(dataset, files, draws) if store.questions]
    if not stores:
        raise ConfigError(
            f"none of the {draws.stores} stores drawn out of {dataset.name} answers a question",
            "draw more of them (--draws), or larger ones (--small)",
        )
    foreign = [{} if others is None else unanswerable_questions(store, others) for store in stores]
    own = sum(len(store.questions) for store in stores) * len(lines_asked(recipes))
    work = _Work(recipes, tick, own + sum(len(questions) for groups in foreign for questions in groups.values()))
    for store, groups in zip(stores, foreign, strict=True):
        with open_store() as engine:
            work.ask(engine, store, groups)
    evaluation = _merged(f"{dataset.name}, stores of {draws.files}", dataset.questions, work.evaluations)
    evaluation.notices.update(slips)
    return SmallStores(
        draws,
        evaluation,
        asked=sum(len(store.questions) for store in stores),
        unasked=draws.stores - len(stores),
        uncalibrated=work.uncalibrated,
        verdicts=dict(_shares(work.tallies, foreign_names(others or ()))),
    )


# Drawing.


def files_of(dataset: EvaluationSet, open_store: OpenStore) -> Files:
    """Return the units to draw: files that an ingest takes, documents of a corpus, or whole sessions."""
    if dataset.files is not None:
        with open_store() as engine:
            planned = engine.ingest(dataset.files, base=dataset.files, dry_run=True).plans
        return {path: [path] for path, _ in planned}
    files: dict[str, list[str]] = {}
    for document in dataset.documents:
        files.setdefault(document.session or document.id, []).append(document.id)
    return files


def draw_stores(dataset: EvaluationSet, files: Files, draws: Draws) -> list[EvaluationSet]:
    """Draw stores uniformly from the files of the set, unless too few of them answer a query."""
    judged = {document for gains in dataset.judgements.values() for document, gain in gains.items() if gain > 0}
    relevant = sorted(name for name, documents in files.items() if not judged.isdisjoint(documents))
    stores = []
    for number in range(draws.stores):
        chance = random.Random(f"{draws.seed}/{draws.files}/{number}")
        drawn = _draw(sorted(files), relevant, draws.files, chance)
        stores.append(_restricted(dataset, {document for name in drawn for document in files[name]}))
    return stores


def _draw(files: Sequence[str], relevant: Sequence[str], size: int, chance: random.Random) -> list[str]:
    if len(relevant) >= RELEVANT_SHARE * len(files):
        return chance.sample(files, size)
    wanted = min(math.ceil(RELEVANT_SHARE * size), len(relevant))
    others = sorted(set(files).difference(relevant))
    return chance.sample(relevant, wanted) + chance.sample(others, size - wanted)


def _restricted(dataset: EvaluationSet, held: set[str]) -> EvaluationSet:
    """Return the set restricted to these documents, with the queries that they answer."""
    judgements = {
        question.id: {document: gain for document, gain in dataset.judgements[question.id].items() if document in held}
        for question in dataset.questions
    }
    answered = {identity for identity, gains in judgements.items() if any(gain > 0 for gain in gains.values())}
    return replace(
        dataset,
        documents=tuple(document for document in dataset.documents if document.id in held),
        paths=tuple(sorted(held)) if dataset.files is not None else (),
        questions=tuple(question for question in dataset.questions if question.id in answered),
        judgements={identity: gains for identity, gains in judgements.items() if identity in answered},
        unjudged=0,
    )


# Measuring.


@dataclass
class _Work:
    """Accumulated measurements of the stores processed so far."""

    recipes: Sequence[str]
    tick: Tick
    total: int
    done: int = 0
    uncalibrated: int = 0
    evaluations: list[Evaluation] = field(default_factory=list)
    tallies: Tallies = field(default_factory=dict)

    def ask(self, engine: Holder, store: EvaluationSet, foreign: Mapping[str, Sequence[Question]]) -> None:
        """Index one store, calibrate it like a user's, and run all queries."""
        fill(engine, store)
        self.uncalibrated += bool(calibrate_scopes(engine, store))
        start = self.done
        evaluation = measure(store, engine, self.recipes, lambda done, _, label: self._tick(start + done, label))
        self.evaluations.append(evaluation)
        for identity, (_, verdict) in evaluation.lines[self.recipes[0]].spoken.items():
            self._tally(ANSWERABLE, identity, verdict)
        for group, questions in foreign.items():
            for question in questions:
                results = engine.search(question.text, limit=1, recipe=self.recipes[0], scope=question.scope)
                self._tally(group, question.id, results.verdict)
                self._tick(self.done + 1, f"{store.name} {group}")

    def _tick(self, done: int, label: str) -> None:
        self.done = done
        self.tick(done, self.total, label)

    def _tally(self, group: str, question: str, verdict: str) -> None:
        self.tallies.setdefault(group, {}).setdefault(question, []).append(verdict)


# Merging.


def _merged(name: str, questions: Sequence[Question], evaluations: Sequence[Evaluation]) -> Evaluation:
    """Merge the stores into one evaluation, in which a query of several stores counts once."""
    judgements: dict[str, dict[str, int]] = {}
    notices: Counter[str] = Counter()
    for one in evaluations:
        for identity, gains in one.judgements.items():
            judgements.setdefault(identity, {}).update(gains)
        notices.update(one.notices)
    merged = Evaluation(
        name,
        [question for question in questions if question.id in judgements],
        evaluations[0].recipes,
        judgements,
        hashlib.sha256("".join(one.digest for one in evaluations).encode()).hexdigest()[:16],
        trails=sum(one.trails for one in evaluations),
        broken_trails=[trail for one in evaluations for trail in one.broken_trails],
        notices=dict(notices),
    )
    for line in evaluations[0].lines:
        merged.lines[line] = _mean_line(line, [one.lines[line] for one in evaluations], merged.questions)
    return merged


def _mean_line(name: str, lines: Sequence[Line], questions: Sequence[Question]) -> Line:
    """Merge a line over the stores: mean measures, median ranks, most frequent verdicts."""
    merged = Line(name)
    for identity in (question.id for question in questions):
        asked = [line for line in lines if identity in line.scores]
        scores = [line.scores[identity] for line in asked]
        ranks = [math.inf if (rank := line.first[identity]) is None else rank for line in asked]
        middle = median_low(ranks)
        merged.scores[identity] = {one.name: fmean(row[one.name] for row in scores) for one in MEASURES}
        merged.first[identity] = None if middle == math.inf else int(middle)
        if said := [line.spoken[identity] for line in asked if identity in line.spoken]:
            verdicts = [one.verdict for one in said]
            merged.spoken[identity] = Judged(fmean(one.evidence for one in said), max(VERDICTS, key=verdicts.count))
    return merged


def _shares(tallies: Tallies, foreign: Sequence[str]) -> Iterator[tuple[str, Shares]]:
    """Yield the verdict shares of each group, and of all other sets together if there are several."""
    for group, told in tallies.items():
        yield group, _share([*told.values()])
    pooled = [verdicts for group in foreign for verdicts in tallies.get(group, {}).values()]
    if len(foreign) > 1 and pooled:
        yield ALL_OTHER_SETS, _share(pooled)


def _share(told: Sequence[Sequence[str]]) -> Shares:
    return Shares(len(told), *(fmean(said.count(verdict) / len(said) for said in told) for verdict in VERDICTS))


def better_single(values: Callable[[str], Sequence[float]], recipe: str) -> tuple[str, Comparison]:
    """Return the single run with the higher mean, and the paired comparison of a recipe with it."""
    best = max(SINGLE_RUNS, key=lambda run: fmean(values(run)))
    return best, compare(values(best), values(recipe))


def as_data(measured: SmallStores) -> dict[str, Any]:
    """Return small stores as plain data: an evaluation, and the draws."""
    evaluation = measured.evaluation
    values = {name: line.values() for name, line in evaluation.lines.items()}
    singles = {recipe: better_single(values.__getitem__, recipe) for recipe in evaluation.recipes}
    return {
        **harness.as_data(evaluation),
        "worst": [],
        "stores": {
            "files": measured.draws.files,
            "draws": measured.draws.stores,
            "seed": measured.draws.seed,
            "asked": measured.asked,
            "unasked": measured.unasked,
            "uncalibrated": measured.uncalibrated,
            "better_single": {recipe: {"against": run, **found._asdict()} for recipe, (run, found) in singles.items()},
            "verdicts": {group: shares._asdict() for group, shares in measured.verdicts.items()},
        },
    }
