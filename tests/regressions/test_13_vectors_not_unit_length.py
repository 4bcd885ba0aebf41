"""Failure 13: vectors that are not unit length silently break the hybrid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from whyrank.analysis.document import entry_for
from whyrank.errors import SpaceMismatch
from whyrank.protocols import Changes
from whyrank.storage.store import SqliteStore
from whyrank.testing.store_contract import fact
from whyrank.types.query import Where

if TYPE_CHECKING:
    from pathlib import Path


def test_a_long_vector_is_brought_to_unit_length_on_the_way_in(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memory.db")
    entry = entry_for(fact("m_1", "tea"), "en")
    long = np.array([3.0, 4.0], dtype=np.float32)
    store.write(Changes(put=[entry], space="s", vectors={entry.embed_hash: long}))
    # (3, 4)/5 · (1, 0) = 0.6, where 3 would have come out unscaled
    run = store.nearest(np.array([1.0, 0.0], dtype=np.float32), "s", Where(now=1e6), 5)
    assert run.candidates[0].score == pytest.approx(0.6)
    store.close()


@pytest.mark.parametrize("bad", [[0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0]])
def test_a_vector_without_direction_is_refused_and_nothing_is_stored(tmp_path: Path, bad: list[float]) -> None:
    store = SqliteStore(tmp_path / "memory.db")
    entry = entry_for(fact("m_1", "tea"), "en")
    vectors = {entry.embed_hash: np.array(bad, dtype=np.float32)}
    with pytest.raises(SpaceMismatch, match="m_1"):
        store.write(Changes(put=[entry], space="s", vectors=vectors))
    assert store.status("s").memories == 0
    store.close()
