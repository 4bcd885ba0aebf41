"""Fresh questions fill the caches of a process up to their bounds, and no further."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lane_memory import CACHE_MEGABYTES, ask_fresh

if TYPE_CHECKING:
    from pathlib import Path

QUESTIONS = 400  # which leave 7 MB of lists without a bound
LIST_BYTES = CACHE_MEGABYTES * 1024 * 1024 * 36 // 100 * 3 // 8  # 1.1 MB


def test_caches_stay_below_their_bound_under_fresh_questions(tmp_path: Path) -> None:
    assert 0 < ask_fresh(tmp_path / "store", 5, QUESTIONS)["worst_list_bytes"] <= LIST_BYTES
