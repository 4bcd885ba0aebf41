"""How well a search says that nothing relevant is there: answerable questions against others asked of the same store.

Nobody has to label anything: the questions of one set, or of one scope, have no answer in another. Harder are those of
another conversation with the names of this one's speakers put in. The curve shows what any threshold could do; the
operating point is what the verdict does, by thresholds that were calibrated without looking at a question.
"""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ..errors import ConfigError
from ..hits import Results
from ..types import Scope
from .harness import Subject, Tick, fill, spoken
from .sets import EvaluationSet, Question
from .speakers import Renaming, renaming_between, speakers_of

KEPT_SHOWN = (1.0, 0.99, 0.98, 0.95, 0.9, 0.8, 0.7, 0.5)
KEPT_WANTED = 0.95
QUESTIONS_OF_EACH_OTHER = 300  # of each other set, and into each scope from the others: enough for a per cent or two
POINTS_DRAWN = 200  # of a curve: more than a screen shows
OTHER_SCOPES = "other scopes"
ALL_OTHER_SETS = "questions of all other sets"
NAMES_SWAPPED = "other scopes, names swapped in"
_SEED = 1


class Calibrated(Subject, Protocol):
    """What is needed of an engine besides answering."""

    def calibrate(self, *, scope: Scope) -> object:
        """Fit the thresholds of the verdict to a scope."""


class Asked(NamedTuple):
    """What came of one question: its evidence, a name's tier on top, and whether it was called nothing or found."""

    evidence: float
    is_nothing: bool
    is_found: bool


class Point(NamedTuple):
    """One threshold: the shares of both sides, and the risk that what is answered has no answer, both sides alike."""

    threshold: float
    kept: float
    rejected: float

    @property
    def coverage(self) -> float:
        """Return the share of all questions that is answered, if half of them can be."""
        return (self.kept + 1 - self.rejected) / 2

    @property
    def risk(self) -> float:
        """Return the share of those answered that has no answer here."""
        return (1 - self.rejected) / (2 * self.coverage) if self.coverage else 0.0


class Verdicts(NamedTuple):
    """What the verdict did: shares of a side that were not called nothing, and that were called found."""

    kept: float
    found: float


@dataclass(frozen=True)
class Side:
    """The answerable questions against one kind of unanswerable ones."""

    name: str
    answerable: Sequence[Asked]
    unanswerable: Sequence[Asked]

    def at_kept(self, share: float) -> Point:
        """Return the highest threshold that keeps this share of the answerable."""
        ordered = sorted(one.evidence for one in self.answerable)
        return self.at(ordered[int((1 - share) * len(ordered) + 1e-9)])

    def at(self, threshold: float) -> Point:
        """Return what a threshold keeps and rejects."""
        return Point(threshold, 1 - _below(self.answerable, threshold), _below(self.unanswerable, threshold))

    def curve(self) -> list[Point]:
        """Return every threshold that makes a difference, rising."""
        return [self.at(value) for value in sorted({one.evidence for one in (*self.answerable, *self.unanswerable)})]

    @property
    def auc(self) -> float:
        """Return how often an answerable question has more evidence than an unanswerable one (ties: half)."""
        other = sorted(one.evidence for one in self.unanswerable)
        wins = sum(bisect_left(other, a.evidence) + bisect_right(other, a.evidence) for a in self.answerable)
        return wins / (2 * len(self.answerable) * len(other))

    @property
    def verdicts(self) -> tuple[Verdicts, Verdicts]:
        """Return what the calibrated verdict did to the answerable and to the unanswerable side."""
        return _verdicts(self.answerable), _verdicts(self.unanswerable)


@dataclass(frozen=True)
class Abstention:
    """All sides of one set; `uncalibrated` scopes went by default thresholds."""

    set_name: str
    sides: tuple[Side, ...]
    uncalibrated: tuple[str, ...] = ()


def abstention(
    dataset: EvaluationSet, others: Sequence[EvaluationSet], engine: Calibrated, recipe: str, tick: Tick
) -> Abstention:
    """Index a set, ask it what it can answer and what it cannot, and compare."""
    unanswerable = _unanswerable(dataset, others)
    if not unanswerable:
        raise ConfigError(
            f"{dataset.name} has one scope only, so all its questions can be answered",
            "name a set whose questions cannot: --abstention OTHER",
        )
    fill(engine, dataset)
    scopes = sorted({question.scope for question in dataset.questions})
    uncalibrated = tuple(str(scope) for scope in scopes if not _calibrate(engine, scope))
    groups = {"": list(dataset.questions), **unanswerable}
    total, done = sum(map(len, groups.values())), 0
    asked: dict[str, list[Asked]] = {name: [] for name in groups}
    for name, questions in groups.items():
        for question in questions:
            asked[name].append(_asked(engine.search(question.text, limit=1, recipe=recipe, scope=question.scope)))
            done += 1
            tick(done, total, f"{dataset.name} {name}")
    sides = [Side(name, asked[""], asked[name]) for name in unanswerable]
    if len(others) > 1:
        foreign = [one for side in sides if side.name in _names(others) for one in side.unanswerable]
        sides.append(Side(ALL_OTHER_SETS, asked[""], foreign))
    return Abstention(dataset.name, tuple(sides), uncalibrated)


def _calibrate(engine: Calibrated, scope: Scope) -> bool:
    try:
        engine.calibrate(scope=scope)
    except ConfigError:  # too few memories: the defaults are what such a user has
        return False
    return True


def _asked(results: Results) -> Asked:
    evidence, verdict = spoken(results)
    return Asked(evidence, verdict == "nothing", verdict == "found")


def _unanswerable(dataset: EvaluationSet, others: Sequence[EvaluationSet]) -> dict[str, list[Question]]:
    """Return questions without an answer, by kind, each with the scope it is asked in."""
    choice = random.Random(_SEED)
    groups = dict(zip(_names(others), (list(_foreign(dataset, other, choice)) for other in others), strict=True))
    by_scope: dict[Scope, list[Question]] = {}
    for question in dataset.questions:
        by_scope.setdefault(question.scope, []).append(question)
    if len(by_scope) > 1:
        strangers = {scope: _strangers(by_scope, scope, choice) for scope in by_scope}
        groups[OTHER_SCOPES] = [q._replace(scope=scope) for scope, found in strangers.items() for q in found]
        groups[NAMES_SWAPPED] = list(_renamed(strangers, speakers_of(dataset.documents)))
    return {name: questions for name, questions in groups.items() if questions}


def _names(others: Sequence[EvaluationSet]) -> list[str]:
    """Name the questions of other sets; sets of one name are numbered."""
    seen: Counter[str] = Counter()
    names = []
    for other in others:
        seen[other.name] += 1
        number = f" ({seen[other.name]})" if seen[other.name] > 1 else ""
        names.append(f"questions of {other.name}{number}")
    return names


def _foreign(dataset: EvaluationSet, other: EvaluationSet, choice: random.Random) -> Iterator[Question]:
    """Deal another set's questions out over the scopes of this one."""
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
    """Put the speakers of the scope asked in the place of the question's own; leave out those that name nobody."""
    renamings: dict[tuple[Scope, Scope], Renaming] = {}
    for scope, questions in strangers.items():
        for question in questions:
            pair = question.scope, scope
            if pair not in renamings:
                renamings[pair] = renaming_between(speakers.get(pair[0], ()), speakers.get(pair[1], ()))
            text = renamings[pair](question.text)
            if text != question.text:
                yield question._replace(text=text, scope=scope)


def _below(side: Sequence[Asked], threshold: float) -> float:
    return sum(one.evidence < threshold for one in side) / len(side)


def _verdicts(side: Sequence[Asked]) -> Verdicts:
    return Verdicts(
        kept=sum(not one.is_nothing for one in side) / len(side), found=sum(one.is_found for one in side) / len(side)
    )


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
                "curve": [_point(side.at_kept(share)) for share in KEPT_SHOWN],
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


def _point(point: Point) -> dict[str, float]:
    return {**point._asdict(), "coverage": point.coverage, "risk": point.risk}
