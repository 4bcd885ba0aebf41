"""Why one memory and not the other, through the engine."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import whyrank
from whyrank.errors import ConfigError, NotFound
from whyrank.ranking.counterfactuals import Change, DroppedTerm
from whyrank.ranking.recipes import RECIPES
from whyrank.ranking.stages import Rerank
from whyrank.testing.fakes import SharedWords

if TYPE_CHECKING:
    from pathlib import Path

QUESTION = "which tea for the afternoon"
GREEN = "green tea for a quiet afternoon with a book"
BLACK = "black tea: which tea, which pot, which water"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path


def opened(place: Path, **options: Any) -> whyrank.Engine:
    return whyrank.open(place / "memory.db", workspace=place, **options)


def setting(answer: whyrank.Contrast, key: str) -> Change:
    [change] = [change for change in answer.changes if isinstance(change, Change) and change.key == key]
    return change


def test_the_setting_that_is_named_flips_them_and_nearly_all_of_it_does_not(place: Path) -> None:
    with opened(place) as memory:
        green, black = memory.add(GREEN), memory.add(BLACK)
        answer = memory.why(QUESTION, black.id, over=green.id)
        assert (answer.outcome, answer.first) == ("flips", green.id)
        change = setting(answer, "ranking.vector_weight")
    for share, expected in ((1.0, black.id), (0.99, green.id)):
        weight = change.before + share * (change.after - change.before)
        with opened(place, ranking_vector_weight=weight) as memory:
            assert memory.search(QUESTION)[0].id == expected


def test_asking_the_other_way_round_gives_the_same_changes(place: Path) -> None:
    with opened(place) as memory:
        green, black = memory.add(GREEN), memory.add(BLACK)
        one, other = memory.why(QUESTION, black.id, over=green.id), memory.why(QUESTION, green.id, over=black.id)
        assert (one.first, one.changes) == (other.first, other.changes)


def test_an_exact_name_is_another_tier(place: Path) -> None:
    with opened(place) as memory:
        named = memory.add("a shop down the road", name="Tea Pot")
        other = memory.add("the tea pot is green, and the tea pot is old")
        answer = memory.why("tea pot", other.id, over=named.id)
    assert (answer.outcome, answer.first, answer.changes) == ("another tier", named.id, ())
    assert "equal: 'Tea Pot'" in answer.summary
    assert "no setting outweighs a tier" in str(answer)


def test_being_read_by_a_reranker_is_another_tier(place: Path) -> None:
    recipe = RECIPES["default"].with_stages(Rerank(SharedWords(), top=1))
    with opened(place) as memory:
        green, black = memory.add(GREEN), memory.add(BLACK)
        answer = memory.why(QUESTION, black.id, over=green.id, recipe=recipe)
    assert answer.outcome == "another tier"
    assert "rerank" in answer.summary


def test_better_in_everything_is_flipped_by_nothing(place: Path) -> None:
    with opened(place, embedding="none") as memory:
        better, worse = memory.add("tea"), memory.add("tea and a good many other words about other things")
        answer = memory.why("tea", worse.id, over=better.id)
    assert (answer.outcome, answer.first, answer.changes) == ("nothing flips it", better.id, ())


def test_equal_scores_are_level(place: Path) -> None:
    with opened(place, embedding="none") as memory:
        one, other = memory.add("tea at noon"), memory.add("tea at dawn")
        answer = memory.why("tea", one.id, over=other.id)
    assert (answer.outcome, answer.changes) == ("level", ())
    assert answer.first in (one.id, other.id)


@pytest.mark.parametrize("diversity", [None, 0.7])
def test_what_rounding_would_turn_round_is_level_however_far_apart_diversity_puts_them(
    place: Path, diversity: float | None
) -> None:
    with opened(place, recipe="rrf", ranking_mmr_lambda=diversity) as memory:
        # First by words and second by meaning, and the other way round: 1/61 + 1/62 each.
        green, black = memory.add(GREEN), memory.add(BLACK)
        answer = memory.why(QUESTION, black.id, over=green.id)
    assert (answer.outcome, answer.changes) == ("level", ())


def test_neither_stands_where_a_threshold_dropped_both(place: Path) -> None:
    with opened(place, embedding="none", ranking_min_coverage=0.99) as memory:
        one, other = memory.add("oil and some other words"), memory.add("an engine")
        answer = memory.why("engine oil", one.id, over=other.id)
    assert (answer.outcome, answer.first, answer.changes) == ("dropped", None, ())
    assert all("dropped by evidence: coverage" in detail for detail in answer.details)


def test_what_no_run_proposed_is_told_where_it_was_lost(place: Path) -> None:
    with opened(place, embedding="none") as memory:
        tea, oil = memory.add("tea at noon"), memory.add("oil for the engine")
        answer = memory.why("tea", oil.id, over=tea.id)
    assert (answer.outcome, answer.first, answer.changes) == ("not a candidate", None, ())
    assert any("keyword: no shared term" in detail for detail in answer.details)


def test_what_was_replaced_cannot_be_compared(place: Path) -> None:
    with opened(place, embedding="none") as memory:
        old = memory.add("tea at noon")
        new = memory.add("tea at one", supersedes=old.id)
        answer = memory.why("tea", old.id, over=new.id)
    assert answer.outcome == "not a candidate"
    assert any(f"replaced by {new.id}" in detail for detail in answer.details)


def test_a_word_left_out_is_told_apart_from_a_setting(place: Path) -> None:
    with opened(place, embedding="none") as memory:
        afternoon, which = memory.add("a quiet afternoon"), memory.add("tea pot, tea leaves, tea water")
        answer = memory.why("tea afternoon", afternoon.id, over=which.id)
        assert answer.first is not None
        terms = [change.term for change in answer.changes if isinstance(change, DroppedTerm)]
        kept = "tea" if answer.first == afternoon.id else "afternoon"
        assert terms == [{"tea": "afternoon", "afternoon": "tea"}[kept]]
        assert memory.search(kept)[0].id != answer.first


def test_files_are_compared_by_their_best_chunks(place: Path) -> None:
    notes = place / "notes"
    notes.mkdir()
    (notes / "green.md").write_text(f"# Green\n\n{GREEN}\n", encoding="utf-8")
    (notes / "black.md").write_text(f"# Black\n\n{BLACK}\n", encoding="utf-8")
    with opened(place) as memory:
        memory.ingest(notes)
        answer = memory.why(QUESTION, "notes/green.md", over="notes/black.md")
    assert {answer.memory.title, answer.over.title} == {"Green", "Black"}
    assert "notes/green.md:" in str(answer)


def test_a_foreign_memory_does_not_exist(place: Path) -> None:
    with opened(place, embedding="none") as memory:
        mine, theirs = memory.add("tea", scope="user:1"), memory.add("tea", scope="user:2")
        for pair in ((mine.id, theirs.id), (theirs.id, mine.id)):
            with pytest.raises(NotFound):
                memory.why("tea", pair[0], over=pair[1], scope="user:1")


def test_what_went_wrong_meanwhile_is_a_notice(place: Path) -> None:
    with opened(place) as memory:
        green, black = memory.add(GREEN), memory.add(BLACK)
        answer = memory.why(QUESTION, black.id, over=green.id, recipe=RECIPES["default"].with_stages(Rerank()))
    assert [notice.code for notice in answer.notices] == ["rerank-off"]


def test_a_memory_cannot_be_over_itself(place: Path) -> None:
    with opened(place, embedding="none") as memory:
        tea = memory.add("tea")
        with pytest.raises(ConfigError):
            memory.why("tea", tea.id, over=tea.id)


def test_asynchronous_callers_ask_the_same(place: Path) -> None:
    async def ask() -> whyrank.Contrast:
        async with await whyrank.open_async(place / "memory.db", workspace=place) as memory:
            green, black = await memory.add(GREEN), await memory.add(BLACK)
            answer: whyrank.Contrast = await memory.why(QUESTION, black.id, over=green.id)
            return answer

    assert asyncio.run(ask()).outcome == "flips"
