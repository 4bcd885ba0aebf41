"""A deterministic reranker for tests and examples: it reads the question and every text, word by word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..analysis.words import tokens_of


@dataclass(frozen=True)
class SharedWords:
    """The share of the question's words that stand in a text, and half as much for the share that stand side by side.

    Ten mentions of one word count no more than one, and a long text is no worse than a short one.
    """

    pair_weight: float = 0.5

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one number from 0 to 1 + pair_weight for each text."""
        asked = tokens_of(question)
        return [
            _share(asked, tokens) + self.pair_weight * _share([*pairwise(asked)], [*pairwise(tokens)])
            for tokens in map(tokens_of, texts)
        ]


def _share(asked: Sequence[object], there: Sequence[object]) -> float:
    wanted = set(asked)
    return len(wanted & set(there)) / len(wanted) if wanted else 0.0
