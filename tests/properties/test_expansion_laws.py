"""Laws 1 to 5 and 7 hold for questions that were widened, whatever a language model made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.test_search_laws import EMBEDDER, RECIPES_UNDER_LAW, collections, filled, told
from tests.properties.worlds import NOW, SEEN, queries
from whyrank.ranking.recipes import RECIPES
from whyrank.search.searcher import Searcher
from whyrank.testing.memory_store import MemoryStore
from whyrank.types.query import Expansion, Query, Stopwatch, Where
from whyrank.types.trail import replay

if TYPE_CHECKING:
    from whyrank.protocols import Store
    from whyrank.types.memory import Memory
    from whyrank.types.results import Results

WHERE = Where(scopes=SEEN, now=NOW)
recipes = st.sampled_from(RECIPES_UNDER_LAW)
expansions = st.builds(
    Expansion, st.sampled_from(["hyde", "variants"]), st.lists(queries, min_size=1, max_size=6).map(tuple)
)


def ask(store: Store, text: str, recipe: str, expansion: Expansion | None, limit: int = 50) -> Results:
    return Searcher(store, EMBEDDER, "en").search(Query(text, WHERE, limit, expansion=expansion), RECIPES[recipe])


@given(found=collections(), text=queries, recipe=recipes, expansion=expansions, bare=st.integers(0, 3))
@settings(max_examples=80, deadline=None)
def test_laws_1_and_2_every_candidate_is_told_of_and_its_key_is_its_trail(
    found: list[Memory], text: str, recipe: str, expansion: Expansion, bare: int
) -> None:
    store = filled(MemoryStore(), found, bare)
    query = Query(text, WHERE, 50, expansion=expansion)
    retrieved = Searcher(store, EMBEDDER, "en").retrieve(query, RECIPES[recipe], Stopwatch())
    results = ask(store, text, recipe, expansion)
    told_of = [*results.hits, *results.dropped]
    assert {hit.id for hit in told_of} == set(retrieved.context.memories)
    for hit in told_of:
        assert replay(hit.trail) == hit.key
        fused = hit.trail[0]
        assert sum(part.value for part in fused.parts) == pytest.approx(fused.value, abs=1e-12)


@given(found=collections(), text=queries, recipe=recipes)
@settings(max_examples=60, deadline=None)
def test_law_3_runs_that_find_nothing_change_nothing(found: list[Memory], text: str, recipe: str) -> None:
    store = filled(MemoryStore(), found, without_vector=len(found))
    nothing = Expansion("variants", ("qqqqqqqqqq",))
    assert told(ask(store, text, recipe, nothing)) == told(ask(store, text, recipe, None))


@given(found=collections(), text=queries, recipe=recipes, texts=st.lists(queries, min_size=2, max_size=2))
@settings(max_examples=60, deadline=None)
def test_law_4_neither_the_order_of_wordings_nor_of_memories_nor_the_limit_matters(
    found: list[Memory], text: str, recipe: str, texts: list[str]
) -> None:
    one, other = (Expansion("variants", tuple(order)) for order in (texts, texts[::-1]))
    store, turned = filled(MemoryStore(), found), filled(MemoryStore(), found[::-1])
    whole = told(ask(store, text, recipe, one))
    assert whole == told(ask(store, text, recipe, other)) == told(ask(turned, text, recipe, one))
    assert whole[:1] == told(ask(store, text, recipe, one, limit=1))


@given(found=collections(), text=queries, expansion=expansions)
@settings(max_examples=60, deadline=None)
def test_law_5_a_memory_as_good_in_every_signal_is_not_fused_below(
    found: list[Memory], text: str, expansion: Expansion
) -> None:
    store = filled(MemoryStore(), found)
    results = ask(store, text, "default", expansion)
    fused = [hit.trail[0] for hit in (*results.hits, *results.dropped)]
    for one in fused:
        for other in fused:
            values = {part.signal: part.normalised for part in other.parts}
            same = {part.signal for part in one.parts} == set(values)
            if same and all(part.normalised >= values[part.signal] for part in one.parts):
                assert one.value >= other.value - 1e-12
