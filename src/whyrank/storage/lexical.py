"""The word score: BM25 over a scope's own statistics, with a length prior for very short texts.

B(text) = Σ idf · tf/(tf + K),  K = k1·(1 − b + b·(len + prior)/(avglen + prior))

After Robertson and Zaragoza 2009, without the constant factor (k1 + 1), so that Σ idf bounds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..expressions import OTHERWISE_COUNTS, label_as, spellings
from ..trail import TermValue
from ..types import ONCE, Repeats, Statistics

K1 = 1.2
B = 0.75
LENGTH_PRIOR = 20  # keeps a three-word turn from winning by shortness; fades out for long texts

TermScores = tuple[TermValue, ...]


def padded(tokens: Iterable[str]) -> str:
    """Join tokens so that ` token ` occurs exactly as often as the token does."""
    return "".join(f" {token} " for token in tokens)


def needle(term: str) -> str:
    """Return what to look for in padded tokens: a token, or the tokens of a phrase side by side."""
    return padded(term.split())


def occurrences(tokens: str, term: str) -> float:
    """Count a term in padded tokens: all that it stands for together, other spellings by half."""
    asked, others = spellings(term)
    weight = OTHERWISE_COUNTS if asked else 1.0
    return _count(tokens, asked) + weight * _count(tokens, others)


def _count(tokens: str, terms: Iterable[str]) -> int:
    return sum(tokens.count(needle(one)) for one in terms)


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
            is_asked = _count(tokens, spellings(term)[0]) > 0
            scores.append(TermValue(repeated(label_as(term, is_asked), often), "words", "own", addend))
    return tuple(scores)


def repeated(term: str, often: int) -> str:
    """Name a term in a trail, and how often it counts if that is more than once."""
    return term if often == 1 else f"{term} ×{often}"


def word_score(scores: TermScores) -> float:
    """Add the terms' scores from left to right."""
    value = 0.0
    for score in scores:
        value += score.value
    return value
