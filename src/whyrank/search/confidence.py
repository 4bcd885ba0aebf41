"""What the evidence says about relevance: the score orders, the confidence speaks.

Evidence is the cosine plus the coverage (the share of the query's idf mass that matched); their plain sum
tells foreign questions from answerable ones better than either alone.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ..ports import Embedder, Thresholds
from ..trail import part_of
from ..types import Hit, Notice, Ranking, Verdict

# Coverage alone, where there is no embedder; measured over the same seven sets as the embedders' own thresholds.
COVERAGE_THRESHOLDS = Thresholds(weak=0.1, found=0.25)

CONFIDENCE_AT_WEAK = 0.2
CONFIDENCE_AT_FOUND = 0.8

UNCALIBRATED = Notice(
    "uncalibrated", "confidence and verdict rest on the model's default thresholds, not on this store's own"
)


def judged(ranking: Ranking, embedder: Embedder | None) -> tuple[Ranking, Verdict]:
    """Give every hit its confidence, and the answer its verdict."""
    thresholds = embedder.thresholds if embedder else COVERAGE_THRESHOLDS
    hits = tuple(replace(hit, confidence=_confidence(hit, thresholds)) for hit in ranking.hits)
    return replace(ranking, hits=hits), _verdict(hits, thresholds)


def evidence(hit: Hit) -> float:
    """Return a hit's cosine plus its coverage."""
    vector, keyword = part_of(hit.trail, "vector"), part_of(hit.trail, "keyword")
    cosine = vector.raw if vector and vector.raw is not None else 0.0
    coverage = keyword.coverage if keyword and keyword.coverage is not None else 0.0
    return max(0.0, cosine) + coverage


def _confidence(hit: Hit, thresholds: Thresholds) -> float:
    """Read the logistic curve that passes through both thresholds; a name that is the query is certain."""
    if hit.tier:
        return 1.0
    return _logistic(evidence(hit), thresholds)


def _logistic(value: float, thresholds: Thresholds) -> float:
    low, high = _logit(CONFIDENCE_AT_WEAK), _logit(CONFIDENCE_AT_FOUND)
    slope = (high - low) / (thresholds.found - thresholds.weak)
    return 1 / (1 + math.exp(-(low + slope * (value - thresholds.weak))))


def _logit(share: float) -> float:
    return math.log(share / (1 - share))


def _verdict(hits: tuple[Hit, ...], thresholds: Thresholds) -> Verdict:
    if not hits:
        return "nothing"
    best = max(math.inf if hit.tier else evidence(hit) for hit in hits)
    if best >= thresholds.found:
        return "found"
    return "weak" if best >= thresholds.weak else "nothing"
