"""What the evidence says about relevance: the score orders, the confidence speaks.

`evidence` says what is added up; here it is read off a curve through two thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain, repeat
from typing import NamedTuple

from ..columns import Column, MemoryId
from ..hits import Context, Hit, Ranking
from ..ports import Embedder, Thresholds
from ..ranking.lineup import Lineup, dropped_by, said_of, top_tier
from ..ranking.stages import EXACT_TIER, name_tier
from ..trail import Later, Step
from ..types import Signal, Verdict
from .calibration import Calibration
from .evidence import Weighing

# Words alone, where there is no embedder. Over six sets, 93 to 100 % of answerable questions reach 0.15, and 67 to
# 100 % 0.3; of foreign ones 7 to 79 % stay below 0.15, 69 to 96 % below 0.3.
COVERAGE_THRESHOLDS = Thresholds(weak=0.15, found=0.3)

CONFIDENCE_AT_WEAK = 0.2
_LEAST_GAP = 1e-6  # thresholds that are equal leave no room to rise in
_STEEPEST = 700.0  # exponents beyond it are no float
CONFIDENCE_AT_FOUND = 0.8
CONFIDENCE_IN_A_SLIP = 0.5  # a name with a letter or two mistyped: likely meant, not certain

# Another page, another chunk of a file, no budget left.
_STILL_ANSWERS = frozenset({"top", "group", "budget"})
_SILENCE: Mapping[MemoryId, float] = {}  # of a signal that was not asked
_hit: Callable[[Iterable[object]], Hit] = partial(tuple.__new__, Hit)  # of all its fields, at once


class Judgement(NamedTuple):
    """A ranking whose hits have their confidence, the verdict, the evidence it rests on, and how that was added up."""

    ranking: Ranking
    verdict: Verdict
    evidence: float
    weighing: Weighing


def judged(
    ranking: Ranking, embedder: Embedder | None, context: Context, calibration: Calibration | None = None
) -> Judgement:
    """Give every hit its confidence, and the answer its verdict."""
    # What these stages dropped answers the query all the same, so that the verdict does not depend on the page.
    answering = [ranking.hits, *dropped_by(ranking.dropped, _STILL_ANSWERS)]
    cosines, coverages = _said(context.signals)
    said = _said_by(answering, cosines)
    # Where no vector spoke (no embedder, a failed one, a recipe of words), coverage stands alone.
    spoke = said.count(None) < len(said)
    thresholds = _thresholds(embedder if spoke else None, calibration)
    weighing = Weighing.of(context, thresholds.weak)
    curve = _curve(thresholds, weighing.told(spoke), weighing.least)
    shown = zip(said_of(ranking.hits, cosines), said_of(ranking.hits, coverages), strict=True)
    evident = weighing.evidence(shown)
    hits = _Judged(ranking.hits, evident, curve).hits()
    tier = name_tier(max(map(top_tier, answering)))
    [found] = weighing.evidence([(_best(said), _best(_said_by(answering, coverages)))])
    verdict = _verdict(tier, found, thresholds) if any(map(len, answering)) else "nothing"
    return Judgement(Ranking(hits, ranking.dropped, ranking.notices), verdict, found, weighing)


def _said(signals: Mapping[str, Signal]) -> tuple[Mapping[MemoryId, float], Mapping[MemoryId, float]]:
    """Return the cosines and the coverages there are."""
    vectors, words = signals.get("vector"), signals.get("keyword")
    return vectors.values if vectors else _SILENCE, words.coverage if words else _SILENCE


def _said_by(answering: Sequence[Sequence[Hit]], values: Mapping[MemoryId, float]) -> Sequence[float | None]:
    """Return what a signal says of all that answers, in any order; of all candidates it says it at once."""
    if isinstance(values, Column) and len(values.ids) == sum(map(len, answering)):
        return values.numbers
    return [*chain.from_iterable(said_of(hits, values) for hits in answering)]


def _thresholds(speaking: Embedder | None, calibration: Calibration | None) -> Thresholds:
    """Return the store's own thresholds, or the defaults of the model or of words."""
    if speaking is None:
        return calibration.words.thresholds if calibration is not None else COVERAGE_THRESHOLDS
    if calibration is None or calibration.both is None:
        return speaking.thresholds
    return calibration.both.thresholds


def _best(said: Iterable[float | None]) -> float:
    """Return the best of what a signal said, at least 0."""
    return max((0.0, *filter(None, said)))


class _Judged:
    """Hits beside what speaks for them; what is noted in a trail is written out when somebody reads it."""

    def __init__(self, hits: Sequence[Hit], evident: Sequence[float], curve: _Curve) -> None:
        self._hits = hits
        self._evident = evident
        self._curve = curve

    def hits(self) -> tuple[Hit, ...]:
        """Return the hits with their confidence."""
        hits, trail, confidence = self._hits, self._trail, self._curve.confidence
        if isinstance(hits, Lineup):  # straight from fusion: no tier, and nothing beside
            trails, certain = map(Later, repeat(trail), range(len(hits))), self._curve.read_off(self._evident)
            return tuple(map(_hit, zip(hits.held(), repeat(0), hits.scores(), trails, repeat(()), certain)))
        return tuple(
            Hit(hit.held, hit.tier, hit.score, Later(trail, place), hit.beside, confidence(found, hit.tier))
            for place, (hit, found) in enumerate(zip(hits, self._evident, strict=True))
        )

    def _trail(self, place: int) -> tuple[Step, ...]:
        hit = self._hits[place]
        return (*hit.trail, self._curve.note(self._evident[place], hit.tier))


class _Curve:
    """The logistic curve that passes through both thresholds."""

    def __init__(self, thresholds: Thresholds, measured: str, least: float) -> None:
        self._measured = measured
        self._least = least
        self._low = _logit(CONFIDENCE_AT_WEAK)
        self._slope = (_logit(CONFIDENCE_AT_FOUND) - self._low) / max(thresholds.found - thresholds.weak, _LEAST_GAP)
        self._weak = thresholds.weak
        self._scale = f"weak from {thresholds.weak:.3g}, found from {thresholds.found:.3g}"

    def confidence(self, found: float, tier: int = 0) -> float:
        """Read a hit's confidence off the curve; a name that is the query is certain."""
        own = name_tier(tier) if tier else 0
        if own >= EXACT_TIER:
            return 1.0
        [curve] = self.read_off([found])
        return max(curve, CONFIDENCE_IN_A_SLIP) if own else curve

    def read_off(self, found: Sequence[float]) -> list[float]:
        """Read off the curve what each of some hits without a tier has."""
        low, slope, weak = self._low, self._slope, self._weak
        return [1 / (1 + math.exp(min(_STEEPEST, -(low + slope * (one - weak))))) for one in found]

    def note(self, found: float, tier: int) -> Step:
        """Say what the confidence of a hit rests on."""
        confidence = self.confidence(found, tier)
        if name_tier(tier) >= EXACT_TIER:
            return Step("confidence", "note", confidence, "100%, its name is the query")
        measured = f"{self._measured} = {found:.3f}"
        if found == self._least > 0:
            measured = f"{self._measured} is less than {found:.3f}, but it holds the only word asked for"
        reason = f"{confidence:.0%}, {measured}; {self._scale}"
        return Step("confidence", "note", confidence, reason)


@lru_cache(maxsize=64)
def _curve(thresholds: Thresholds, measured: str, least: float) -> _Curve:
    """Remember curves: a store has one or two for each number of words."""
    return _Curve(thresholds, measured, least)


def _logit(share: float) -> float:
    return math.log(share / (1 - share))


def _verdict(tier: int, found: float, thresholds: Thresholds) -> Verdict:
    if found >= thresholds.found or tier >= EXACT_TIER:
        return "found"
    return "weak" if found >= thresholds.weak or tier else "nothing"
