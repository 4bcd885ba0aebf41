"""A word that a query repeats counts as often, on every store there is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from whyrank.analysis.document import entry_for
from whyrank.protocols import Changes, Store
from whyrank.storage.store import SqliteStore
from whyrank.testing.memory_store import MemoryStore
from whyrank.testing.store_contract import NOW, fact
from whyrank.types.memory import GLOBAL, Scope, Source
from whyrank.types.query import Where

if TYPE_CHECKING:
    from whyrank.types.results import Run, Signal
    from whyrank.types.trail import TermValue

EVERYTHING = Where(now=NOW)
Opener = Callable[[Path], Store]


def in_dictionaries(folder: Path) -> Store:
    return MemoryStore()


def in_postings(folder: Path) -> Store:
    return SqliteStore(folder / "memory.db", "postings")


def in_fts5(folder: Path) -> Store:
    return SqliteStore(folder / "memory.db", "fts5")


@pytest.fixture(params=[in_dictionaries, in_postings, in_fts5])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    opened: Store = request.param(tmp_path)
    memories = (
        fact("m_1", "suzy drinks tea"),
        fact("m_2", "suzy and robin"),
        fact("m_3", "green tea, black tea, tea with milk"),
        fact("m_4", "a walk in the hills"),
    )
    opened.write(Changes(put=[entry_for(memory, "en") for memory in memories]))
    return opened


def scores(run: Run) -> dict[str, float]:
    return {candidate.id: candidate.score for candidate in run.candidates}


def scored(store: Store, repeats: dict[str, int]) -> Signal:
    [signal] = store.score(["m_1", "m_2", "m_3", "m_4"], ["suzi", "tea"], None, "", EVERYTHING, repeats)
    return signal


def test_a_repeated_word_scores_as_often_as_it_is_repeated(store: Store) -> None:
    once = scores(store.keyword(["suzi"], EVERYTHING, 9))
    often = scores(store.keyword(["suzi"], EVERYTHING, 9, repeats={"suzi": 12}))
    # Letters inside words count besides, in the index that has them, and once: 12 · words + letters.
    words = {
        key: sum(found.value for found in scored_terms(store, key, {}) if found[:2] == ("suzi", "words"))
        for key in once
    }
    assert often == pytest.approx({key: once[key] + 11 * words[key] for key in once})


def scored_terms(store: Store, identity: str, repeats: dict[str, int]) -> list[TermValue]:
    return list(scored(store, repeats).terms[identity])


def test_repeats_change_the_order_and_say_so(store: Store) -> None:
    assert next(iter(scores(store.keyword(["tea", "suzi"], EVERYTHING, 9, repeats={"tea": 9})))) in ("m_1", "m_3")
    ordered = list(scores(store.keyword(["tea", "suzi"], EVERYTHING, 9, repeats={"suzi": 9})))
    assert ordered[-1] == "m_3"  # all its tea is worth less than one name that counts nine times
    labels = [found.label for found in scored_terms(store, "m_1", {"suzi": 9})]
    assert "suzi ×9" in labels
    assert "tea" in labels


def test_what_each_word_adds_still_adds_up(store: Store) -> None:
    signal = scored(store, {"suzi": 7})
    for identity, value in signal.values.items():
        total = 0.0
        for found in signal.terms.get(identity, ()):
            total += found.value
        assert total == value


def test_a_run_and_scores_speak_of_the_same_numbers(store: Store) -> None:
    listed = scores(store.keyword(["suzi", "tea"], EVERYTHING, 9, repeats={"suzi": 7}))
    values = scored(store, {"suzi": 7}).values
    assert listed == pytest.approx({key: values[key] for key in listed})


def test_repeats_never_change_coverage(store: Store) -> None:
    once, often = scored(store, {}), scored(store, {"suzi": 17, "tea": 2})
    assert dict(often.coverage) == pytest.approx(dict(once.coverage))


def test_the_last_position_of_a_session_is_that_of_its_last_turn(store: Store) -> None:
    other = Scope("user", "42")
    turns = [
        fact("t_1", "hello", session="s", position=0, kind="chunk", source=Source("log.jsonl", 1, 1, "1")),
        fact("t_2", "bye", session="s", position=7, kind="chunk", source=Source("log.jsonl", 2, 2, "2")),
        fact("t_3", "gone", session="s", position=9, kind="chunk", source=Source("log.jsonl", 3, 3, "3")),
        fact("t_4", "theirs", session="s", position=3, scope=other, kind="chunk", source=Source("x.jsonl", 1, 1, "4")),
    ]
    store.write(Changes(put=[entry_for(turn, "en") for turn in turns]))
    store.write(Changes(remove=["t_3"]))
    asked = [(GLOBAL, "s"), (other, "s"), (GLOBAL, "unknown")]
    assert store.last_positions(asked) == {(GLOBAL, "s"): 7, (other, "s"): 3}
