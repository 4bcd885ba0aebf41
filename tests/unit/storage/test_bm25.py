"""The word score with its arithmetic."""

from __future__ import annotations

import math

import pytest

from whyrank.storage.bm25 import CHUNKS_PER_SOURCE, Scored, best, needle, padded, term_scores, word_score
from whyrank.types.query import Statistics


def test_the_word_score_is_the_formula() -> None:
    statistics = Statistics(total=10, average_length=8.0, frequency={"tea": 2})
    scores = term_scores(padded(["tea", "pot", "tea"]), 3, ["tea"], statistics)
    idf = math.log(1 + (10 - 2 + 0.5) / (2 + 0.5))
    k = 1.2 * (0.25 + 0.75 * (3 + 20) / (8 + 20))
    assert [found[:3] for found in scores] == [("tea", "words", "own")]
    assert word_score(scores) == pytest.approx(idf * 2 / (2 + k))


def test_idf_is_never_negative_even_where_every_memory_holds_the_term() -> None:
    # ln(1 + (2 − 2 + 0.5)/(2 + 0.5)) = ln 1.2
    assert Statistics(2, 1.0, {"tea": 2}).idf("tea") == pytest.approx(math.log(1.2))


def test_an_unknown_term_has_the_largest_idf() -> None:
    statistics = Statistics(10, 1.0, {"tea": 1})
    assert statistics.idf("unknown") > statistics.idf("tea")


def test_the_score_stays_below_its_bound() -> None:
    statistics = Statistics(10, 5.0, {"tea": 2, "pot": 3})
    scores = term_scores(padded(["tea", "pot"] * 500), 1000, ["tea", "pot"], statistics)
    assert word_score(scores) < statistics.mass(["tea", "pot"])


def test_repeated_tokens_are_each_counted() -> None:
    assert padded(["a", "a", "a"]).count(needle("a")) == 3


def test_a_phrase_is_found_only_side_by_side() -> None:
    assert padded(["green", "tea", "pot"]).count(needle("green tea")) == 1
    assert padded(["green", "pot", "tea"]).count(needle("green tea")) == 0


def test_a_short_text_does_not_win_by_shortness_alone() -> None:
    statistics = Statistics(100, 12.0, {"tea": 10})
    three = word_score(term_scores(padded(["tea"] + ["x"] * 2), 3, ["tea"], statistics))
    fifteen = word_score(term_scores(padded(["tea"] + ["x"] * 14), 15, ["tea"], statistics))
    # K is 1.0 at 3 words and 1.28 at 15: with the prior a quarter apart, without it twice as much
    assert 1.0 < three / fifteen < 1.2


def test_a_pool_takes_a_few_chunks_of_each_source() -> None:
    long = [Scored(1.0 - i / 100, ("a.md", i, "", f"a{i}"), "a.md") for i in range(20)]
    short = [Scored(0.1, ("b.md", 1, "", "b"), "b.md")]
    taken = [candidate.id for candidate in best([*long, *short], 2)]
    assert len(taken) == CHUNKS_PER_SOURCE + 1
    assert taken[-1] == "b"
