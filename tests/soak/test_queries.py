"""The store of the queries lane is filled once, and never half."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.hostile import open_store

from .lane_queries import kept

if TYPE_CHECKING:
    from pathlib import Path

MEMORIES = 50  # one file


def test_a_store_that_was_half_filled_is_filled_anew_and_then_kept(tmp_path: Path) -> None:
    (tmp_path / "store.new" / "notes").mkdir(parents=True)  # as a killed run leaves it
    place = kept(tmp_path / "store", MEMORIES)
    with open_store(place) as engine:
        assert engine.status().memories == MEMORIES
        engine.add("tea at noon")
    with open_store(kept(tmp_path / "store", MEMORIES)) as engine:
        assert engine.status().memories == MEMORIES + 1
