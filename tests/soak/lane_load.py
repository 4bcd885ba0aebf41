"""Four writers and eight readers, a minute at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.reliability.load import run

from .lanes import Counts, Lane

if TYPE_CHECKING:
    from pathlib import Path

ROUND_S = 60.0


def play(seed: int, folder: Path) -> Counts:
    counted, errors, notices = run(folder, ROUND_S)
    assert not errors, errors[:5]
    assert notices["not-indexed-yet"] == 0
    return counted


LANE = Lane(
    "load", "4 writers and 8 readers: no error, nobody locked out", play, {"load_seconds": 3_600}, seconds=3_600.0
)
