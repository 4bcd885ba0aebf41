"""Lists of other engines, fused and explained without a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank.errors import ConfigError
from whyrank.ranking.diversity import MMR
from whyrank.ranking.recipes import RECIPES
from whyrank.types.trail import part_of, replay

if TYPE_CHECKING:
    from whyrank.types.results import Hit, Ranking

KEYWORD = [("a", 6.0), ("b", 2.0)]
VECTOR = [("b", 0.9), ("c", 0.6)]
LISTS = {"keyword": KEYWORD, "vector": VECTOR}


def scores(ranking: Ranking) -> dict[str, float]:
    return {hit.id: hit.score for hit in ranking.hits}


def hit(ranking: Ranking, identity: str) -> Hit:
    return next(found for found in (*ranking.hits, *ranking.dropped) if found.id == identity)


def codes(ranking: Ranking) -> set[str]:
    return {notice.code for notice in ranking.notices}


@pytest.mark.parametrize("name", ["hybrid-mem", "clawhub", "clawhub-266", "openvault"])
def test_lists_are_ranked_without_what_only_memories_know(name: str) -> None:
    ranking = whyrank.rank(LISTS, recipe=name)
    assert {hit.id for hit in ranking.hits} == {"a", "b", "c"}
    assert "stage-skipped" in codes(ranking)
    assert whyrank.rank(LISTS).notices == ()  # grouping by file changes nothing where no id is a part of one


@pytest.mark.parametrize("name", [name for name in RECIPES if name != "openclaw-2026-02"])
def test_no_score_is_made_up_for_an_id_a_list_does_not_hold(name: str) -> None:
    ranking = whyrank.rank(LISTS, recipe=name)
    for identity, signal in (("a", "vector"), ("c", "keyword")):
        part = part_of(hit(ranking, identity).trail, signal)
        assert part is None or (part.raw, part.value) == (None, 0.0)
    assert all(replay(found.trail) == found.key for found in ranking.hits)


def test_what_a_list_does_not_hold_adds_nothing_and_no_other_list_counts_more() -> None:
    ranking = whyrank.rank(LISTS, recipe="openclaw")
    assert scores(ranking) == pytest.approx(
        {"a": 0.3 * 6 / 7, "b": 0.7 * 0.9 + 0.3 * 2 / 3, "c": 0.7 * 0.6}  # a: words alone, c: its cosine alone
    )
    told = [notice.message for notice in ranking.notices if notice.code == "run-incomplete"]
    assert told == [
        "keyword did not score 1 candidate, so it adds nothing to it",
        "vector did not score 1 candidate, so it adds nothing to it",
    ]


def test_a_list_without_any_id_changes_nothing() -> None:
    alone = whyrank.rank({"vector": VECTOR}, recipe="openclaw")
    assert scores(whyrank.rank({"vector": VECTOR, "keyword": []}, recipe="openclaw")) == scores(alone)
    assert scores(alone) == pytest.approx({"b": 0.9, "c": 0.6})


def test_openvault_keeps_its_caps_for_lists_as_well() -> None:
    ranking = whyrank.rank({"keyword": [("a", 40.0), ("b", 20.0), ("c", 0.0)]}, recipe="openvault")
    assert scores(ranking) == pytest.approx({"a": 4.5, "b": 2.25, "c": 0.0})  # (1 − 0.7) · 15, without a base


@pytest.mark.parametrize("k", [60.0, 10.0, 0.5])
def test_k_is_that_of_reciprocal_rank_fusion(k: float) -> None:
    ranking = whyrank.rank(LISTS, k=k)
    # Σ 1/(k + rank), scaled so that the first of both lists is 1: × (k + 1)/2
    sums = {"a": 1 / (k + 1), "b": 1 / (k + 2) + 1 / (k + 1), "c": 1 / (k + 2)}
    assert scores(ranking) == pytest.approx({key: value * (k + 1) / 2 for key, value in sums.items()})


def test_k_without_a_place_says_so_and_a_bad_one_is_refused() -> None:
    assert "setting-unused" in codes(whyrank.rank(LISTS, recipe="openclaw", k=10))
    assert "setting-unused" not in codes(whyrank.rank(LISTS, recipe="hybrid-mem", k=10))
    with pytest.raises(ConfigError, match="k is 0"):
        whyrank.rank(LISTS, k=0)


def test_what_has_been_replaced_goes_by_its_id_or_its_text_and_ranks_stay() -> None:
    texts = {"a": "Suzy drinks coffee", "b": "Suzy drinks tea"}
    for superseded in (["a"], ["suzy  drinks COFFEE"]):
        ranking = whyrank.rank(LISTS, superseded=superseded, texts=texts)
        assert [found.id for found in ranking.hits] == ["b", "c"]
        assert hit(ranking, "a").trail[-1].why == "replaced"
        assert scores(ranking)["b"] == pytest.approx((1 / 62 + 1 / 61) * 61 / 2)  # second, behind what goes
    by = whyrank.rank(LISTS, recipe="hybrid-mem", superseded={"a": "b"})
    assert hit(by, "a").trail[-1].why == "replaced by b"
    assert "Superseded" not in " ".join(notice.message for notice in by.notices)


def test_one_text_is_no_list_of_what_was_replaced() -> None:
    with pytest.raises(ConfigError, match="superseded is the text"):
        whyrank.rank(LISTS, superseded="a")


def test_with_texts_the_same_text_counts_once() -> None:
    texts = {"a": "Suzy drinks tea", "b": "suzy drinks  TEA"}
    ranking = whyrank.rank(LISTS, recipe="hybrid-mem", texts=texts)
    assert [found.id for found in ranking.hits] == ["b", "c"]  # b is in both lists and stands for a
    assert hit(ranking, "a").trail[-1].why == "same text as b"
    assert [found.memory.text for found in ranking.hits] == ["suzy drinks  TEA", ""]
    [told] = [notice.message for notice in ranking.notices if notice.code == "texts-incomplete"]
    assert told == "1 candidate has no text, and is not compared with others"


def test_candidates_without_a_text_are_not_the_same() -> None:
    lists = {"keyword": [("a", 3.0), ("b", 2.0), ("c", 1.0)]}
    assert len(whyrank.rank(lists, recipe="hybrid-mem", texts={"a": "tea"}).hits) == 3


def test_with_texts_results_can_be_diverse() -> None:
    recipe = RECIPES["rrf"].with_stages(MMR(0.5))
    lists = {"words": [("a", 3.0), ("b", 2.9), ("c", 2.8)]}
    texts = {"a": "green tea in the pot", "b": "green tea in a pot", "c": "the server moves in October"}
    assert [found.id for found in whyrank.rank(lists, recipe, texts=texts).hits] == ["a", "c", "b"]
    assert "stage-skipped" in codes(whyrank.rank(lists, recipe))


def test_a_list_may_be_lower_is_better_and_weighted() -> None:
    near = whyrank.Run.of("near", [("a", 0.1), ("b", 0.4)], lower_is_better=True)
    words = whyrank.Run.of("words", [("b", 9.0)])
    assert [found.id for found in whyrank.rank([near, words], weights={"words": 0}).hits] == ["a", "b"]
    assert [found.id for found in whyrank.rank([near, words]).hits] == ["b", "a"]
    with pytest.raises(ConfigError, match="which is not a run"):
        whyrank.rank([near], weights={"far": 1})
    with pytest.raises(ConfigError, match="the same name"):
        whyrank.rank([near, near])


def test_scores_that_are_all_negative_are_named() -> None:
    # SQLite's bm25(): -8.5 is better than -0.5, so that the highest score is the worst match.
    ranking = whyrank.rank({"keyword": [("a", -8.5), ("b", -0.5)], "vector": VECTOR})
    assert [notice.code for notice in ranking.notices] == ["scores-negative"]
    flipped = [whyrank.Run.of("keyword", [("a", -8.5), ("b", -0.5)], lower_is_better=True)]
    assert whyrank.rank(flipped).notices == ()


def test_a_recipe_with_weights_by_name_says_whom_it_does_not_know() -> None:
    ranking = whyrank.rank({"words": KEYWORD, "near": VECTOR}, recipe="hybrid-mem")
    assert "votes-by-default" not in codes(ranking)  # by rank, every run has the same vote
    with_scores = whyrank.rank({"words": KEYWORD, "near": VECTOR}, recipe="openclaw")
    [told] = [notice.message for notice in with_scores.notices if notice.code == "votes-by-default"]
    assert told == "the recipe 'openclaw' has votes for vector and keyword; words and near have its vote for the others"
    assert "votes-by-default" not in codes(whyrank.rank(LISTS, recipe="openclaw"))
