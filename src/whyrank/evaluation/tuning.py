"""Fitting of the fusion to a store without labels; a gain inside the noise is refused."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from ..config.load import Config
from ..formatting import counted
from ..ingest.entries import entry_for
from ..protocols import Changes, Embedder, Store
from ..ranking.parameters import tunable
from ..ranking.recipes import Recipe
from ..search.candidates import origins_by_recipe
from ..search.searcher import Searcher
from ..types.memory import Memory
from ..types.query import Query, Where
from .measures import Comparison, Interval, bootstrap, compare, ndcg
from .synthetic_queries import HIDDEN_KINDS, KINDS, Material, Origin, Pseudo, by_source, hide, questions

VECTOR_WEIGHTS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
NAME_BONUSES = (0.5, 1.0, 2.0)
FOLDS = 5
MIN_QUERIES = 80  # below, an interval of nDCG@10 is wider than anything a weight can do
MIN_SOURCES = 30
MIN_GAIN = 0.01  # of nDCG@10: a real query gains only part of what a synthetic one gains
CHANCE_OF_CHANGE = 0.01  # p-value of a gain that is acted on: keeping costs nothing
CHANCE_OF_VETO = 0.05  # p-value of a loss that stops it
DEPTH = 10

Decision = Literal["change", "keep", "too few"]
SettingName = Literal["vector_weight", "name_bonus"]
WITNESSES: dict[SettingName, frozenset[str]] = {
    "vector_weight": frozenset(HIDDEN_KINDS),
    "name_bonus": frozenset({"name"}),
}
_GAIN = ndcg(DEPTH)


class Choice(NamedTuple):
    """Values of the tunable settings; a vector weight of None is the embedder's own, by language."""

    vector_weight: float | None = None
    name_bonus: float = 1.0

    def __str__(self) -> str:
        weight = "the embedder's own" if self.vector_weight is None else f"{self.vector_weight:g}"
        return f"vector weight {weight}, name bonus {self.name_bonus:g}"


_SHIPPED = Choice()


class Trial(NamedTuple):
    """One query, and its gain under every choice."""

    question: Pseudo
    gains: tuple[float, ...]


@dataclass(frozen=True)
class HeldOut:
    """Held-out figures of some queries: the present setting beside the settings that the folds chose."""

    kind: str
    present: float
    chosen: float
    compared: Comparison
    interval: Interval

    @property
    def queries(self) -> int:
        """Return the number of queries."""
        return self.compared.better + self.compared.worse + self.compared.same

    @property
    def is_better(self) -> bool:
        """Check that the gain is significant."""
        return self.interval.low > 0 and self.compared.p < CHANCE_OF_CHANGE

    @property
    def is_worse(self) -> bool:
        """Check that the loss is significant."""
        return self.interval.high < 0 and self.compared.p < CHANCE_OF_VETO


@dataclass(frozen=True)
class Fit:
    """Fit of one setting: the decision with its reason and figures."""

    setting: SettingName
    decision: Decision
    reason: str
    best: Choice
    folds: tuple[Choice, ...] = ()
    witnesses: HeldOut | None = None
    kinds: tuple[HeldOut, ...] = ()

    @property
    def gain(self) -> float:
        """Return the gain on held-out queries."""
        return self.witnesses.compared.difference if self.witnesses else 0.0


@dataclass(frozen=True)
class Tuning:
    """Outcome of a tuning run: a fit for each setting, and every trial; at most one setting changes."""

    present: Choice
    fits: tuple[Fit, ...]
    choices: tuple[Choice, ...]
    trials: tuple[Trial, ...]
    seed: int

    @property
    def best_fit(self) -> Fit | None:
        """Return the first fit worth a change; the weight precedes the bonus, which can mask a bad weight."""
        return next((fit for fit in self.fits if fit.decision == "change"), None)

    @property
    def decision(self) -> Decision:
        """Return the overall decision."""
        if self.best_fit:
            return "change"
        return "too few" if self.fits and all(fit.decision == "too few" for fit in self.fits) else "keep"

    @property
    def reason(self) -> str:
        """Return the reason for the decision."""
        told = self.best_fit or next(iter(self.fits), None)
        return told.reason if told else "the recipe has nothing to fit"

    @property
    def changes(self) -> dict[str, float | None]:
        """Return the setting to write, by its key; empty unless the decision is to change."""
        fit = self.best_fit
        return {f"ranking.{fit.setting}": getattr(fit.best, fit.setting)} if fit else {}

    def means(self) -> dict[Choice, tuple[float, float, float]]:
        """Return nDCG@10 of every choice over all queries, with its 95 % interval."""
        columns = zip(*(trial.gains for trial in self.trials), strict=True)
        return {
            choice: (_mean(column), *bootstrap(column)) for choice, column in zip(self.choices, columns, strict=False)
        }

    def leads(self, kinds: Collection[str]) -> dict[Choice, tuple[float, float, float]]:
        """Return the lead of every choice over the present one on some kinds of query, with its interval."""
        rows = [trial.gains for trial in self.trials if trial.question.kind in kinds]
        columns = zip(*([gained - row[0] for gained in row] for row in rows), strict=True)
        return {
            choice: (_mean(column), *bootstrap(column)) for choice, column in zip(self.choices, columns, strict=False)
        }


def grid(present: Choice, tunable: Iterable[str]) -> list[Choice]:
    """Return the choices to try: the present one, then round values of one tunable setting at a time."""
    weights = (None, *VECTOR_WEIGHTS) if "vector_weight" in tunable else ()
    bonuses = NAME_BONUSES if "name_bonus" in tunable else ()
    weighed = (present._replace(vector_weight=weight) for weight in weights)
    named = (present._replace(name_bonus=bonus) for bonus in bonuses)
    return list(dict.fromkeys((present, *weighed, *named)))


def gain(found: Sequence[Origin], answer: Origin) -> float:
    """Return nDCG@10 of the sources found, one of which is relevant."""
    return _GAIN.of([str(origin) for origin in found], {str(answer): 1})


def tune(trials: Sequence[Trial], choices: Sequence[Choice], seed: int) -> Tuning:
    """Fit each setting that varies among the choices, the first of which is the present one."""
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
    """Choose a setting by cross-validation over folds, and judge it on the held-out queries."""
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
    """Gains of a held-out query under the present setting and under the one chosen for its fold."""

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
    """Return the choice with the best mean, unless a preferred one is within a standard error of it.

    The one-standard-error rule (Breiman, Friedman, Olshen and Stone, 1984), on paired differences: the present setting
    is preferred to all, and the shipped one, which was measured on real queries, to anything new.
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
    """Return the choice with the shipped value of the one setting in which the choices differ."""
    varying = [name for name in Choice._fields if len({getattr(choice, name) for choice in choices}) > 1]
    return choices[0]._replace(**{name: getattr(_SHIPPED, name) for name in varying})


def _dealt(trials: Sequence[Trial], seed: int) -> list[list[Trial]]:
    """Split the queries into folds; those with the same answer stay together."""
    answers = sorted({str(trial.question.answer) for trial in trials})
    random.Random(seed).shuffle(answers)
    fold_of = {answer: place % FOLDS for place, answer in enumerate(answers)}
    folds: list[list[Trial]] = [[] for _ in range(FOLDS)]
    for trial in trials:
        folds[fold_of[str(trial.question.answer)]].append(trial)
    return folds


def _judged(kind: str, pairs: Sequence[_Pair]) -> HeldOut:
    before, after = [pair.before for pair in pairs], [pair.after for pair in pairs]
    differences = [new - old for old, new in zip(before, after, strict=True)]
    return HeldOut(kind, _mean(before), _mean(after), compare(before, after), bootstrap(differences))


def _decided(present: Choice, best: Choice, overall: HeldOut, kinds: Sequence[HeldOut]) -> tuple[Decision, str]:
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


Tick = Callable[[int, int, str], None]

MAX_MEMORIES = 6_000  # read to make queries; more would not change the figures
_PAGE = 200  # memories in a row, so that files come whole
_PER_TRANSACTION = 256


@dataclass(frozen=True)
class TuningSetup:
    """Input of a rehearsal: a copy of the store that may be changed, embedder, settings and filter."""

    store: Store
    embedder: Embedder | None
    config: Config
    where: Where

    @property
    def language(self) -> str:
        """Return the default language of texts."""
        return str(self.config["language"])


def tuned(stage: TuningSetup, asked: str | Recipe | None, most: int, seed: int, tick: Tick) -> Tuning:
    """Fit the fusion of a recipe to the memories of a stage."""
    config = stage.config
    possible = tunable(config.recipe(asked)) - (frozenset() if stage.embedder else {"vector_weight"})
    present = Choice(config["ranking.vector_weight"], config["ranking.name_bonus"])
    if not possible:
        return Tuning(present, (), (present,), (), seed)
    choices = grid(present, possible)
    recipes = [config.recipe(asked, **choice._asdict()) for choice in choices]
    return tune(rehearse(stage, recipes, most, seed, tick), choices, seed)


def rehearse(stage: TuningSetup, recipes: Sequence[Recipe], most: int, seed: int, tick: Tick) -> list[Trial]:
    """Make queries, hide their words kind by kind, and run every recipe on each."""
    material = Material(by_source(_sample(stage, seed)), lambda terms: _frequency(stage, terms), stage.language)
    made = questions(material, most, seed)
    searcher = Searcher(stage.store, stage.embedder, stage.language)
    trials: list[Trial] = []
    for kind in KINDS:
        asked = [question for question in made if question.kind == kind]
        with _hidden(stage, asked):
            for question in asked:
                query = Query(question.text, stage.where, limit=DEPTH)
                found = origins_by_recipe(searcher, query, recipes)
                trials.append(Trial(question, tuple(gain(origins, question.answer) for origins in found)))
                tick(len(trials), len(made), kind)
    return trials


def _frequency(stage: TuningSetup, terms: Iterable[str]) -> dict[str, int]:
    return dict(stage.store.statistics(terms, stage.where.scopes).frequency)


def _sample(stage: TuningSetup, seed: int) -> list[Memory]:
    """Read the memories, or pages of them drawn by a seed if there are more than `MAX_MEMORIES`."""
    total = stage.store.statistics((), stage.where.scopes).total
    if total <= MAX_MEMORIES:
        return stage.store.browse(stage.where, MAX_MEMORIES)
    pages = random.Random(seed).sample(range(total // _PAGE), MAX_MEMORIES // _PAGE)
    return [memory for page in sorted(pages) for memory in stage.store.browse(stage.where, _PAGE, page * _PAGE)]


@contextmanager
def _hidden(stage: TuningSetup, asked: Sequence[Pseudo]) -> Iterator[None]:
    """Remove the source words of the queries from the copy, and restore them afterwards."""
    words: dict[Origin, list[str]] = {}
    for question in asked:
        if question.hidden_in is not None:
            words.setdefault(question.hidden_in, []).append(question.hidden)
    whole = {origin: _memories_of(stage, origin) for origin in words}
    _write(stage, [_without(memory, words[origin]) for origin, held in whole.items() for memory in held])
    yield
    _write(stage, [memory for held in whole.values() for memory in held])


def _without(memory: Memory, hidden: Iterable[str]) -> Memory:
    for words in hidden:
        memory = hide(memory, words)
    return memory


def _memories_of(stage: TuningSetup, origin: Origin) -> list[Memory]:
    """Return every memory of a source, including those that were not sampled."""
    ids = [origin] if isinstance(origin, str) else list(stage.store.chunks_of(*origin))
    return list(stage.store.get(ids, stage.where.scopes).values())


def _write(stage: TuningSetup, memories: Sequence[Memory]) -> None:
    for start in range(0, len(memories), _PER_TRANSACTION):
        entries = [entry_for(memory, stage.language) for memory in memories[start : start + _PER_TRANSACTION]]
        changes = Changes(put=entries)
        if stage.embedder is not None:
            space = stage.embedder.fingerprint
            texts = {entry.embed_hash: entry.embed_text for entry in entries}
            known = stage.store.known_vectors(texts, space)
            missing = [key for key in texts if key not in known]
            rows = stage.embedder.documents([texts[key] for key in missing])
            vectors = {key: row for key, row in zip(missing, rows, strict=True) if row.any()}
            changes = replace(changes, space=space, vectors=vectors)
        stage.store.write(changes)
