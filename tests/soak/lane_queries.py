"""Ask a large store hostile queries: none raises, none takes more than two seconds.

The store is kept below SOAK_STATE from one run to the next, as filling it takes longer than a round.
"""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

from tests.hostile import ask_all, fill, open_store

from .lanes import STATE, Counts, Lane

if TYPE_CHECKING:
    from pathlib import Path

MEMORIES = 100_000
QUERIES = 500  # of a round


def kept(place: Path, memories: int) -> Path:
    """Return the folder of a filled store; filled aside and moved into place, as a soak may be killed meanwhile."""
    if not place.exists():
        aside = place.with_name(f"{place.name}.new")
        shutil.rmtree(aside, ignore_errors=True)
        fill(aside, memories)
        aside.replace(place)
    return place


def play(seed: int, folder: Path) -> Counts:
    place = kept(STATE / "queries-store", MEMORIES)
    begun = time.monotonic()
    with open_store(place) as engine:
        assert engine.status().memories == MEMORIES
        worst = ask_all(engine, range(seed * QUERIES, (seed + 1) * QUERIES))
    return {"queries": QUERIES, "query_seconds": time.monotonic() - begun, "worst_cpu_seconds": worst}


LANE = Lane(
    "queries",
    f"no query raises or takes more than two seconds, over {MEMORIES:,} memories",
    play,
    {"query_seconds": 1_200},
    seconds=1_200.0,
)
