"""JSON lines: every field of a fact, owners, replacements, turns, and lines that are none of these."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import whyrank
from whyrank.errors import ConfigError
from whyrank.integrations.importers import import_into

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.importers.conftest import Bring

FULL: dict[str, Any] = {
    "text": "Suzy prefers tea", "name": "Tea", "category": "preference", "tags": ["kitchen"], "entities": ["Suzy"],
    "importance": 4, "decay": "stable", "date": "2026-03-14", "valid_from": "2026-01-01", "trust": "agent",
    "valid_until": "2036-01-01", "expires": "2036-02-01", "metadata": {"cups": 2}, "subject": "Suzy",
    "attribute": "drink", "scope": "user:42", "created": "2026-03-15T08:00:00Z",
}  # fmt: skip


def written(folder: Path, *lines: Any) -> Path:
    file = folder / "memories.jsonl"
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    file.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return file


def test_every_field_of_a_fact_is_taken(engine: whyrank.Engine, bring: Bring, tmp_path: Path) -> None:
    assert bring("jsonl", written(tmp_path, FULL)).new == 1
    [memory] = engine.list(scope="user:42")
    assert (memory.name, memory.category, memory.importance, memory.decay) == ("Tea", "preference", 4, "stable")
    assert (memory.tags, memory.entities, memory.metadata) == (("kitchen",), ("Suzy",), {"cups": 2})
    assert (memory.subject, memory.attribute, memory.trust) == ("Suzy", "drink", "agent")
    assert memory.created == 1773561600.0  # 2026-03-15T08:00:00Z
    assert memory.date == 1773446400.0  # 2026-03-14


def test_a_second_import_stores_nothing_new(engine: whyrank.Engine, bring: Bring, tmp_path: Path) -> None:
    file = written(tmp_path, FULL, {"text": "Robin walks"}, {"text": "Ahoy", "session": "s", "speaker": "Ivo"})
    assert bring("jsonl", file).new == 3
    before = engine.list(scope="user:42")
    again = bring("jsonl", file)
    assert (again.new, again.unchanged, again.skipped) == (0, 3, [])
    assert engine.list(scope="user:42") == before


def test_a_dry_run_says_the_same_and_stores_nothing(engine: whyrank.Engine, bring: Bring, tmp_path: Path) -> None:
    file = written(tmp_path, FULL, "{")
    dry = bring("jsonl", file, dry_run=True)
    assert (dry.new, len(dry.bad), engine.list(scope="user:42")) == (1, 1, [])
    assert bring("jsonl", file).new == 1


def test_a_line_replaces_an_earlier_one_by_its_id_or_its_text(
    engine: whyrank.Engine, bring: Bring, tmp_path: Path
) -> None:
    bring("jsonl", written(
        tmp_path, {"text": "tea", "id": "a"}, {"text": "coffee", "supersedes": "a"},
        {"text": "water", "supersedes": "COFFEE", "created": "2026-05-01"},
    ))  # fmt: skip
    assert [memory.text for memory in engine.list()] == ["water"]
    held = {memory.text: memory for memory in engine.list(include_superseded=True)}
    assert held["tea"].superseded_by == held["coffee"].id
    assert held["coffee"].superseded_by == held["water"].id
    assert held["coffee"].superseded_at == 1777593600.0  # 2026-05-01, when its successor was written


def test_what_the_store_says_already_stays(engine: whyrank.Engine, bring: Bring, tmp_path: Path) -> None:
    mine = engine.add("tea", importance=5)
    edited = engine.add("milk")
    engine.update(edited.id, text="oat milk")
    done = bring("jsonl", written(tmp_path, {"text": "TEA", "importance": 1}, {"text": "milk"}, {"text": "Oat  milk"}))
    assert (done.new, done.unchanged) == (0, 1)
    assert [(one.line, one.reason) for one in done.skipped] == [
        (2, "the store holds it already, with other content, which stays"),
        (3, f"{edited.id} says the same already"),
    ]
    assert engine.get(mine.id).importance == 5


def test_lines_with_a_session_are_turns_in_their_order(engine: whyrank.Engine, bring: Bring, tmp_path: Path) -> None:
    lines = [{"text": text, "session": "pier", "speaker": "Ivo", "date": "2026-04-02"} for text in ("Ahoy", "Moor it")]
    bring("jsonl", written(tmp_path, *lines))
    turns = engine.list()
    assert [(turn.text, turn.speaker, turn.position) for turn in turns] == [
        ("Ivo: Ahoy", "Ivo", 0),
        ("Ivo: Moor it", "Ivo", 1),
    ]
    assert {turn.session for turn in turns} == {"memories.jsonl/pier"}


def test_scope_is_for_lines_that_name_no_owner(engine: whyrank.Engine, bring: Bring, tmp_path: Path) -> None:
    bring("jsonl", written(tmp_path, {"text": "mine"}, {"text": "theirs", "scope": "user:7"}), scope="user:1")
    assert [memory.text for memory in engine.list(scope="user:1")] == ["mine"]
    assert [memory.text for memory in engine.list(scope="user:7")] == ["theirs"]


def test_unknown_fields_are_counted_by_name(bring: Bring, tmp_path: Path) -> None:
    done = bring("jsonl", written(tmp_path, {"text": "a", "colour": 1}, {"text": "b", "colour": 2, "mood": 3}))
    assert done.unknown == {"line.colour": 2, "line.mood": 1}


BAD = {
    "no JSON": ("{", "it is not JSON"),
    "no object": ("[1]", "it is no object with a text"),
    "no text": ({"name": "x"}, "it is no object with a text"),
    "an empty text": ({"text": " "}, "the text is empty"),
    "too long": ({"text": "x" * 50_001}, "50,001 characters"),
    "an importance": ({"text": "x", "importance": 9}, "importance is 9"),
    "a date": ({"text": "x", "date": "soon"}, "date is 'soon'"),
    "a scope": ({"text": "x", "scope": "nobody"}, "is not a scope"),
    "a category": ({"text": "x", "category": "song"}, "no category 'song'"),
    "nothing replaced": ({"text": "x", "supersedes": "y"}, "which no line before it is"),
    "too deep": ("[" * 100_000, "it is not JSON"),
}


@pytest.mark.parametrize(("line", "reason"), BAD.values(), ids=BAD)
def test_a_bad_line_is_named_and_the_others_are_taken(bring: Bring, tmp_path: Path, line: Any, reason: str) -> None:
    done = bring("jsonl", written(tmp_path, line, {"text": "good"}))
    assert (done.new, done.is_whole, [one.line for one in done.bad]) == (1, False, [1])
    assert reason in done.bad[0].reason


def test_a_path_that_is_no_file_and_an_unknown_format_are_errors(bring: Bring, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder"):
        bring("jsonl", tmp_path)
    with pytest.raises(ConfigError, match="there is no file"):
        bring("jsonl", tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="no format 'jsnol'") as told:
        bring("jsnol", tmp_path)
    assert told.value.hint == "did you mean 'jsonl'?"


def test_an_import_that_was_killed_goes_on(tmp_path: Path) -> None:
    """600 lines are three transactions of at most 256: stopped before the third, 512 are stored; the rest follow."""
    file = written(tmp_path, *({"text": f"note {number}"} for number in range(600)))
    settings: dict[str, Any] = {"workspace": tmp_path, "embedding": "none", "calibration": "manual"}
    with whyrank.open(tmp_path / "k.db", **settings) as engine:
        with pytest.raises(RuntimeError, match="stopped"):
            import_into(engine, "jsonl", file, progress=_stopping_after(512))
        assert len(engine.list(limit=1_000)) == 512
    with whyrank.open(tmp_path / "k.db", **settings) as engine:
        done = import_into(engine, "jsonl", file)
        assert (done.new, done.unchanged) == (88, 512)


def _stopping_after(count: int) -> Any:
    def tick(done: int, total: int, label: str) -> None:
        if done >= count:
            raise RuntimeError("stopped")

    return tick
