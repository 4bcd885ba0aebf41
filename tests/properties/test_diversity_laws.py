"""Diversity compares and places to the last bit alike, compiled or in numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.unit.ranking.builders import context, hit, known, memory
from whyrank.hits import Ranking
from whyrank.kernel import COMPILED, Kernel
from whyrank.ranking.diversity import MMR
from whyrank.ranking.duels import Rows, are_won
from whyrank.ranking.likeness import Comparison, Compiled
from whyrank.trail import Step

pytestmark = pytest.mark.skipif(COMPILED is None, reason="the package was built without a C compiler")

Floats = NDArray[np.float64]


@given(st.integers(2, 24), st.integers(1, 8), st.integers(0, 2**32), st.sampled_from([0.0, 1e-9, 0.05]))
@settings(max_examples=200, deadline=None)
def test_who_of_two_is_placed_first_is_told_alike(size: int, rows: int, seed: int, by: float) -> None:
    chance = np.random.default_rng(seed)
    likeness = np.round(chance.random((size, size)), 1)  # so that many are equal
    likeness = np.maximum(likeness, likeness.T)
    relevance, tiers = np.round(chance.random((rows, size)), 1), chance.integers(0, 2, (rows, size))
    pairs = np.array([chance.choice(size, 2, replace=False) for _ in range(rows)])
    tiers[np.arange(rows), pairs[:, 0]] = tiers[np.arange(rows), pairs[:, 1]]
    lambdas = chance.choice([0.0, 0.3, 0.7, 1.0], rows)
    worth = lambdas[:, None] * relevance
    rows_of_all = Rows(lambdas, tiers, worth, pairs[:, 0], pairs[:, 1])
    told = [are_won(_Company(likeness, kernel), rows_of_all, by).tolist() for kernel in (COMPILED, None)]
    assert told[0] == told[1]


class _Company:
    """A pool in which everybody was compared with everybody; its last is the first of equals."""

    def __init__(self, likeness: Floats, kernel: Kernel | None) -> None:
        size = len(likeness)
        self._likeness = likeness
        self.compiled = Compiled(kernel, known(likeness), np.arange(size)) if kernel else None
        self.turns = np.empty(0, np.int64)
        self.tie_breaks = range(size)[::-1]

    def tell_turns(self) -> None:
        self.turns = np.array(self.tie_breaks)

    def alike_one(self, place: int) -> Floats:
        row: Floats = self._likeness[place]
        return row

    def alike(self, places: NDArray[np.int64]) -> Floats:
        rows: Floats = self._likeness[places]
        return rows

    def most_alike(self, place: int) -> float:
        return float(np.delete(self._likeness[place], place).max())


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
@settings(max_examples=200, deadline=None)
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
    told = []
    for comparison in both:
        stage, here = MMR(lambda_), replace(asked, likeness=comparison)
        both_ways = stage(before, here), stage.as_far_as(before, here, wanted)
        told.append([[(placed.id, placed.key, placed.trail[-1].why) for placed in ranked.hits] for ranked in both_ways])
    assert told[0] == told[1]
    assert told[0][1] == told[0][0][: len(told[0][1])]
    assert {identity for identity, _, _ in told[0][1]} >= wanted


def test_a_duel_of_numbers_that_do_not_fit_is_refused() -> None:
    assert COMPILED is not None
    members, nobody, numbers, states = np.arange(2), np.empty(0, np.int64), np.zeros(2), np.zeros(1, np.uint8)
    compared = known(np.zeros((2, 2)))
    for pair in ([0, 2], [-1, 0]):  # there are two places, and no third
        with pytest.raises(ValueError, match="beyond"):
            COMPILED.duels(
                compared, members, nobody, members, numbers, numbers[:1], np.array(pair), states, 0.0
            )  # fmt: skip
    with pytest.raises(ValueError, match="below the first"):
        COMPILED.duels(compared, -members, nobody, members, numbers, numbers[:1], members, states, 0.0)


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
