"""Entities a question names count more, the rarer they are, through the whole of search."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from whyrank.analysis.document import entry_for
from whyrank.analysis.names import probe_for
from whyrank.protocols import Changes, Store
from whyrank.ranking.recipes import RECIPES, Adjustments, Recipe, adjusted
from whyrank.search.searcher import Searcher
from whyrank.storage.query_resolution import mentions
from whyrank.testing.memory_store import MemoryStore
from whyrank.testing.store_contract import NOW, fact
from whyrank.types.memory import Memory, Scope
from whyrank.types.query import ONCE, Join, Query, Repeats, Where
from whyrank.types.trail import part_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whyrank.types.results import Results, Run

BOOSTED = adjusted(RECIPES["keyword"], Adjustments(entity_boost=5.0))


def filled(memories: list[Memory]) -> Store:
    store = MemoryStore()
    store.write(Changes(put=[entry_for(memory, "en") for memory in memories]))
    return store


def search(store: Store, text: str, recipe: Recipe = BOOSTED, **where: object) -> Results:
    query = Query(text, replace(Where(now=NOW), **where), limit=50)  # type: ignore[arg-type]  # fields of Where
    return Searcher(store, None, "en").search(query, recipe)


def thirty(suzy: int) -> list[Memory]:
    """Return thirty facts, the first of which speak of Suzy; all speak of tea."""
    return [fact(f"m_{i:02}", f"{'Suzy' if i < suzy else 'Robin'} had tea on day{i}") for i in range(30)]


@pytest.mark.parametrize(
    ("held", "repeats"),
    [
        (28, 1),  # 5 × 0.0245 rounds to 0
        (2, 4),  # 5 × 0.733 = 3.67
    ],
)
def test_a_name_counts_in_proportion_to_its_rarity(held: int, repeats: int) -> None:
    results = search(filled(thirty(held)), "did Suzy have tea?")
    [boost] = [boost for boost in results.analysis.boosts if boost.term == "suzi"]
    assert (boost.base, boost.held, boost.total, boost.repeats) == (5, held, 30, repeats)


def test_the_trail_names_entity_frequency_and_ratio_and_its_terms_add_up() -> None:
    results = search(filled(thirty(2)), "did Suzy have tea?")
    step = results.hits[0].trail[0]
    assert step.why == "entity 'Suzy': 'suzi' in 2 of 30, ratio 0.733, 5 repeats become 4"
    part = part_of(results.hits[0].trail, "keyword")
    assert part is not None
    assert "suzi ×4" in [found.label for found in part.terms]
    assert sum(found.value for found in part.terms) == pytest.approx(part.raw)


def test_a_name_said_three_times_weighs_three_times_as_much() -> None:
    results = search(filled(thirty(2)), "Suzy? Suzy had tea? Suzy!")
    [boost] = [boost for boost in results.analysis.boosts if boost.term == "suzi"]
    assert (boost.base, boost.repeats) == (15, 11)  # 15 × 0.733 = 11.0


def test_names_and_entities_of_memories_are_known_however_they_are_written() -> None:
    memories = [
        fact("m_1", "drinks tea with milk", entities=("Milk Bar",)),
        fact("m_2", "an alarm clock", name="Remind Me"),
        fact("m_3", "green tea at the milk bar"),
    ]
    results = search(filled(memories), "how does remind me go with the milk bar")
    assert {(boost.entity, boost.term) for boost in results.analysis.boosts} >= {
        ("Milk Bar", "milk"),
        ("Milk Bar", "bar"),
        ("Remind Me", "remind"),
    }


def test_what_others_may_see_makes_no_entity() -> None:
    secret = fact("m_9", "the milk bar", entities=("Milk Bar",), scope=Scope("user", "other"))
    results = search(filled([fact("m_1", "milk at the bar"), secret]), "the milk bar")
    assert results.analysis.boosts == ()


def test_filters_change_neither_entities_nor_what_they_weigh() -> None:
    memories = [fact("m_1", "tea at the bar", entities=("Bar",)), fact("m_2", "the bar", tags=("x",))]
    store = filled(memories)
    everything, filtered = search(store, "at the bar"), search(store, "at the bar", tags=frozenset({"x"}))
    assert filtered.analysis.boosts == everything.analysis.boosts != ()


def test_a_recipe_without_the_boost_asks_for_no_entities() -> None:
    class Asked(MemoryStore):
        count = 0

        def keyword(
            self, terms: Sequence[str], where: Where, limit: int | None, join: Join = "or", repeats: Repeats = ONCE
        ) -> Run:
            Asked.count += 1
            return super().keyword(terms, where, limit, join, repeats)

    store = Asked()
    store.write(Changes(put=[entry_for(memory, "en") for memory in thirty(2)]))
    assert search(store, "did Suzy have tea?", RECIPES["default"]).analysis.boosts == ()
    assert Asked.count == 1


def test_mentions_are_counted_word_by_word() -> None:
    assert mentions("Green Tea", probe_for("green tea, and Green Tea again, greens")) == 2
    assert mentions("", probe_for("tea")) == 0


def test_openvault_asks_for_short_words_only_where_there_are_no_others() -> None:
    store = filled([fact("m_1", "go to the ui"), fact("m_2", "tea")])
    assert search(store, "go ui", RECIPES["openvault"]).analysis.terms == ("go", "ui")
    assert search(store, "go ui tea", RECIPES["openvault"]).analysis.terms == ("tea",)
    usual = adjusted(RECIPES["openvault"], Adjustments(analysis="standard"))
    assert search(store, "go ui tea", usual).analysis.terms == ("go", "ui", "tea")
