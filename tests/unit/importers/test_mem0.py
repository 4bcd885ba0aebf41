"""Exports of mem0: owners become scopes, the rest fields and metadata; long and broken lists are streamed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    import whyrank
    from tests.unit.importers.conftest import Bring

TEA: dict[str, Any] = {
    "id": "a1", "memory": "Suzy prefers tea", "hash": "h", "user_id": "suzy", "agent_id": "cook", "run_id": None,
    "metadata": {"source": "chat"}, "categories": ["preference", "drinks"], "created_at": "2026-03-14T09:30:00-07:00",
    "updated_at": "2026-03-15T00:00:00Z",
}  # fmt: skip


def written(folder: Path, said: Any) -> Path:
    file = folder / "mem0.json"
    file.write_text(said if isinstance(said, str) else json.dumps(said), encoding="utf-8")
    return file


def test_fields_of_a_memory_are_mapped(engine: whyrank.Engine, bring: Bring, tmp_path: Path) -> None:
    assert bring("mem0", written(tmp_path, [TEA])).unknown == {}
    [memory] = engine.list(scope="user:suzy")
    assert (memory.text, memory.category, memory.tags) == ("Suzy prefers tea", "preference", ("preference", "drinks"))
    assert memory.metadata == {"source": "chat", "agent_id": "cook"}
    assert memory.created == 1773505800.0  # 09:30 at UTC−7 is 16:30 UTC
    assert memory.date == 1773532800.0  # when it was updated
    assert memory.trust == "agent"


@pytest.mark.parametrize(
    ("owners", "scope"),
    [
        ({"user_id": "42", "run_id": "r"}, "user:42"),
        ({"agent_id": "cook"}, "agent:cook"),
        ({"run_id": "r/1"}, "session:r%2F1"),  # a slash does not begin a scope below it
        ({}, "project:x"),
    ],
)
def test_the_owner_is_the_user_else_the_agent_else_the_run(
    engine: whyrank.Engine, bring: Bring, tmp_path: Path, owners: dict[str, str], scope: str
) -> None:
    bring("mem0", written(tmp_path, [{"memory": "tea", **owners}]), scope="project:x")
    assert [memory.text for memory in engine.list(scope=scope) if str(memory.scope) == scope] == ["tea"]


@pytest.mark.parametrize("wrap", [lambda one: one, lambda one: {"results": one}, lambda one: {"v": 1, "memories": one}])
def test_a_list_alone_and_the_answers_of_its_api_are_read(bring: Bring, tmp_path: Path, wrap: Any) -> None:
    assert bring("mem0", written(tmp_path, wrap([TEA, {"memory": "milk"}]))).new == 2


def test_a_second_import_stores_nothing_new(bring: Bring, tmp_path: Path) -> None:
    file = written(tmp_path, [TEA, {"memory": "milk"}])
    assert (bring("mem0", file).new, bring("mem0", file).new, bring("mem0", file).unchanged) == (2, 0, 2)


def test_unknown_fields_are_counted_and_records_that_cannot_be_read_are_named(bring: Bring, tmp_path: Path) -> None:
    done = bring("mem0", written(tmp_path, [
        {**TEA, "mood": 1}, {"id": "b", "memory": 7}, "tea", {"memory": "x", "created_at": "soon"},
    ]))  # fmt: skip
    assert (done.new, done.unknown) == (1, {"memory.mood": 1})
    assert [(one.line, one.reason) for one in done.bad] == [
        ("memory 2 (b)", "its text is 7, which is not a text"),
        ("memory 3", "it is no object with a memory"),
        ("memory 4", "its created_at is 'soon', which is not a time"),
    ]


def test_of_a_file_that_ends_too_early_the_whole_records_are_taken(bring: Bring, tmp_path: Path) -> None:
    text = json.dumps([{"memory": f"note {number}"} for number in range(300)])
    done = bring("mem0", written(tmp_path, text[: len(text) - 5]))
    assert done.new == 299
    assert [(one.line, one.reason) for one in done.bad] == [("after memory 299", "it ends in the middle of a record")]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("", "it is empty"),
        ("tea", "neither a list nor an object"),
        ('[{"memory": "tea"} {"memory": "milk"}]', "a comma is missing"),
        ('[{"memory": "tea"}] x', "more follows"),
    ],
)
def test_what_is_no_json_is_named(bring: Bring, tmp_path: Path, said: str, reason: str) -> None:
    assert reason in bring("mem0", written(tmp_path, said)).bad[0].reason


def test_bytes_that_are_no_text_are_named(bring: Bring, tmp_path: Path) -> None:
    (tmp_path / "mem0.json").write_bytes(b'[{"memory": "\xff"}]')
    assert bring("mem0", tmp_path / "mem0.json").bad[0].reason == "it is not UTF-8"


def test_a_long_list_is_read_piece_by_piece(bring: Bring, tmp_path: Path) -> None:
    """80 records of 40,000 bytes are 3.2 MB: characters of two bytes and records fall on the borders of pieces."""
    said = [{"memory": f"note {number} " + "é" * 20_000} for number in range(80)]
    assert bring("mem0", written(tmp_path, json.dumps(said, ensure_ascii=False)), dry_run=True).new == 80
