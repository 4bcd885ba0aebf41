"""What a reranker's opinions do to a ranking."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.ranking.builders import context, hit, memory, ranking
from whyrank.errors import ConfigError
from whyrank.ranking.fusion import Fuse
from whyrank.ranking.recipes import Recipe
from whyrank.ranking.stages import Evidence, Rerank
from whyrank.testing.fakes import SharedWords
from whyrank.types.trail import WINDOW_LIFT, Step, replay

A, B, C = memory("a"), memory("b"), memory("c")
OPINIONS = {"a": -3.0, "b": 2.0}


def test_the_window_is_ordered_by_opinion_and_stands_above_the_rest() -> None:
    asked = replace(context(A, B, C), opinions=OPINIONS)
    ranked = Rerank(SharedWords())(ranking(hit(A, 0.9), hit(B, 0.8), hit(C, 0.7)), asked)
    # a has a lower number than c now, and still stands above it, because it was read
    assert [(found.id, found.key) for found in ranked.hits] == [
        ("b", (WINDOW_LIFT, 2.0)),
        ("a", (WINDOW_LIFT, -3.0)),
        ("c", (0, 0.7)),
    ]
    assert all(replay(found.trail) == found.key for found in ranked.hits)
    assert ranked.hits[1].trail[-2].why == "2 of 2 by SharedWords(pair_weight=0.5)"


def test_what_a_reranker_finds_alike_stays_as_it_was() -> None:
    asked = replace(context(A, B, C), opinions={"a": 1.0, "b": 1.0, "c": 1.0})
    ranked = Rerank(SharedWords())(ranking(hit(C, 0.9), hit(A, 0.8), hit(B, 0.7)), asked)
    assert [found.id for found in ranked.hits] == ["c", "a", "b"]
    assert all(found.score == pytest.approx(1.0) for found in ranked.hits)
    assert all(replay(found.trail) == found.key for found in ranked.hits)


def test_a_name_stays_above_every_opinion() -> None:
    named = hit(A, 0.1).after(Step("name", "lift", 16))
    asked = replace(context(A, B), opinions=OPINIONS)
    assert [found.id for found in Rerank()(ranking(named, hit(B, 0.8)), asked).hits] == ["a", "b"]


def test_without_opinions_nothing_changes() -> None:
    unchanged = ranking(hit(A, 0.9), hit(B, 0.8))
    assert Rerank(SharedWords())(unchanged, context(A, B)) is unchanged


def test_being_read_does_not_excuse_a_hit_from_evidence() -> None:
    asked = replace(context(A), opinions={"a": 1.0})
    read = Rerank()(ranking(hit(A, 0.9, cosine=0.1)), asked)
    assert Evidence(min_vector=0.5)(read, asked).hits == ()


@pytest.mark.parametrize(("top", "deadline_ms"), [(0, 100.0), (5, 0.0), (5, float("inf")), (5, float("nan"))])
def test_settings_that_make_no_sense_are_refused(top: int, deadline_ms: float) -> None:
    with pytest.raises(ConfigError):
        Rerank(SharedWords(), top, deadline_ms)


def test_a_recipe_has_one_reranker_at_most() -> None:
    with pytest.raises(ConfigError):
        Recipe("two", Fuse(()), (Rerank(), Rerank(top=3)))


def test_the_example_reranker_reads_both_texts() -> None:
    # 2 of 3 words, 1 of 2 pairs; 3 of 3 words, no pair; nothing
    texts = ["green tea", "pot of tea, really green", "oil"]
    assert SharedWords().scores("green tea pot", texts) == [
        pytest.approx(2 / 3 + 0.5 * 1 / 2),
        pytest.approx(1.0),
        0.0,
    ]
    assert SharedWords().scores("", ["tea"]) == [0.0]
