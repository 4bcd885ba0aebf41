"""Hits that are made when somebody looks at them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.unit.ranking.builders import context, hit, memory
from whyrank.ranking.boosts import Importance
from whyrank.ranking.ranking import (
    Grouped,
    Hits,
    HitSelection,
    Stepped,
    behind_of,
    chosen,
    held_by,
    ids_of,
    rescore,
    scores_of,
    tiers_of,
)
from whyrank.types.memory import Memory
from whyrank.types.results import Held, Hit, Ranking
from whyrank.types.trail import Step

A, B, C = memory("a"), memory("b"), memory("c")


class Watched(Hits):
    """Three hits that say which of them were made."""

    def __init__(self, *memories: Memory) -> None:
        self.made: list[int] = []
        self._memories = memories or (A, B, C)
        self._hits = [hit(one, score) for one, score in zip(self._memories, (0.9, 0.8, 0.5), strict=True)]

    def ids(self) -> list[str]:
        return ["a", "b", "c"]

    def scores(self) -> list[float]:
        return [0.9, 0.8, 0.5]

    def tiers(self) -> list[int]:
        return [0, 0, 0]

    def held(self) -> list[Held]:
        return [*self._memories]

    def behind(self) -> dict[str, tuple[int, int]]:
        return {}

    def hit(self, index: int) -> Hit:
        self.made.append(index)
        return self._hits[index]

    def __len__(self) -> int:
        return 3


def stepped(hits: Hits) -> Iterator[Hits]:
    yield HitSelection(hits, [2, 0])
    yield Grouped(hits, [2, 0], {0: [1]})
    yield Stepped(HitSelection(hits, [2, 0]), "mmr", lambda index: Step("mmr", "set", float(index)))


def test_ids_and_tiers_are_told_without_making_a_hit() -> None:
    watched = Watched()
    for hits in stepped(watched):
        assert (ids_of(hits), [*tiers_of(hits)], len(hits)) == (["c", "a"], [0, 0], 2)
    assert watched.made == []


def test_memories_are_told_without_making_a_hit() -> None:
    watched = Watched()
    for hits in stepped(watched):
        assert held_by(hits) == [C, A]
    assert watched.made == []


def test_a_stage_that_multiplies_makes_only_the_hits_that_are_looked_at() -> None:
    heavy, light = replace(C, importance=5), replace(A, importance=1)
    watched = Watched(light, B, heavy)
    ranked = Importance()(Ranking(watched), context(light, B, heavy)).hits
    # a: 0.9 × (0.75 + 0.1 × 1) = 0.765; b has no importance: 0.8; c: 0.5 × (0.75 + 0.1 × 5) = 0.625
    assert (ids_of(ranked), [*scores_of(ranked)]) == (["b", "a", "c"], [0.8, 0.9 * 0.85, 0.5 * 1.25])
    assert watched.made == []
    assert (ranked[1].score, len(ranked[1].trail), len(ranked[0].trail)) == (0.9 * 0.85, 2, 1)


def test_a_lift_is_told_without_making_a_hit() -> None:
    watched = Watched()
    lift = Step("name", "lift", 2)
    ranked = rescore(Ranking(watched), lambda identity: lift if identity == "c" else None).hits
    assert (ids_of(ranked), [*tiers_of(ranked)], [*scores_of(ranked)]) == (["c", "a", "b"], [2, 0, 0], [0.5, 0.9, 0.8])
    assert watched.made == []
    assert [found.key for found in ranked] == [(2, 0.5), (0, 0.9), (0, 0.8)]


def test_one_that_is_looked_at_is_made_alone() -> None:
    watched = Watched()
    assert chosen(watched, [2, 0])[1].id == "a"
    assert watched.made == [0]


def test_scores_after_a_step_are_those_of_the_step() -> None:
    _, _, after = stepped(Watched())
    assert [*scores_of(after)] == [0.0, 1.0]
    assert [found.score for found in after] == [0.0, 1.0]


def test_what_stands_beside_a_hit_is_told_alike_made_or_not() -> None:
    grouped = Grouped(Watched(), [2, 0], {0: [1]})
    assert behind_of(grouped) == {"b": (0, 1)} == behind_of(tuple(grouped))
    assert behind_of(HitSelection(grouped, [1, 0])) == {"b": (1, 1)}
    assert behind_of(HitSelection(grouped, [1])) == {}
    assert [held.id for held in grouped[0].also] == ["b"]


def test_a_second_grouping_keeps_what_stood_beside_before() -> None:
    once = Grouped(Watched(), [0, 2], {0: [1]})
    twice = Grouped(once, [0], {0: [1]})
    assert behind_of(twice) == {"b": (0, 1), "c": (0, 2)} == behind_of(tuple(twice))
