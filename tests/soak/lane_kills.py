"""Kill whoever writes, through every interface."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.reliability.kills import INTERFACES, kills

from .lanes import Counts, Lane

if TYPE_CHECKING:
    from pathlib import Path

KILLS = 10  # of each interface in a round, on a store of its own
GOAL = 1_000  # of each interface


def play(seed: int, folder: Path) -> Counts:
    counted = Counter[str]()
    for name in INTERFACES:
        place = folder / name.replace(" ", "-")
        place.mkdir()
        found = kills(name, place / "memory.db", range(seed * KILLS, (seed + 1) * KILLS))
        counted.update(found)
        counted[f"kills_of_{name.replace(' ', '_')}"] += found["kills"]
    return counted


LANE = Lane(
    "kills",
    "what was acknowledged is kept and searchable after SIGKILL",
    play,
    {f"kills_of_{name.replace(' ', '_')}": GOAL for name in INTERFACES},
    seconds=3_600.0,
)
