"""How sure a figure is: bootstrap intervals and a paired randomisation test, both seeded."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

SEED = 1
RESAMPLES = 1_000
SHUFFLES = 10_000


class Interval(NamedTuple):
    """A 95 % interval of a mean."""

    low: float
    high: float


class Comparison(NamedTuple):
    """The mean difference of two systems over the same queries, and how often chance does as well."""

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
    """Test whether the second differs from the first, by flipping the sign of each query's difference at random."""
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
