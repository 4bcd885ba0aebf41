"""Measure a calibration: what questions find that are about this store, and what those find that are not.

On one side stand questions on matters nobody noted here (`offtopic`), on the other the store's own words (`halves`).
Below what nearly all own questions reach *and* nearly no foreign one passes, nothing was found; above both, something
was; between the two, the answer is weak. All of it is asked through the search itself, inside the caller's scopes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ..analysis.languages import language_of
from ..errors import ConfigError, ProviderError, WhyrankError
from ..ports import Embedder, Store
from ..ranking.recipes import recipe_named
from ..types import Memory, Query, Where
from ..wording import counted
from .calibration import MIN_MEMORIES, Bar, Calibration
from .evidence import coverage_counts
from .halves import halved_questions
from .offtopic import off_topic
from .retrieval import Stopwatch, retrieve

MIN_QUESTIONS = 20  # a tenth of fewer is one question or none
OWN_QUESTIONS = 200
FOREIGN_QUESTIONS = 96
# Own questions are put together of two halves and so a little harder than real ones: nine of ten of them reach what 93
# to 100 % of real questions do, over eight of nine evaluation sets (docs/how-to/nothing-relevant.md).
OWN_BELOW = 0.1
FOREIGN_BELOW = 0.92  # the best of them may be about this store after all
MIN_WEAK = 0.05  # where foreign questions find no word at all: no evidence must never be called weak
MIN_GAP = 0.05  # of evidence between weak and found, so that confidence has room to rise
MIN_LANGUAGE_SHARE = 0.1  # of the memories; fewer are quotations, or mistaken

Progress = Callable[[int, int, str], None]


class _Seen(NamedTuple):
    """The best that one question found, and what its coverage comes to by the number of its words."""

    cosine: float | None
    coverage: float
    words: float

    @property
    def both(self) -> float | None:
        """Return cosine and words together, if a vector spoke."""
        return self.cosine + self.words if self.cosine is not None else None


def calibrate(
    store: Store, embedder: Embedder | None, language: str, where: Where, progress: Progress = lambda *_: None
) -> Calibration:
    """Measure what own and foreign questions find among the memories a caller may see; nothing is written."""
    with store.reading():
        memories = store.statistics((), where.scopes).total
        sampled = store.sample(where, OWN_QUESTIONS)
        own, foreign = _questions(sampled, language)
        if memories < MIN_MEMORIES or min(len(own), len(foreign)) < MIN_QUESTIONS:
            raise ConfigError(
                f"{counted(memories, 'memory gives', 'memories give')} too few questions to calibrate by",
                f"it takes {MIN_MEMORIES} memories with a sentence each; until then the defaults serve",
            )
        _check(embedder, own[0])
        seen = list(_asked([*own, *foreign], store, embedder, language, where, progress))
    ours, theirs = seen[: len(own)], seen[len(own) :]
    both = _spoken_bar([found.both for found in ours], [found.both for found in theirs])
    if embedder is not None and both is None:
        raise ConfigError(
            f"too few memories have a vector of {embedder.fingerprint} to calibrate by",
            "`whyrank ingest` or `whyrank model use` makes them; with --embedding none words are calibrated alone",
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
    )


def _check(embedder: Embedder | None, question: str) -> None:
    """Fail at once if the embedder does: a search would go on without it, and measure something else."""
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


def _asked(
    questions: Sequence[str],
    store: Store,
    embedder: Embedder | None,
    language: str,
    where: Where,
    progress: Progress,
) -> Iterator[_Seen]:
    recipe = recipe_named("default")
    for number, question in enumerate(questions, 1):
        retrieved = retrieve(Query(question, where), recipe, store, embedder, language, Stopwatch())
        if retrieved.vector is None:
            _check(embedder, question)  # a search goes on without it, and would measure something else
        signals = retrieved.context.signals
        cosines = signals["vector"].values if "vector" in signals else {}
        coverages = signals["keyword"].coverage if "keyword" in signals else {}
        best = max(0.0, max(cosines.values())) if cosines else None
        covered = max(coverages.values(), default=0.0)
        yield _Seen(best, covered, coverage_counts(retrieved.context.analysis) * covered)
        progress(number, len(questions), "calibrating")


def _spoken_bar(ours: Sequence[float | None], theirs: Sequence[float | None]) -> Bar | None:
    """Return a bar over the questions that vectors spoke to, if they are enough."""
    sides = [[found for found in side if found is not None] for side in (ours, theirs)]
    return _bar(*sides) if min(map(len, sides)) >= MIN_QUESTIONS else None


def _bar(ours: Sequence[float], theirs: Sequence[float]) -> Bar:
    """Put the thresholds where own questions begin and where foreign ones end, whichever comes first.

    Where own ones begin beyond the end of the foreign, what lies in the farther half of the gap is found: own questions
    have six words, and shorter ones find less.
    """
    begin, end = quantile(ours, OWN_BELOW), quantile(theirs, FOREIGN_BELOW)
    weak, found = max(MIN_WEAK, min(begin, end)), max(end, (begin + end) / 2)
    kept = sum(value >= weak for value in ours) / len(ours)
    rejected = sum(value < weak for value in theirs) / len(theirs)
    return Bar(weak, max(found, weak + MIN_GAP), kept, rejected)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value this share of the values lies below, between neighbours in proportion."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])
