"""How like each other memories are, on vectors and words small enough to follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.ranking.diversity import Similarity

if TYPE_CHECKING:
    import random

    from numpy.typing import NDArray

WORDS = [f"word{number}" for number in range(130)]  # more than two times 64: three counts of bits


def vector(*numbers: float) -> NDArray[np.float32]:
    return np.array(numbers, np.float32)


def test_vectors_are_compared_by_their_cosine_and_opposites_are_like_nothing() -> None:
    rows = {"a": vector(1.0, 0.0), "b": vector(0.6, 0.8), "c": vector(-1.0, 0.0)}
    alike = Similarity(rows, {}).between(["a", "b", "c"])
    assert alike[0] == pytest.approx([1.0, 0.6, 0.0])  # 1·1; 1·0.6; 1·−1 is cut
    assert alike[1] == pytest.approx([0.6, 1.0, 0.0])


def test_words_are_compared_by_the_share_that_both_have() -> None:
    tokens = {"a": frozenset({"tea", "pot"}), "b": frozenset({"tea", "oil", "red"}), "c": frozenset[str]()}
    alike = Similarity({}, tokens).between(["a", "b", "c"])
    assert alike[0].tolist() == [1.0, 1 / 4, 0.0]  # of tea, pot, oil and red both have tea; c has no word


def test_where_one_has_no_vector_its_words_speak_and_only_for_it() -> None:
    tokens = {"a": frozenset({"tea"}), "b": frozenset({"tea"}), "c": frozenset({"tea", "pot"})}
    alike = Similarity({"a": vector(1.0, 0.0), "c": vector(0.0, 1.0)}, tokens).between(["a", "b", "c"])
    assert alike[0].tolist() == [1.0, 1.0, 0.0]  # b by the word, c by the vector
    assert alike[1].tolist() == [1.0, 1.0, 0.5]


def test_what_nothing_is_known_of_is_like_nothing_not_even_itself() -> None:
    alike = Similarity({"a": vector(1.0, 0.0)}, {}).between(["x", "a"])
    assert alike.square().tolist() == [[0.0, 0.0], [0.0, 1.0]]


@given(st.lists(st.frozensets(st.sampled_from(WORDS), max_size=90), max_size=6))
@settings(max_examples=60, deadline=None)
def test_bits_count_what_sets_count(texts: list[frozenset[str]]) -> None:
    ids = [f"m_{number}" for number in range(len(texts))]
    alike = Similarity({}, dict(zip(ids, texts, strict=True))).between(ids)
    for place, one in enumerate(texts):
        assert alike[place].tolist() == [len(one & other) / len(one | other) if one | other else 0.0 for other in texts]


@given(st.integers(0, 7), st.integers(0, 3), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_the_square_is_the_rows_to_the_bit_in_whatever_order(count: int, without: int, chance: random.Random) -> None:
    numbers = np.random.default_rng(count * 10 + without)
    rows = numbers.normal(size=(count, 48)).astype(np.float32)
    unit = {f"m_{place}": row / np.linalg.norm(row) for place, row in enumerate(rows) if place >= without}
    tokens = {f"m_{place}": frozenset({WORDS[place // 2], "all"}) for place in range(count)} if without else {}
    ids = [f"m_{place}" for place in range(count)]
    chance.shuffle(ids)
    by_row, at_once = Similarity(unit, tokens).between(ids), Similarity(unit, tokens).between(ids).square()
    assert [by_row[place].tolist() for place in range(count)] == at_once.tolist()
    assert (at_once == at_once.T).all()
