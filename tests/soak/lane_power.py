"""Cut the power at any moment of recorded runs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.reliability.power import JUDGES, cut, library

from .lanes import Counts, Lane

if TYPE_CHECKING:
    from pathlib import Path

STATES = 100  # of each recorded run


def play(seed: int, folder: Path) -> Counts:
    assert library() is not None, "the recorder needs Linux and cc"
    return sum((cut(folder, program, seed, STATES) for program in JUDGES), Counter[str]())


LANE = Lane(
    "power",
    "what was acknowledged is kept and searchable after a power loss",
    play,
    {"states": 6_000},
    seconds=1_200.0,
)
