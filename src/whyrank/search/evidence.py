"""What speaks for a memory, as one number: its cosine, plus its coverage by how many words were asked for.

Coverage is the share of the question's idf mass that a memory holds. A generic word or two stand in many a memory by
chance, half of ten words do not: so it counts 2n/(n + 2) in a question of n words, if that is more than once, which is
1, 1, 6/5, 4/3, … and at most 2 (docs/decisions/0018-coverage-counts-by-words.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..expressions import label_of
from ..hits import Context
from ..matches import Unheld
from ..types import Analysis

MOST_COVERAGE_COUNTS = 2.0  # times the cosine, in a question of very many words
WORDS_AT_HALF = 2  # with so many it counts half of that, which is as much as the cosine


def coverage_counts(analysis: Analysis) -> float:
    """Return how often coverage counts beside the cosine."""
    words = sum(len(label_of(term).split(" ")) for term in analysis.terms)  # a phrase has several
    return max(1.0, MOST_COVERAGE_COUNTS * words / (words + WORDS_AT_HALF))


class Weighing(NamedTuple):
    """How one question adds up what speaks for a memory.

    Where codes stand nowhere that it asks for, all that speaks for a memory speaks for the rest of it alone. Whoever
    holds the only word it asks for has the least that is not nothing: no memory could say more with that word.
    """

    coverage_counts: float
    unheld: Unheld | None = None
    least: float = 0.0

    @classmethod
    def of(cls, context: Context, weak: float) -> Weighing:
        """Return how the question of a context does it, where evidence is weak from this on."""
        analysis, unheld = context.analysis, context.unheld
        is_one_word = len(analysis.terms) == 1 and not analysis.dates and unheld is None
        return cls(coverage_counts(analysis), unheld, weak if is_one_word else 0.0)

    @property
    def rest(self) -> float:
        """Return how much the question is without the codes that stand nowhere."""
        return 1.0 if self.unheld is None else 1.0 - self.unheld.share

    def evidence(self, said: Iterable[tuple[float | None, float | None]]) -> list[float]:
        """Add up the cosine and the coverage of each of some memories, where they have them, each at least 0."""
        rest, counts, least = self.rest, self.coverage_counts, self.least
        return [
            max(least if coverage else 0.0, rest * (max(0.0, cosine or 0.0) + counts * (coverage or 0.0)))
            for cosine, coverage in said
        ]

    def told(self, spoke: bool) -> str:
        """Say what is added up."""
        covered = "coverage" if self.coverage_counts == 1.0 else f"{self.coverage_counts:.3g} × coverage"
        summed = f"cosine + {covered}" if spoke else covered
        if self.unheld is None:
            return summed
        return f"({summed}) × {self.rest:.2f}, for no memory holds {', '.join(self.unheld.codes)},"
