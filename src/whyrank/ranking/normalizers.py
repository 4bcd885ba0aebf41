"""Normalizers: bring the scores of a signal into 0..1, all of them monotonic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ..errors import ConfigError
from .stages import check_finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ..types.query import Signal


RRF_K = 60.0  # Cormack, Clarke and Büttcher 2009
K_RANGE = (0.01, 10_000.0)  # from "only the first counts" to "every rank counts the same"
THRESHOLDS = (0.0, 0.99)  # of cosines; at 1 nothing would be above
TINY = 1e-9
DEVIATIONS = 3.0  # Mazzeschi 2023: mean ± 3σ replace the bounds of an unknown distribution


class Normaliser(Protocol):
    """Normaliser of raw scores (and ranks, counted from 1, of listed candidates) to values from 0 to 1."""

    @property
    def by_rank(self) -> bool:
        """Return whether it reads ranks, so that a candidate the run did not list gets nothing."""

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return one value for each score, in the same order."""


class _ByScore:
    by_rank = False


class Columnar(_ByScore):
    """A normaliser that takes scores in an array, too."""

    def over(self, scores: NDArray[np.float64], best: float) -> NDArray[np.float64]:
        """Normalise an array of scores that is not empty and whose best is known."""
        raise NotImplementedError


@dataclass(frozen=True)
class ReciprocalRank:
    """(k + 1)/(k + rank): reciprocal rank fusion, scaled so that rank 1 is 1."""

    k: float = RRF_K
    by_rank = True

    def __post_init__(self) -> None:
        if not math.isfinite(self.k) or self.k <= 0:
            raise ConfigError(f"k is {self.k}", "give a positive number; 60 is usual")

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return a value that falls with the rank; 0 for unlisted candidates."""
        return [0.0 if rank is None else (self.k + 1) / (self.k + rank) for rank in ranks]


@dataclass(frozen=True)
class BatchMax(Columnar):
    """score / max(batch); min(1, score / `cap`) in a batch under `least`, whose best is unreliable."""

    least: int = 0
    cap: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.cap < math.inf:
            raise ConfigError(f"the cap of a small batch is {self.cap}", "give a positive number")

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return shares of the best score of the batch, or of the cap."""
        if len(scores) < self.least:
            return [_unit(score / self.cap) for score in scores]
        top = max((*scores, TINY))
        return [_unit(score / top) for score in scores]

    def over(self, scores: NDArray[np.float64], best: float) -> NDArray[np.float64]:
        """Return the same numbers for scores in an array."""
        return _units(scores / (self.cap if len(scores) < self.least else max(best, TINY)))


@dataclass(frozen=True)
class MinMax(_ByScore):
    """(score − min)/(max − min) over the batch; 1 where all are equal."""

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return places between the worst and the best score of the batch."""
        low, high = min(scores, default=0.0), max(scores, default=0.0)
        half = high / 2 - low / 2  # half the reach, which cannot overflow, and is nothing between the smallest numbers
        if half <= 0:
            return [1.0] * len(scores)
        start = low / 2
        return [value if 0.0 <= (value := (score / 2 - start) / half) <= 1.0 else _unit(value) for score in scores]


@dataclass(frozen=True)
class Theoretical(Columnar):
    """max(0, score − minimum)/max(best − minimum, least), the minimum being the score of no evidence.

    Bruch et al. 2023; `least` keeps a weak best score from getting the whole vote.
    """

    minimum: float = 0.0
    least: float = 0.0

    def __post_init__(self) -> None:
        check_finite(self)

    def reference(self, best: float) -> float:
        """Return the divisor of a score above the minimum."""
        return max(best - self.minimum, self.least)

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return places between the minimum and the best score of the batch."""
        reach = self.reference(max(scores, default=self.minimum))
        if reach <= 0:
            return [0.0] * len(scores)
        low = self.minimum
        return [value if 0.0 <= (value := (score - low) / reach) <= 1.0 else _unit(value) for score in scores]

    def over(self, scores: NDArray[np.float64], best: float) -> NDArray[np.float64]:
        """Return the same numbers for scores in an array."""
        reach = self.reference(best)
        if reach <= 0:
            return abs(scores) * 0.0
        placed: NDArray[np.float64] = ((scores - self.minimum) / reach).clip(0.0, 1.0)
        return placed


class PerSignal(_ByScore):
    """A normaliser that every signal gives numbers of its own."""

    def settled(self, signal: Signal) -> Theoretical:
        """Return the normaliser with the numbers of a signal."""
        raise NotImplementedError

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return shares of the best score, as of a signal that has no numbers."""
        return Theoretical()(scores, ranks)


@dataclass(frozen=True)
class AboveFloor(PerSignal):
    """max(0, cos − c0)/max(best − c0, least · (1 − c0)), c0 being the model's cosine of unrelated texts."""

    least: float = 0.1

    def __post_init__(self) -> None:
        check_finite(self)

    def settled(self, signal: Signal) -> Theoretical:
        """Return the normaliser with the floor of a signal; a foreign one has neither a floor nor a least."""
        if signal.floor is None:
            return Theoretical()
        return Theoretical(signal.floor, self.least * (1 - signal.floor))


@dataclass(frozen=True)
class AgainstMass(PerSignal):
    """score/max(best, min(share · mass, most)), the mass being the idf of all query terms, in nats."""

    share: float = 0.5
    most: float = 10.0

    def __post_init__(self) -> None:
        check_finite(self)

    def settled(self, signal: Signal) -> Theoretical:
        """Return the normaliser with the mass of a signal; a foreign one has none, and no least."""
        return Theoretical(least=0.0 if signal.mass is None else min(self.share * signal.mass, self.most))


@dataclass(frozen=True)
class Sigmoid(_ByScore):
    """1/(1 + exp(midpoint − |score|)): the score may be FTS5's own bm25(), which is negative."""

    midpoint: float = 2.0

    def __post_init__(self) -> None:
        check_finite(self)

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return values on the logistic curve; a score that is no number counts as none."""
        return [self._one(score) for score in scores]

    def _one(self, score: float) -> float:
        if not math.isfinite(score):
            return 0.0
        # Beyond ±700 exp() overflows and the curve is flat anyway.
        return 1 / (1 + math.exp(max(-700.0, min(700.0, self.midpoint - abs(score)))))


@dataclass(frozen=True)
class Saturating(_ByScore):
    """r/(1 + r): grows with the score and never reaches 1."""

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return saturating values; below zero counts as zero."""
        return [max(score, 0.0) / (1 + max(score, 0.0)) for score in scores]


@dataclass(frozen=True)
class Above(Columnar):
    """(score − t)/(1 − t) above the threshold t, 0 below."""

    threshold: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.threshold < 1:
            raise ConfigError(f"threshold is {self.threshold}", "give a number from 0 to below 1")

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return the distance of each score above the threshold, as a share of the possible."""
        return [_unit((score - self.threshold) / (1 - self.threshold)) for score in scores]

    def over(self, scores: NDArray[np.float64], best: float) -> NDArray[np.float64]:
        """Return the same numbers for scores in an array."""
        return _units((scores - self.threshold) / (1 - self.threshold))


@dataclass(frozen=True)
class Atan(_ByScore):
    """2/π · atan(score / scale): bounded independently of the other candidates (Bruch et al. 2023)."""

    scale: float = 1.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.scale) or self.scale <= 0:
            raise ConfigError(f"scale is {self.scale}", "give a positive number")

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return values on the arc-tangent curve; below zero counts as zero."""
        return [2 / math.pi * math.atan(max(score, 0.0) / self.scale) for score in scores]


@dataclass(frozen=True)
class DistributionBased(_ByScore):
    """The place between mean − 3σ and mean + 3σ of the batch."""

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return places in the batch's own distribution; 0.5 where all are equal."""
        if not scores:
            return []
        largest = max(abs(score) for score in scores) or 1.0  # in shares of it nothing overflows
        shares = [score / largest for score in scores]
        mean = math.fsum(shares) / len(shares)
        reach = DEVIATIONS * math.sqrt(math.fsum((share - mean) ** 2 for share in shares) / len(shares))
        if reach <= TINY:
            return [0.5] * len(shares)
        return [_unit((share - mean + reach) / (2 * reach)) for share in shares]


@dataclass(frozen=True)
class Clamped(Columnar):
    """The score itself, held between 0 and 1: for signals that are cosines already."""

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return the scores, cut at 0 and 1."""
        return [_unit(score) for score in scores]

    def over(self, scores: NDArray[np.float64], best: float) -> NDArray[np.float64]:
        """Return the same numbers for scores in an array."""
        return _units(scores)


@dataclass(frozen=True)
class Binary:
    """1 for every listed candidate: the effect of clamping FTS5's negative BM25 rank at zero (failure 1)."""

    by_rank = True

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return 1 for listed candidates and 0 for the others."""
        return [0.0 if rank is None else 1.0 for rank in ranks]


def _unit(value: float) -> float:
    return min(1.0, max(0.0, value))


def _units(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Clamp an array to 0..1; a negative zero becomes positive, as in the scalar version."""
    import numpy as np

    return np.minimum(np.where(values > 0.0, values, 0.0), 1.0)
