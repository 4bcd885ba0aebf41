"""Bring a signal's scores into 0..1: every one monotonic, none of them upside down."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ..errors import ConfigError
from .finite import check_finite

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RRF_K = 60.0  # Cormack, Clarke and Büttcher 2009
K_RANGE = (0.01, 10_000.0)  # from "only the first counts" to "every rank counts the same"
TINY = 1e-9
DEVIATIONS = 3.0  # Mazzeschi 2023: mean ± 3σ stand in for the bounds of an unknown distribution


class Normaliser(Protocol):
    """Turns raw scores (and ranks, counted from 1, of what the run listed) into values between 0 and 1."""

    @property
    def by_rank(self) -> bool:
        """Tell whether it reads ranks, so that what the run did not list adds nothing."""

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return one value for each score, in the same order."""


class _ByScore:
    by_rank = False


class Columnar(_ByScore):
    """A normaliser that takes scores in an array, too."""

    def over(self, scores: NDArray[np.float64], best: float) -> NDArray[np.float64]:
        """Return the same numbers for scores in an array that is not empty and whose best is known."""
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
        """Return a value that falls with the rank; 0 for what was not listed."""
        return [0.0 if rank is None else (self.k + 1) / (self.k + rank) for rank in ranks]


@dataclass(frozen=True)
class BatchMax(Columnar):
    """score / max(batch); in a batch of fewer than `least`, where the best says little, score / `cap`, 1 at most."""

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
    """(score − minimum)/(max − minimum), the minimum being the lowest score there can be (Bruch et al. 2023)."""

    minimum: float = 0.0

    def __post_init__(self) -> None:
        check_finite(self)

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return places between the lowest possible and the best score of the batch."""
        reach = max(scores, default=self.minimum) - self.minimum
        if reach <= 0:
            return [0.0] * len(scores)
        low = self.minimum
        return [value if 0.0 <= (value := (score - low) / reach) <= 1.0 else _unit(value) for score in scores]

    def over(self, scores: NDArray[np.float64], best: float) -> NDArray[np.float64]:
        """Return the same numbers for scores in an array."""
        reach = best - self.minimum
        if reach <= 0:
            return abs(scores) * 0.0
        placed: NDArray[np.float64] = ((scores - self.minimum) / reach).clip(0.0, 1.0)
        return placed


@dataclass(frozen=True)
class Sigmoid(_ByScore):
    """1/(1 + exp(midpoint − score))."""

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
        return 1 / (1 + math.exp(max(-700.0, min(700.0, self.midpoint - score))))


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
        """Return how far above the threshold each score is."""
        return [_unit((score - self.threshold) / (1 - self.threshold)) for score in scores]

    def over(self, scores: NDArray[np.float64], best: float) -> NDArray[np.float64]:
        """Return the same numbers for scores in an array."""
        return _units((scores - self.threshold) / (1 - self.threshold))


@dataclass(frozen=True)
class Atan(_ByScore):
    """2/π · atan(score / scale): bounded without looking at the other candidates (Bruch et al. 2023)."""

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
    """1 for everything the run listed: what clamping FTS5's negative rank at zero makes of BM25 (failure 1)."""

    by_rank = True

    def __call__(self, scores: Sequence[float], ranks: Sequence[int | None]) -> list[float]:
        """Return 1 for what was listed and 0 for what was not."""
        return [0.0 if rank is None else 1.0 for rank in ranks]


def _unit(value: float) -> float:
    return min(1.0, max(0.0, value))


def _units(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Do so with an array; of two zeros the one without a sign stands, as it does there."""
    import numpy as np

    return np.minimum(np.where(values > 0.0, values, 0.0), 1.0)
