"""What the evidence says about relevance: the score orders, the confidence speaks.

Evidence is the cosine plus the coverage (the share of the query's idf mass that matched); their plain sum
tells foreign questions from answerable ones better than either alone.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ..ports import Embedder, Thresholds
from ..ranking.stages import EXACT_TIER
from ..trail import Step, part_of
from ..types import Hit, Notice, Ranking, Verdict

# Coverage alone, where there is no embedder; measured over the same seven sets as the embedders' own thresholds.
COVERAGE_THRESHOLDS = Thresholds(weak=0.1, found=0.25)

CONFIDENCE_AT_WEAK = 0.2
CONFIDENCE_AT_FOUND = 0.8
CONFIDENCE_IN_A_SLIP = 0.5  # a name with a letter or two mistyped: likely meant, not certain

# What these stages drop answers the query all the same: another page, another chunk of a file, no budget left.
_STILL_ANSWERS = frozenset({"top", "group", "budget"})

UNCALIBRATED = Notice(
    "uncalibrated", "confidence and verdict rest on the model's default thresholds, not on this store's own"
)


def judged(ranking: Ranking, embedder: Embedder | None) -> tuple[Ranking, Verdict]:
    """Give every hit its confidence, and the answer its verdict."""
    answering = _answering(ranking)
    # Where no vector spoke (no embedder, a failed one, a recipe of words), coverage stands alone.
    spoke = any(part_of(hit.trail, "vector") for hit in answering)
    thresholds = embedder.thresholds if embedder is not None and spoke else COVERAGE_THRESHOLDS
    hits = tuple(_with_confidence(hit, thresholds) for hit in ranking.hits)
    return replace(ranking, hits=hits), _verdict(answering, thresholds)


def evidence(*hits: Hit) -> float:
    """Return the best cosine plus the best coverage among these hits."""
    cosines, coverages = [0.0], [0.0]
    for hit in hits:
        vector, keyword = part_of(hit.trail, "vector"), part_of(hit.trail, "keyword")
        if vector is not None and vector.raw is not None:
            cosines.append(vector.raw)
        if keyword is not None and keyword.coverage is not None:
            coverages.append(keyword.coverage)
    return max(cosines) + max(coverages)


def _answering(ranking: Ranking) -> list[Hit]:
    """Return all that answers the query, on the page asked for or not, so that the verdict does not depend on it."""
    beyond = (hit for hit in ranking.dropped if hit.trail[-1].stage in _STILL_ANSWERS)
    return [*ranking.hits, *beyond]


def _with_confidence(hit: Hit, thresholds: Thresholds) -> Hit:
    """Read the logistic curve that passes through both thresholds; a name that is the query is certain."""
    found = evidence(hit)
    low, high = _logit(CONFIDENCE_AT_WEAK), _logit(CONFIDENCE_AT_FOUND)
    slope = (high - low) / (thresholds.found - thresholds.weak)
    is_named = hit.tier >= EXACT_TIER
    curve = 1 / (1 + math.exp(-(low + slope * (found - thresholds.weak))))
    confidence = 1.0 if is_named else max(curve, CONFIDENCE_IN_A_SLIP if hit.tier else 0.0)
    scale = f"weak from {thresholds.weak:g}, found from {thresholds.found:g}"
    reason = "its name is the query" if is_named else f"cosine + coverage = {found:.3f}; {scale}"
    note = Step("confidence", "note", confidence, f"{confidence:.0%}, {reason}")
    return replace(hit.after(note), confidence=confidence)


def _logit(share: float) -> float:
    return math.log(share / (1 - share))


def _verdict(hits: list[Hit], thresholds: Thresholds) -> Verdict:
    if not hits:
        return "nothing"
    found = evidence(*hits)
    if found >= thresholds.found or any(hit.tier >= EXACT_TIER for hit in hits):
        return "found"
    return "weak" if found >= thresholds.weak or any(hit.tier for hit in hits) else "nothing"
