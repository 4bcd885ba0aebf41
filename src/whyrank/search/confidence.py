"""Evidence, confidence and verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain, repeat
from typing import NamedTuple

from ..protocols import Embedder, Thresholds
from ..ranking.ranking import Lineup, dropped_by, said_of, top_tier
from ..ranking.stages import EXACT_TIER, name_tier
from ..types.columns import Column, MemoryId
from ..types.expressions import label_of
from ..types.names import Unheld
from ..types.query import Analysis, Signal, Verdict
from ..types.results import Context, Hit, Ranking
from ..types.trail import Later, Step
from .calibration import Calibration

MOST_COVERAGE_COUNTS = 2.0  # times the cosine, in a question of very many words
WORDS_AT_HALF = 2  # with so many it counts half of that, which is as much as the cosine


def coverage_counts(analysis: Analysis) -> float:
    """Return the weight of coverage relative to the cosine."""
    words = sum(len(label_of(term).split(" ")) for term in analysis.terms)  # a phrase has several
    return max(1.0, MOST_COVERAGE_COUNTS * words / (words + WORDS_AT_HALF))


class Weighing(NamedTuple):
    """Formula that sums the evidence of one query.

    Where the query holds codes that no memory contains, evidence counts only for the rest of the query. A memory that
    holds the only word of the query gets the least evidence above zero: no memory could match more with that word.
    """

    coverage_counts: float
    unheld: Unheld | None = None
    least: float = 0.0
    floor: float = 0.0  # the cosine of a memory that has no vector yet: that of unrelated texts

    @classmethod
    def of(cls, context: Context, weak: float, floor: float = 0.0) -> Weighing:
        """Return the formula for the query of a context, with `weak` as the threshold of weak evidence."""
        analysis, unheld = context.analysis, context.unheld
        is_one_word = len(analysis.terms) == 1 and not analysis.dates and unheld is None
        return cls(coverage_counts(analysis), unheld, weak if is_one_word else 0.0, max(0.0, floor))

    @property
    def rest(self) -> float:
        """Return the share of the query without the codes that no memory holds."""
        return 1.0 if self.unheld is None else 1.0 - self.unheld.share

    def evidence(self, said: Iterable[tuple[float | None, float | None]]) -> list[float]:
        """Add up the cosine and the coverage of each of some memories, where they have them, each at least 0."""
        rest, counts, least, floor = self.rest, self.coverage_counts, self.least, self.floor
        return [
            max(
                least if coverage else 0.0,
                rest * ((floor if cosine is None else max(0.0, cosine)) + counts * (coverage or 0.0)),
            )
            for cosine, coverage in said
        ]

    def told(self, spoke: bool) -> str:
        """Return the formula of the evidence as text."""
        covered = "coverage" if self.coverage_counts == 1.0 else f"{self.coverage_counts:.3g} × coverage"
        summed = f"cosine + {covered}" if spoke else covered
        if self.unheld is None:
            return summed
        return f"({summed}) × {self.rest:.2f}, for no memory holds {', '.join(self.unheld.codes)},"


# Words alone, where there is no embedder: the 70 % and 92 % quantiles of foreign questions in stores of 22 to 45 files
# out of four sets are 0.10 to 0.21 and 0.17 to 0.26; larger stores are calibrated.
COVERAGE_THRESHOLDS = Thresholds(weak=0.15, found=0.25)

CONFIDENCE_AT_WEAK = 0.2
CONFIDENCE_AT_FOUND = 0.8
# The last numbers below: rounding must not lift a confidence to a verdict that its evidence does not reach.
_BELOW_WEAK = math.nextafter(CONFIDENCE_AT_WEAK, 0.0)
_BELOW_FOUND = math.nextafter(CONFIDENCE_AT_FOUND, 0.0)
CONFIDENCE_IN_A_SLIP = 0.5  # a name with a letter or two mistyped: likely meant, not certain

SURE = "min-confidence"  # the stage that drops hits which are not confident enough
# Another page, another chunk of a file, no budget left, not confident enough for this caller.
_STILL_ANSWERS = frozenset({"top", "group", "budget", SURE})
_SILENCE: Mapping[MemoryId, float] = {}  # of a signal that was not queried
_hit: Callable[[Iterable[object]], Hit] = partial(tuple.__new__, Hit)  # of all its fields, at once


class Judgement(NamedTuple):
    """Ranking with confidences, the verdict, its evidence, and the formula of the evidence."""

    ranking: Ranking
    verdict: Verdict
    evidence: float
    weighing: Weighing


class Beside(NamedTuple):
    """Cosines of an additional model for memories in another language, with its weak and found thresholds."""

    name: str
    cosines: Mapping[MemoryId, float]
    thresholds: Thresholds


def judged(
    ranking: Ranking,
    embedder: Embedder | None,
    context: Context,
    calibration: Calibration | None = None,
    beside: Beside | None = None,
) -> Judgement:
    """Give every hit its confidence, and the answer its verdict."""
    # Hits dropped by these stages answer the query all the same, so that the verdict does not depend on the page.
    answering = [ranking.hits, *dropped_by(ranking.dropped, _STILL_ANSWERS)]
    # A model that cannot read the script gives all texts similar vectors: its cosines are no evidence.
    is_blind = embedder is not None and embedder.weight(context.analysis.language) == 0
    cosines, coverages = _said(context.signals, with_vectors=not is_blind)
    said, covered = _said_by(answering, cosines, coverages)
    # Without any vector score (no embedder, a failed one, a recipe of words), coverage is the only evidence.
    spoke = said.count(None) < len(said)
    thresholds = _thresholds(embedder if spoke else None, calibration)
    vectors = context.signals.get("vector")
    weighing = Weighing.of(context, thresholds.weak, (vectors.floor or 0.0) if vectors is not None and spoke else 0.0)
    curve = _curve(thresholds, weighing.told(spoke), weighing.least)
    shown = zip(said_of(ranking.hits, cosines), said_of(ranking.hits, coverages), strict=True)
    evident = weighing.evidence(shown)
    rescaled = {} if beside is None else _rescaled(beside, thresholds)
    hits = _Judged(ranking.hits, evident, curve, rescaled, beside.name if beside is not None else "").hits()
    tier = name_tier(max(map(top_tier, answering)))
    # The verdict is that of the best hit, so that it cannot contradict the confidences of the hits.
    known = (rescaled[hit.id] for hits in answering for hit in hits if hit.id in rescaled) if rescaled else ()
    found = max((*weighing.evidence(zip(said, covered, strict=True)), *known), default=0.0)
    verdict = _verdict(tier, found, thresholds) if any(map(len, answering)) else "nothing"
    return Judgement(Ranking(hits, ranking.dropped, ranking.notices), verdict, found, weighing)


def _rescaled(beside: Beside, thresholds: Thresholds) -> dict[MemoryId, float]:
    """Map cosines to the evidence that has the same confidence under these thresholds."""
    curve = _curve(beside.thresholds, "", 0.0)
    return {identity: curve.rescaled(thresholds, max(0.0, cosine)) for identity, cosine in beside.cosines.items()}


def _said(
    signals: Mapping[str, Signal], *, with_vectors: bool
) -> tuple[Mapping[MemoryId, float], Mapping[MemoryId, float]]:
    """Return the cosines and the coverages there are."""
    vectors, words = signals.get("vector") if with_vectors else None, signals.get("keyword")
    return vectors.values if vectors else _SILENCE, words.coverage if words else _SILENCE


def _said_by(
    answering: Sequence[Sequence[Hit]], *signals: Mapping[MemoryId, float]
) -> Iterator[Sequence[float | None]]:
    """Yield the values of each signal for all hits in one order; whole columns if all candidates answer."""
    columns = [values for values in signals if isinstance(values, Column)]
    count = sum(map(len, answering))
    if len(columns) == len(signals) and all(one.ids == columns[0].ids and len(one.ids) == count for one in columns):
        yield from (column.numbers for column in columns)
        return
    for values in signals:
        yield [*chain.from_iterable(said_of(hits, values) for hits in answering)]


def _thresholds(speaking: Embedder | None, calibration: Calibration | None) -> Thresholds:
    """Return the store's own thresholds, or the defaults of the model or of words."""
    if speaking is None:
        return calibration.words.thresholds if calibration is not None else COVERAGE_THRESHOLDS
    if calibration is None or calibration.both is None:
        return speaking.thresholds
    return calibration.both.thresholds


class _Judged:
    """Hits with their evidence; trail notes are written lazily, when a trail is read."""

    def __init__(
        self, hits: Sequence[Hit], own: Sequence[float], curve: _Curve, rescaled: Mapping[MemoryId, float], added: str
    ) -> None:
        self._hits = hits
        self._own = own
        self._evident = own
        if rescaled:
            self._evident = [max(one, rescaled.get(hit.id, 0.0)) for one, hit in zip(own, hits, strict=True)]
        self._curve = curve
        self._added = added

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
        evident = self._evident[place]
        return (*hit.trail, self._curve.note(evident, hit.tier, self._added if evident > self._own[place] else ""))


class _Curve:
    """Confidence over evidence: 20 % at weak, 80 % at found, linear up to there, then 1 − 20 % · found/e.

    A logistic curve through the thresholds puts five hits of six below 5 % or above 95 %.
    """

    def __init__(self, thresholds: Thresholds, measured: str, least: float) -> None:
        self._measured = measured
        self._least = least
        self._weak, self._found = thresholds
        self._scale = f"weak from {thresholds.weak:.3g}, found from {thresholds.found:.3g}"

    def confidence(self, found: float, tier: int = 0) -> float:
        """Read a hit's confidence off the curve; a name that is the query is certain."""
        own = name_tier(tier) if tier else 0
        if own >= EXACT_TIER:
            return 1.0
        [curve] = self.read_off([found])
        return max(curve, CONFIDENCE_IN_A_SLIP) if own else curve

    def read_off(self, found: Sequence[float]) -> list[float]:
        """Return the confidence of each of some hits without a tier."""
        return [self._at(one) for one in found]

    def _at(self, found: float) -> float:
        if found >= self._found:
            return 1.0 - (1.0 - CONFIDENCE_AT_FOUND) * self._found / found
        if found < self._weak:
            return min(CONFIDENCE_AT_WEAK * found / self._weak, _BELOW_WEAK)
        share = (found - self._weak) / (self._found - self._weak)
        return min(CONFIDENCE_AT_WEAK + share * (CONFIDENCE_AT_FOUND - CONFIDENCE_AT_WEAK), _BELOW_FOUND)

    def rescaled(self, thresholds: Thresholds, found: float) -> float:
        """Return the evidence that has the same confidence by other thresholds."""
        if found >= self._found:
            return thresholds.found * found / self._found
        if found <= self._weak:
            return thresholds.weak * found / self._weak
        share = (found - self._weak) / (self._found - self._weak)
        return thresholds.weak + share * (thresholds.found - thresholds.weak)

    def note(self, found: float, tier: int, added: str = "") -> Step:
        """Return the trail step that explains the confidence of a hit."""
        confidence = self.confidence(found, tier)
        if name_tier(tier) >= EXACT_TIER:
            return Step("confidence", "note", confidence, "100%, its name is the query")
        measured = f"{self._measured} = {found:.3f}"
        if found == self._least > 0:
            measured = f"{self._measured} is less than {found:.3f}, but it holds the only word asked for"
        if added:
            measured = f"the cosine of {added} counts {found:.3f}"
        reason = f"{confidence:.0%}, {measured}; {self._scale}"
        return Step("confidence", "note", confidence, reason)


@lru_cache(maxsize=64)
def _curve(thresholds: Thresholds, measured: str, least: float) -> _Curve:
    """Cache curves: a store has one or two for each number of words."""
    return _Curve(thresholds, measured, least)


def _verdict(tier: int, found: float, thresholds: Thresholds) -> Verdict:
    if found >= thresholds.found or tier >= EXACT_TIER:
        return "found"
    return "weak" if found >= thresholds.weak or tier else "nothing"
