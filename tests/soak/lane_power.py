"""Cut the power at any moment of recorded runs."""

from __future__ import annotations

import random
from pathlib import Path

from tests.reliability.power import check, library, record, recorded_ops

from .lanes import Counts, Lane

STATES = 200  # of one recorded run


def play(seed: int, folder: Path) -> Counts:
    assert library() is not None, "the recorder needs Linux and cc"
    (folder / "store").mkdir()
    calls = record(folder / "store", folder / "log", seed)
    return check(calls, recorded_ops(seed), STATES, random.Random(seed), folder)


LANE = Lane(
    "power",
    "what was acknowledged is kept and searchable after a power loss",
    play,
    {"states": 6_000},
    seconds=1_200.0,
)
