"""Boosts for words of names, slugs and summaries, as skill registries give them: points added to the score."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..hits import Context, Hit, Labels, Ranking
from ..trail import Step
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
    known = set(words)
    exact = sum(word in known for word in asked)
    prefix = sum(word not in known and _begins(word, words) for word in asked)
    return TokenPoints(exact, prefix, len(asked))


def _begins(asked: str, words: Sequence[str]) -> bool:
    return any(word.startswith(asked) for word in words)


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

        def steps(hit: Hit) -> Iterator[Step]:
            labels = context.labels.get(hit.id, Labels())
            points = token_points(asked, (*labels.name, *labels.slug, *labels.summary))
            if self.weight * points.value:
                why = f"{self.weight:g} × {points.value:g} points: {points}"
                yield Step("token-match", "add", self.weight * points.value, why)

        return resteps(ranking, steps)


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

    def __post_init__(self) -> None:
        check_finite(self)

    def __call__(self, ranking: Ranking, context: Context) -> Ranking:
        """Add each bonus as a step of its own."""
        asked = context.analysis.probe.words

        def steps(hit: Hit) -> Iterator[Step]:
            labels = context.labels.get(hit.id, Labels())
            yield from _bonus("slug", asked, labels.slug, self.slug_exact, self.slug_prefix)
            yield from _bonus("name", asked, labels.name, self.name_exact, self.name_prefix)
            points = token_points(asked, labels.summary)
            if self.summary * points.value:
                why = f"summary: {self.summary:g} × {points.value:g} points, {points}"
                yield Step("boosts", "add", self.summary * points.value, why)

        return resteps(ranking, steps)


def _bonus(label: str, asked: Sequence[str], words: Sequence[str], exact: float, prefix: float) -> Iterator[Step]:
    """Yield the bonus for the words of one label: whole words, else beginnings, else none."""
    if not asked or not words:
        return
    tests: tuple[tuple[float, str, Callable[[str], bool]], ...] = (
        (exact, "every word", lambda word: word in words),
        (prefix, "every word as a beginning", lambda word: _begins(word, words)),
    )
    for bonus, told, found in tests:
        if all(map(found, asked)):
            if bonus:
                yield Step("boosts", "add", bonus, f"{label}: {told}")
            return


# What ClawHub gave, and what its pull request 266 proposed.
PRESETS = {
    "clawhub": Boosts(slug_exact=1.4, slug_prefix=0.8, name_exact=1.1, name_prefix=0.6),
    "clawhub-266": Boosts(slug_exact=3.0, slug_prefix=1.5, name_exact=2.5, name_prefix=1.2, summary=0.3),
}
