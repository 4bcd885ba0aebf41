"""Ten backups under load restore."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lane_backups import back_up

if TYPE_CHECKING:
    from pathlib import Path

BACKUPS = 10


def test_a_backup_under_load_restores_with_all_that_was_acknowledged_before_it(tmp_path: Path) -> None:
    counted = back_up(tmp_path, BACKUPS)
    assert counted["backups"] == BACKUPS
    assert counted["compared_facts"] > BACKUPS
    assert counted["restored_into_the_live_store"] == 2  # of the fifth and the tenth
