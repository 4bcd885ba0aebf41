"""The recipes of other systems: the arithmetic of the documents they come from, with their slips mended."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.unit.ranking.builders import NOW, context, memory
from whyrank.ranking.counterfactuals import Pool, changes
from whyrank.ranking.fusion import ReciprocalRank, Sigmoid
from whyrank.ranking.recipes import RECIPES, Adjustments, adjusted, rank_pool, tunable, unhonoured
from whyrank.storage.sqlite.database import connect
from whyrank.types.results import Candidate, Run, Signal
from whyrank.types.trail import NameMatch

if TYPE_CHECKING:
    from whyrank.types.memory import Memory
    from whyrank.types.results import Ranking


def ranked(recipe: str, memories: list[Memory], wish: Adjustments | None = None, **scores: dict[str, float]) -> Ranking:
    """Rank memories by the scores of their runs; who has a score was listed."""
    signals = {name: Signal(name, values) for name, values in scores.items()}
    runs = [
        Run(name, tuple(Candidate(key, value) for key, value in sorted(values.items(), key=lambda pair: -pair[1])))
        for name, values in scores.items()
    ]
    chosen = adjusted(RECIPES[recipe], wish or Adjustments())
    return rank_pool(runs, chosen, context(*memories, text="Remind Me", signals=signals))


def of(ranking: Ranking) -> dict[str, float]:
    return {hit.id: hit.score for hit in ranking.hits}


NEW = [memory(key, date=NOW, importance=3) for key in "abc"]


# -- openvault ---------------------------------------------------------------------------------------------------------


def test_openvault_adds_base_vector_and_keyword() -> None:
    found = ranked("openvault", NEW, vector={"a": 0.8, "b": 0.5, "c": 0.9}, keyword={"a": 8.0, "b": 10.0, "c": 0.0})
    # base 3, α·W = 0.7 × 15 = 10.5 for vectors above 0.5, (1−α)·W = 0.3 × 15 = 4.5 for shares of the best word score
    assert of(found) == pytest.approx(
        {
            "a": 3 + 10.5 * (0.8 - 0.5) / (1 - 0.5) + 4.5 * 8 / 10,  # 3 + 6.3 + 3.6 = 12.9
            "b": 3 + 10.5 * 0.0 + 4.5 * 10 / 10,  # 7.5
            "c": 3 + 10.5 * (0.9 - 0.5) / (1 - 0.5) + 4.5 * 0,  # 11.4
        }
    )


def test_openvault_caps_the_explosion_of_words() -> None:
    found = ranked("openvault", NEW, vector={"a": 0.5, "b": 0.9, "c": 0.5}, keyword={"a": 44.8, "b": 0.5, "c": 1.4})
    # 54.2 in total, 44.8 of it words, was the best of a list it had no business to lead
    assert of(found)["a"] == pytest.approx(3 + 4.5)
    assert next(iter(found)).id == "b"


def test_openvault_reaches_twenty_and_no_more() -> None:
    best = [memory("a", date=NOW, importance=5), *NEW[1:]]
    found = ranked("openvault", best, vector=dict.fromkeys("abc", 1.0), keyword=dict.fromkeys("abc", 99.0))
    assert of(found)["a"] == pytest.approx(5 + 10.5 + 4.5)  # the base is at most 5, not 10


def test_openvault_takes_raw_scores_of_small_batches_up_to_the_boost_weight() -> None:
    found = ranked("openvault", NEW[:2], vector={"a": 0.5, "b": 0.5}, keyword={"a": 4.0, "b": 44.8})
    assert of(found) == pytest.approx({"a": 3 + 0.3 * 4.0, "b": 3 + 0.3 * 15})  # (1−α) · min(raw, W)


def test_openvault_keeps_its_cap_where_a_memory_has_no_vector() -> None:
    # c has no vector yet: its words add (1 − α)·W = 4.5 at most, not the whole 15
    found = ranked("openvault", NEW, vector={"a": 0.9, "b": 0.5}, keyword={"a": 2.0, "b": 1.0, "c": 8.0})
    assert of(found) == pytest.approx(
        {
            "a": 3 + 10.5 * (0.9 - 0.5) / (1 - 0.5) + 4.5 * 2 / 8,
            "b": 3 + 4.5 * 1 / 8,
            "c": 3 + 4.5 * 8 / 8,
        }
    )
    assert [hit.id for hit in found.hits] == ["a", "c", "b"]


def test_openvault_keeps_its_caps_where_a_run_finds_nothing() -> None:
    vectors_alone = ranked("openvault", NEW, vector={"a": 0.8, "b": 0.5, "c": 0.9}, keyword={})
    assert of(vectors_alone)["a"] == pytest.approx(3 + 10.5 * 0.6)
    words_alone = ranked("openvault", NEW, vector={}, keyword={"a": 44.8, "b": 22.4, "c": 0.0})
    assert of(words_alone) == pytest.approx({"a": 3 + 4.5, "b": 3 + 4.5 / 2, "c": 3})
    no_words = ranked("openvault", NEW, Adjustments(alpha=1.0), vector={}, keyword={"a": 8.0, "b": 4.0, "c": 2.0})
    assert of(no_words) == pytest.approx(dict.fromkeys("abc", 3))  # (1 − 1)·W


def test_the_cosine_that_openvault_counts_from_is_a_setting() -> None:
    scores = {"vector": {"a": 0.8, "b": 0.4, "c": 0.2}, "keyword": {}}
    found = ranked("openvault", NEW, Adjustments(vector_threshold=0.3), **scores)
    assert of(found) == pytest.approx(
        {"a": 3 + 10.5 * (0.8 - 0.3) / (1 - 0.3), "b": 3 + 10.5 * (0.4 - 0.3) / (1 - 0.3), "c": 3}
    )
    assert of(ranked("openvault", NEW, None, **scores))["b"] == pytest.approx(3)  # by default it counts from 0.5
    [notice] = unhonoured(RECIPES["default"], Adjustments(vector_threshold=0.3))
    assert notice.message.startswith("ranking.vector_threshold")
    assert unhonoured(RECIPES["openvault"], Adjustments(vector_threshold=0.3)) == ()


def test_alpha_and_boost_weight_are_the_two_sliders() -> None:
    scores = {"vector": {"a": 0.8, "b": 0.5, "c": 0.9}, "keyword": {"a": 8.0, "b": 10.0, "c": 0.0}}
    found = ranked("openvault", NEW, Adjustments(alpha=0.2, boost_weight=20.0), **scores)
    assert of(found)["a"] == pytest.approx(3 + 0.2 * 20 * 0.6 + 0.8 * 20 * 0.8)
    small = {name: {key: values[key] for key in "ab"} for name, values in scores.items()}
    [a, b] = sorted(ranked("openvault", NEW[:2], Adjustments(boost_weight=9.0), **small), key=lambda hit: hit.id)
    assert b.score == pytest.approx(3 + 0.3 * 9)  # the cap of small batches follows: min(10, 9)
    assert a.score == pytest.approx(3 + 0.7 * 9 * 0.6 + 0.3 * 8)


def test_the_sliders_belong_to_blends_and_the_vector_weight_to_the_others() -> None:
    sliders = Adjustments(alpha=0.5, boost_weight=10.0)
    assert [notice.message.split()[0] for notice in unhonoured(RECIPES["default"], sliders)] == [
        "ranking.alpha",
        "ranking.boost_weight",
    ]
    assert adjusted(RECIPES["default"], sliders) == RECIPES["default"]
    assert unhonoured(RECIPES["openvault"], sliders) == ()
    assert [n.message.split()[0] for n in unhonoured(RECIPES["openvault"], Adjustments(vector_weight=0.5))] == [
        "ranking.vector_weight"
    ]
    assert "vector_weight" not in tunable(RECIPES["openvault"])


def test_the_sliders_say_how_far_they_must_be_moved() -> None:
    memories = [memory("a", date=NOW, importance=1), memory("b", date=NOW, importance=5), NEW[2]]
    scores = {"vector": {"a": 0.9, "b": 0.5, "c": 0.5}, "keyword": {"a": 0.0, "b": 10.0, "c": 0.0}}
    signals = {name: Signal(name, values) for name, values in scores.items()}
    runs = tuple(
        Run(name, tuple(Candidate(key, value) for key, value in sorted(values.items(), key=lambda pair: -pair[1])))
        for name, values in scores.items()
    )
    pool = Pool(runs, context(*memories, signals=signals), RECIPES["openvault"])
    ranking = pool.ranked(pool.recipe)
    assert [hit.id for hit in ranking.hits][:2] == ["b", "a"]  # 5 + 4.5 = 9.5 above 1 + 10.5 × 0.8 = 9.4
    told = {change.key: change for change in changes(pool, ranking, "b", "a") if change.key}
    # a: 1 + 12α, b: 5 + 15(1 − α); they meet at 19/27. a: 1 + 0.56 W, b: 5 + 0.3 W; they meet at 4/0.26.
    assert told["ranking.alpha"].after == pytest.approx(19 / 27, rel=0.01)
    assert told["ranking.alpha"].after > 19 / 27
    assert told["ranking.boost_weight"].after == pytest.approx(4 / 0.26, rel=0.01)
    assert told["ranking.boost_weight"].after > 4 / 0.26
    # Above t = 0.5 a falls and b stays; below, b gains as well: a − b = 4.2/(1 − t) − 8.5 is never above 0.
    assert "ranking.vector_threshold" not in told


def test_the_threshold_says_how_far_it_must_be_moved() -> None:
    memories = [memory("a", date=NOW, importance=1), memory("b", date=NOW, importance=3)]
    run = Run("vector", (Candidate("a", 0.45), Candidate("b", 0.3)))
    signals = {"vector": Signal("vector", {"a": 0.45, "b": 0.3})}
    pool = Pool((run,), context(*memories, signals=signals), RECIPES["openvault"])
    ranking = pool.ranked(pool.recipe)
    assert [(hit.id, hit.score) for hit in ranking.hits] == [("b", 3.0), ("a", 1.0)]  # no cosine is above 0.5
    told = {change.key: change for change in changes(pool, ranking, "b", "a") if change.key}
    # 1 + 10.5 (0.45 − t)/(1 − t) > 3 below t = 2.725/8.5
    assert told["ranking.vector_threshold"].after == pytest.approx(2.725 / 8.5, rel=0.01)
    assert told["ranking.vector_threshold"].after < 2.725 / 8.5


# -- hybrid-mem --------------------------------------------------------------------------------------------------------


def test_hybrid_mem_orders_by_the_sum_of_reciprocal_ranks() -> None:
    memories = [memory(key) for key in "abcd"]
    found = ranked(
        "hybrid-mem", memories, keyword={"a": 8.5, "b": 8.0, "c": 2.0}, vector={"d": 0.82, "c": 0.8, "b": 0.3}
    )
    sums = {"a": 1 / (60 + 1), "b": 1 / (60 + 2) + 1 / (60 + 3), "c": 1 / (60 + 3) + 1 / (60 + 2), "d": 1 / (60 + 1)}
    # Scaled so that rank 1 in every list is 1: × (60 + 1)/2 for two lists.
    assert of(found) == pytest.approx({key: value * 61 / 2 for key, value in sums.items()})
    assert {hit.id for hit in found.hits[:2]} == {"b", "c"}  # found by both, at ranks 2 and 3


@pytest.mark.parametrize(("k", "buried"), [(60.0, False), (10.0, False), (2.0, False), (0.5, True)])
def test_both_at_rank_three_lose_to_one_first_only_below_k_1(k: float, buried: bool) -> None:
    first, _, third = ReciprocalRank(k)([0.0] * 3, [1, 2, 3])
    assert (first > 2 * third) == buried  # 1/(k+1) against 2/(k+3)


def test_weighted_reciprocal_ranks_end_at_one_sixty_first() -> None:
    [first] = ReciprocalRank(60.0)([0.0], [1])
    score = 0.7 * first + 0.3 * first
    assert score / 61 == pytest.approx(0.0164, abs=5e-5)  # only two whole votes would end at 0.0328


def test_hybrid_mem_shows_a_text_once_and_nothing_that_was_replaced() -> None:
    memories = [
        memory("a", "Suzy drinks tea"),
        memory("b", "suzy  drinks TEA"),
        memory("c", "Suzy drinks coffee", superseded_by="a", superseded_at=NOW - 1),
    ]
    found = ranked("hybrid-mem", memories, keyword={"a": 3.0, "c": 2.0}, vector={"b": 0.9, "c": 0.8, "a": 0.7})
    assert [hit.id for hit in found.hits] == ["a"]
    assert {hit.id: hit.trail[-1].why for hit in found.dropped} == {
        "b": "same text as a",
        "c": "replaced by a on 2023-11-14",
    }
    # Ranks are those of the full lists: a is third for the vectors, behind what goes.
    assert of(found)["a"] == pytest.approx((1 / 61 + 1 / 63) * 61 / 2)


# -- clawhub -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("recipe", "score"), [("clawhub", 0.4 + 1.4 + 1.1), ("clawhub-266", 0.4 + 3.0 + 2.5 + 2.1)])
def test_clawhub_puts_the_skill_of_that_name_first(recipe: str, score: float) -> None:
    others = [memory(f"n{i}", name=f"Notify {i}", slug=f"notify-{i}", summary="tells me") for i in range(70)]
    others[1] = replace(others[1], summary="reminders of menus")
    skill = memory("skill", name="Remind Me", slug="remind-me", summary="Remind me of things")
    cosines = {"skill": 0.4, **{other.id: 0.9 - i / 1000 for i, other in enumerate(others)}}
    found = ranked(recipe, [*others, skill], vector=cosines)
    assert found.hits[0].id == "skill"  # by its cosine it is at place 71
    assert found.hits[0].score == pytest.approx(score)
    assert [hit.id for hit in found.hits[1:]] == ["n1"]  # of the others one holds both words, as beginnings


@pytest.mark.parametrize("recipe", ["clawhub", "clawhub-266"])
def test_clawhub_puts_the_exact_name_first_whatever_the_boosts_say(recipe: str) -> None:
    # The longer name has every word as well, in its slug, name and summary, and the larger cosine.
    skill = memory("skill", name="Remind Me", slug="rm-2", summary="Alarms, remind me")
    longer = memory("longer", name="Remind Me Of Birthdays", slug="remind-me-birthdays", summary="remind me")
    scores = {"vector": {"skill": 0.1, "longer": 0.9}}
    signals = {"vector": Signal("vector", scores["vector"])}
    runs = [Run("vector", (Candidate("longer", 0.9), Candidate("skill", 0.1)))]
    names = {"skill": NameMatch("equal", "Remind Me"), "longer": NameMatch("first words", "Remind Me Of Birthdays")}
    asked = context(skill, longer, text="Remind Me", signals=signals, names=names)
    found = rank_pool(runs, RECIPES[recipe], asked)
    assert [hit.id for hit in found.hits] == ["skill", "longer"]
    assert found.hits[0].score < found.hits[1].score  # first by order, not by a bigger bonus


@pytest.mark.parametrize("recipe", ["clawhub", "clawhub-266"])
def test_clawhub_asks_of_short_queries_that_every_word_matches(recipe: str) -> None:
    skills = [
        memory("both", name="Reminders", slug="reminders", summary="Reminds me of things"),
        memory("near", name="Notify", slug="notify", summary="Tells me of things"),
    ]

    def found(text: str) -> list[str]:
        signals = {"vector": Signal("vector", {"near": 0.9, "both": 0.2})}
        runs = [Run("vector", (Candidate("near", 0.9), Candidate("both", 0.2)))]
        return [hit.id for hit in rank_pool(runs, RECIPES[recipe], context(*skills, text=text, signals=signals)).hits]

    assert found("remind me") == ["both"]
    assert set(found("please remind me")) == {"near", "both"}  # longer queries keep what only meaning speaks for


# -- openclaw ----------------------------------------------------------------------------------------------------------


def test_a_sigmoid_alone_cannot_bring_back_what_the_threshold_drops() -> None:
    [strong] = Sigmoid()([8.5], [1])
    assert strong == pytest.approx(0.998499, abs=1e-6)
    assert 0.3 * strong < 0.35  # as is 0.3 × anything
    settled = ranked("openclaw", NEW[:2], vector={"b": 0.9}, keyword={"a": 8.5})
    assert {hit.id for hit in settled.hits} == {"a", "b"}


def test_the_least_score_of_openclaw_is_a_setting() -> None:
    # 0.7 × 0.3 + 0.3 × 0 = 0.21: below 0.35, above 0.2
    scores = {"vector": {"a": 0.9, "b": 0.3}, "keyword": {"a": 1.0, "b": 0.0}}
    memories = [replace(found, kind="fact") for found in NEW[:2]]

    def kept(wish: Adjustments) -> set[str]:
        runs = [
            Run("vector", (Candidate("a", 0.9), Candidate("b", 0.3))),
            Run("keyword", (Candidate("a", 1.0),)),
        ]
        signals = {name: Signal(name, values) for name, values in scores.items()}
        recipe = adjusted(RECIPES["openclaw"], wish)
        return {hit.id for hit in rank_pool(runs, recipe, context(*memories, signals=signals)).hits}

    assert kept(Adjustments()) == {"a"}
    assert kept(Adjustments(min_score=0.2)) == {"a", "b"}
    assert [n.message.split()[0] for n in unhonoured(RECIPES["default"], Adjustments(min_score=0.2))] == [
        "ranking.min_score"
    ]


@pytest.mark.parametrize("cosine", [0.438, 0.400, 0.484, 0.353])
def test_words_that_miss_do_not_suppress_a_vector_that_matches(cosine: float) -> None:
    """Acceptance criterion 3: a row that reaches the minimum by its cosine stays, whatever words find elsewhere."""
    scores = {"vector": {"a": 0.6, "b": cosine, "c": 0.3}, "keyword": {"a": 4.0, "b": 0.0, "c": 0.0}}
    runs = [
        Run("vector", tuple(Candidate(key, value) for key, value in scores["vector"].items())),
        Run("keyword", (Candidate("a", 4.0),)),
    ]
    signals = {name: Signal(name, values) for name, values in scores.items()}
    found = rank_pool(runs, RECIPES["openclaw"], context(*NEW, signals=signals))
    assert 0.7 * cosine < 0.35 <= cosine
    assert [hit.id for hit in found.hits] == ["a", "b"]


@pytest.mark.parametrize(("memories", "size"), [(2, 1e-6), (30, 2.979), (1825, 7.104)])
def test_how_large_bm25_is_depends_on_the_corpus(memories: int, size: float) -> None:
    """A word of one text among N: ln((N − 1 + 0.5)/(1 + 0.5)), and FTS5 lets nothing fall below a millionth."""
    connection = connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE t USING fts5(text)")
    texts = [("the rare",), *((f"the word{i}",) for i in range(memories - 1))]
    connection.executemany("INSERT INTO t (text) VALUES (?)", texts)
    [(score,)] = connection.execute("SELECT bm25(t) FROM t WHERE t MATCH 'rare'").fetchall()
    assert -score == pytest.approx(size, rel=1e-3)
    # FTS5 has no stop words of its own: the most common word of all matches everything.
    assert connection.execute("SELECT count(*) FROM t WHERE t MATCH 'the'").fetchone() == (memories,)
    connection.close()
