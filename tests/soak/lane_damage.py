"""Damage a store in every way: found or harmless."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.mutations import answers, make_world, mutate

from .lanes import Counts, Lane

if TYPE_CHECKING:
    from pathlib import Path

FIRST = 1_000  # seed of a mutation; the suite has those below
MUTATIONS = 100  # of a round
REPAIRED_EVERY = 4


def play(seed: int, folder: Path) -> Counts:
    world = make_world(folder / "world")
    first = FIRST + seed * MUTATIONS
    return mutate(world, answers(world), folder / "mutated", range(first, first + MUTATIONS), REPAIRED_EVERY)


LANE = Lane(
    "damage",
    "any bit, any row, any page: found or harmless, never a wrong answer without a notice, never a crash",
    play,
    {"mutations": 20_000},
    seconds=3_600.0,
)
