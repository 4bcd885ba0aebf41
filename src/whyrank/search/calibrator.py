"""Measure a calibration from the store's own questions and foreign ones."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.resources import files
from itertools import cycle, islice
from typing import TYPE_CHECKING, NamedTuple

import regex

from ..analysis.normalize import UNSPACED
from ..analysis.tokenizer import all_tokens, language_of
from ..errors import ConfigError, ProviderError, WhyrankError
from ..formatting import counted
from ..ranking.recipes import recipe_named
from ..types.memory import unit_row
from ..types.query import Query, Stopwatch, Where
from ..types.results import column_of
from .confidence import MIN_MEMORIES, Calibration, Cutoffs, coverage_counts
from .searcher import Searcher

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..protocols import Embedder, Store
    from ..types.memory import Memory

FALLBACK = "en"
QUESTIONS: Mapping[str, Sequence[str]] = json.loads(
    (files(__package__) / "calibration_questions.json").read_text(encoding="utf-8")
)


def off_topic(languages: Iterable[str], count: int) -> list[str]:
    """Return up to `count` questions, distributed over the languages as often as they are named.

    A language without questions gets the English ones: their words occur in no text of another script, which is as
    off-topic as a question can be.
    """
    spoken = [language if language in QUESTIONS else FALLBACK for language in languages] or [FALLBACK]
    hands = {language: iter(QUESTIONS[language]) for language in dict.fromkeys(spoken)}
    turns = islice(cycle(_mixed(spoken)), count * len(hands))
    dealt = (next(hands[language], None) for language in turns)
    return [question for question in dealt if question is not None][:count]


def _mixed(spoken: Sequence[str]) -> list[str]:
    """Order the languages so that every stretch holds them in about the same proportion."""
    sizes = Counter(spoken)
    seen: Counter[str] = Counter()
    places = []
    for language in spoken:
        places.append((seen[language] / sizes[language], language))
        seen[language] += 1
    return [language for _, language in sorted(places)]


WORDS_OF_EACH = 3  # a question has about six content words
_SEED = 1
_SENTENCES_LOOKED_AT = 20  # of one memory: a long one reveals no more about the store than a short one

_SENTENCE_END = regex.compile(r"(?<=[.!?…])\s+|\n+|(?<=[。！？])")
# Where words are not divided, two letters are about a word.
_WORD = regex.compile(rf"(?V1)[{UNSPACED}]{{1,2}}|[[\p{{L}}\p{{M}}\p{{N}}_]--[{UNSPACED}]]+")

Words = Sequence[str]


def halved_questions(texts: Iterable[str], count: int, language: str) -> list[str]:
    """Return questions of the texts' own words; the same texts in the same order give the same questions."""
    choice = random.Random(_SEED)
    said = [sentences for text in texts if (sentences := list(_sentences(text, language)))]
    if len(said) < 2:
        return []
    return [_question(said, number % len(said), choice) for number in range(count)]


def _question(said: Sequence[Sequence[Words]], number: int, choice: random.Random) -> str:
    other = (number + choice.randrange(1, len(said))) % len(said)
    halves = (choice.sample(choice.choice(said[place]), WORDS_OF_EACH) for place in (number, other))
    words = [word for half in halves for word in half]
    choice.shuffle(words)
    return " ".join(words)


def _sentences(text: str, language: str) -> Iterator[Words]:
    """Yield the content words of each sentence that has enough of them."""
    for sentence in _SENTENCE_END.split(text, maxsplit=_SENTENCES_LOOKED_AT)[:_SENTENCES_LOOKED_AT]:
        words = _content_words(sentence, language)
        if len(words) >= WORDS_OF_EACH:
            yield words


def _content_words(sentence: str, language: str) -> Words:
    spoken = language_of(sentence, language)
    words = dict.fromkeys(_WORD.findall(sentence))
    return [word for word in words if any(not token.is_stop_word for token in all_tokens(word, spoken))]


MIN_QUESTIONS = 20  # a tenth of fewer is one question or none
OWN_QUESTIONS = 200
FOREIGN_QUESTIONS = 96
FLOOR_QUESTIONS = 24  # with 200 memories each: the median of thousands of pairs
# Own questions are put together of two halves and so a little harder than real ones: nine of ten of them reach what 93
# to 100 % of real questions do, over eight of nine evaluation sets (docs/how-to/nothing-relevant.md).
OWN_BELOW = 0.1
FOREIGN_BELOW = 0.92  # the best of them may be about this store after all
# Own questions are easy ones: in small stores they do not show the weakest answerable score, the foreign ones do.
FOREIGN_BELOW_WEAK = 0.7
MIN_WEAK = 0.05  # where foreign questions find no word at all: no evidence must never be called weak
MIN_GAP = 0.05  # of evidence between weak and found, so that confidence rises over an interval
MIN_LANGUAGE_SHARE = 0.1  # of the memories; fewer are quotations, or mistaken

Progress = Callable[[int, int, str], None]


class _Seen(NamedTuple):
    """Best values that one question found: cosine, coverage, words alone, and both in one memory."""

    cosine: float | None
    coverage: float
    words: float
    both: float | None


def calibrate(
    store: Store, embedder: Embedder | None, language: str, where: Where, progress: Progress = lambda *_: None
) -> Calibration:
    """Measure the evidence of own and foreign questions in the visible scopes; writes nothing."""
    with store.reading():
        memories = store.statistics((), where.scopes).total
        sampled = store.sample(where, OWN_QUESTIONS)
        own, foreign = _questions(sampled, language)
        if memories < MIN_MEMORIES or min(len(own), len(foreign)) < MIN_QUESTIONS:
            raise ConfigError(
                f"{counted(memories, 'memory gives', 'memories give')} too few questions to calibrate by",
                f"it takes {MIN_MEMORIES} memories with a sentence each; until then the default thresholds are used",
            )
        _check(embedder, own[0])
        seen = list(_measure([*own, *foreign], Searcher(store, embedder, language), where, progress))
        floor = _floor(embedder, foreign, sampled, store, where)
    ours, theirs = seen[: len(own)], seen[len(own) :]
    both = _spoken_bar([found.both for found in ours], [found.both for found in theirs])
    if embedder is not None and both is None:
        raise ConfigError(
            f"too few memories have a vector of {embedder.fingerprint} to calibrate by",
            "`whyrank ingest` or `whyrank model use` makes them; with --embedding none only keywords are calibrated",
        )
    return Calibration(
        space=embedder.fingerprint if embedder else "",
        scopes=tuple(sorted(map(str, where.scopes))),
        memories=memories,
        made=where.now,
        own=len(own),
        foreign=len(foreign),
        languages=tuple(_languages(sampled, language)),
        coverage=_bar([found.coverage for found in ours], [found.coverage for found in theirs]),
        words=_bar([found.words for found in ours], [found.words for found in theirs]),
        cosine=_spoken_bar([found.cosine for found in ours], [found.cosine for found in theirs]),
        both=both,
        floor=floor,
    )


def _floor(
    embedder: Embedder | None, foreign: Sequence[str], sampled: Sequence[Memory], store: Store, where: Where
) -> float | None:
    """Measure the median cosine of foreign questions to memories, where the embedder declares no floor."""
    if embedder is None or embedder.floor is not None:
        return None
    memories, cosines = {memory.id: memory for memory in sampled}, list[float]()
    for question in foreign[:FLOOR_QUESTIONS]:
        vector = unit_row(embedder.query(question), store.dimensions(embedder.fingerprint))
        for signal in store.score(memories, (), vector, embedder.fingerprint, where):
            cosines += signal.values.values()
    return quantile(cosines, 0.5) if cosines else None


def _check(embedder: Embedder | None, question: str) -> None:
    """Raise if the embedder fails: a search would continue without it and measure something else."""
    if embedder is None:
        return
    try:
        embedder.query(question)
    except WhyrankError:
        raise
    except Exception as error:  # whatever a provider throws
        raise ProviderError(f"the embedder failed: {error}", "calibrate again when it answers") from error


def _questions(sampled: Sequence[Memory], language: str) -> tuple[list[str], list[str]]:
    own = halved_questions((memory.text for memory in sampled), OWN_QUESTIONS, language)
    spoken = _languages(sampled, language)
    dealt = [name for name, count in spoken.items() for _ in range(count)]
    return own, off_topic(dealt, FOREIGN_QUESTIONS)


def _languages(sampled: Sequence[Memory], language: str) -> dict[str, int]:
    """Count the languages the memories are written in, most frequent first."""
    counts = Counter(language_of(memory.text, language) for memory in sampled)
    enough = MIN_LANGUAGE_SHARE * len(sampled)
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return {name: count for name, count in ordered if count >= enough}


def _measure(questions: Sequence[str], searcher: Searcher, where: Where, progress: Progress) -> Iterator[_Seen]:
    embedder, recipe = searcher.embedder, recipe_named("default")
    for number, question in enumerate(questions, 1):
        retrieved = searcher.retrieve(Query(question, where), recipe, Stopwatch())
        if retrieved.vector is None:
            _check(embedder, question)  # a search goes on without it, and would measure something else
        signals = retrieved.context.signals
        cosines = signals["vector"].values if "vector" in signals else {}
        coverages = signals["keyword"].coverage if "keyword" in signals else {}
        best = max(0.0, max(cosines.values())) if cosines else None
        covered, counts = max(coverages.values(), default=0.0), coverage_counts(retrieved.context.analysis)
        ids = [*retrieved.context.memories]
        pairs = zip(column_of(cosines, ids), column_of(coverages, ids), strict=True)
        floor = max(0.0, (embedder.floor if embedder is not None else None) or 0.0)  # of a memory without a vector
        sums = (
            (floor if cosine is None else max(0.0, cosine)) + counts * (coverage or 0.0) for cosine, coverage in pairs
        )
        yield _Seen(best, covered, counts * covered, max(sums, default=0.0) if cosines else None)
        progress(number, len(questions), "calibrating")


def _spoken_bar(ours: Sequence[float | None], theirs: Sequence[float | None]) -> Cutoffs | None:
    """Return a bar over the questions that vectors spoke to, if they are enough."""
    sides = [[found for found in side if found is not None] for side in (ours, theirs)]
    return _bar(*sides) if min(map(len, sides)) >= MIN_QUESTIONS else None


def _bar(ours: Sequence[float], theirs: Sequence[float]) -> Cutoffs:
    """Set `weak` below nearly all own questions or above most foreign ones, whichever is lower.

    `found` is above nearly all foreign ones.
    """
    weak = max(MIN_WEAK, min(quantile(ours, OWN_BELOW), quantile(theirs, FOREIGN_BELOW_WEAK)))
    found = quantile(theirs, FOREIGN_BELOW)
    kept = sum(value >= weak for value in ours) / len(ours)
    rejected = sum(value < weak for value in theirs) / len(theirs)
    return Cutoffs(weak, max(found, weak + MIN_GAP), kept, rejected)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the quantile of the values, interpolated between neighbours."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])
