"""Diversity compares and places to the last bit alike, compiled or in numpy."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.ranking.builders import context, hit, known, memory
from whyrank.hits import Ranking
from whyrank.kernel import COMPILED
from whyrank.ranking.diversity import MMR
from whyrank.ranking.filing import Keys
from whyrank.ranking.fusion import Fuse
from whyrank.ranking.ground import Ground
from whyrank.ranking.likeness import Comparison
from whyrank.ranking.looks import told
from whyrank.ranking.recipes import Recipe
from whyrank.ranking.stages import GroupBySource
from whyrank.trail import Step

pytestmark = pytest.mark.skipif(COMPILED is None, reason="the package was built without a C compiler")


@st.composite
def comparisons(draw: st.DrawFn) -> tuple[list[str], list[Comparison]]:
    """Return ids in some order, one of them unknown, and the same memories compared with and without the kernel."""
    size, numbers = draw(st.integers(0, 12)), np.random.default_rng(draw(st.integers(0, 2**32)))
    ids = [f"m_{place}" for place in range(size)]
    directions = np.round(numbers.normal(size=(size, draw(st.sampled_from([3, 8, 133, 300])))), 1)
    vectors = {
        key: (row / max(np.linalg.norm(row), 0.1)).astype(np.float32) for key, row in zip(ids, directions, strict=True)
    }
    without = {key for key in ids if draw(st.integers(0, 3)) == 0} if draw(st.booleans()) else set()
    words = [f"w{number}" for number in range(70)]
    tokens = {key: frozenset(numbers.choice(words, numbers.integers(0, 60)).tolist()) for key in ids} if without else {}
    own = {key: vector for key, vector in vectors.items() if key not in without}
    return [*draw(st.permutations(ids)), "nobody"], [Comparison(own, tokens, kernel) for kernel in (COMPILED, None)]


@given(comparisons())
@settings(max_examples=100, deadline=None)
def test_memories_are_as_like_each_other_compiled_or_not(compared: tuple[list[str], list[Comparison]]) -> None:
    ids, both = compared
    rows = [[comparison.between(ids)[place].tolist() for place in range(len(ids))] for comparison in both]
    assert rows[0] == rows[1]
    assert all(comparison.between(ids).square().tolist() == rows[0] for comparison in both)


@given(comparisons(), st.sampled_from([0.0, 0.3, 0.7, 1.0]), st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_diversity_places_alike_compiled_or_not(
    compared: tuple[list[str], list[Comparison]], lambda_: float, seed: int
) -> None:
    ids, both = compared
    chance = np.random.default_rng(seed)
    scores = np.round(chance.random(len(ids)), 1).tolist()  # so that many are equal
    lifts = chance.integers(0, 2, len(ids)).tolist()
    found = [memory(identity, f"text {place % 3}") for place, identity in enumerate(ids)]
    hits = [
        hit(own, score).after(Step("name", "lift", lift)) for own, score, lift in zip(found, scores, lifts, strict=True)
    ]
    before, asked = Ranking(tuple(hits)), context(*found)
    wanted = set(chance.choice(ids, 2).tolist())
    seen = []
    for comparison in both:
        stage, here = MMR(lambda_), replace(asked, likeness=comparison)
        both_ways = stage(before, here), stage.as_far_as(before, here, wanted)
        seen.append([[(placed.id, placed.key, placed.trail[-1].why) for placed in ranked.hits] for ranked in both_ways])
    assert seen[0] == seen[1]
    whole, head = seen[0]
    assert head == whole[: len(head)]
    assert {identity for identity, _, _ in head} >= wanted


@given(comparisons(), st.integers(0, 2**32), st.sampled_from([None, 1, 2]), st.sampled_from([0.0, 1e-9, 0.05]))
@settings(max_examples=150, deadline=None)
def test_who_of_two_is_above_is_told_alike_compiled_or_not(
    compared: tuple[list[str], list[Comparison]], seed: int, most: int | None, by: float
) -> None:
    ids, both = compared
    chance = np.random.default_rng(seed)
    size, rows = len(ids), int(chance.integers(1, 6))
    found = [memory(identity, path=f"{chance.integers(0, size)}.md") for identity in ids]

    def own_rows() -> tuple[int, int]:
        return int(chance.choice([1, rows])), size  # what settings share is one row

    keys = Keys(
        np.round(chance.random(own_rows()), 1), chance.integers(0, 2, own_rows()), chance.random(own_rows()) < 0.8
    )  # rounded, so that many are equal
    grouped = [] if most is None else [GroupBySource(most)]
    recipe = Recipe("seen", Fuse(()), (*grouped, MMR()))
    lambdas = chance.choice([0.0, 0.3, 0.7, 1.0], rows).tolist()
    grounds = [Ground(ids, replace(context(*found), likeness=comparison)) for comparison in both]
    for one, other in permutations([*ids, "not there"], 2):
        compiled, plain = (told(keys, ground, recipe, lambdas, (one, other), by) for ground in grounds)
        assert compiled == plain, (one, other)


def test_a_contest_of_numbers_that_do_not_fit_is_refused() -> None:
    assert COMPILED is not None
    numbers, nobody, states = np.zeros(2), np.empty(0, np.int64), np.zeros(1, np.uint8)
    places, stands = np.arange(2), np.ones(2, np.bool_)
    sound: list[Any] = [
        known(np.zeros((2, 2))),
        places,
        nobody,
        places,
        numbers,
        places * 0,
        stands,
        numbers[:1],
        places,
        states,
        1,
        0.0,
    ]
    assert not COMPILED.contests(*sound)  # they are equal, and turns are wanted
    assert states.tolist() == [0]
    wrong = {1: -places, 2: places[:1], 3: places[::-1].copy(), 4: np.zeros(3), 6: stands[:1], 8: np.array([0, 2])}
    for argument, numbers_that_do_not_fit in wrong.items():
        given_wrong = [*sound[:argument], numbers_that_do_not_fit, *sound[argument + 1 :]]
        with pytest.raises(ValueError, match=r"beyond|below the first"):
            COMPILED.contests(*given_wrong)


def test_a_comparison_of_numbers_that_do_not_fit_is_refused() -> None:
    assert COMPILED is not None
    sound, out = known(np.zeros((2, 2))), np.empty(2)
    wrong = [
        sound._replace(vectors=np.zeros((1, 3), np.float32), which=np.array([0, 1])),  # there is no second vector
        sound._replace(lengths=np.zeros(1, np.int64)),
        sound._replace(alike=np.zeros((1, 1))),
        sound._replace(known=np.zeros((2, 1), np.bool_)),
        sound._replace(texts=np.zeros((1, 1), np.uint64)),
    ]
    for compared in wrong:
        with pytest.raises(ValueError, match="not of one size"):
            COMPILED.alike(compared, 0, np.arange(2), out)
    with pytest.raises(ValueError, match="below the first"):
        COMPILED.alike(sound, -1, np.arange(2), out)
    with pytest.raises(ValueError, match="not of one size"):
        COMPILED.alike(sound, 0, np.arange(2), out[:1])
