"""Choosing the best of some shelves: a look at blocks, then at what reaches their best."""

from __future__ import annotations

import numpy as np

from whyrank.storage.sqlite.top_k import threshold


def test_a_scope_smaller_than_a_block_counts_beside_a_large_one() -> None:
    large, small = np.arange(1_000, dtype=np.float64), np.array([2_000.0, 3_000.0])
    # 1,002 scores by 4 × 10 wanted: blocks of 25, and two scores are not one
    lowest = threshold([large, small], 10)
    assert np.count_nonzero(large >= lowest) + np.count_nonzero(small >= lowest) >= 10
    assert lowest > 900


def test_scores_that_fill_no_whole_number_of_blocks_are_all_looked_at() -> None:
    scores = np.zeros(103)
    scores[100:] = 5.0
    assert threshold([scores], 1) == 5.0
