"""Boosts for words of names, slugs and summaries, as skill registries give them: points added to the score."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from ..columns import MemoryId
from ..hits import Context, Labels, Ranking
from ..trail import Step
from ..types import Memory
from ..wording import counted
from .finite import check_finite
from .order import resteps

EXACT_POINTS = 2.0  # a word of the query that stands in the text
PREFIX_POINTS = 1.0  # one that begins a word of the text
ALL_POINTS = 3.0  # when every word of the query is found
FEW_WORDS = 2  # up to here every word must be found …
LEAST_SHARE = 0.6  # … and above, this share of them


@dataclass(frozen=True)
class TokenPoints:
    """What a text has of the words of a query: how many of them whole, how many as beginnings, and the points."""

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
    """Count which words of a query stand in a text, whole or as the beginning of a word."""
    if not words:
        return TokenPoints(0, 0, len(asked))
    known = set(words)
    exact = sum(word in known for word in asked)
    prefix = sum(word not in known and _begins(word, words) for word in asked)
    return TokenPoints(exact, prefix, len(asked))


def _begins(asked: str, words: Sequence[str]) -> bool:
    return any(word.startswith(asked) for word in words)


_UNLABELLED = Labels()


def _by_labels(context: Context, steps: Callable[[Labels], list[Step]]) -> Callable[[MemoryId], Sequence[Step]]:
    """Return the steps of memories by their labels: none where no word of the query begins one of these, as mostly."""
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
    op: ClassVar[Literal["add"]] = "add"

    def __post_init__(self) -> None:
        check_finite(self)

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Add weight × points, with the words that were counted."""
        return resteps(ranking, _by_labels(context, lambda labels: [*self._steps(labels, context)]))

    def _steps(self, labels: Labels, context: Context) -> Iterator[Step]:
        points = self._counted(labels, context)
        for number in self.numbers(points):
            yield Step("token-match", self.op, number, f"{self.weight:g} × {points.value:g} points: {points}")

    def known(self, memory: Memory, context: Context) -> TokenPoints:
        """Return what the labels of a memory have of the words of the query."""
        return self._counted(context.labels.get(memory.id, _UNLABELLED), context)

    def _counted(self, labels: Labels, context: Context) -> TokenPoints:
        return token_points(context.analysis.probe.words, (*labels.name, *labels.slug, *labels.summary))

    def numbers(self, points: TokenPoints) -> tuple[float, ...]:
        """Return what points are worth, if anything."""
        worth = self.weight * points.value
        return (worth,) if worth else ()


_Found = Literal["every word", "every word as a beginning"]


class Labelled(NamedTuple):
    """How the words of a query stand in the slug and in the name of a memory, and what its summary has of them."""

    slug: _Found | None
    name: _Found | None
    summary: TokenPoints


@dataclass(frozen=True)
class Boosts:
    """Add a bonus where the slug or the name holds every word of the query, a smaller one for beginnings of words.

    The summary counts by its points: see TokenMatch.
    """

    slug_exact: float = 0.0
    slug_prefix: float = 0.0
    name_exact: float = 0.0
    name_prefix: float = 0.0
    summary: float = 0.0
    reads_memories = reads_labels = True
    op: ClassVar[Literal["add"]] = "add"

    def __post_init__(self) -> None:
        check_finite(self)

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Add each bonus as a step of its own."""
        return resteps(ranking, _by_labels(context, lambda labels: [*self._steps(labels, context)]))

    def _steps(self, labels: Labels, context: Context) -> Iterator[Step]:
        return (Step("boosts", self.op, *told) for told in self._bonuses(self._standing(labels, context)))

    def known(self, memory: Memory, context: Context) -> Labelled:
        """Return how the words of the query stand in the labels of a memory."""
        return self._standing(context.labels.get(memory.id, _UNLABELLED), context)

    def _standing(self, labels: Labels, context: Context) -> Labelled:
        asked = context.analysis.probe.words
        points = token_points(asked, labels.summary)
        return Labelled(_found(asked, labels.slug), _found(asked, labels.name), points)

    def numbers(self, known: Labelled) -> list[float]:
        """Return the bonuses of a memory, one after the other."""
        return [number for number, _ in self._bonuses(known)]

    def _bonuses(self, known: Labelled) -> Iterator[tuple[float, str]]:
        if known.slug is None and known.name is None and not known.summary.value:
            return
        slug = {"every word": self.slug_exact, "every word as a beginning": self.slug_prefix}
        name = {"every word": self.name_exact, "every word as a beginning": self.name_prefix}
        for label, found, bonuses in (("slug", known.slug, slug), ("name", known.name, name)):
            if found is not None and bonuses[found]:
                yield bonuses[found], f"{label}: {found}"
        points = known.summary
        if self.summary * points.value:
            yield self.summary * points.value, f"summary: {self.summary:g} × {points.value:g} points, {points}"


def _found(asked: Sequence[str], words: Sequence[str]) -> _Found | None:
    """Tell whether a label has every word of a query, else whether every one begins a word of it."""
    if not asked or not words or not _begins(asked[0], words):
        return None
    if all(word in words for word in asked):
        return "every word"
    return "every word as a beginning" if all(_begins(word, words) for word in asked) else None


# What ClawHub gave, and what its pull request 266 proposed.
PRESETS = {
    "clawhub": Boosts(slug_exact=1.4, slug_prefix=0.8, name_exact=1.1, name_prefix=0.6),
    "clawhub-266": Boosts(slug_exact=3.0, slug_prefix=1.5, name_exact=2.5, name_prefix=1.2, summary=0.3),
}
