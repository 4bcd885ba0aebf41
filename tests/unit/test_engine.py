"""The facade: facts, documents, pages, asynchronous callers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import whyrank
from whyrank.errors import ConfigError, NotFound
from whyrank.types import Document, Scope


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[whyrank.Engine]:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as opened:
        yield opened


def test_the_same_text_is_not_stored_twice(engine: whyrank.Engine) -> None:
    first = engine.add("Suzy  drinks tea")
    second = engine.add("suzy drinks TEA")
    assert (second.id, engine.status().memories) == (first.id, 1)


def test_the_same_text_of_two_users_is_two_memories(engine: whyrank.Engine) -> None:
    assert engine.add("tea", scope="user:1").id != engine.add("tea", scope="user:2").id


@pytest.mark.parametrize("text", ["", "  \n", "a\x00b", "a\ud800b"])
def test_add_refuses_what_cannot_be_stored(engine: whyrank.Engine, text: str) -> None:
    with pytest.raises(ConfigError):
        engine.add(text)
    assert engine.status().memories == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"scope": "planet:earth"},
        {"scope": "user:"},
        {"category": "gossip"},
        {"importance": 6},
        {"importance": 0},
        {"date": "the day after"},
        {"expires": "2026-13-01"},
    ],
)
def test_add_refuses_fields_that_make_no_sense(engine: whyrank.Engine, fields: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        engine.add("tea", **fields)  # type: ignore[arg-type]
    assert engine.status().memories == 0


def test_an_expired_fact_is_not_found(engine: whyrank.Engine) -> None:
    engine.add("tea is ready", expires="2020-01-01")
    assert len(engine.search("tea")) == 0


def test_forget_is_by_exact_id_and_within_the_scope(engine: whyrank.Engine) -> None:
    mine = engine.add("tea", scope="user:1")
    with pytest.raises(NotFound):
        engine.forget(mine.id)
    with pytest.raises(NotFound):
        engine.forget(mine.id[:-1], scope="user:1")
    engine.forget(mine.id, scope="user:1")
    assert engine.status().memories == 0


def test_a_foreign_memory_answers_not_found_to_every_question(engine: whyrank.Engine) -> None:
    foreign = engine.add("tea", scope="user:2")
    for ask in (
        lambda: engine.get(foreign.id, scope="user:1"),
        lambda: engine.why("tea", foreign.id, scope="user:1"),
        lambda: engine.add("coffee", scope="user:1", supersedes=foreign.id),
    ):
        with pytest.raises(NotFound):
            ask()
    assert engine.list(scope="user:1") == []


def test_several_scopes_may_be_asked_for_at_once(engine: whyrank.Engine) -> None:
    for scope in ("global", "user:1", "agent:pip", "session:9", "user:2"):
        engine.add(f"tea of {scope}", scope=scope)
    found = engine.search("tea", scope=["user:1", "agent:pip", "session:9"], limit=10)
    assert {str(hit.memory.scope) for hit in found} == {"global", "user:1", "agent:pip", "session:9"}


@pytest.mark.parametrize(("limit", "offset", "said"), [(-1, 0, "limit is -1"), (5, -2, "offset is -2")])
def test_a_negative_page_is_refused(engine: whyrank.Engine, limit: int, offset: int, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        engine.search("tea", limit=limit, offset=offset)


def test_a_limit_out_of_proportion_is_cut_with_a_notice(engine: whyrank.Engine) -> None:
    engine.add("tea")
    results = engine.search("tea", limit=10**9)
    assert len(results) == 1
    assert "limit-cut" in {notice.code for notice in results.notices}


def test_an_unknown_filter_or_setting_is_an_error(engine: whyrank.Engine, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="kind"):
        engine.search("tea", kind="rumour")
    with pytest.raises(ConfigError, match="did you mean"):
        whyrank.open(tmp_path / "x.db", embeding="none")


def test_documents_of_one_session_stand_in_their_order(engine: whyrank.Engine) -> None:
    engine.add_documents(
        Document(f"d{i}", f"turn {i}", scope=Scope("user", "1"), session="s", speaker="Ann") for i in range(3)
    )
    assert [memory.position for memory in engine.list(scope="user:1")] == [0, 1, 2]


def test_why_says_how_far_a_memory_was_from_the_pool(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "many.db", workspace=tmp_path) as engine:
        far = engine.add("the engine oil is changed in spring")
        for i in range(150):
            engine.add(f"green tea note number {i}")
        answer = engine.why("green tea note", far.id)
    assert answer.outcome == "not a candidate"
    assert "keyword: no shared term" in answer.details
    assert any(
        detail.startswith("vector: rank 151 of a pool of 100 sources; needs cosine") for detail in answer.details
    )


def test_recency_is_one_setting_away(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "m.db", workspace=tmp_path, embedding="none", ranking_recency_weight=0.5) as engine:
        engine.add("tea note, old", date="2001-01-01")
        new = engine.add("tea note, new")
        results = engine.search("tea note")
    assert results[0].id == new.id
    assert any(step.stage == "recency" for step in results[0].trail)


def test_asynchronous_callers_get_the_same_answer(tmp_path: Path) -> None:
    async def ask() -> list[str]:
        async with await whyrank.open_async(tmp_path / "async.db", workspace=tmp_path, embedding="none") as memory:
            await memory.add("green tea")
            await memory.add("black tea")
            answers = await asyncio.gather(*(memory.search("green tea") for _ in range(8)))
            assert len({tuple(hit.id for hit in answer) for answer in answers}) == 1
            return [hit.memory.text for hit in answers[0]]

    assert asyncio.run(ask()) == ["green tea", "black tea"]


def test_a_failing_embedder_leaves_words_at_work(tmp_path: Path) -> None:
    from whyrank.config import load
    from whyrank.engine import Engine
    from whyrank.errors import ProviderError
    from whyrank.storage.sqlite.store import SqliteStore
    from whyrank.testing.embedder import WordDirections

    class Failing(WordDirections):
        def query(self, text: str) -> NDArray[np.float32]:
            raise ProviderError("the model is away", "wait")

    config = load({}, workspace=tmp_path, environment={})
    with Engine(SqliteStore(tmp_path / "m.db"), Failing(), config) as engine:
        engine.add("green tea")
        results = engine.search("tea")
    assert [hit.memory.text for hit in results] == ["green tea"]
    assert "vector-off" in {notice.code for notice in results.notices}


def test_a_store_opened_with_another_model_serves_words_and_says_so(tmp_path: Path) -> None:
    from whyrank.config import load
    from whyrank.engine import Engine
    from whyrank.storage.sqlite.store import SqliteStore
    from whyrank.testing.embedder import WordDirections

    config = load({}, workspace=tmp_path, environment={})
    with Engine(SqliteStore(tmp_path / "m.db"), WordDirections(name="first"), config) as engine:
        engine.add("green tea")
    with Engine(SqliteStore(tmp_path / "m.db"), WordDirections(name="second"), config) as engine:
        results = engine.search("tea")
    assert [hit.memory.text for hit in results] == ["green tea"]
    assert "no-vectors" in {notice.code for notice in results.notices}
