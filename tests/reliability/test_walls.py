"""A scope sees what a store with that scope alone would show, to the last digit: 100 made worlds."""

from __future__ import annotations

import pytest

from .walls import check

WORLDS = 100
PARTS = 4  # so that workers share them


@pytest.mark.parametrize("part", range(PARTS))
def test_a_shared_store_answers_as_one_with_the_scopes_asked_for_alone(part: int) -> None:
    for seed in range(part, WORLDS, PARTS):
        assert check(seed)["questions"]
