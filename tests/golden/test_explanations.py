"""What an explanation looks like, to the letter; a change here is a change that users see."""

from __future__ import annotations

from dataclasses import replace

import pytest

from whyrank import Run, rank
from whyrank.analysis.query import analyse
from whyrank.ranking.recipes import RECIPES, rank_pool
from whyrank.types.memory import Memory
from whyrank.types.query import Query, Where
from whyrank.types.results import Context, Labels, Signal
from whyrank.types.trail import Part, Step, TermBoost, TermValue, render

NOW = 1_700_000_000.0

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


WORDS = (TermValue("tea", "words", "own", 2.01), TermValue("pot", "words", "own", 2.11))


def test_every_kind_of_step_has_its_line() -> None:
    parts = (
        Part("vector", 0.4613, 0.6, 0.7689, raw=0.384, rank=3, best=0.8),
        Part("keyword", 0.3, 0.4, 0.75, raw=4.12, coverage=0.4, terms=WORDS),
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


@pytest.mark.parametrize(
    ("field", "context", "label"),
    [
        ("words", "own", "tea"),
        ("words", "file", "tea (file)"),
        ("grams", "own", "tea (grams)"),
        ("pairs", "window", "tea (pairs, window)"),
        ("dates", "own", "tea"),
        ("speakers", "own", "said by tea"),
    ],
)
def test_a_term_is_named_by_its_field_and_its_context(field: str, context: str, label: str) -> None:
    assert TermValue("tea", field, context, 1.0).label == label


def test_foreign_lists_explain_themselves() -> None:
    ranking = rank([Run.of("words", [("a", -2.0), ("b", -1.0)], lower_is_better=True), Run.of("lance", [("b", 0.9)])])
    assert ranking.hits[0].explain() == (
        "= fusion: 0.9919\n"
        "    words: 0.4919 = 0.500 × 0.9839  (rank 2, raw 1.0000)\n"
        "    lance: 0.5000 = 0.500 × 1.0000  (rank 1, raw 0.9000)\n"
        "score 0.9919"
    )


EXPLAINED = {
    "hybrid-mem": """\
= fusion: 0.9919
    vector: 0.5000 = 0.500 × 1.0000  (rank 1, raw 0.9000)
    keyword: 0.4919 = 0.500 × 0.9839  (rank 2, raw 5.0000)
        remind 5.000
score 0.9919""",
    "clawhub": """\
= fusion: 0.9000
    vector: 0.9000 = 1.000 × 0.9000  (rank 1, raw 0.9000 of at best 0.9000)
    keyword: 0.0000 = 0.000 × 0.0000  (not listed, raw 5.0000)
        remind 5.000
+ boosts: 1.4000 → 2.3000  slug: every word
+ boosts: 1.1000 → 3.4000  name: every word
score 3.4000""",
    "clawhub-266": """\
= fusion: 0.9000
    vector: 0.9000 = 1.000 × 0.9000  (rank 1, raw 0.9000 of at best 0.9000)
    keyword: 0.0000 = 0.000 × 0.0000  (not listed, raw 5.0000)
        remind 5.000
+ boosts: 3.0000 → 3.9000  slug: every word
+ boosts: 2.5000 → 6.4000  name: every word
+ boosts: 1.8000 → 8.2000  summary: 0.3 × 6 points, 1 word and 1 beginning of 2
score 8.2000""",
    "openvault": """\
= fusion: 12.1500  entity 'Remind Me': 'remind' in 2 of 30, ratio 0.733, 5 repeats become 4
    vector: 8.4000 = 10.500 × 0.8000  (rank 1, raw 0.9000 of at best 0.9000)
    keyword: 3.7500 = 4.500 × 0.8333  (rank 2, raw 5.0000 of at best 6.0000)
        remind ×4 5.000
+ base: 3.2749 → 15.4249  importance 4 × 0.819 remembered, 64 days old
score 15.4249""",
}


@pytest.mark.parametrize("name", list(EXPLAINED))
def test_the_recipes_of_other_systems_explain_themselves(name: str) -> None:
    recipe = RECIPES[name]
    boosts = (TermBoost("Remind Me", "remind", 5, 2, 30, 0.7332, 4),) if recipe.plan.entities else ()
    skill = Memory("a", "sets alarms", name="Remind Me", slug="remind-me", summary="Reminders for me", importance=4)
    memories = [replace(skill, date=NOW - 64 * 86_400), Memory("b", "tells of events"), Memory("c", "keeps lists")]
    remind = TermValue("remind ×4" if boosts else "remind", "words", "own", 5.0)
    words = {"a": (remind,), "b": (TermValue("me", "words", "own", 6.0),)}
    signals = {
        "vector": Signal("vector", {"a": 0.9, "b": 0.6, "c": 0.2}),
        "keyword": Signal("keyword", {"a": 5.0, "b": 6.0, "c": 0.0}, terms=words),
    }
    runs = [Run.of(run, signal.values.items()) for run, signal in signals.items()]
    context = Context(
        Query("Remind Me", Where(now=NOW)),
        replace(analyse("Remind Me"), boosts=boosts),
        {memory.id: memory for memory in memories},
        signals,
        labels={"a": Labels(("remind", "me"), ("remind", "me"), ("reminders", "for", "me"))},
    )
    assert rank_pool(runs, recipe, context).hits[0].explain() == EXPLAINED[name]
