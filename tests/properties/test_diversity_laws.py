"""Diversity places as many as are asked for, and what comes later moves none before it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.ranking.builders import context, hit, memory
from whyrank.ranking.diversity import MMR, Similarity
from whyrank.types.results import Ranking
from whyrank.types.trail import Step


@st.composite
def comparisons(draw: st.DrawFn) -> tuple[list[str], Similarity]:
    """Return ids in some order, one of them unknown, and their comparison."""
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
    return [*draw(st.permutations(ids)), "nobody"], Similarity(own, tokens)


@given(comparisons(), st.sampled_from([0.0, 0.3, 0.7, 1.0]), st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_the_head_is_the_beginning_of_the_whole(
    compared: tuple[list[str], Similarity], lambda_: float, seed: int
) -> None:
    ids, comparison = compared
    chance = np.random.default_rng(seed)
    scores = np.round(chance.random(len(ids)), 1).tolist()  # so that many are equal
    lifts = chance.integers(0, 2, len(ids)).tolist()
    found = [memory(identity, f"text {place % 3}") for place, identity in enumerate(ids)]
    hits = [
        hit(own, score).after(Step("name", "lift", lift)) for own, score, lift in zip(found, scores, lifts, strict=True)
    ]
    before, asked = Ranking(tuple(hits)), replace(context(*found), likeness=comparison)
    wanted, stage = set(chance.choice(ids, 2).tolist()), MMR(lambda_)
    whole, head = (
        [(placed.id, placed.key, placed.trail[-1].why) for placed in ranked.hits]
        for ranked in (stage(before, asked), stage.as_far_as(before, asked, wanted))
    )
    assert head == whole[: len(head)]
    assert {identity for identity, _, _ in head} >= wanted
