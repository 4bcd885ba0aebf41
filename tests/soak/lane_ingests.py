"""Kill ingests, with and without readers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.reliability.ingests import kill_ingests, opened, reader

from .lanes import Counts, Lane

if TYPE_CHECKING:
    from pathlib import Path

KILLS = 20


def play(seed: int, folder: Path) -> Counts:
    counted = Counter[str]()
    if seed % 2:
        return kill_ingests(folder, seed, KILLS)
    with opened(folder):
        pass  # makes the store
    with reader(folder, counted):
        counted += kill_ingests(folder, seed, KILLS)
    return counted


LANE = Lane("ingests", "a file is wholly old or new to every reader", play, {"kills": 1_000}, seconds=1_800.0)
