"""Change the model while others search, and kill four changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .lane_switch import change_among_readers, kill_change

if TYPE_CHECKING:
    from pathlib import Path

KILLS = 4


def test_readers_get_answers_of_one_space_only_and_no_error(tmp_path: Path) -> None:
    assert change_among_readers(tmp_path)["answers"]


@pytest.mark.parametrize("number", range(KILLS))
def test_a_change_that_is_killed_leaves_the_old_or_the_new_model_and_goes_on(tmp_path: Path, number: int) -> None:
    assert kill_change(tmp_path, number)["kills"] == 1
