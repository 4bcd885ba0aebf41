"""What would make two memories change places, on pools small enough to solve by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.unit.ranking.builders import DAY, NOW, context, memory
from whyrank.ranking.counterfactuals import Change, Pool, changes, is_above, standing
from whyrank.ranking.diversity import MMR, Similarity
from whyrank.ranking.fusion import Fuse, Theoretical, Vote
from whyrank.ranking.recipes import RECIPES, Recipe
from whyrank.ranking.stages import Evidence, GroupBySource, NameFirst, Recency
from whyrank.types.results import Run, Signal
from whyrank.types.trail import NameMatch

if TYPE_CHECKING:
    from whyrank.ranking.stages import Stage
    from whyrank.types.memory import Memory

Scores = Mapping[str, Mapping[str, float]]
VOTES = (Vote("vector", 0.7, Theoretical()), Vote("keyword", 0.3, Theoretical()))
A, B = memory("a"), memory("b")


def pool(
    scores: Scores,
    *stages: Stage,
    memories: tuple[Memory, ...] = (A, B),
    names: Mapping[str, NameMatch] | None = None,
    coverage: Mapping[str, float] | None = None,
) -> Pool:
    signals = {name: Signal(name, values, coverage or {}) for name, values in scores.items()}
    runs = tuple(Run.of(name, values.items()) for name, values in scores.items())
    return Pool(runs, context(*memories, signals=signals, names=names), Recipe("by hand", Fuse(VOTES), stages))


def found(asked: Pool, upper: str, lower: str) -> dict[str, Change]:
    ranking = asked.ranked(asked.recipe)
    assert is_above(ranking, upper, lower)
    return {change.setting: change for change in changes(asked, ranking, upper, lower)}


def is_nearest(change: Change, exact: float) -> bool:
    """Tell whether a change just passes the exact value, and 99 % of it does not."""
    made, needed = change.after - change.before, exact - change.before
    return 0.99 * made / needed < 1.0 <= made / needed


APART: Scores = {"vector": {"a": 1.0, "b": 0.6}, "keyword": {"a": 0.5, "b": 1.0}}


def test_straight_lines_cross_where_they_cross() -> None:
    # 1·w + 0.5·(1 − w) = 0.6·w + 1·(1 − w), so w = 0.5/0.9
    told = found(pool(APART), "a", "b")
    assert list(told) == ["vector weight"]
    assert is_nearest(told["vector weight"], 5 / 9)
    assert told["vector weight"].key == "ranking.vector_weight"


def test_a_change_has_as_few_digits_as_it_can() -> None:
    assert str(found(pool(APART), "a", "b")["vector weight"]) == "vector weight 0.700 → 0.555"


def test_better_in_every_signal_is_flipped_by_no_weight() -> None:
    assert found(pool({"vector": {"a": 1.0, "b": 0.6}, "keyword": {"a": 1.0, "b": 0.5}}), "a", "b") == {}


def test_the_bonus_for_a_name_is_turned_where_it_touches_one_of_them() -> None:
    # a: 0.7·1 + 0.3·0.5 = 0.85; b: 0.7·0.6 + 0.3·1 = 0.72, + bonus · (1.0 + 0.9·0.2) > 0.13
    names = {"b": NameMatch("first words", "B and more", covered=0.2)}
    told = found(pool(APART, NameFirst(0.05), names=names), "a", "b")
    assert is_nearest(told["bonus for a part of a name"], 0.13 / 1.18)
    # at a bonus of 0.05: (1.0 + covered_weight · 0.2) · 0.05 > 0.13 needs 8, which is beyond the range
    assert "weight of the covered share of a name" not in told


def test_recency_is_turned_by_weight_and_by_half_life() -> None:
    # a is 30 days old, b is new: a · (1 − w + w · 2^(−30/h)) against b
    old, new = replace(A, date=NOW - 30 * DAY), replace(B, date=NOW)
    told = found(pool(APART, Recency(30.0, 0.2), memories=(old, new)), "a", "b")
    # 0.85 · (1 − w/2) = 0.72
    assert is_nearest(told["recency weight"], 2 * (1 - 0.72 / 0.85))
    # 0.85 · (0.8 + 0.2 · 2^(−30/h)) = 0.72
    share = (0.72 / 0.85 - 0.8) / 0.2
    assert is_nearest(told["half-life in days"], -30 / math.log2(share))


@pytest.mark.parametrize(("setting", "exact"), [("least cosine", 0.4), ("least coverage", 0.2)])
def test_the_threshold_that_dropped_the_better_one_is_named(setting: str, exact: float) -> None:
    # a would be first, but its cosine (0.4) and its coverage (0.2) are both below the threshold
    scores = {"vector": {"a": 0.4, "b": 0.3}, "keyword": {"a": 10.0, "b": 5.0}}
    told = found(pool(scores, Evidence(0.5, 0.3), coverage={"a": 0.2, "b": 0.6}), "b", "a")
    assert set(told) == {"least cosine", "least coverage"}
    assert 0.99 * (told[setting].before - told[setting].after) < told[setting].before - exact
    assert told[setting].after <= exact


def test_a_threshold_does_not_bring_back_what_would_be_below_anyway() -> None:
    scores = {"vector": {"a": 0.2, "b": 0.3}, "keyword": {"a": 1.0, "b": 5.0}}
    assert found(pool(scores, Evidence(0.5, 0.3), coverage={"a": 0.2, "b": 0.6}), "b", "a") == {}


def test_diversity_is_turned_over_the_whole_pool() -> None:
    # c leads, b says the same as c, a is worse than b and new
    c = memory("c")
    scores = {"vector": {"a": 0.4, "b": 0.9, "c": 1.0}, "keyword": {"a": 0.4, "b": 0.9, "c": 1.0}}
    words = {"a": frozenset({"oil"}), "b": frozenset({"tea"}), "c": frozenset({"tea"})}
    asked = pool(scores, MMR(0.7), memories=(A, B, c))
    asked = replace(asked, context=replace(asked.context, likeness=Similarity({}, words)))
    # relevance: b (0.9 − 0.4)/0.6 = 5/6, a 0; λ · 5/6 − (1 − λ) < λ · 0 below λ = 6/11
    assert is_nearest(found(asked, "b", "a")["λ of diversity"], 6 / 11)


def test_what_is_placed_in_a_higher_tier_does_not_tell_two_below_it_apart() -> None:
    # c is the name asked for; a is a little better than b, and they say the same, so that only picking them tells
    c = memory("c")
    scores = {"vector": {"a": 0.9, "b": 0.8, "c": 0.1}, "keyword": {"a": 0.9, "b": 0.8, "c": 0.1}}
    words = {"a": frozenset({"tea"}), "b": frozenset({"tea"}), "c": frozenset({"oil"})}
    asked = pool(scores, NameFirst(), MMR(0.7), memories=(A, B, c), names={"c": NameMatch("equal", "c")})
    asked = replace(asked, context=replace(asked.context, likeness=Similarity({}, words)))
    ranking = asked.ranked(asked.recipe)
    assert is_above(ranking, "c", "a")
    assert is_above(ranking, "a", "b")
    assert not is_above(ranking, "b", "a")


def test_k_is_searched_for_where_ranks_are_fused() -> None:
    # a is 1st and 9th, b is 4th and 4th: 1/(k+1) + 1/(k+9) against 2/(k+4)
    others = [f"m{i:02}" for i in range(15)]
    one, two = ["a", *others[:2], "b", *others[2:8]], [*others[8:11], "b", *others[11:15], "a"]
    runs = tuple(Run.of(name, [(key, -i) for i, key in enumerate(ids)]) for name, ids in (("x", one), ("y", two)))
    asked = Pool(runs, context(*(memory(key) for key in {*one, *two})), RECIPES["rrf"])

    def lead(k: float) -> float:
        return 1 / (k + 1) + 1 / (k + 9) - 2 / (k + 4)

    change = found(asked, "b", "a")["k"]
    assert change.key == "ranking.k"
    assert lead(60) < 0 < lead(change.after)
    assert lead(60 + 0.99 * (change.after - 60)) < 0


def test_a_hidden_chunk_stands_right_behind_the_one_that_stands_for_its_file() -> None:
    first, second, other = memory("1", path="a.md"), memory("2", path="a.md"), memory("3", path="b.md")
    scores = {"vector": {"1": 1.0, "2": 0.9, "3": 0.5}}
    asked = pool(scores, GroupBySource(), memories=(first, second, other))
    ranking = asked.ranked(asked.recipe)
    assert [standing(ranking, key) for key in ("1", "2", "3", "4")] == [(0, 0), (0, 1), (1, 0), None]
    assert is_above(ranking, "2", "3")


def test_a_file_flips_with_its_best_chunk() -> None:
    # By vectors a.md leads through chunk 1; by words chunk 2 of it still leads b.md, until it does not.
    chunks = (memory("1", path="a.md"), memory("2", path="a.md"), memory("3", path="b.md"))
    scores = {"vector": {"1": 1.0, "2": 0.5, "3": 0.4}, "keyword": {"1": 0.1, "2": 0.8, "3": 1.0}}
    # 2 and 3: 0.5·w + 0.8·(1 − w) = 0.4·w + 1·(1 − w), so w = 2/3; 1 and 3: w + 0.1·(1 − w) = 0.4·w + 1 − w, w = 0.6
    told = found(pool(scores, GroupBySource(), memories=chunks), "1", "3")
    assert is_nearest(told["vector weight"], 0.6)
