"""Whole vectors are read in the order they are stored, and are to the bit what their memories say they have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from whyrank.protocols import Changes
from whyrank.storage.sqlite.vectors.table import CachedVectors, read_range, renewed
from whyrank.types.memory import GLOBAL

from .test_vectors import COUNT, SPACE, cloud, filled, grow

if TYPE_CHECKING:
    from pathlib import Path

    from whyrank.storage.store import SqliteStore


def whole(store: SqliteStore) -> tuple[CachedVectors, CachedVectors]:
    """Return what a new reader holds, and what the memories say one by one."""
    with store.view() as view:
        (shelf,) = view.shelves(frozenset([GLOBAL]))
        held = renewed(view.connection, SPACE, shelf, None, whole=True)
        return held, read_range(view.connection, SPACE, "global", 0, len(shelf))


def same(held: CachedVectors, told: CachedVectors) -> bool:
    assert held.vectors is not None
    assert told.vectors is not None
    parts = (held.has, told.has), (held.vectors, told.vectors), (held.damaged, told.damaged)
    return all(np.array_equal(one, other) for one, other in parts)


def test_a_new_reader_holds_what_the_memories_say(tmp_path: Path) -> None:
    store = filled(tmp_path / "memory.db", cloud())  # 600 memories: nine blocks of 64 and a rest of 24
    held, told = whole(store)
    assert same(held, told)
    assert held.is_full
    assert len(held.has) == COUNT
    store.close()


def test_memories_that_are_gone_leave_no_vector_behind(tmp_path: Path) -> None:
    store = filled(tmp_path / "memory.db", cloud())
    store.write(Changes(remove=["m_3", "m_64", "m_599"]))
    held, told = whole(store)
    assert same(held, told)
    assert np.flatnonzero(~held.has).tolist() == [3, 64, 599]
    store.close()


def test_vectors_of_another_scope_between_them_do_no_harm(tmp_path: Path) -> None:
    points = cloud()
    store = filled(tmp_path / "memory.db", points[:300])
    grow(store, points[300:500], "other", "user:1")
    grow(store, points[500:], "late")
    held, told = whole(store)
    assert same(held, told)
    store.close()


def test_far_apart_vectors_are_read_by_their_memories(tmp_path: Path) -> None:
    points = cloud()
    store = filled(tmp_path / "memory.db", points[:64])
    grow(store, points[64:536], "other", "user:1")  # 472 entries between two blocks of 64
    grow(store, points[536:], "late")
    held, told = whole(store)
    assert same(held, told)
    store.close()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE vectors SET vector = zeroblob(160) WHERE entry = 70",
        "DELETE FROM vectors WHERE entry = 70",
        "UPDATE sign_blocks SET present = zeroblob(500) WHERE first = 64",
    ],
)
def test_what_is_damaged_is_found_to_be_so_by_either_way(tmp_path: Path, damage: str) -> None:
    store = filled(tmp_path / "memory.db", cloud())
    with store._database.writing() as connection:
        assert connection.execute(damage).rowcount == 1
    held, told = whole(store)
    assert same(held, told)
    store.close()
