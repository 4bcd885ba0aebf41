"""Boosts: tokens, names, importance, recency, entities."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..errors import ConfigError, check_finite
from ..formatting import counted, which
from ..types.memory import SECONDS_PER_DAY, USUAL_IMPORTANCE, Memory, MemoryId, Notice
from ..types.query import Statistics, inverse_frequency
from ..types.results import Context, Hit, Labels, Ranking, keep, memory_of, rescore
from ..types.trail import TIERS, Step, TermBoost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


EXACT_POINTS = 2.0  # a word of the query that occurs in the text
PREFIX_POINTS = 1.0  # one that begins a word of the text
ALL_POINTS = 3.0  # when every word of the query is found
FEW_WORDS = 2  # up to here every word must be found …
LEAST_SHARE = 0.6  # … and above, this share of them


@dataclass(frozen=True)
class TokenPoints:
    """Matches of the query's words in a text: whole words, prefixes, and the points for both."""

    exact: int
    prefix: int
    asked: int

    @property
    def value(self) -> float:
        """Return 2 a whole word, 1 a beginning, 3 more for all of them; nothing where too few are found."""
        found = self.exact + self.prefix
        least = self.asked if self.asked <= FEW_WORDS else LEAST_SHARE * self.asked
        if not found or found < least:
            return 0.0
        return EXACT_POINTS * self.exact + PREFIX_POINTS * self.prefix + (ALL_POINTS if found == self.asked else 0.0)

    def __str__(self) -> str:
        return f"{counted(self.exact, 'word')} and {counted(self.prefix, 'beginning')} of {self.asked}"


def token_points(asked: Sequence[str], words: Sequence[str]) -> TokenPoints:
    """Count the words of a query that occur in a text, whole or as the prefix of a word."""
    if not words:
        return TokenPoints(0, 0, len(asked))
    known = set(words)
    exact = sum(word in known for word in asked)
    prefix = sum(word not in known and _begins(word, words) for word in asked)
    return TokenPoints(exact, prefix, len(asked))


def _begins(asked: str, words: Sequence[str]) -> bool:
    return any(word.startswith(asked) for word in words)


_UNLABELLED = Labels()


def _by_labels(context: Context, steps: Callable[[Labels], Sequence[Step]]) -> Callable[[MemoryId], Sequence[Step]]:
    """Return a function from ids to steps: none for labels in which no word of the query begins a word."""
    every = "".join([labels.spelled for labels in context.labels.values()])
    beginnings = [begun for word in context.analysis.probe.words if (begun := f" {word}") in every]

    def steps_for(identity: MemoryId) -> Sequence[Step]:
        labels = context.labels.get(identity, _UNLABELLED)
        return steps(labels) if any(map(labels.spelled.__contains__, beginnings)) else ()

    return steps_for


@dataclass(frozen=True)
class TokenMatch:
    """Add points for the words of the query that a memory's name, slug and summary hold."""

    weight: float = 1.0
    reads_memories = reads_labels = True

    def __post_init__(self) -> None:
        check_finite(self)

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Add weight × points, with the words that were counted."""
        asked = context.analysis.probe.words

        def steps(labels: Labels) -> Sequence[Step]:
            points = token_points(asked, (*labels.name, *labels.slug, *labels.summary))
            worth = self.weight * points.value
            told = f"{self.weight:g} × {points.value:g} points: {points}"
            return (Step("token-match", "add", worth, told),) if worth else ()

        return rescore(ranking, _by_labels(context, steps))


@dataclass(frozen=True)
class TokenGate:
    """Gate for queries of one or two words: only memories that hold every word stay.

    A word counts where it begins a word of the name, the slug or the summary, or of the text where there is no summary.
    """

    most_words: int = FEW_WORDS
    reads_memories = reads_labels = True

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Drop memories that lack a word, unless their name is the query, perhaps with a typo."""
        asked = self.asked(context)
        if not asked:
            return ranking

        def reason(hit: Hit) -> str | None:
            labels = context.labels.get(hit.id, _UNLABELLED)
            words = (*labels.name, *labels.slug, *labels.summary, *labels.body)
            lacking = [word for word in asked if not _begins(word, words)]
            match = context.names.get(hit.id)
            if not lacking or (match is not None and TIERS.get(match.relation)):
                return None
            told = " and ".join(map(repr, lacking))
            return f"it does not contain {told}, and a query of {counted(len(asked), 'word')} must match completely"

        kept = keep(ranking, "token-gate", reason)
        return kept if kept.hits or not ranking.hits else replace(kept, notices=(*kept.notices, _NOTHING_PASSED))

    def asked(self, context: Context) -> Sequence[str]:
        """Return the words that must all match: those of a short query, else none."""
        words = context.analysis.probe.words
        return words if len(words) <= self.most_words else ()


_NOTHING_PASSED = Notice(
    "token-gate", "no memory contains every word of the query, as this recipe requires of short queries; use more words"
)


@dataclass(frozen=True)
class Boosts:
    """Bonus where the slug or the name holds every word of the query, a smaller one for prefixes.

    The summary counts by its points: see TokenMatch.
    """

    slug_exact: float = 0.0
    slug_prefix: float = 0.0
    name_exact: float = 0.0
    name_prefix: float = 0.0
    summary: float = 0.0
    reads_memories = reads_labels = True

    def __post_init__(self) -> None:
        check_finite(self)

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Add each bonus as a step of its own."""
        return rescore(ranking, _by_labels(context, lambda labels: [*self._steps(labels, context)]))

    def _steps(self, labels: Labels, context: Context) -> Iterator[Step]:
        asked = context.analysis.probe.words
        for label, words, whole, beginning in (
            ("slug", labels.slug, self.slug_exact, self.slug_prefix),
            ("name", labels.name, self.name_exact, self.name_prefix),
        ):
            if not asked or not words or not all(_begins(word, words) for word in asked):
                continue
            is_whole = all(word in words for word in asked)
            bonus = whole if is_whole else beginning
            if bonus:
                told = "every word" if is_whole else "every word as a prefix"
                yield Step("boosts", "add", bonus, f"{label}: {told}")
        points = token_points(asked, labels.summary)
        worth = self.summary * points.value
        if worth:
            yield Step("boosts", "add", worth, f"summary: {self.summary:g} × {points.value:g} points, {points}")


# ClawHub's values, and those its pull request 266 proposed.
PRESETS = {
    "clawhub": Boosts(slug_exact=1.4, slug_prefix=0.8, name_exact=1.1, name_prefix=0.6),
    "clawhub-266": Boosts(slug_exact=3.0, slug_prefix=1.5, name_exact=2.5, name_prefix=1.2, summary=0.3),
}


MOST_IMPORTANT = 5
LEAST_OF_THE_MOST_IMPORTANT = 1.0  # lower bound of the decay of the most important memories


@dataclass(frozen=True)
class Base:
    """+ importance · exp(−λ · distance), λ = rate / importance²: important memories decay more slowly.

    The distance is in messages for the turns of a chat, in whole days for everything else; evergreen memories have
    none.
    """

    rate: float = 0.05
    reads_memories = reads_chats = True

    def __post_init__(self) -> None:
        if not math.isfinite(self.rate) or self.rate < 0:
            raise ConfigError(f"the rate of forgetting is {self.rate}", "give a number from 0 upwards; 0.05 is usual")

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Add to each hit the value of its importance, decayed by distance."""

        def steps(identity: MemoryId) -> Sequence[Step]:
            memory = memory_of(context.memories[identity])
            importance = _importance(memory) or USUAL_IMPORTANCE
            distance, unit = _distance(memory, context)
            kept = math.exp(-self.rate / importance**2 * distance)
            worth, why = importance * kept, f"importance {importance} × {kept:.3f} remembered, {distance:.0f} {unit}"
            if importance == MOST_IMPORTANT and worth < LEAST_OF_THE_MOST_IMPORTANT:
                worth, why = LEAST_OF_THE_MOST_IMPORTANT, f"{why}; at least 1"
            return (Step("base", "add", worth, why),)

        return rescore(ranking, steps)


def _importance(memory: Memory) -> int | None:
    """Return an importance that makes sense, or none."""
    given = memory.importance
    return given if given is not None and 1 <= given <= MOST_IMPORTANT else None


def _distance(memory: Memory, context: Context) -> tuple[float, str]:
    """Return the distance of a memory, and its unit."""
    if memory.is_turn:
        last = context.chats.get((memory.scope, memory.session), memory.position)
        behind = max(0, last - memory.position)
        return float(behind), which(behind, "message ago", "messages ago")
    since = memory.created if memory.date is None else memory.date
    if memory.evergreen or not since:
        return 0.0, "days old"
    # Whole days, so that the same query has the same answer a second later, through another interface.
    days = max(0.0, context.query.where.moment - since) // SECONDS_PER_DAY
    return days, which(int(days), "day old", "days old")


@dataclass(frozen=True)
class Importance:
    """× (least + each · importance): 0.85 to 1.25 for 1 to 5; memories without one are unchanged."""

    least: float = 0.75
    each: float = 0.1
    reads_memories = True

    def __post_init__(self) -> None:
        if not (math.isfinite(self.least) and math.isfinite(self.each)) or min(self.least, self.each) < 0:
            raise ConfigError(f"importance: {self.least} and {self.each}", "give numbers from 0 upwards")

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Scale each hit by its importance."""

        def steps(identity: MemoryId) -> Sequence[Step]:
            importance = _importance(memory_of(context.memories[identity]))
            if importance is None:
                return ()
            return (Step("importance", "scale", self.least + self.each * importance, f"importance {importance}"),)

        return rescore(ranking, steps)


@dataclass(frozen=True)
class EntityBoost:
    """Repetition of an entity's terms, up to ceil(entity weight × weight) times, in proportion to rarity.

    ratio = idf / ln(N + 1), between 0 and 1; repeats = max(1, round(base × ratio)). A name that nearly every memory
    holds does not discriminate, and counts once.
    """

    weight: float = 5.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.weight) or self.weight < 0:
            raise ConfigError(f"the entity boost is {self.weight}", "give a number from 0 upwards; 5 is usual")

    def boost(self, entity: str, entity_weight: float, term: str, statistics: Statistics) -> TermBoost:
        """Return the boost of a term of an entity: its repeats, by its rarity among these memories."""
        total, held = statistics.total, statistics.frequency.get(term, 0)
        base = math.ceil(entity_weight * self.weight)
        most = math.log(total + 1)  # about the idf of a term that no memory holds
        ratio = min(1.0, max(0.0, inverse_frequency(total, held) / most)) if most else 0.0
        return TermBoost(entity, term, base, held, total, ratio, max(1, round(base * ratio)))
