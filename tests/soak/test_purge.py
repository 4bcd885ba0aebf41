"""Four purges of five canaries each are killed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lane_purge import kill_purges

if TYPE_CHECKING:
    from pathlib import Path

PURGES = 4


def test_a_killed_purge_is_finished_by_whoever_opens_the_store_next(tmp_path: Path) -> None:
    counted = kill_purges(tmp_path, 25, PURGES)
    assert counted["canaries"] == 5 * PURGES
    assert counted["kills"]
    assert counted["unfinished"]
    assert counted["acknowledged"], "no kill landed behind the first purge"
