"""The word score: BM25 over a scope's own statistics, with a length prior for very short texts.

B(text) = Σ idf · tf/(tf + K),  K = k1·(1 − b + b·(len + prior)/(avglen + prior))

After Robertson and Zaragoza 2009, without the constant factor (k1 + 1), so that Σ idf bounds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..expressions import label_of, meant
from ..types import ONCE, Repeats, Statistics

K1 = 1.2
B = 0.75
LENGTH_PRIOR = 20  # keeps a three-word turn from winning by shortness; fades out for long texts

TermScores = tuple[tuple[str, float], ...]


def padded(tokens: Iterable[str]) -> str:
    """Join tokens so that ` token ` occurs exactly as often as the token does."""
    return "".join(f" {token} " for token in tokens)


def needle(term: str) -> str:
    """Return what to look for in padded tokens: a token, or the tokens of a phrase side by side."""
    return padded(term.split())


def occurrences(tokens: str, term: str) -> int:
    """Count a term in padded tokens: all that it stands for together."""
    return sum(tokens.count(needle(one)) for one in meant(term))


def term_scores(
    tokens: str, length: int, terms: Sequence[str], statistics: Statistics, repeats: Repeats = ONCE
) -> TermScores:
    """Return what each matching term adds to the word score of padded tokens; one that is repeated, as often."""
    average = statistics.average_length
    k = K1 * (1 - B + B * (length + LENGTH_PRIOR) / (average + LENGTH_PRIOR))
    scores = []
    for term in terms:
        frequency = occurrences(tokens, term)
        if frequency:
            often = repeats.get(term, 1)
            addend = often * statistics.idf(term) * frequency / (frequency + k)
            scores.append((repeated(label_of(term), often), addend))
    return tuple(scores)


def repeated(term: str, often: int) -> str:
    """Name a term in a trail, and how often it counts if that is more than once."""
    return term if often == 1 else f"{term} ×{often}"


def word_score(scores: TermScores) -> float:
    """Add the terms' scores from left to right."""
    value = 0.0
    for _, score in scores:
        value += score
    return value
