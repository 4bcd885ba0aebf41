"""Memories whose rows are at hand: made when somebody looks, and guarded without being made."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import pytest

import whyrank
from whyrank.errors import StoreError
from whyrank.interfaces import serialize
from whyrank.storage.sqlite.store import SqliteStore
from whyrank.types.memory import GLOBAL, Document, Memory, Scope
from whyrank.types.query import Where
from whyrank.types.results import (
    ContentKey,
    Fetched,
    HeldMemories,
    Hit,
    Results,
    are_open,
    at_hand,
    content_keys_of,
    origins_of,
    text_of,
)

NOW = 1_700_000_000.0


class Row(Fetched):
    """A row that holds a memory's id, the memory, and whom to tell that it was made."""

    @property
    def scope(self) -> str:
        return str(self._row[1].scope)

    @property
    def text(self) -> str:
        return str(self._row[1].text)

    @property
    def content_key(self) -> ContentKey:
        key: ContentKey = self._row[1].content_key
        return key

    def make(self) -> Memory:
        identity, memory, made = self._row
        made.append(identity)
        assert isinstance(memory, Memory)
        return memory


def fetched(memory: Memory, made: list[str], *, is_timeless: bool = True) -> Fetched:
    return Row((memory.id, memory, made), is_timeless)


def test_a_memory_is_made_once_and_only_when_somebody_looks() -> None:
    made: list[str] = []
    hit = Hit(fetched(Memory("a", "tea"), made))
    assert (hit.id, made) == ("a", [])
    assert (hit.memory.text, hit.memory.text, made) == ("tea", "tea", ["a"])


def test_a_memory_that_waits_equals_the_one_that_it_is() -> None:
    memory = Memory("a", "tea")
    assert fetched(memory, []) == memory
    assert memory == fetched(memory, [])
    assert fetched(memory, []) != fetched(Memory("a", "coffee"), [])
    assert hash(fetched(memory, [])) == hash(memory)


def test_the_guard_makes_no_memory_that_nothing_limits() -> None:
    made: list[str] = []
    assert are_open([fetched(Memory("a", "tea"), made)], Where(now=NOW))
    assert made == []


@pytest.mark.parametrize(
    "memory",
    [
        Memory("a", "tea", scope=Scope("user", "ann")),
        Memory("a", "tea", expires=NOW - 1),
        Memory("a", "tea", valid_from=NOW + 1),
        Memory("a", "tea", valid_until=NOW - 1),
        Memory("a", "tea", superseded_by="b"),
    ],
)
def test_the_guard_says_of_what_waits_what_it_says_of_a_memory(memory: Memory) -> None:
    where, limited = Where(now=NOW), memory.scope == GLOBAL
    assert not are_open([memory], where)
    assert not are_open([fetched(memory, [], is_timeless=not limited)], where)


def test_the_guard_looks_at_everything_when_asked_about_another_time() -> None:
    later = Memory("a", "tea", created=NOW)
    assert are_open([fetched(later, [])], Where(now=NOW))
    assert not are_open([fetched(later, [])], Where(now=NOW, as_of=NOW - 1))


def test_what_is_at_hand_needs_its_store_no_more(tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    with whyrank.open(store, workspace=tmp_path, embedding="none") as engine:
        known = {memory.id: memory for memory in (engine.add("Robin drinks tea"), engine.add("Ann drinks tea"))}
    with closing(SqliteStore(store)) as opened:
        held = opened.held(known, frozenset({GLOBAL}))
        read = at_hand(held)
        assert at_hand(read) is read
        assert origins_of(read, [*known]) == origins_of(held, [*known])
        assert content_keys_of(read, [*known]) == content_keys_of(held, [*known])
    assert read == known
    assert [text_of(one) for one in read.values()] == ["Robin drinks tea", "Ann drinks tea"]


def test_what_is_no_storage_row_is_made_at_once() -> None:
    made: list[str] = []
    assert at_hand({"a": fetched(Memory("a", "tea"), made)}) == {"a": Memory("a", "tea")}
    assert made == ["a"]


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
    assert [hit.held for hit in written["hits"]] == [hit.memory for hit in results.hits]
    assert [hit.memory for hit in written["dropped"]] == [hit.memory for hit in results.dropped]


def test_a_copy_of_memories_that_wait_is_the_memories() -> None:
    memories = {"a": Memory("a", "tea"), "b": Memory("b", "coffee")}
    waiting = HeldMemories(["a", "b"], [1, 2], lambda place: fetched(memories["ab"[place]], []))
    assert pickle.loads(pickle.dumps(waiting)) == copy.deepcopy(waiting) == memories
