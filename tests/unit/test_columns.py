"""Numbers by memory, in columns."""

from __future__ import annotations

import numpy as np

from whyrank.types.results import array_of, column_of, with_gaps

IDS = ["a", "b", "c"]


def test_numbers_that_are_all_there_are_at_hand_as_an_array_too() -> None:
    column = with_gaps(IDS, np.array([0.5, 0.25, 0.0]))
    assert column == {"a": 0.5, "b": 0.25, "c": 0.0}
    assert column_of(column, IDS) == [0.5, 0.25, 0.0]
    array = array_of(column, IDS)
    assert array is not None
    assert array.tolist() == [0.5, 0.25, 0.0]


def test_what_is_no_number_is_a_gap_and_there_is_no_array() -> None:
    column = with_gaps(IDS, np.array([0.5, np.nan, 0.0]))
    assert column == {"a": 0.5, "c": 0.0}
    assert column_of(column, IDS) == [0.5, None, 0.0]
    assert array_of(column, IDS) is None


def test_an_array_in_another_order_is_gathered_unless_a_number_is_missing() -> None:
    column = with_gaps(IDS, np.array([0.5, 0.25, 0.0]))
    array = array_of(column, ["b", "a", "c"])
    assert array is not None
    assert array.tolist() == [0.25, 0.5, 0.0]
    assert array_of(column, ["b", "x"]) is None
    assert column_of(column, ["b", "x"]) == [0.25, None]
