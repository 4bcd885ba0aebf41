"""Lists for `IN (…)`: all values, in statements of a few texts alone."""

from __future__ import annotations

import pytest

from whyrank.storage.sqlite.database import LENGTHS, portions


@pytest.mark.parametrize("count", [1, 2, 8, 9, 64, 65, 500, 501, 1_003])
def test_every_value_is_asked_for_and_no_other(count: int) -> None:
    asked = [value for part in portions(list(range(count))) for value in part.values]
    assert set(asked) == set(range(count))


@pytest.mark.parametrize("count", [1, 2, 8, 9, 64, 65, 500, 501, 1_003])
def test_there_are_no_more_texts_than_lengths(count: int) -> None:
    for part in portions([f"m_{number}" for number in range(count)]):
        assert part.marks.count("?") == len(part.values)
        assert len(part.values) in LENGTHS


def test_nothing_is_asked_for_where_there_is_nothing() -> None:
    assert list(portions([])) == []


def test_the_last_value_fills_what_is_left() -> None:
    # 3 values in the next length, 8: five times the last once more
    assert [part.values for part in portions([5, 6, 7])] == [[5, 6, 7, 7, 7, 7, 7, 7]]
