"""The first 400 mutated files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lane_files import ingest_batch

if TYPE_CHECKING:
    from pathlib import Path

FILES = 400


def test_mutated_files_neither_raise_nor_take_long_nor_lead_out(tmp_path: Path) -> None:
    counted = ingest_batch(tmp_path, range(FILES))
    assert counted["files"] == FILES
    assert counted["chunks"] > FILES
