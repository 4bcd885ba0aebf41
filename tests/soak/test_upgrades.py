"""Twenty upgrades of each schema are killed, and one copy at every moment of its making."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.kills import killer

from .lane_upgrades import KILLS, OLD, OPEN, STORES, fresh, kill_upgrades, schema_of

if TYPE_CHECKING:
    from pathlib import Path


def test_a_copy_is_never_torn_wherever_its_making_is_killed(tmp_path: Path) -> None:
    old = STORES[0]
    with killer(OPEN, "sqlite/schema.py", "sqlite/copies.py") as killing:
        moments = killing.events(lambda: [fresh(tmp_path / "whole", old)])
        for at in range(1, moments + 1):
            store = fresh(tmp_path / "killed", old)
            assert killing.killed(at, store)
            for copy in store.parent.glob("*.bak"):
                assert schema_of(copy) == schema_of(old)
                assert copy.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("old", OLD, ids=lambda file: file.stem)
def test_a_killed_upgrade_leaves_the_old_store_or_the_new_one(tmp_path: Path, old: Path) -> None:
    assert kill_upgrades(tmp_path, old, 0)[f"kills_of_{old.stem}"] == KILLS
