"""Each normaliser with its formula worked out by hand."""

from __future__ import annotations

import math

import pytest

from whyrank.errors import ConfigError
from whyrank.ranking.fusion import (
    Above,
    AboveFloor,
    AgainstMass,
    Atan,
    BatchMax,
    Binary,
    Clamped,
    DistributionBased,
    MinMax,
    ReciprocalRank,
    Saturating,
    Sigmoid,
    Theoretical,
)
from whyrank.types.results import Signal


def test_reciprocal_rank_is_scaled_to_one_at_the_top() -> None:
    # (60 + 1)/(60 + 1), (60 + 1)/(60 + 3); not listed adds nothing
    assert ReciprocalRank()([9.0, 8.0, 7.0], [1, 3, None]) == [1.0, 61 / 63, 0.0]


@pytest.mark.parametrize("k", [0.0, -1.0, math.inf, math.nan])
def test_reciprocal_rank_refuses_a_k_that_makes_no_sense(k: float) -> None:
    with pytest.raises(ConfigError):
        ReciprocalRank(k)


def test_batch_max_divides_by_the_best() -> None:
    assert BatchMax()([4.0, 2.0, 0.0], [1, 2, 3]) == [1.0, 0.5, 0.0]


def test_batch_max_leaves_all_zero_at_zero() -> None:
    assert BatchMax()([0.0, 0.0], [1, 2]) == [0.0, 0.0]


def test_min_max_spreads_the_batch() -> None:
    # (3 − 1)/(5 − 1) = 0.5
    assert MinMax()([5.0, 3.0, 1.0], [1, 2, 3]) == [1.0, 0.5, 0.0]


def test_min_max_of_equal_scores_is_one() -> None:
    assert MinMax()([2.0, 2.0], [1, 2]) == [1.0, 1.0]


def test_theoretical_starts_at_the_lowest_possible_cosine() -> None:
    # (0.5 + 1)/(0.8 + 1) and (0.8 + 1)/(0.8 + 1)
    assert Theoretical(-1.0)([0.5, 0.8], [2, 1]) == [1.5 / 1.8, 1.0]


def test_theoretical_without_any_reach_is_zero() -> None:
    assert Theoretical(0.0)([0.0, 0.0], [1, 2]) == [0.0, 0.0]


def test_a_weak_best_score_does_not_get_the_whole_vote() -> None:
    # 0.1/max(0.2, 0.4) and 0.2/0.4; what is below the minimum counts nothing
    assert Theoretical(least=0.4)([0.1, 0.2, -0.3], [2, 1, 3]) == [0.25, 0.5, 0.0]


def test_a_cosine_counts_from_the_floor_of_its_model() -> None:
    settled = Theoretical(*AboveFloor(0.3).bounds(Signal("vector", {}, floor=0.7)))
    # unrelated texts have 0.7: (0.85 − 0.7)/(0.9 − 0.7), 1, and nothing for less than unrelated
    assert settled([0.85, 0.9, 0.6], [2, 1, 3]) == pytest.approx([0.75, 1.0, 0.0])
    # a best of 0.72 reaches (0.72 − 0.7)/(0.3 · (1 − 0.7)) of a vote
    assert settled([0.72], [1]) == pytest.approx([0.02 / 0.09])


def test_words_get_the_whole_vote_from_half_of_what_is_asked_for_or_from_ten_nats() -> None:
    asked = (Signal("keyword", {}, mass=mass) for mass in (8.0, 60.0))
    few, many = (Theoretical(*AgainstMass(0.5, 10.0).bounds(signal)) for signal in asked)
    assert few([1.0, 2.0], [2, 1]) == [0.25, 0.5]  # of 8 nats the best holds 2, and 4 would be half
    assert few([1.0, 5.0], [2, 1]) == [0.2, 1.0]  # it holds more than half
    assert many([5.0, 20.0], [2, 1]) == [0.25, 1.0]
    assert many([5.0], [1]) == [0.5]  # 10 and not 30 is enough in a long question


def test_words_need_more_for_the_whole_vote_among_few_memories() -> None:
    # ln 200/ln 100 = 1.1505; at most 1.3, and from 200 memories on 1
    factors = {2: 1.3, 50: 1.3, 100: 1.1505, 200: 1.0, 1_000_000: 1.0}
    for memories, factor in factors.items():
        short, long = (Signal("keyword", {}, mass=mass, memories=memories) for mass in (8.0, 60.0))
        assert AgainstMass().bounds(short) == pytest.approx((0.0, factor * 4.0), abs=1e-4)
        assert AgainstMass().bounds(long) == pytest.approx((0.0, factor * 10.0), abs=1e-3)
    assert AgainstMass().bounds(Signal("keyword", {}, mass=8.0, memories=0))[1] == pytest.approx(1.3 * 4.0)


@pytest.mark.parametrize("given", [{"few": 0}, {"strictness": 0.9}, {"strictness": math.nan}])
def test_a_rule_for_few_memories_that_asks_for_less_is_refused(given: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        AgainstMass(**given)  # type: ignore[arg-type]  # wrong on purpose


def test_without_a_floor_and_a_mass_the_best_has_the_whole_vote() -> None:
    foreign = Signal("theirs", {})
    assert AboveFloor().bounds(foreign) == AgainstMass().bounds(foreign) == (0.0, 0.0)
    assert Theoretical()([0.02, 0.01], [1, 2]) == [1.0, 0.5]
    assert AboveFloor()([0.02, 0.01], [1, 2]) == [1.0, 0.5]


def test_sigmoid_of_no_number_is_zero() -> None:
    assert Sigmoid()([math.nan, math.inf], [1, 2]) == [0.0, 0.0]


def test_sigmoid_does_not_overflow() -> None:
    assert Sigmoid()([-1e9, 1e9], [2, 1]) == pytest.approx([1.0, 1.0])
    assert Sigmoid(1e9)([0.0], [1]) == pytest.approx([0.0])


def test_above_cuts_at_its_threshold() -> None:
    # (0.75 − 0.5)/(1 − 0.5) = 0.5
    assert Above(0.5)([0.75, 0.5, 0.2, 1.0], [2, 3, 4, 1]) == [0.5, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("threshold", [-0.1, 1.0, 2.0])
def test_above_refuses_a_threshold_outside_its_range(threshold: float) -> None:
    with pytest.raises(ConfigError):
        Above(threshold)


def test_atan_reaches_half_at_its_scale() -> None:
    # 2/π · atan(1) = 2/π · π/4 = 1/2
    assert Atan(10.0)([10.0, 0.0, -3.0], [1, 2, 3]) == pytest.approx([0.5, 0.0, 0.0])


def test_distribution_based_puts_the_mean_in_the_middle() -> None:
    # scores 1, 2, 3: mean 2, σ = √(2/3); (1 − 2 + 3σ)/(6σ)
    deviation = math.sqrt(2 / 3)
    low = (1 - 2 + 3 * deviation) / (6 * deviation)
    assert DistributionBased()([1.0, 2.0, 3.0], [3, 2, 1]) == pytest.approx([low, 0.5, 1 - low])


def test_clamped_cuts_negative_cosines() -> None:
    assert Clamped()([-0.2, 0.4, 1.2], [3, 2, 1]) == [0.0, 0.4, 1.0]


def test_saturating_never_reaches_one() -> None:
    assert Saturating()([1.0, 9.0, -4.0], [2, 1, 3]) == [0.5, 0.9, 0.0]


def test_binary_has_no_gradient() -> None:
    assert Binary()([9.0, 0.1, 5.0], [1, 2, None]) == [1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    "normaliser", [BatchMax(), MinMax(), Theoretical(), Sigmoid(), Saturating(), Above(), Atan(), DistributionBased()]
)
def test_an_empty_batch_stays_empty(normaliser: MinMax) -> None:
    assert normaliser([], []) == []


def test_a_reach_too_small_to_be_halved_makes_all_equal() -> None:
    assert MinMax()([0.0, 5e-324], [1, 2]) == [1.0, 1.0]
