"""What an explanation looks like, to the letter; a change here is a change that users see."""

from __future__ import annotations

from whyrank import Run, rank
from whyrank.trail import Part, Step, render

GOLDEN = """\
= fusion: 0.7613
    vector: 0.4613 = 0.600 × 0.7689  (rank 3, raw 0.3840 of at best 0.8000)
    keyword: 0.3000 = 0.400 × 0.7500  (not listed, raw 4.1200)
        tea 2.010 + pot 2.110
+ name: 0.1450 → 0.9063  first words of 'Tea Pot Shop'
× recency: 0.9000 → 0.8157  30 days old, half-life 30
↑ name: tier 16  equal: 'Tea Pot'
· note: seen
✗ top: ranked 7, and results 1 to 6 were asked for
score 0.8157 in tier 16"""


def test_every_kind_of_step_has_its_line() -> None:
    parts = (
        Part("vector", 0.4613, 0.6, 0.7689, raw=0.384, rank=3, best=0.8),
        Part("keyword", 0.3, 0.4, 0.75, raw=4.12, coverage=0.4, terms=(("tea", 2.01), ("pot", 2.11))),
    )
    trail = (
        Step("fusion", "set", 0.4613 + 0.3, parts=parts),
        Step("name", "add", 0.145, "first words of 'Tea Pot Shop'"),
        Step("recency", "scale", 0.9, "30 days old, half-life 30"),
        Step("name", "lift", 16, "equal: 'Tea Pot'"),
        Step("note", "note", why="seen"),
        Step("top", "drop", why="ranked 7, and results 1 to 6 were asked for"),
    )
    assert render(trail) == GOLDEN


def test_foreign_lists_explain_themselves() -> None:
    ranking = rank([Run.of("words", [("a", -2.0), ("b", -1.0)], lower_is_better=True), Run.of("lance", [("b", 0.9)])])
    assert ranking.hits[0].explain() == (
        "= fusion: 0.9919\n"
        "    words: 0.4919 = 0.500 × 0.9839  (rank 2, raw 1.0000)\n"
        "    lance: 0.5000 = 0.500 × 1.0000  (rank 1, raw 0.9000)\n"
        "score 0.9919"
    )
