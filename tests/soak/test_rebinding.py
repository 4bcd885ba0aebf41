"""DNS rebinding in a real browser, with a name of each shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lane_rebinding import SHAPES, rebind

if TYPE_CHECKING:
    from pathlib import Path


def test_a_name_that_was_rebound_reads_and_writes_nothing(tmp_path: Path) -> None:
    assert rebind(tmp_path, range(len(SHAPES))) == {"names": len(SHAPES)}
