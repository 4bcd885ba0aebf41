"""Measure verdicts: answerable and foreign questions, risk and coverage."""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import regex

from ..errors import ConfigError
from .harness import EvaluatedEngine, Judged, Tick, fill, spoken

if TYPE_CHECKING:
    from ..types.memory import Document, Scope
    from .datasets import EvaluationSet, Question

Renaming = Callable[[str], str]

# A session written down as one text has its speakers at the beginning of its lines.
_SPEAKER = regex.compile(r"^(\p{Lu}[\p{L}'’-]{1,30}): ", regex.MULTILINE)
_MIN_LINES = 5  # what begins fewer lines of a scope is a heading


def speakers_of(documents: Iterable[Document]) -> dict[Scope, list[str]]:
    """Return the speakers of each scope, the one with the most lines first."""
    counts: dict[Scope, Counter[str]] = {}
    for document in documents:
        said = [document.speaker] if document.speaker else _SPEAKER.findall(document.text)
        counts.setdefault(document.scope, Counter()).update(said)
    return {
        scope: [name for lines, name in sorted((-lines, name) for name, lines in found.items()) if -lines >= _MIN_LINES]
        for scope, found in counts.items()
    }


def renaming_between(theirs: Sequence[str], ours: Sequence[str]) -> Renaming:
    """Return a function that replaces their names with ours at once; without names it changes nothing."""
    if not theirs or not ours:
        return lambda text: text
    places = {name: ours[number % len(ours)] for number, name in enumerate(theirs)}
    names = "|".join(regex.escape(name) for name in sorted(places, key=len, reverse=True))
    pattern = regex.compile(rf"\b(?:{names})\b")
    return lambda text: str(pattern.sub(lambda found: places[found.group()], text))


KEPT_SHOWN = (1.0, 0.99, 0.98, 0.95, 0.9, 0.8, 0.7, 0.5)
KEPT_WANTED = 0.95
QUESTIONS_OF_EACH_OTHER = 300  # of each other set, and into each scope from the others: enough for a per cent or two
POINTS_DRAWN = 200  # of a curve: more than a screen shows
OTHER_SCOPES = "other scopes"
ALL_OTHER_SETS = "questions of all other sets"
NAMES_SWAPPED = "other scopes, names swapped in"
_SEED = 1


class Calibrated(EvaluatedEngine, Protocol):
    """Engine protocol for measuring abstention: search and calibration."""

    def calibrate(self, *, scope: Scope) -> object:
        """Fit the thresholds of the verdict to a scope."""


class Point(NamedTuple):
    """One threshold: the shares of both sides, and the risk of answering an unanswerable query.

    Risk and coverage weigh both sides alike.
    """

    threshold: float
    kept: float
    rejected: float

    @property
    def coverage(self) -> float:
        """Return the share of all queries that is answered, if half of them are answerable."""
        return (self.kept + 1 - self.rejected) / 2

    @property
    def risk(self) -> float:
        """Return the share of the answered queries that have no answer here."""
        return (1 - self.rejected) / (2 * self.coverage) if self.coverage else 0.0


class Verdicts(NamedTuple):
    """Verdicts on one side: the shares not called nothing, and called found."""

    kept: float
    found: float


@dataclass(frozen=True)
class Side:
    """The answerable questions against one kind of unanswerable ones."""

    name: str
    answerable: Sequence[Judged]
    unanswerable: Sequence[Judged]

    def at_kept(self, share: float) -> Point:
        """Return the highest threshold that keeps this share of the answerable."""
        ordered = sorted(one.evidence for one in self.answerable)
        return self.at(ordered[int((1 - share) * len(ordered) + 1e-9)])

    def at(self, threshold: float) -> Point:
        """Return the shares that a threshold keeps and rejects."""
        return Point(threshold, 1 - _below(self.answerable, threshold), _below(self.unanswerable, threshold))

    def curve(self) -> list[Point]:
        """Return every threshold that makes a difference, in ascending order."""
        return [self.at(value) for value in sorted({one.evidence for one in (*self.answerable, *self.unanswerable)})]

    @property
    def auc(self) -> float:
        """Return how often an answerable question has more evidence than an unanswerable one (ties: half)."""
        other = sorted(one.evidence for one in self.unanswerable)
        wins = sum(bisect_left(other, a.evidence) + bisect_right(other, a.evidence) for a in self.answerable)
        return wins / (2 * len(self.answerable) * len(other))

    @property
    def verdicts(self) -> tuple[Verdicts, Verdicts]:
        """Return the shares of the calibrated verdict on the answerable and the unanswerable side."""
        own, other = (
            Verdicts(
                kept=sum(one.verdict != "nothing" for one in side) / len(side),
                found=sum(one.verdict == "found" for one in side) / len(side),
            )
            for side in (self.answerable, self.unanswerable)
        )
        return own, other


@dataclass(frozen=True)
class Abstention:
    """All sides of one set; `uncalibrated` scopes went by default thresholds."""

    set_name: str
    sides: tuple[Side, ...]
    uncalibrated: tuple[str, ...] = ()


def abstention(
    dataset: EvaluationSet, others: Sequence[EvaluationSet], engine: Calibrated, recipe: str, tick: Tick
) -> Abstention:
    """Index a set, run answerable and unanswerable queries, and compare their evidence."""
    check_unanswerable(dataset, others)
    unanswerable = unanswerable_questions(dataset, others)
    fill(engine, dataset)
    uncalibrated = calibrate_scopes(engine, dataset)
    groups = {"": list(dataset.questions), **unanswerable}
    total, done = sum(map(len, groups.values())), 0
    asked: dict[str, list[Judged]] = {name: [] for name in groups}
    for name, questions in groups.items():
        for question in questions:
            asked[name].append(spoken(engine.search(question.text, limit=1, recipe=recipe, scope=question.scope)))
            done += 1
            tick(done, total, f"{dataset.name} {name}")
    sides = [Side(name, asked[""], asked[name]) for name in unanswerable]
    if len(others) > 1:
        foreign = [one for side in sides if side.name in foreign_names(others) for one in side.unanswerable]
        sides.append(Side(ALL_OTHER_SETS, asked[""], foreign))
    return Abstention(dataset.name, tuple(sides), uncalibrated)


def calibrate_scopes(engine: Calibrated, dataset: EvaluationSet) -> tuple[str, ...]:
    """Calibrate every scope that has queries; return those with too few memories."""
    uncalibrated = []
    for scope in sorted({question.scope for question in dataset.questions}):
        try:
            engine.calibrate(scope=scope)
        except ConfigError:  # too few memories: the defaults are what such a user has
            uncalibrated.append(str(scope))
    return tuple(uncalibrated)


def check_unanswerable(dataset: EvaluationSet, others: Sequence[EvaluationSet]) -> None:
    """Refuse a set for which no unanswerable query can be made."""
    if not unanswerable_questions(dataset, others):
        raise ConfigError(
            f"{dataset.name} has one scope only, so all its questions can be answered",
            "name a set whose questions cannot: --abstention OTHER",
        )


def unanswerable_questions(dataset: EvaluationSet, others: Sequence[EvaluationSet]) -> dict[str, list[Question]]:
    """Return unanswerable queries by kind, each with the scope it is searched in."""
    choice = random.Random(_SEED)
    groups = dict(zip(foreign_names(others), (list(_foreign(dataset, other, choice)) for other in others), strict=True))
    by_scope: dict[Scope, list[Question]] = {}
    for question in dataset.questions:
        by_scope.setdefault(question.scope, []).append(question)
    if len(by_scope) > 1:
        strangers = {scope: _strangers(by_scope, scope, choice) for scope in by_scope}
        groups[OTHER_SCOPES] = [q._replace(scope=scope) for scope, found in strangers.items() for q in found]
        groups[NAMES_SWAPPED] = list(_renamed(strangers, speakers_of(dataset.documents)))
    return {name: questions for name, questions in groups.items() if questions}


def foreign_names(others: Sequence[EvaluationSet]) -> list[str]:
    """Return the group names of queries from other sets; sets of one name are numbered."""
    seen: Counter[str] = Counter()
    names = []
    for other in others:
        seen[other.name] += 1
        number = f" ({seen[other.name]})" if seen[other.name] > 1 else ""
        names.append(f"questions of {other.name}{number}")
    return names


def _foreign(dataset: EvaluationSet, other: EvaluationSet, choice: random.Random) -> Iterator[Question]:
    """Distribute the queries of another set over the scopes of this one."""
    scopes = sorted({question.scope for question in dataset.questions})
    drawn = choice.sample(other.questions, min(QUESTIONS_OF_EACH_OTHER, len(other.questions)))
    for number, question in enumerate(drawn):
        yield question._replace(scope=scopes[number % len(scopes)])


def _strangers(by_scope: Mapping[Scope, Sequence[Question]], scope: Scope, choice: random.Random) -> list[Question]:
    found = [question for other in sorted(by_scope) if other != scope for question in by_scope[other]]
    return choice.sample(found, min(QUESTIONS_OF_EACH_OTHER, len(found)))


def _renamed(
    strangers: Mapping[Scope, Sequence[Question]], speakers: Mapping[Scope, Sequence[str]]
) -> Iterator[Question]:
    """Replace the speakers in queries by those of the searched scope; skip queries that name no speaker."""
    renamings: dict[tuple[Scope, Scope], Renaming] = {}
    for scope, questions in strangers.items():
        for question in questions:
            pair = question.scope, scope
            if pair not in renamings:
                renamings[pair] = renaming_between(speakers.get(pair[0], ()), speakers.get(pair[1], ()))
            text = renamings[pair](question.text)
            if text != question.text:
                yield question._replace(text=text, scope=scope)


def _below(side: Sequence[Judged], threshold: float) -> float:
    return sum(one.evidence < threshold for one in side) / len(side)


def as_data(measured: Abstention) -> dict[str, Any]:
    """Return an abstention as plain data."""
    return {
        "set": measured.set_name,
        "uncalibrated": list(measured.uncalibrated),
        "sides": [
            {
                "unanswerable": side.name,
                "questions": {"answerable": len(side.answerable), "unanswerable": len(side.unanswerable)},
                "auc": side.auc,
                "rejected_at_95_kept": side.at_kept(KEPT_WANTED).rejected,
                "curve": [
                    {**point._asdict(), "coverage": point.coverage, "risk": point.risk}
                    for point in map(side.at_kept, KEPT_SHOWN)
                ],
                "points": _columns(thinned(side.curve(), POINTS_DRAWN)),
                "verdict": {
                    name: {"kept": verdicts.kept, "rejected": 1 - verdicts.kept, "found": verdicts.found}
                    for name, verdicts in zip(("answerable", "unanswerable"), side.verdicts, strict=True)
                },
            }
            for side in measured.sides
        ],
    }


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """Return at most so many points of a curve, evenly taken, with both its ends."""
    if len(points) <= most:
        return list(points)
    return [points[round(place * (len(points) - 1) / (most - 1))] for place in range(most)]


def _columns(points: Sequence[Point]) -> dict[str, list[float]]:
    return {name: [getattr(point, name) for point in points] for name in Point._fields}


class Answered(NamedTuple):
    """One query: the evidence for its answer, and the correctness of the first hit."""

    evidence: float
    is_right: bool


class Risk(NamedTuple):
    """A point of the risk–coverage curve: the share answered, and the share of wrong first hits in it."""

    coverage: float
    risk: float


def risk_by_coverage(answered: Sequence[Answered]) -> list[Risk]:
    """Compute the risk–coverage curve, most evidence first; equal evidence forms one point."""
    curve, asked, wrong = [], 0, 0
    ordered = sorted(answered, key=lambda one: -one.evidence)
    for _, alike in groupby(ordered, key=lambda one: one.evidence):
        group = list(alike)
        asked += len(group)
        wrong += sum(not one.is_right for one in group)
        curve.append(Risk(asked / len(ordered), wrong / asked))
    return curve


def best_possible(answered: Sequence[Answered]) -> list[Risk]:
    """Return the curve of perfect evidence: all right answers before all wrong ones."""
    right = sum(one.is_right for one in answered)
    return [Risk(asked / len(answered), max(0, asked - right) / asked) for asked in range(1, len(answered) + 1)]


def area(curve: Sequence[Risk]) -> float:
    """Return the mean risk over all coverages, the area under the curve (Geifman and El-Yaniv 2017)."""
    before, whole = 0.0, 0.0
    for coverage, risk in curve:
        whole += (coverage - before) * risk
        before = coverage
    return whole
