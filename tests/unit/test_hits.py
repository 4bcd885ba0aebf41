"""Memories whose rows are at hand: made when somebody looks, and guarded without being made."""

from __future__ import annotations

import copy
import pickle
from dataclasses import asdict
from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank.errors import StoreError
from whyrank.interfaces import serialize
from whyrank.types.memory import Document, Memory
from whyrank.types.results import Hit, Results, Stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NOW = 1_700_000_000.0


def stored(memory: Memory, read: list[str]) -> Stored:
    def reading(identity: str) -> Memory:
        read.append(identity)
        return memory

    return Stored(memory.id, memory.scope, memory.origin, memory.content_key, reading)


def test_a_memory_is_read_only_when_somebody_looks() -> None:
    read: list[str] = []
    hit = Hit(stored(Memory("a", "tea"), read))
    assert (hit.id, hit.held.origin, hit.held.content_key, read) == ("a", "a", ("", 0, "", "a"), [])
    assert (hit.memory.text, read) == ("tea", ["a"])


def test_a_memory_that_waits_equals_the_one_that_it_is() -> None:
    memory = Memory("a", "tea")
    assert stored(memory, []) == memory
    assert memory == stored(memory, [])
    assert stored(memory, []) != stored(Memory("a", "coffee"), [])
    assert hash(stored(memory, [])) == hash(memory)


@pytest.fixture
def results(tmp_path: Path) -> Iterator[Results]:
    """Ten facts and a file of two chunks about tea: three are shown, one of them with the other chunk beside it."""
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        for number in range(10):
            engine.add(f"Robin drinks tea number {number}")
        sections = (f"# {name} tea\n\n{'Who drinks tea? ' * 80}\n" for name in ("Green", "Black"))
        engine.add_documents([Document("tea.md", "\n".join(sections))])
        yield engine.search("who drinks tea", limit=3)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda given: pickle.loads(pickle.dumps(given))])
def test_a_copy_of_an_answer_is_the_answer_made(results: Results, copied: Callable[[Results], Results]) -> None:
    made = copied(results)
    assert (len(made.hits), len(made.dropped), sum(len(hit.beside) for hit in made.hits)) == (3, 9, 1)
    assert made == results
    assert [type(hit.held) for hit in (*made.hits, *made.dropped)] == [Memory] * (3 + 9)
    assert [hit.explain() for hit in made.dropped] == [hit.explain() for hit in results.dropped]
    assert type(made.dropped) is tuple


def test_a_copy_of_an_answer_needs_no_store(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        engine.add("Robin drinks tea")
        engine.add("Ann drinks tea")
        made = copy.deepcopy(engine.search("tea", limit=1))
    assert {hit.memory.text for hit in (*made.hits, *made.dropped)} == {"Robin drinks tea", "Ann drinks tea"}


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda given: pickle.loads(pickle.dumps(given))])
def test_an_answer_can_be_copied_after_a_dropped_hit_was_forgotten(
    tmp_path: Path, copied: Callable[[Results], Results]
) -> None:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        engine.add("tea tea tea")
        gone = engine.add("Ann drinks tea out of a cup", scope="user:1")
        results = engine.search("tea", limit=1, scope="user:1")
        [before] = results.dropped
        engine.forget(gone.id, scope="user:1")
        made = copied(results)
        [after] = made.dropped
        assert (after.id, after.score, after.explain()) == (gone.id, before.score, before.explain())
        assert after.memory.text == "(forgotten since the search)"
        assert after.memory.scope == gone.scope
        assert made == results


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda given: pickle.loads(pickle.dumps(given))])
def test_an_answer_can_be_copied_after_its_engine_was_closed(
    tmp_path: Path, copied: Callable[[Results], Results]
) -> None:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        engine.add("tea tea tea")
        late = engine.add("Ann drinks tea out of a cup", scope="user:1")
        results = engine.search("tea", limit=1, scope="user:1")
    made = copied(results)
    [shown], [dropped] = made.hits, made.dropped
    assert shown.memory.text == "tea tea tea"  # what is shown was read in time
    assert (dropped.id, dropped.score) == (late.id, results.dropped[0].score)
    assert (dropped.memory.text, dropped.memory.scope) == ("(not read before its store was closed)", late.scope)
    with pytest.raises(StoreError, match="was closed"):  # whoever looks at the answer itself is told what to do
        _ = results.dropped[0].memory


def test_an_answer_can_be_shown_whole_after_a_dropped_hit_was_forgotten(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        engine.add("tea tea tea")
        gone = engine.add("Ann drinks tea out of a cup")
        results = engine.search("tea", limit=1)
        engine.forget(gone.id)
        [dropped] = serialize.results(results, explain=True)["dropped"]
    assert (dropped["id"], dropped["text"]) == (gone.id, "(forgotten since the search)")


def test_an_answer_can_be_written_as_plain_values(results: Results) -> None:
    written = asdict(results)
    assert [hit.held for hit in written["hits"]] == [asdict(hit.memory) for hit in results.hits]
    assert [hit.memory for hit in written["dropped"]] == [hit.memory for hit in results.dropped]


def test_a_copy_of_memories_that_wait_is_the_memories() -> None:
    memories = {"a": Memory("a", "tea"), "b": Memory("b", "coffee")}
    waiting = {identity: stored(memory, []) for identity, memory in memories.items()}
    assert pickle.loads(pickle.dumps(waiting)) == copy.deepcopy(waiting) == memories
