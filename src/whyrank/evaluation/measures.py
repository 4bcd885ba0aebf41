"""What a ranking is worth: the usual measures, averaged over queries that have a relevant document."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

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
    """Discounted cumulative gain with linear gain, over the best attainable (Järvelin and Kekäläinen 2002)."""

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


MEASURES = (ndcg(10), recall(5), recall(10), mrr(10), hit(1), hit(5), hit(10))
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
