"""Every third write fails, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .lane_io_errors import SCHEDULES, STEP, WAYS, compiler, fail_writes, failures

if TYPE_CHECKING:
    from pathlib import Path


def test_the_schedules_let_every_write_fail_in_every_way() -> None:
    all_of_them = [failure for schedule in range(SCHEDULES) for failure in failures(schedule, 50)]
    assert sorted(all_of_them) == sorted((number, *way) for number in range(1, 51) for way in WAYS)  # 50 × 4, once


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler to make writes fail, or no /proc")
def test_a_write_that_fails_loses_nothing_and_reading_goes_on(tmp_path: Path) -> None:
    counted = fail_writes(tmp_path, 0)
    assert counted["failed_writes"] >= counted["worst_writes"] // STEP > 10
