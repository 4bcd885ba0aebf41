"""Memories are named by id, by lines or by file, and long ones come in parts that make up the whole."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.engine.open import open_engine
from whyrank.errors import ConfigError, NotFound
from whyrank.interfaces.engine_pool import Access, PooledEngine
from whyrank.interfaces.mcp import server
from whyrank.interfaces.mcp.server import named, parts_of
from whyrank.storage.sqlite.database import raise_generation
from whyrank.types.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONG = "\n\n".join(f"## Part {i}\n\n" + f"Sentence number {i} about the boat and its oars. " * 30 for i in range(6))


@pytest.fixture
def access(tmp_path: Path) -> Iterator[Access]:
    (tmp_path / "boat.md").write_text(f"# Boat\n\n{LONG}\n", encoding="utf-8")
    (tmp_path / "odd[1]*.md").write_text("# Odd\n\nA name with brackets.\n", encoding="utf-8")
    pooled = PooledEngine(tmp_path / "memory.db", partial(open_engine, workspace=tmp_path, embedding="none"))
    pooled.writing().ingest(tmp_path / "boat.md", tmp_path / "odd[1]*.md")
    yield Access(pooled)
    pooled.close()


def test_a_file_is_named_by_its_path_with_or_without_lines(access: Access) -> None:
    engine = access.pooled.reading()
    whole = named(engine, "boat.md", [])
    assert len(whole) > 3
    second = whole[1]
    assert second.source is not None
    assert second in named(engine, str(second.source), [])
    assert named(engine, second.id, []) == [second]
    assert named(engine, f"whyrank://memory/{second.id}", []) == [second]
    first = named(engine, "./boat.md:1", [])
    assert [chunk.source.start_line for chunk in first if chunk.source] == [1]


def test_a_path_means_itself_and_no_pattern(access: Access) -> None:
    engine = access.pooled.reading()
    assert [chunk.title for chunk in named(engine, "odd[1]*.md", [])] == ["Odd"]
    with pytest.raises(NotFound):
        named(engine, "*.md", [])


@pytest.mark.parametrize(
    "wanted", ["", " ", "m_nothing", "boat.md:9000-9001", "other.md", "boat.md:", "x" * 100_000, ":", "\0"]
)
def test_what_is_not_there_is_not_found(access: Access, wanted: str) -> None:
    with pytest.raises(NotFound):
        named(access.pooled.reading(), wanted, [])


@given(st.lists(st.text(max_size=50), min_size=1, max_size=4), st.integers(1, 9))
def test_the_parts_of_texts_make_up_the_whole(texts: list[str], tokens: int) -> None:
    memories = [Memory(f"m_{i}", text) for i, text in enumerate(texts)]
    offset: int | None = 0
    read = dict.fromkeys((memory.id for memory in memories), "")
    rounds = 0
    while offset is not None:
        parts, after = parts_of(memories, offset, tokens)
        assert after is None or after > offset
        for part in parts:
            assert part.start == len(read[part.memory.id])
            read[part.memory.id] += part.text
        offset, rounds = after, rounds + 1
    assert list(read.values()) == texts
    assert rounds <= sum(map(len, texts)) + 1


def test_a_part_has_as_many_letters_as_its_tokens_allow() -> None:
    # Four letters to a token of English; one where words have no spaces between.
    assert parts_of([Memory("m_1", "a" * 100)], 0, 5)[0][0].text == "a" * 20
    assert parts_of([Memory("m_1", "茶" * 100)], 0, 5)[0][0].text == "茶" * 5
    assert parts_of([Memory("m_1", "a" * 100)], 90, 5) == (
        [server.TextPart(Memory("m_1", "a" * 100), 90, "a" * 10)],
        None,
    )
    assert parts_of([Memory("m_1", "a" * 100)], 100, 5) == ([], None)


def test_get_says_where_to_go_on(access: Access) -> None:
    first = server.get(access, {"id": "boat.md", "max_tokens": 50})
    assert first.data["next"] == 200  # fifty tokens of four letters
    assert "call memory_get again with offset 200" in first.text
    then = server.get(access, {"id": "boat.md", "max_tokens": 10_000, "offset": 200})
    assert then.data["next"] is None
    assert then.data["memories"][0]["offset"] == 200


@pytest.mark.parametrize("wrong", [{"offset": -1}, {"max_tokens": 0}, {"max_tokens": -5}])
def test_parts_that_are_none_are_refused(access: Access, wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="offset is"):
        server.get(access, {"id": "boat.md", **wrong})


def test_a_text_too_long_for_a_fact_is_refused_before_anything_is_stored(tmp_path: Path) -> None:
    pooled = PooledEngine(tmp_path / "memory.db", partial(open_engine, workspace=tmp_path, embedding="none"))
    with pytest.raises(ConfigError, match="100,001 characters"):
        server.add(Access(pooled), {"text": "x" * 100_001})
    assert pooled.writing().list() == []
    pooled.close()


def test_a_fact_replaces_another_in_whichever_of_ones_own_scopes_that_is(access: Access) -> None:
    engine = access.pooled.writing()
    own = Access(access.pooled, ("user:1", "agent:pip"))
    old, shared = engine.add("Robin rows", scope="agent:pip"), engine.add("Robin swims")
    done = server.add(own, {"text": "Robin sails", "supersedes": old.id}).data["memories"][0]
    assert (done["scope"], done["supersedes"]) == ("agent:pip", old.id)
    assert server.add(own, {"text": "Robin walks"}).data["memories"][0]["scope"] == "user:1"
    with pytest.raises(ConfigError, match="belongs to global"):  # what is everybody's is not theirs to replace
        server.add(own, {"text": "Robin dives", "supersedes": shared.id})


def test_a_fact_is_replaced_by_its_text_in_whichever_of_ones_own_scopes_it_lives(access: Access) -> None:
    engine = access.pooled.writing()
    own = Access(access.pooled, ("user:1", "agent:pip", "session:9"))
    old = engine.add("Robin rows", scope="session:9")
    done = server.add(own, {"text": "Robin sails", "supersedes": "robin  ROWS"}).data["memories"][0]
    assert (done["scope"], done["supersedes"]) == ("session:9", old.id)
    # Of two that say the same the first scope's is meant, but not if something has replaced it already.
    mine, theirs = (engine.add("Robin swims", scope=scope) for scope in ("user:1", "agent:pip"))
    for text, replaced in (("Robin dives", mine), ("Robin floats", theirs)):
        done = server.add(own, {"text": text, "supersedes": "Robin swims"}).data["memories"][0]
        assert (done["scope"], done["supersedes"]) == (str(replaced.scope), replaced.id)


def test_a_text_in_somebody_elses_scope_cannot_be_replaced_nor_be_told_from_none(access: Access) -> None:
    engine = access.pooled.writing()
    own = Access(access.pooled, ("user:1", "agent:pip"))
    foreign = engine.add("Kim rows", scope="user:2")
    said = []
    for text in ("Kim rows", "Kim never rows"):
        with pytest.raises(NotFound) as refused:
            server.add(own, {"text": "Kim sails", "supersedes": text})
        said.append(str(refused.value).replace(text, "…"))
    assert said[0] == said[1]
    assert engine.get(foreign.id, scope="user:2").superseded_by is None


def test_forgetting_is_all_or_nothing_and_only_of_ones_own(tmp_path: Path, access: Access) -> None:
    engine = access.pooled.writing()
    shared, mine = engine.add("tea for all"), engine.add("tea for me", scope="user:42")
    own = Access(access.pooled, ("user:42",))
    with pytest.raises(ConfigError, match="which this agent may not change; nothing was removed"):
        server.forget(own, {"ids": [mine.id, shared.id]})
    with pytest.raises(NotFound):
        server.forget(own, {"ids": [mine.id, "m_nothing"]})
    with pytest.raises(ConfigError, match="no memory was named"):
        server.forget(own, {"ids": []})
    assert server.forget(own, {"ids": [mine.id, mine.id]}).data["forgotten"] == [mine.id]
    assert server.forget(access, {"ids": [shared.id]}).data["forgotten"] == [shared.id]


def test_forgetting_a_part_of_a_file_says_that_it_may_come_back(access: Access) -> None:
    chunk = named(access.pooled.reading(), "boat.md", [])[0]
    assert "still stands in boat.md and comes back" in server.forget(access, {"ids": [chunk.id]}).text


def test_a_page_past_the_end_says_how_many_results_there_are_and_says_it_once(access: Access) -> None:
    found = access.pooled.reading().search("boat oars", offset=40)
    asked = server.results(found, offset=40)
    assert asked == (
        "No results on this page for “boat oars”: "
        "there is 1 result for this question, and the requested page begins at 41."
    )
    assert server.with_notices(asked, found.notices).count("begins at 41") == 1


def test_a_page_of_none_says_that_none_was_asked_for(access: Access) -> None:
    found = access.pooled.reading().search("boat oars", limit=0)
    assert server.results(found, 0).startswith("No results on this page for “boat oars”: the limit is 0")


def test_a_text_that_is_not_the_one_that_was_stored_is_told_of(access: Access) -> None:
    engine = access.pooled.writing()
    fact = engine.add("Robin drinks tea")
    assert server.get(access, {"id": fact.id}).data["notices"] == []
    with engine._store._database.writing() as connection:  # type: ignore[attr-defined]
        connection.execute("UPDATE memories SET text = 'Robin drinks rum' WHERE id = ?", (fact.id,))
        raise_generation(connection)
    answer = server.get(access, {"id": fact.id})
    assert [notice["code"] for notice in answer.data["notices"]] == ["damaged-text"]
