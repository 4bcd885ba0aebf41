"""Hits as columns: a hit is made only when somebody reads it."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.ranking.builders import context, hit, memory
from whyrank.ranking.boosts import Importance
from whyrank.types.results import Candidates, Hits, Ranking, column_of, drop, rescore, split_dropped
from whyrank.types.trail import Step, Trail

A, B, C = memory("a"), memory("b"), memory("c")
SCORES = (0.9, 0.8, 0.5)


def watched(read: list[str]) -> Hits:
    """Three hits that say whose trail was written."""

    def trail(number: int) -> Trail:
        read.append("abc"[number])
        return hit((A, B, C)[number], SCORES[number]).trail

    candidates = Candidates.of({one.id: one for one in (A, B, C)})
    return Hits(candidates, range(3), (0, 0, 0), SCORES, trail)


def test_ids_tiers_and_scores_are_told_without_making_a_hit() -> None:
    read: list[str] = []
    some = watched(read).pick([2, 0])
    assert (some.ids, some.tiers, some.scores, len(some)) == (["c", "a"], [0, 0], [0.5, 0.9], 2)
    assert column_of({"a": 0.3, "b": 0.4}, some.ids) == [None, 0.3]
    assert read == []
    assert (some[1].id, read) == ("a", ["a"])


def test_hits_that_are_made_are_columns_too() -> None:
    made = (hit(A, 0.9), hit(B, 0.8)._replace(beside=(C,)))
    columns = Hits.of(made)
    assert (columns.ids, columns.tiers, columns.scores) == (["a", "b"], [0, 0], [0.9, 0.8])
    assert columns == made
    assert Hits.of(columns) is columns


def test_a_stage_that_multiplies_makes_only_the_hits_that_are_looked_at() -> None:
    heavy, light = replace(C, importance=5), replace(A, importance=1)
    read: list[str] = []
    ranked = Hits.of(Importance()(Ranking(watched(read)), context(light, B, heavy)).hits)
    # a: 0.9 × (0.75 + 0.1 × 1) = 0.765; b has no importance: 0.8; c: 0.5 × (0.75 + 0.1 × 5) = 0.625
    assert (ranked.ids, ranked.scores) == (["b", "a", "c"], [0.8, 0.9 * 0.85, 0.5 * 1.25])
    assert read == []
    assert (ranked[1].score, len(ranked[1].trail), len(ranked[0].trail)) == (0.9 * 0.85, 2, 1)


def test_a_lift_is_told_without_making_a_hit() -> None:
    read: list[str] = []
    lift = Step("name", "lift", 2)
    ranked = Hits.of(rescore(Ranking(watched(read)), lambda identity: [lift] if identity == "c" else ()).hits)
    assert (ranked.ids, ranked.tiers, ranked.scores) == (["c", "a", "b"], [2, 0, 0], [0.5, 0.9, 0.8])
    assert read == []
    assert [found.key for found in ranked] == [(2, 0.5), (0, 0.9), (0, 0.8)]


def test_what_is_dropped_keeps_its_stage_and_reason() -> None:
    read: list[str] = []
    after = drop(Ranking(watched(read)), "test", lambda number: f"number {number}", [0, 2])
    again = drop(after, "later", lambda number: "too late", [0])
    assert ([found.id for found in after.hits], len(again.hits)) == (["b"], 0)
    assert [found.id for found in split_dropped(again.dropped, frozenset({"test"}))] == ["a", "c"]
    read.clear()
    assert split_dropped(again.dropped, frozenset({"later"})).ids == ["b"]
    assert read == []
    assert [found.trail[-1] for found in again.dropped] == [
        Step("test", "drop", why="number 0"),
        Step("test", "drop", why="number 2"),
        Step("later", "drop", why="too late"),
    ]


def test_what_stands_beside_a_hit_stays_beside_it() -> None:
    some = watched([])
    grouped = Hits(some.candidates, some.places, some.tiers, some.scores, some.trail, {"c": (1,)})
    assert [held.id for held in grouped.pick([2, 0])[0].also] == ["b"]
    assert grouped.pick([0])[0].also == ()
