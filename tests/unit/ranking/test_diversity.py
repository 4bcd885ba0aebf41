"""Diversity on rankings small enough to follow."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.unit.ranking.builders import context, hit, memory, ranking
from whyrank.errors import ConfigError
from whyrank.ranking.diversity import MMR, Similarity
from whyrank.ranking.recipes import RECIPES, Adjustments, adjusted
from whyrank.types.trail import Step, replay

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from whyrank.types.results import Context, Hit, Ranking

A, B, C = memory("a"), memory("b"), memory("c")


def asked(
    vectors: Mapping[str, tuple[float, float]] | None = None, tokens: Mapping[str, set[str]] | None = None
) -> Context:
    rows = {key: np.array(vector, np.float32) for key, vector in (vectors or {}).items()}
    words = {key: frozenset(found) for key, found in (tokens or {}).items()}
    return replace(context(A, B, C), likeness=Similarity(rows, words))


def placed(ranked: Ranking) -> list[tuple[str, float]]:
    return [(found.id, found.score) for found in ranked.hits]


def three() -> Ranking:
    return ranking(hit(A, 0.9), hit(B, 0.8), hit(C, 0.5))


def test_what_repeats_the_first_steps_behind_what_is_new() -> None:
    # relevance: a 1, b (0.8 − 0.5)/(0.9 − 0.5) = 0.75, c 0; b is a said again, c is new
    ranked = MMR(0.5)(three(), asked({"a": (1.0, 0.0), "b": (1.0, 0.0), "c": (0.0, 1.0)}))
    # 0.5 · 1; 0.5 · 0 − 0.5 · 0; 0.5 · 0.75 − 0.5 · 1
    assert placed(ranked) == [("a", 0.5), ("c", 0.0), ("b", pytest.approx(-0.125))]


def test_the_trail_tells_the_gain_and_the_most_similar() -> None:
    ranked = MMR(0.5)(three(), asked({"a": (1.0, 0.0), "b": (1.0, 0.0), "c": (0.0, 1.0)}))
    step = ranked.hits[-1].trail[-1]
    assert (step.stage, step.op) == ("mmr", "set")
    assert step.why == "0.5 × relevance 0.7500 − 0.5 × 1.0000, most like a"
    assert all(replay(found.trail) == found.key for found in ranked.hits)


def test_opposite_directions_are_as_unlike_as_anything_can_be() -> None:
    ranked = MMR(0.5)(three(), asked({"a": (1.0, 0.0), "b": (-1.0, 0.0), "c": (0.0, 1.0)}))
    assert placed(ranked)[1] == ("b", 0.5 * ((0.8 - 0.5) / (0.9 - 0.5)))  # nothing is added for being opposite


def test_without_a_vector_the_shared_words_count() -> None:
    words = {"a": {"tea", "pot"}, "b": {"tea", "pot"}, "c": {"oil"}}
    ranked = MMR(0.5)(three(), asked({"a": (1.0, 0.0), "c": (1.0, 0.0)}, words))
    # c is like a by its vector (1.0), b by its words (2 of 2)
    assert {found.id: found.trail[-1].why.partition("− ")[2] for found in ranked.hits} == {
        "a": "",
        "b": "0.5 × 1.0000, most like a",
        "c": "0.5 × 1.0000, most like a",
    }


def test_at_lambda_one_the_order_stays() -> None:
    ranked = MMR(1.0)(three(), asked({"a": (1.0, 0.0), "b": (1.0, 0.0), "c": (0.0, 1.0)}))
    assert [found.id for found in ranked.hits] == ["a", "b", "c"]


def test_a_name_stays_first_however_alike() -> None:
    named = hit(B, 0.1).after(Step("name", "lift", 16))
    vectors = {"a": (1.0, 0.0), "b": (1.0, 0.0), "c": (0.0, 1.0)}
    ranked = MMR(0.1)(ranking(named, hit(A, 0.9), hit(C, 0.5)), asked(vectors))
    assert ranked.hits[0].id == "b"


def test_equals_are_placed_by_content_whatever_their_order() -> None:
    hits: list[Hit] = [hit(found, 0.5) for found in (A, B, C)]
    vectors = asked({"a": (1.0, 0.0), "b": (1.0, 0.0), "c": (0.0, 1.0)})
    assert placed(MMR()(ranking(*hits), vectors)) == placed(MMR()(ranking(*hits[::-1]), vectors))


def test_nothing_is_not_made_diverse() -> None:
    assert MMR()(ranking(), asked()).hits == ()


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
def test_a_lambda_that_makes_no_sense_is_refused(wrong: float) -> None:
    with pytest.raises(ConfigError):
        MMR(wrong)


def test_it_is_one_setting_away_and_comes_after_the_grouping_of_files() -> None:
    assert not any(isinstance(stage, MMR) for stage in RECIPES["default"].stages)
    once = adjusted(RECIPES["default"], Adjustments(mmr_lambda=0.6, recency_weight=0.1))
    assert once.stages[-1] == MMR(0.6)
    assert adjusted(once, Adjustments(mmr_lambda=0.6, recency_weight=0.1)) == once


class Counted:
    """Everybody is a little like everybody; says who was compared with the others."""

    def __init__(self) -> None:
        self.compared: set[int] = set()
        self._size = 0

    def between(self, ids: Sequence[str]) -> Counted:
        self._size = len(ids)
        return self

    def __getitem__(self, place: int) -> NDArray[np.float64]:
        self.compared.add(place)
        return np.full(self._size, 0.1)

    def square(self) -> NDArray[np.float64]:
        raise AssertionError("nobody asked for all of them")


def test_no_more_are_placed_than_are_wanted() -> None:
    many = [memory(f"m{number:02}") for number in range(60)]
    likeness = Counted()
    before = ranking(*(hit(found, 1 - number / 100) for number, found in enumerate(many)))
    known = replace(context(*many), likeness=likeness)
    some = MMR(0.7).as_far_as(before, known, {"m03", "m09"})
    assert [found.id for found in some.hits] == [found.id for found in many[:10]]
    assert len(likeness.compared) < 20
    ranked = MMR(0.7)(before, known)
    assert [found.id for found in ranked.hits] == [found.id for found in many]
    # 0.7 · relevance − 0.3 · 0.1, and the last has no relevance
    assert ranked.hits[-1].score == pytest.approx(-0.03)
