"""The one total order."""

from __future__ import annotations

from tests.unit.ranking.builders import hit, memory, ranking
from whyrank.types.results import in_order, rescore
from whyrank.types.trail import Step


def test_equals_are_ordered_by_content_and_not_as_they_came() -> None:
    a, b, c = (hit(memory(name, path=f"{name}.md"), 0.5) for name in "abc")
    assert [found.id for found in in_order([c, a, b])] == ["a", "b", "c"]


def test_what_a_stage_makes_equal_is_ordered_by_content() -> None:
    better, other = hit(memory("b", path="b.md"), 0.6), hit(memory("a", path="a.md"), 0.5)
    # 0.6 → 0.5: both are equal now, and a.md comes before b.md.
    ranked = rescore(ranking(better, other), lambda identity: [Step("test", "set", 0.5)])
    assert [found.id for found in ranked.hits] == ["a", "b"]
