"""Fit the fusion on questions made of the memories themselves, and refuse what chance could do as well.

The questions are dealt into folds by the source that answers them. Each fold is judged by the setting that the other
folds chose, so that no question judges a setting it helped to choose; the judgements of all folds together are
compared with the present setting, question by question. A setting has its witnesses, the kinds of question that can
speak for it: those with hidden words for the vector weight, parts of names for the name bonus. All others can only
speak against it: rare terms are copied, and would praise the words whatever the vectors are worth.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..wording import counted
from .measures import ndcg
from .pseudo import HIDDEN_KINDS, KINDS, Origin, Pseudo
from .significance import Comparison, Interval, bootstrap, compare

VECTOR_WEIGHTS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
NAME_BONUSES = (0.5, 1.0, 2.0)
FOLDS = 5
MIN_QUERIES = 80  # below, an interval of nDCG@10 is wider than anything a weight can do
MIN_SOURCES = 30
MIN_GAIN = 0.01  # of nDCG@10: what a made question gains, a real one gains in part
CHANCE_OF_CHANGE = 0.01  # how often chance may do as well as a gain that is acted on: keeping costs nothing
CHANCE_OF_VETO = 0.05  # and as badly as a loss that stops it
DEPTH = 10

Decision = Literal["change", "keep", "too few"]
SettingName = Literal["vector_weight", "name_bonus"]
WITNESSES: dict[SettingName, frozenset[str]] = {
    "vector_weight": frozenset(HIDDEN_KINDS),
    "name_bonus": frozenset({"name"}),
}
_GAIN = ndcg(DEPTH)


class Choice(NamedTuple):
    """What a fusion can be set to; a vector weight of None is the embedder's own, by language."""

    vector_weight: float | None = None
    name_bonus: float = 1.0

    def __str__(self) -> str:
        weight = "the embedder's own" if self.vector_weight is None else f"{self.vector_weight:g}"
        return f"vector weight {weight}, name bonus {self.name_bonus:g}"


_SHIPPED = Choice()


class Trial(NamedTuple):
    """One question, and what every choice gains for it."""

    question: Pseudo
    gains: tuple[float, ...]


@dataclass(frozen=True)
class Judgement:
    """What some questions say: the present setting beside what the folds chose, on questions held out."""

    kind: str
    present: float
    chosen: float
    compared: Comparison
    interval: Interval

    @property
    def queries(self) -> int:
        """Return how many questions there were."""
        return self.compared.better + self.compared.worse + self.compared.same

    @property
    def is_better(self) -> bool:
        """Tell whether the gain is outside what chance does."""
        return self.interval.low > 0 and self.compared.p < CHANCE_OF_CHANGE

    @property
    def is_worse(self) -> bool:
        """Tell whether there is a loss outside what chance does."""
        return self.interval.high < 0 and self.compared.p < CHANCE_OF_VETO


@dataclass(frozen=True)
class Fit:
    """What was found out about one setting: the decision and its reason, and the figures behind it."""

    setting: SettingName
    decision: Decision
    reason: str
    best: Choice
    folds: tuple[Choice, ...] = ()
    witnesses: Judgement | None = None
    kinds: tuple[Judgement, ...] = ()

    @property
    def gain(self) -> float:
        """Return what it gains on questions held out."""
        return self.witnesses.compared.difference if self.witnesses else 0.0


@dataclass(frozen=True)
class Tuning:
    """What a tuning run found: a fit for each setting, and every trial; at most one setting is to be changed."""

    present: Choice
    fits: tuple[Fit, ...]
    choices: tuple[Choice, ...]
    trials: tuple[Trial, ...]
    seed: int

    @property
    def best_fit(self) -> Fit | None:
        """Return the first fit worth a change; the weight comes first, because a bonus can cover up for a bad one."""
        return next((fit for fit in self.fits if fit.decision == "change"), None)

    @property
    def decision(self) -> Decision:
        """Return what is to be done."""
        if self.best_fit:
            return "change"
        return "too few" if self.fits and all(fit.decision == "too few" for fit in self.fits) else "keep"

    @property
    def reason(self) -> str:
        """Return why."""
        told = self.best_fit or next(iter(self.fits), None)
        return told.reason if told else "the recipe has nothing to fit"

    @property
    def changes(self) -> dict[str, float | None]:
        """Return the setting to be written, by its key; none unless the decision is to change."""
        fit = self.best_fit
        return {f"ranking.{fit.setting}": getattr(fit.best, fit.setting)} if fit else {}

    def means(self) -> dict[Choice, tuple[float, float, float]]:
        """Return nDCG@10 of every choice over all questions, with its 95 % interval."""
        columns = zip(*(trial.gains for trial in self.trials), strict=True)
        return {
            choice: (_mean(column), *bootstrap(column)) for choice, column in zip(self.choices, columns, strict=False)
        }

    def leads(self, kinds: Collection[str]) -> dict[Choice, tuple[float, float, float]]:
        """Return by how much every choice is better than the present one on some kinds of question, likewise."""
        rows = [trial.gains for trial in self.trials if trial.question.kind in kinds]
        columns = zip(*([gained - row[0] for gained in row] for row in rows), strict=True)
        return {
            choice: (_mean(column), *bootstrap(column)) for choice, column in zip(self.choices, columns, strict=False)
        }


def grid(present: Choice, tunable: Iterable[str]) -> list[Choice]:
    """Return the choices to be tried: the present one, then round values of what can be changed, one at a time."""
    weights = (None, *VECTOR_WEIGHTS) if "vector_weight" in tunable else ()
    bonuses = NAME_BONUSES if "name_bonus" in tunable else ()
    weighed = (present._replace(vector_weight=weight) for weight in weights)
    named = (present._replace(name_bonus=bonus) for bonus in bonuses)
    return list(dict.fromkeys((present, *weighed, *named)))


def gain(found: Sequence[Origin], answer: Origin) -> float:
    """Return nDCG@10 of the sources found, where one answers."""
    return _GAIN.of([str(origin) for origin in found], {str(answer): 1})


def tune(trials: Sequence[Trial], choices: Sequence[Choice], seed: int) -> Tuning:
    """Fit each setting that has other values among the choices, the first of which is the present one."""
    present = choices[0]
    fits = []
    for setting in WITNESSES:
        places = [place for place, choice in enumerate(choices) if _differs_only_in(choice, present, setting)]
        if len(places) > 1:
            along = [Trial(trial.question, tuple(trial.gains[place] for place in places)) for trial in trials]
            fits.append(_fit(setting, along, [choices[place] for place in places], seed))
    return Tuning(present, tuple(fits), tuple(choices), tuple(trials), seed)


def _differs_only_in(choice: Choice, present: Choice, setting: SettingName) -> bool:
    return choice == present._replace(**{setting: getattr(choice, setting)})


def _fit(setting: SettingName, trials: Sequence[Trial], choices: Sequence[Choice], seed: int) -> Fit:
    """Let folds choose a setting for each other, and judge what they chose."""
    witnesses = WITNESSES[setting]
    heard = [trial for trial in trials if trial.question.kind in witnesses]
    too_few = _too_few(heard, witnesses)
    if too_few:
        return Fit(setting, "too few", too_few, choices[0])
    chosen: list[int] = []
    held_out: list[_Pair] = []
    for fold in _dealt(trials, seed):
        answers = {trial.question.answer for trial in fold}
        place = _best([trial for trial in heard if trial.question.answer not in answers], choices)
        chosen.append(place)
        held_out += [_Pair(trial.question.kind, trial.gains[0], trial.gains[place]) for trial in fold]
    overall = _judged("", [pair for pair in held_out if pair.kind in witnesses])
    kinds = tuple(_judged(kind, some) for kind in KINDS if (some := [pair for pair in held_out if pair.kind == kind]))
    best = choices[_best(heard, choices)]
    decision, reason = _decided(choices[0], best, overall, kinds)
    return Fit(setting, decision, reason, best, tuple(choices[place] for place in chosen), overall, kinds)


class _Pair(NamedTuple):
    """What a held-out question gains with the present setting and with the one its fold was given."""

    kind: str
    before: float
    after: float


def _too_few(heard: Sequence[Trial], witnesses: frozenset[str]) -> str:
    sources = len({trial.question.answer for trial in heard})
    if len(heard) >= MIN_QUERIES and sources >= MIN_SOURCES:
        return ""
    kinds = ", ".join(kind for kind in KINDS if kind in witnesses)
    return (
        f"the memories give {counted(len(heard), 'question')} ({kinds}) with answers in {counted(sources, 'source')}; "
        f"it takes {MIN_QUERIES} and {MIN_SOURCES} to tell a better setting from chance"
    )


def _best(trials: Sequence[Trial], choices: Sequence[Choice]) -> int:
    """Return the choice with the best mean, unless one we would rather have is within a standard error of it.

    The one-standard-error rule (Breiman, Friedman, Olshen and Stone, 1984), on differences question by question: the
    present setting is preferred to all, and what ships, which was measured on real questions, to anything new.
    """
    columns = list(zip(*(trial.gains for trial in trials), strict=True))
    best = max(range(len(columns)), key=lambda place: (_mean(columns[place]), -place))
    shipped = [place for place, choice in enumerate(choices) if choice == _shipped_along(choices)]
    for place in (0, *shipped):
        differences = [higher - lower for higher, lower in zip(columns[best], columns[place], strict=True)]
        if _mean(differences) <= _standard_error(differences):
            return place
    return best


def _shipped_along(choices: Sequence[Choice]) -> Choice:
    """Return the choice with the value that ships in the one setting these differ in."""
    varying = [name for name in Choice._fields if len({getattr(choice, name) for choice in choices}) > 1]
    return choices[0]._replace(**{name: getattr(_SHIPPED, name) for name in varying})


def _dealt(trials: Sequence[Trial], seed: int) -> list[list[Trial]]:
    """Deal the questions into folds; those with the same answer stay together."""
    answers = sorted({str(trial.question.answer) for trial in trials})
    random.Random(seed).shuffle(answers)
    fold_of = {answer: place % FOLDS for place, answer in enumerate(answers)}
    folds: list[list[Trial]] = [[] for _ in range(FOLDS)]
    for trial in trials:
        folds[fold_of[str(trial.question.answer)]].append(trial)
    return folds


def _judged(kind: str, pairs: Sequence[_Pair]) -> Judgement:
    before, after = [pair.before for pair in pairs], [pair.after for pair in pairs]
    differences = [new - old for old, new in zip(before, after, strict=True)]
    return Judgement(kind, _mean(before), _mean(after), compare(before, after), bootstrap(differences))


def _decided(present: Choice, best: Choice, overall: Judgement, kinds: Sequence[Judgement]) -> tuple[Decision, str]:
    low, high = overall.interval
    figures = f"{overall.compared.difference:+.4f} nDCG@10 ({low:+.4f} to {high:+.4f}, p {overall.compared.p:.3f})"
    worse = [judged.kind for judged in kinds if judged.is_worse]
    if best == present:
        return "keep", "no other value is better by more than one standard error"
    if not overall.is_better:
        return "keep", f"the gain on questions held out is inside the noise: {figures}"
    if overall.compared.difference < MIN_GAIN:
        return "keep", f"the gain on questions held out is too small to matter: {figures}, less than {MIN_GAIN:g}"
    if worse:
        return "keep", f"the gain, {figures}, would be paid for by questions of kind {', '.join(worse)}"
    return "change", f"the gain on questions held out is beyond the noise: {figures}"


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def _standard_error(values: Sequence[float]) -> float:
    if len(values) < 2:
        return math.inf
    centre = _mean(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1) / len(values))
