"""Acknowledged means kept and searchable after SIGKILL, whatever it was written through: 104 kills."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from .kills import INTERFACES, State, kill, kills
from .victims import Library

if TYPE_CHECKING:
    from pathlib import Path

KILLS = 13  # of each of eight interfaces
MOST_ROUNDS = 200


@pytest.mark.parametrize("name", INTERFACES)
def test_what_was_acknowledged_is_kept_and_found_after_a_kill(tmp_path: Path, name: str) -> None:
    counted = kills(name, tmp_path / "memory.db", range(KILLS))
    assert counted["kills"] == KILLS
    assert counted["acknowledged"]


def test_a_write_that_is_acknowledged_too_early_is_noticed(tmp_path: Path) -> None:
    store = tmp_path / "memory.db"

    def killed() -> None:
        state = State()
        for seed in range(MOST_ROUNDS):
            state = kill(INTERFACES["library"], store, seed, state, partial(Library, store, is_early=True)).state

    with pytest.raises(AssertionError, match=r"lost \['Crate"):
        killed()
