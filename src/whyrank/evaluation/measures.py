"""Measures of rankings (nDCG, recall, MRR, hit rate), bootstrap intervals and a paired test."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Judgements = Mapping[str, int]
Scores = Mapping[str, float]


@dataclass(frozen=True)
class Measure:
    """A named function of a ranked list of documents and the judgements of one query."""

    name: str
    of: Callable[[Sequence[str], Judgements], float]

    def __str__(self) -> str:
        return self.name


def ndcg(cut: int) -> Measure:
    """Discounted cumulative gain, linear gain, over the ideal one (Järvelin and Kekäläinen 2002)."""

    def of(ranked: Sequence[str], judged: Judgements) -> float:
        gained = _dcg([max(0, judged.get(document, 0)) for document in ranked[:cut]])
        ideal = _dcg(sorted((gain for gain in judged.values() if gain > 0), reverse=True)[:cut])
        return gained / ideal if ideal else 0.0

    return Measure(f"ndcg@{cut}", of)


def recall(cut: int) -> Measure:
    """Share of the relevant documents among the first results."""

    def of(ranked: Sequence[str], judged: Judgements) -> float:
        relevant = _relevant(judged)
        return len(relevant.intersection(ranked[:cut])) / len(relevant) if relevant else 0.0

    return Measure(f"recall@{cut}", of)


def mrr(cut: int) -> Measure:
    """One over the rank of the first relevant document."""

    def of(ranked: Sequence[str], judged: Judgements) -> float:
        relevant = _relevant(judged)
        return next((1 / rank for rank, document in enumerate(ranked[:cut], 1) if document in relevant), 0.0)

    return Measure(f"mrr@{cut}", of)


def hit(cut: int) -> Measure:
    """1 if any relevant document is among the first results."""

    def of(ranked: Sequence[str], judged: Judgements) -> float:
        return float(bool(_relevant(judged).intersection(ranked[:cut])))

    return Measure(f"hit@{cut}", of)


DEFAULT_LIMIT = 6  # results that a search shows by default
MEASURES = (ndcg(10), recall(5), recall(10), mrr(10), hit(1), hit(5), hit(DEFAULT_LIMIT), hit(10))
MAIN = MEASURES[0].name


def score(ranked: Sequence[str], judged: Judgements) -> Scores:
    """Return every measure for one query."""
    return {measure.name: measure.of(ranked, judged) for measure in MEASURES}


def mean(scores: Iterable[Scores]) -> dict[str, float]:
    """Average each measure over queries."""
    rows = list(scores)
    return {m.name: math.fsum(row[m.name] for row in rows) / len(rows) if rows else 0.0 for m in MEASURES}


def _dcg(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def _relevant(judged: Judgements) -> set[str]:
    return {document for document, gain in judged.items() if gain > 0}


SEED = 1
RESAMPLES = 1_000
SHUFFLES = 10_000


class Interval(NamedTuple):
    """A 95 % interval of a mean."""

    low: float
    high: float


class Comparison(NamedTuple):
    """Mean difference of two systems over the same queries, and its p-value."""

    difference: float
    better: int
    worse: int
    same: int
    p: float


def bootstrap(values: Sequence[float]) -> Interval:
    """Return the 95 % interval of the mean by resampling queries (Efron 1979)."""
    if not values:
        return Interval(0.0, 0.0)
    chance = random.Random(SEED)
    means = sorted(sum(chance.choices(values, k=len(values))) / len(values) for _ in range(RESAMPLES))
    return Interval(means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1])


def compare(first: Sequence[float], second: Sequence[float]) -> Comparison:
    """Test a difference of paired values by randomly flipping the sign of each query's difference."""
    differences = [b - a for a, b in zip(first, second, strict=True)]
    moved = [difference for difference in differences if difference]
    observed = abs(sum(moved))
    chance = random.Random(SEED)
    as_far = 0
    for _ in range(SHUFFLES if moved else 0):
        signs = chance.getrandbits(len(moved))
        total = sum(value if signs >> i & 1 else -value for i, value in enumerate(moved))
        as_far += abs(total) >= observed - 1e-12
    return Comparison(
        difference=sum(differences) / len(differences) if differences else 0.0,
        better=sum(1 for value in differences if value > 0),
        worse=sum(1 for value in differences if value < 0),
        same=len(differences) - len(moved),
        p=(as_far + 1) / (SHUFFLES + 1) if moved else 1.0,
    )
