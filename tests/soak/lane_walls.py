"""Compare shared stores with stores of some scopes alone."""

from __future__ import annotations

from tests.reliability.walls import check

from .lanes import Lane

LANE = Lane(
    "walls",
    "results, scores, explanations, counts, suggestions and notices equal those of a store with that scope alone",
    lambda seed, folder: check(seed),
    {"worlds": 2_000},
    seconds=1_200.0,
)
