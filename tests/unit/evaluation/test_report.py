"""The page of an evaluation: every figure is there, nothing is fetched, nothing of a text is markup."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.evaluation.results import results, story
from tests.unit.pages.reading import read
from tests.unit.pages.test_markup import HOSTILE
from whyrank.evaluation.abstention import Point
from whyrank.evaluation.compare import against
from whyrank.evaluation.report.page import page_of
from whyrank.evaluation.results import Kept, KeptAbstention, KeptSide

FIGURES = {
    "q1": {"default": 1.0, "rrf": 0.5, "keyword": 0.5, "vector": 0.0},
    "q2": {"default": 0.25, "rrf": 0.75, "keyword": 0.25, "vector": 0.0},
    "q3": {"default": 0.0, "rrf": 0.25, "keyword": 0.0, "vector": 0.0},
    "q4": {"default": 0.5, "rrf": 0.5, "keyword": 0.5, "vector": 1.0},
}


@pytest.fixture
def kept() -> Kept:
    made = results(FIGURES, recipes=("default", "rrf"), worst=(story("q3", "the tin"),), notices={"no-terms": 2})
    kinds = {"q1": "name", "q2": "name", "q3": "question", "q4": "question"}
    queries = tuple(replace(query, kind=kinds[query.id]) for query in made.sets[0].queries)
    return replace(made, sets=(replace(made.sets[0], queries=queries),))


def test_every_line_stands_with_its_mean(kept: Kept) -> None:
    said = read(page_of(kept)).text
    # (1 + 0.25 + 0 + 0.5) / 4 = 0.4375 and (0.5 + 0.75 + 0.25 + 0.5) / 4 = 0.5
    assert "default 0.438" in said
    assert "rrf 0.500" in said
    assert "vector 0.250" in said
    assert "ceiling 1.000" in said


def test_kinds_have_their_own_means(kept: Kept) -> None:
    said = read(page_of(kept)).text
    assert "name 2 0.625" in said  # (1 + 0.25) / 2
    assert "question 2 0.250" in said  # (0 + 0.5) / 2


def test_kinds_are_told_of_the_first_recipe_wherever_its_line_stands(kept: Kept) -> None:
    [one] = kept.sets
    turned = replace(kept, sets=(replace(one, lines=tuple(reversed(one.lines))),))
    said = read(page_of(turned)).text
    assert "name 2 0.625" in said  # default's (1 + 0.25) / 2, not the ceiling's 1
    assert "ndcg@10 of default, with its 95 % interval" in said


def test_the_duel_shows_its_arithmetic(kept: Kept) -> None:
    said = read(page_of(kept)).text
    # rrf − default: −0.5, +0.5, +0.25, 0
    assert "ndcg@10 0.4375 → 0.5000: +0.0625" in said
    assert "2 better + 1 worse + 1 same = 4 queries" in said
    assert "Won: 2 queries" in said
    assert "q2 text of q2 0.250 0.750 +0.500" in said
    assert "Lost: 1 query" in said


def test_every_moved_query_is_a_bar_of_the_picture(kept: Kept) -> None:
    bars = [a for tag, a in read(page_of(kept)).tags if tag == "rect" and a["class"] in ("f2", "f3") and "y" in a]
    assert sum(bar["class"] == "f3" and float(bar["y"]) > 1 for bar in bars) == 2
    assert sum(bar["class"] == "f2" and float(bar["y"]) > 1 for bar in bars) == 1


def test_the_worst_are_told_with_trails(kept: Kept) -> None:
    said = read(page_of(kept)).text
    assert "text of q3 — ndcg@10 0.000, expected not among the results" in said
    assert "What came first: the tin (rank 1, not relevant)" in said
    assert "The best expected document: the tin (rank 7, relevant)" in said
    assert said.count("= fusion: 0.5000 the tin") == 2


def test_the_risk_curve_has_its_figures(kept: Kept) -> None:
    # All have the same evidence: q1, q2 and q4 have a first hit that counts, so the risk is 1/4 wherever it is asked.
    assert "Area under the curve 0.250; at best" in read(page_of(kept)).text
    assert "without evidence 0.250" in read(page_of(kept)).text


def test_another_version_stands_beside(kept: Kept) -> None:
    old = replace(results({"q1": {"default": 0.0}, "q9": {"default": 1.0}}), whyrank="0.9", made="long ago")
    said = read(page_of(kept, against(kept, old))).text
    assert "against whyrank 0.9, measured long ago" in said
    assert "default against default of the other results" in said
    assert "1 better + 0 worse + 0 same = 1 query" in said
    assert "3 queries only in these results (q2, q3, q4)" in said
    assert "1 query only in the other results (q9)" in said


def test_results_that_have_nothing_in_common_say_so(kept: Kept) -> None:
    old = replace(kept, sets=(replace(kept.sets[0], name="other"),))
    said = read(page_of(kept, against(kept, old))).text
    assert "Nothing can be compared." in said
    assert "set other: only in the other results" in said


def test_hostile_text_stays_text(kept: Kept) -> None:
    [one] = kept.sets
    queries = tuple(
        replace(
            query, id=query.id + HOSTILE, text=HOSTILE, kind=HOSTILE + query.kind, scope=HOSTILE, expected={HOSTILE: 1}
        )
        for query in one.queries
    )
    bad = replace(one, name=HOSTILE, queries=queries, worst=(story("q3" + HOSTILE, HOSTILE),), notices={HOSTILE: 1})
    made = replace(kept, whyrank=HOSTILE, made=HOSTILE, settings={HOSTILE: HOSTILE}, sets=(bad,))
    other = replace(made, sets=(replace(bad, queries=queries[:2], digest="z"), replace(bad, name="x" + HOSTILE)))
    parsed = read(page_of(made, against(made, other)))
    assert parsed.text.count("<script>alert('x')</script>") > 20
    assert "\u202e" not in parsed.text
    # The same elements as with harmless words: no text made or ended one.
    assert parsed.count("details") == read(page_of(kept, against(kept, kept))).count("details")


def test_a_broken_trail_is_what_a_reader_sees_first(kept: Kept) -> None:
    broken = replace(kept, sets=(replace(kept.sets[0], broken=1),))
    assert "1 of 3 trails do not replay to their key" in read(page_of(broken)).text


def test_a_risk_above_that_of_chance_is_drawn_at_its_height() -> None:
    # kept 0.2, rejected 0.2: 0.8 / (0.2 + 0.8) = 0.8 of those answered have no answer; kept 0.5: 0.8 / 1.3 = 0.615
    points = (Point(0.1, 1.0, 0.0), Point(0.5, 0.5, 0.2), Point(0.9, 0.2, 0.2))
    assert [round(point.risk, 3) for point in points] == [0.5, 0.615, 0.8]
    side = KeptSide("other scopes", 10, 20, 0.3, 0.1, points, 0.5, 0.2)
    parsed = read(page_of(Kept("1.0", "today", {}, abstentions=(KeptAbstention("small", (side,), ()),))))
    [_, risks] = [attributes["points"] for tag, attributes in parsed.tags if tag == "polyline"]
    heights = [float(point.split(",")[1]) for point in risks.split()]
    assert len(set(heights)) == 3


def test_an_abstention_without_points_has_a_page() -> None:
    side = KeptSide("other scopes", 10, 20, 0.3, 0.1, (), 0.5, 0.2)
    kept = Kept("1.0", "today", {}, abstentions=(KeptAbstention("small", (side,), ()),))
    assert "other scopes" in read(page_of(kept)).text


def test_an_abstention_has_its_curves_and_the_verdict_on_them() -> None:
    points = (Point(0.1, 1.0, 0.0), Point(0.5, 0.9, 0.8), Point(0.9, 0.1, 1.0))
    side = KeptSide("other scopes", 10, 20, 0.95, 0.7, points, 0.98, 0.66)
    kept = Kept("1.0", "today", {}, abstentions=(KeptAbstention("small", (side,), ("user:ann",)),))
    parsed = read(page_of(kept))
    assert parsed.count("polyline") == 2
    assert "other scopes 20 10 0.950 70.0% 98.0% 66.0%" in parsed.text
    assert "other scopes: the verdict" in parsed.text
    assert "Too few memories to calibrate by: user:ann." in parsed.text
