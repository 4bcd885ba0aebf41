"""Which lists wait until it is known who can still win."""

from __future__ import annotations

from whyrank.storage.sqlite.postings.scorer import LONG_FROM, defer_lists

MEMORIES = 100_000  # so that a list is long from 3,126 entries on


def test_a_long_list_waits_where_it_tells_little_beside_the_others() -> None:
    # 1.4 is at most 0.6 × 4.0, so the last of the best should lie above all that the long list can add.
    assert defer_lists(MEMORIES, [1_800, 16_000], [4.0, 1.4]) == [1]


def test_the_most_telling_long_lists_are_read_at_once_until_the_rest_can_wait() -> None:
    # 3.2 + 1.8 is more than 0.6 × 5.0; without the 3.2, 1.8 is less.
    assert defer_lists(MEMORIES, [190, 4_200, 16_000], [5.0, 3.2, 1.8]) == [2]


def test_where_all_lists_are_long_the_best_of_them_decides() -> None:
    # 2.2 is more than 0.6 × 3.5, so both are read; 2.0 is less.
    assert defer_lists(MEMORIES, [3_400, 11_000], [3.5, 2.2]) == []
    assert defer_lists(MEMORIES, [3_400, 11_000], [3.5, 2.0]) == [1]


def test_a_term_that_cannot_fill_a_run_alone_lets_nothing_wait() -> None:
    assert defer_lists(MEMORIES, [20, 16_000], [8.0, 1.4]) == []


def test_in_a_small_store_nothing_waits() -> None:
    assert defer_lists(LONG_FROM - 1, [1_800, 16_000], [4.0, 1.4]) == []
