"""Fitting of the fusion to a store without labels; a gain inside the noise is refused."""

from __future__ import annotations

import math
import posixpath
import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple

from ..analysis.document import entry_for
from ..analysis.names import name_key, name_words
from ..analysis.normalize import fold, unspaced_letters
from ..analysis.tokenizer import all_tokens, tokens_of
from ..formatting import counted
from ..protocols import Changes, Embedder, Store
from ..ranking.recipes import tunable
from ..search.explain import origins_by_recipe
from ..search.searcher import Searcher
from ..types.memory import Memory, MemoryId, Scope
from ..types.query import Query, Where
from .measures import Comparison, Interval, bootstrap, compare, ndcg

if TYPE_CHECKING:
    from ..config.load import Config
    from ..ranking.recipes import Recipe
    from ..types.memory import Memory
    from .harness import Tick

Origin = tuple[Scope, str] | MemoryId
Frequency = Callable[[Iterable[str]], Mapping[str, int]]
Maker = Callable[["Material", Origin, random.Random], Iterator["Pseudo"]]

HIDDEN_KINDS = ("heading", "title", "link", "paraphrase")  # the words of these are hidden from their source

COMMON_SHARE = 10  # a word in more than one in ten titles does not describe the text below one
MIN_WORDS = 2  # of a heading, title or link: a single word is not specific
MIN_LEFT = 12  # content words that must be left to answer with
SENTENCE_WORDS = range(6, 41)  # content words of a sentence: shorter ones are unspecific, longer ones are lists
DROPPED_SHARE = 3  # one in three content words of a sentence is dropped, the rarest first
TERMS = 3
RAREST = 8  # the terms of a question are drawn from this many rarest words of a memory
PER_SOURCE = 4  # sentences taken from one file at most, so that a long one does not dominate

_LINK = re.compile(r"(?<!!)\[([^\]\n]{3,120})\]\(<?([^)\s>]+)>?[^)\n]*\)|\[\[([^\]|\n]+)\|([^\]\n]{3,120})\]\]")
_BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+#>|`]|\d+[.)]))")
_SENTENCE = re.compile(r"[^.!?。！？]+(?:[.!?](?=\S)[^.!?。！？]*)*[.!?。！？]?")
_PUNCTUATION = ".,;:!?()[]{}\"'«»„“”"
_MARKS = re.compile(r"[*`~]+|(?<!\w)_+|_+(?!\w)")
_FRAMES = re.compile(r"[#>|]+|^\s*(?:[-+]|\d+[.)])\s+")


@dataclass(frozen=True, slots=True)
class Pseudo:
    """A query made from a memory: its kind, text, relevant source, and the words to hide in a source."""

    kind: str
    text: str
    answer: Origin
    hidden: str = ""
    hidden_in: Origin | None = None


@dataclass(frozen=True)
class Material:
    """Input for making queries: memories by source, document frequencies, and the default language."""

    sources: Mapping[Origin, Sequence[Memory]]
    frequency: Frequency
    language: str
    headings: Counter[str] = field(init=False)
    titled: Counter[str] = field(init=False)
    paths: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        told = ({fold(text) for memory in held for text in memory.headings} for held in self.sources.values())
        object.__setattr__(self, "headings", Counter(text for texts in told for text in texts))
        titles = (set(tokens_of(held[0].name, self.language)) for held in self.sources.values() if held[0].name)
        object.__setattr__(self, "titled", Counter(word for words in titles for word in words))
        paths = frozenset(origin[1] for origin in self.sources if isinstance(origin, tuple))
        object.__setattr__(self, "paths", paths)

    def words(self, text: str) -> int:
        """Count the content words of a text."""
        return len(tokens_of(text, self.language)) if text.strip() else 0

    def is_telling(self, title: str) -> bool:
        """Check that a title or heading is distinctive: more than a date or words of most titles."""
        most = max(1, len(self.sources) // COMMON_SHARE)
        words = {word for word in tokens_of(title, self.language) if any(map(str.isalpha, word))}
        return sum(self.titled[word] <= most for word in words) >= MIN_WORDS

    def leaves_enough(self, origin: Origin, hidden: str) -> bool:
        """Check that a source keeps enough content words when these are hidden."""
        left = 0
        for memory in self.sources[origin]:
            left += self.words(hide(memory, hidden).text)
            if left >= MIN_LEFT:
                return True
        return False


def by_source(memories: Iterable[Memory]) -> dict[Origin, list[Memory]]:
    """Group memories by source."""
    sources: dict[Origin, list[Memory]] = {}
    for memory in memories:
        sources.setdefault(memory.origin, []).append(memory)
    return sources


def questions(material: Material, most: int, seed: int) -> list[Pseudo]:
    """Make up to `most` queries, drawn by a seed; a kind's unfilled share goes to kinds with hidden words."""
    made: dict[str, list[Pseudo]] = {}
    for kind, maker in _MAKERS.items():
        chance = random.Random(f"{seed} {kind}")
        origins = sorted(material.sources, key=str)
        chance.shuffle(origins)
        limit = most if kind in HIDDEN_KINDS else most // len(KINDS)
        made[kind] = _in_turns(maker, material, origins, chance, limit)
    shares = _shares({kind: len(made[kind]) for kind in sorted(KINDS, key=lambda kind: len(made[kind]))}, most)
    return [question for kind in KINDS for question in made[kind][: shares[kind]]]


def _shares(given: Mapping[str, int], most: int) -> dict[str, int]:
    """Divide a number evenly among kinds, smallest first; their unfilled shares pass to the next."""
    shares: dict[str, int] = {}
    for place, (kind, count) in enumerate(given.items()):
        shares[kind] = min(count, (most - sum(shares.values())) // (len(given) - place))
    return shares


def _in_turns(
    maker: Maker, material: Material, origins: Sequence[Origin], chance: random.Random, most: int
) -> list[Pseudo]:
    """Take the first query of every source, then the second of every source, until there are enough."""
    waiting = [maker(material, origin, chance) for origin in origins]
    turns = (next(source, None) for _ in range(PER_SOURCE) for source in waiting)
    return list(islice((question for question in turns if question is not None), most))


def hide(memory: Memory, words: str) -> Memory:
    """Return a memory without these words in its text, its names and its headings."""
    key = name_key(words)
    pattern = re.compile(r"\s+".join(map(re.escape, words.split())), re.IGNORECASE)

    def others(texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(text for text in texts if name_key(text) != key)

    return replace(
        memory,
        text=pattern.sub(" ", memory.text),
        summary=pattern.sub(" ", memory.summary),
        name="".join(others([memory.name])),
        title="".join(others([memory.title])),
        aliases=others(memory.aliases),
        headings=others(memory.headings),
    )


def plain(text: str) -> str:
    """Return a line of markdown as plain text: without marks, links as their text."""
    linked = _LINK.sub(lambda link: link[1] or link[4], text)
    return " ".join(_FRAMES.sub(" ", _MARKS.sub("", linked)).split())


def _headings(material: Material, origin: Origin, chance: random.Random) -> Iterator[Pseudo]:
    """Yield queries from headings that no other source has ("Usage notes" is in every second file)."""
    memories = material.sources[origin]
    found = list(dict.fromkeys(text for memory in memories for text in memory.headings if text != memory.name))
    chance.shuffle(found)
    for heading in found:
        if (
            material.headings[fold(heading)] == 1
            and material.is_telling(heading)
            and material.leaves_enough(origin, heading)
        ):
            yield Pseudo("heading", plain(heading), origin, heading, origin)


def _titles(material: Material, origin: Origin, chance: random.Random) -> Iterator[Pseudo]:
    """Yield a query from a title that neither path nor slug repeats."""
    memory = material.sources[origin][0]
    path = memory.source.path if memory.source else ""
    given_away = {name_key(text) for text in (memory.slug, posixpath.splitext(posixpath.basename(path))[0])}
    if not material.is_telling(memory.name) or name_key(memory.name) in given_away:
        return
    if material.leaves_enough(origin, memory.name):
        yield Pseudo("title", plain(memory.name), origin, memory.name, origin)


def _links(material: Material, origin: Origin, chance: random.Random) -> Iterator[Pseudo]:
    """Yield queries from the texts of links, which other authors wrote about the target file."""
    if not isinstance(origin, tuple):
        return
    scope, path = origin
    for memory in material.sources[origin]:
        for link in _LINK.finditer(memory.text):
            text, target = link[1] or link[4], _target(link[2] or link[3], path, material.paths)
            if target and target != path and material.words(text) >= MIN_WORDS and not _names(text, target):
                yield Pseudo("link", plain(text), (scope, target), text, origin)


def _target(written: str, path: str, known: frozenset[str]) -> str | None:
    """Resolve a link to a known file; the extension and the root of a site may be left out."""
    place = written.partition("#")[0]
    places = [posixpath.normpath(posixpath.join(posixpath.dirname(path), place))]
    if place.startswith("/"):  # below any parent folder of the file, from the outermost
        parts = path.split("/")
        places = [f"{'/'.join(parts[:depth])}{place}".lstrip("/") for depth in range(len(parts))]
    choices = (f"{at}{ending}" for at in places for ending in ("", ".md", "/index.md"))
    return next((choice for choice in choices if choice in known), None)


def _names(text: str, path: str) -> bool:
    """Check for a link text that equals the name of its file: that would be a query by name."""
    stem = posixpath.splitext(posixpath.basename(path))[0]
    return name_key(text) in {name_key(path), name_key(stem), name_key(posixpath.basename(path))}


def _paraphrases(material: Material, origin: Origin, chance: random.Random) -> Iterator[Pseudo]:
    """Yield queries from sentences without their rarest words, as from a partial memory."""
    memories = [*material.sources[origin]]
    chance.shuffle(memories)
    for memory in memories:
        blocks = _BLOCK.split(memory.text)
        sentences = [found.group().strip() for block in blocks for found in _SENTENCE.finditer(block)]
        chance.shuffle(sentences)
        for sentence in sentences:
            said = plain(sentence)
            if material.words(said) in SENTENCE_WORDS and material.leaves_enough(origin, sentence):
                yield Pseudo("paraphrase", _without_rarest(said, material), origin, sentence, origin)
                break


def _without_rarest(sentence: str, material: Material) -> str:
    """Drop the rarest third of the content words; scripts without spaces keep theirs."""
    if unspaced_letters(sentence) * 2 > len(sentence):
        return sentence
    words = sentence.split()
    rarity = _rarity(words, material)
    content = [place for place in range(len(words)) if rarity[place] is not None]
    rarest = sorted(content, key=lambda place: (rarity[place], place))[: len(content) // DROPPED_SHARE]
    return " ".join(word for place, word in enumerate(words) if place not in rarest)


def _terms(material: Material, origin: Origin, chance: random.Random) -> Iterator[Pseudo]:
    """Yield a query of a few of a memory's rarest words, as for a thing seen before."""
    memory = chance.choice(material.sources[origin])
    if unspaced_letters(memory.text) * 2 > len(memory.text):
        return
    words = list(dict.fromkeys(word.strip(_PUNCTUATION) for word in plain(memory.text).split()))
    rarity = _rarity(words, material)
    ranked = sorted((count, place) for place, count in rarity.items() if count)
    if len(ranked) >= RAREST:
        drawn = sorted(place for _, place in chance.sample(ranked[:RAREST], TERMS))
        yield Pseudo("terms", " ".join(words[place] for place in drawn), origin)


def _rarity(words: Sequence[str], material: Material) -> dict[int, int | None]:
    """Return the document frequency of each word by its position; None for function words and marks."""
    tokens = {place: tokens_of(word, material.language)[:1] for place, word in enumerate(words)}
    counts = material.frequency({token for found in tokens.values() for token in found})
    return {
        place: counts.get(found[0])
        if found and not all(token.is_stop_word for token in all_tokens(words[place], material.language))
        else None
        for place, found in tokens.items()
    }


def _name_parts(material: Material, origin: Origin, chance: random.Random) -> Iterator[Pseudo]:
    """Yield a query of two adjacent words of a longer name."""
    memory = material.sources[origin][0]
    words = name_words(memory.name)
    if len(words) > MIN_WORDS:
        start = chance.randrange(len(words) - MIN_WORDS + 1)
        part = " ".join(words[start : start + MIN_WORDS])
        if material.words(part) >= MIN_WORDS:
            yield Pseudo("name", part, origin)


_MAKERS: dict[str, Maker] = {
    "heading": _headings,
    "title": _titles,
    "link": _links,
    "paraphrase": _paraphrases,
    "terms": _terms,
    "name": _name_parts,
}
KINDS = tuple(_MAKERS)


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
        return told.reason if told else "the recipe has no setting to fit"

    @property
    def changes(self) -> dict[str, float | None]:
        """Return the setting to write, by its key; empty unless the decision is to change."""
        fit = self.best_fit
        return {f"ranking.{fit.setting}": getattr(fit.best, fit.setting)} if fit else {}

    def means(self) -> dict[Choice, tuple[float, float, float]]:
        """Return nDCG@10 of every choice over all queries, with its 95 % interval."""
        return self._means([trial.gains for trial in self.trials])

    def leads(self, kinds: Collection[str]) -> dict[Choice, tuple[float, float, float]]:
        """Return the lead of every choice over the present one on some kinds of query, with its interval."""
        rows = [trial.gains for trial in self.trials if trial.question.kind in kinds]
        return self._means([[gained - row[0] for gained in row] for row in rows])

    def _means(self, rows: Sequence[Sequence[float]]) -> dict[Choice, tuple[float, float, float]]:
        columns = zip(self.choices, zip(*rows, strict=True), strict=False)
        return {choice: (_mean(column), *bootstrap(column)) for choice, column in columns}


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
        values = [present._replace(**{setting: getattr(choice, setting)}) for choice in choices]
        places = [place for place, choice in enumerate(choices) if choice == values[place]]
        if len(places) > 1:
            along = [Trial(trial.question, tuple(trial.gains[place] for place in places)) for trial in trials]
            fits.append(_fit(setting, along, [choices[place] for place in places], seed))
    return Tuning(present, tuple(fits), tuple(choices), tuple(trials), seed)


def _fit(setting: SettingName, trials: Sequence[Trial], choices: Sequence[Choice], seed: int) -> Fit:
    """Choose a setting by cross-validation over folds, and judge it on the held-out queries."""
    witnesses = WITNESSES[setting]
    heard = [trial for trial in trials if trial.question.kind in witnesses]
    too_few = _too_few(heard, witnesses)
    if too_few:
        return Fit(setting, "too few", too_few, choices[0])
    chosen: list[int] = []
    held_out: list[_Pair] = []
    for group in _dealt(trials, seed):
        answers = {trial.question.answer for trial in group}
        place = _best([trial for trial in heard if trial.question.answer not in answers], choices)
        chosen.append(place)
        held_out += [_Pair(trial.question.kind, trial.gains[0], trial.gains[place]) for trial in group]
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

    def frequency(terms: Iterable[str]) -> Mapping[str, int]:
        return stage.store.statistics(terms, stage.where.scopes).frequency

    material = Material(by_source(_sample(stage, seed)), frequency, stage.language)
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
            known = set[tuple[Scope, str]]()
            for scope in {entry.memory.scope for entry in entries}:
                known |= {(scope, key) for key in stage.store.known_vectors(texts, space, scope)}
            lacking = (one for one in entries if (one.memory.scope, one.embed_hash) not in known)
            missing = list(dict.fromkeys(one.embed_hash for one in lacking))
            rows = stage.embedder.documents([texts[key] for key in missing])
            vectors = {key: row for key, row in zip(missing, rows, strict=True) if row.any()}
            changes = replace(changes, space=space, vectors=vectors)
        stage.store.write(changes)
