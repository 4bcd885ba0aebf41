"""What an answer says of a page that lies behind its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank.ranking.recipes import recipe_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whyrank.types.results import Results

POOL = 24  # sources that each run of the recipe openclaw brings


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[whyrank.Engine]:
    """Thirty facts about tea, three about coffee."""
    place = tmp_path_factory.mktemp("paging")
    with whyrank.open(place / "memory.db", workspace=place, embedding="none") as engine:
        for number in range(30):
            engine.add(f"green tea note number {number}")
        for who in ("Ann", "Robin", "Suzy"):
            engine.add(f"{who} drinks coffee")
        yield engine


def said(results: Results) -> dict[str, str]:
    return {notice.code: notice.message for notice in results.notices}


def test_a_page_behind_the_last_result_says_how_many_there_are(engine: whyrank.Engine) -> None:
    results = engine.search("coffee", offset=3, limit=5)
    assert len(results) == 0
    assert said(results)["past-the-end"] == (
        "there are 3 results for this question, and the requested page begins at 4"
    )


def test_the_last_page_of_all_there_is_says_nothing(engine: whyrank.Engine) -> None:
    results = engine.search("coffee", offset=2, limit=5)
    assert len(results) == 1
    assert "past-the-end" not in said(results)
    assert "past-the-end" not in said(engine.search("coffee", limit=3))


def test_a_page_over_the_end_of_the_pool_says_that_there_may_be_more(engine: whyrank.Engine) -> None:
    assert recipe_named("openclaw").plan.pool == POOL
    # 24 of the 30 are candidates: results 21 to 24 are shown of the page from 21 to 30.
    results = engine.search("tea", offset=20, limit=10, recipe="openclaw")
    assert len(results) == 4
    assert said(results)["past-the-end"].startswith("there are 24 results for this question; each run returns")
    behind = engine.search("tea", offset=24, limit=10, recipe="openclaw")
    assert len(behind) == 0
    assert "begins at 25; each run returns at most 24 sources" in said(behind)["past-the-end"]


def test_a_page_inside_the_pool_says_nothing_of_it(engine: whyrank.Engine) -> None:
    assert "past-the-end" not in said(engine.search("tea", offset=14, limit=10, recipe="openclaw"))


def test_a_question_nothing_answers_has_no_end_to_be_past(engine: whyrank.Engine) -> None:
    assert "past-the-end" not in said(engine.search("zeppelin", offset=10))


def test_a_limit_of_nothing_is_told(engine: whyrank.Engine) -> None:
    results = engine.search("tea", limit=0)
    assert len(results) == 0
    assert "limit-zero" in said(results)
    assert "limit-zero" not in said(engine.search("tea", limit=1))


def test_a_candidate_pool_for_other_rankings_says_the_same(engine: whyrank.Engine) -> None:
    assert "past-the-end" in said(engine.pool("coffee", offset=3, limit=5).results)


def test_asked_why_with_a_limit_of_nothing_its_rank_is_told_all_the_same(engine: whyrank.Engine) -> None:
    first = engine.search("coffee", limit=1)[0].id
    assert engine.why("coffee", first, limit=0).summary == "it is ranked 1, and no results were asked for"
