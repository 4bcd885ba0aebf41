"""The laws of ranking (1 to 5 and 7), over generated worlds, fusions and recipes."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.worlds import SEEN, World, candidates, fusions, normalisers, recipes, worlds
from whyrank.ranking.fusion import Fuse, Normaliser, Sigmoid, Vote
from whyrank.ranking.recipes import RECIPES, Recipe, guard, rank
from whyrank.types.results import Run, in_order
from whyrank.types.trail import replay, total

any_recipe = st.one_of(recipes(), st.sampled_from(list(RECIPES.values())))


def settled(recipe: Recipe) -> Recipe:
    return replace(recipe, fusion=recipe.fusion.with_vector_weight(0.6))


@given(worlds(), any_recipe)
@settings(max_examples=150, deadline=None)
def test_law_1_the_key_is_the_fold_of_the_trail(world: World, recipe: Recipe) -> None:
    ranking = rank(world.runs, settled(recipe), world.context)
    for hit in (*ranking.hits, *ranking.dropped):
        assert replay(hit.trail) == hit.key
        for step in hit.trail:
            if step.parts:
                assert total(step.parts) == step.value
                assert all(part.value == part.weight * part.normalised for part in step.parts)


@given(worlds(visible_only=True), any_recipe)
@settings(max_examples=150, deadline=None)
def test_law_2_nothing_vanishes(world: World, recipe: Recipe) -> None:
    ranking = rank(world.runs, settled(recipe), world.context)
    ids = [hit.id for hit in (*ranking.hits, *ranking.dropped)]
    assert sorted(ids) == sorted(candidates(world))
    for hit in ranking.dropped:
        assert hit.trail[-1].op == "drop"
        assert hit.trail[-1].why


@given(worlds(visible_only=True), fusions())
@settings(max_examples=100, deadline=None)
def test_law_3_a_run_that_found_nothing_changes_nothing(world: World, fusion: Fuse) -> None:
    _, vector = world.runs
    alone = fusion((vector,), world.context)
    with_empty = fusion((Run("keyword"), vector), world.context)
    assert alone == with_empty
    if vector.candidates and fusion.votes[0].weight:
        parts = [part for hit in alone.hits for part in hit.trail[0].parts if part.weight]
        assert all(part.signal == "vector" and part.weight == fusion.whole for part in parts)


@given(worlds(visible_only=True), fusions())
@settings(max_examples=100, deadline=None)
def test_law_3_every_candidate_is_scored_by_every_signal_it_has(world: World, fusion: Fuse) -> None:
    answered = {run.name for run in world.runs if run.candidates}
    # Where all that was given weight is silent, words that were given none may speak.
    live = {vote.signal for vote in fusion.votes if vote.weight} & answered or answered - {"vector"}
    for hit in fusion(world.runs, world.context).hits:
        has = {part.signal for part in hit.trail[0].parts if part.weight}
        by_rank = {vote.signal for vote in fusion.votes if vote.normaliser.by_rank}
        expected = {name for name in live if name in by_rank or hit.id in world.context.signals[name].values}
        assert has == expected
        for part in hit.trail[0].parts:
            assert part.raw == world.context.signals[part.signal].values.get(hit.id)


@given(worlds(visible_only=True), fusions())
@settings(max_examples=100, deadline=None)
def test_law_3_a_hit_without_a_vector_is_not_dragged_down(world: World, fusion: Fuse) -> None:
    for hit in fusion(world.runs, world.context).hits:
        parts = hit.trail[0].parts
        if parts and any(part.weight for part in parts):
            assert math.isclose(sum(part.weight for part in parts), fusion.whole)


@given(worlds(visible_only=True), fusions(("kept",)))
@settings(max_examples=100, deadline=None)
def test_where_weights_are_kept_no_signal_gives_more_than_its_own_share(world: World, fusion: Fuse) -> None:
    weights = {vote.signal: vote.weight for vote in fusion.votes}
    for hit in fusion(world.runs, world.context).hits:
        for part in hit.trail[0].parts:
            assert part.weight == 0 or math.isclose(part.weight, (weights[part.signal] or 0.0) * fusion.whole)
            assert part.value <= part.weight + 1e-12


@given(worlds(visible_only=True), any_recipe)
@settings(max_examples=100, deadline=None)
def test_law_4_order_of_runs_and_memories_does_not_matter(world: World, recipe: Recipe) -> None:
    shuffled = dict(sorted(world.context.memories.items(), reverse=True))
    other = replace(world.context, memories=shuffled)
    first = rank(world.runs, settled(recipe), world.context)
    second = rank(world.runs[::-1], settled(recipe), other)
    assert [hit.id for hit in first.hits] == [hit.id for hit in second.hits]


@given(worlds(visible_only=True), any_recipe)
@settings(max_examples=100, deadline=None)
def test_law_4_one_result_is_the_head_of_fifty(world: World, recipe: Recipe) -> None:
    def first(limit: int) -> list[str]:
        context = replace(world.context, query=replace(world.context.query, limit=limit))
        return [hit.id for hit in rank(world.runs, settled(recipe), context).hits]

    everything = first(50)
    for limit in (0, 1, 2, 5):
        assert first(limit) == everything[:limit]


@given(worlds(visible_only=True), recipes())
@settings(max_examples=100, deadline=None)
def test_law_4_hits_are_in_the_one_total_order(world: World, recipe: Recipe) -> None:
    ranking = rank(world.runs, settled(recipe), world.context)
    assert list(ranking.hits) == list(in_order(ranking.hits))
    keys = [(-hit.tier, -hit.score, hit.memory.content_key) for hit in ranking.hits]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


@given(worlds(visible_only=True), fusions())
@settings(max_examples=150, deadline=None)
def test_law_5_votes_are_monotone(world: World, fusion: Fuse) -> None:
    by_score = [vote for vote in fusion.votes if not vote.normaliser.by_rank]
    if len(by_score) < len(fusion.votes):
        return
    signals = world.context.signals
    hits = {hit.id: hit for hit in fusion(world.runs, world.context).hits}
    whole = [identity for identity in hits if all(identity in signal.values for signal in signals.values())]
    for a in whole:
        for b in whole:
            if all(signal.values[a] >= signal.values[b] for signal in signals.values()):
                assert hits[a].score >= hits[b].score


@given(worlds(visible_only=True), fusions())
@settings(max_examples=100, deadline=None)
def test_law_5_the_first_of_every_run_is_a_candidate(world: World, fusion: Fuse) -> None:
    ids = {hit.id for hit in fusion(world.runs, world.context).hits}
    assert all(run.candidates[0].id in ids for run in world.runs if run.candidates)


@given(worlds(), any_recipe)
@settings(max_examples=100, deadline=None)
def test_law_6_no_foreign_memory_leaves_ranking(world: World, recipe: Recipe) -> None:
    ranking = rank(world.runs, settled(recipe), world.context)
    shown = guard(ranking, world.context)
    assert all(hit.memory.scope in SEEN for hit in shown.hits)
    foreign = [hit for hit in ranking.hits if hit.memory.scope not in SEEN]
    unguard = [notice for notice in ranking.notices if notice.code == "scope-defect"]
    assert any(notice.code == "scope-defect" for notice in shown.notices) == bool(foreign or unguard)


@given(worlds(), any_recipe)
@settings(max_examples=100, deadline=None)
def test_law_7_no_score_is_nan_or_infinite(world: World, recipe: Recipe) -> None:
    ranking = rank(world.runs, settled(recipe), world.context)
    assert all(math.isfinite(hit.score) for hit in (*ranking.hits, *ranking.dropped))


@given(
    normalisers,
    st.lists(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e6, max_value=1e6), min_size=1, max_size=20),
)
@settings(max_examples=250, deadline=None)
def test_every_normaliser_is_monotonic_and_bounded(normaliser: Normaliser, scores: list[float]) -> None:
    ordered = sorted(map(abs, scores) if isinstance(normaliser, Sigmoid) else scores, reverse=True)
    values = normaliser(ordered, list(range(1, len(ordered) + 1)))
    assert all(0.0 <= value <= 1.0 for value in values)
    assert values == sorted(values, reverse=True)


@given(worlds(visible_only=True), normalisers)
@settings(max_examples=100, deadline=None)
def test_a_contribution_is_bounded_by_its_weight(world: World, normaliser: Normaliser) -> None:
    votes = (Vote("vector", 0.7, normaliser), Vote("keyword", 0.3, normaliser))
    for fusion in (Fuse(votes), Fuse(votes, strength=15.0)):
        for hit in fusion(world.runs, world.context).hits:
            assert all(0.0 <= part.value <= part.weight for part in hit.trail[0].parts)
            assert 0.0 <= hit.score <= fusion.whole + 1e-12
