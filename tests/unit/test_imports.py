"""What an export wrote comes back as it was; what cannot, or is there otherwise, is named and left alone."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import whyrank
from tests.kills import killer
from whyrank.engine.engine import Engine
from whyrank.errors import ConfigError
from whyrank.types.memory import Source

if TYPE_CHECKING:
    from pathlib import Path

Opened = Callable[[str], Engine]


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    return lambda name: whyrank.open(tmp_path / name, workspace=tmp_path, embedding="none", calibration="manual")


def lines(engine: Engine) -> list[str]:
    out = io.StringIO()
    engine.export(out, every_scope=True)
    return sorted(out.getvalue().splitlines())


def written(folder: Path, text: list[str]) -> Path:
    file = folder / "all.jsonl"
    file.write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    return file


BOAT: Any = {"key": "boat", "name": "Boat", "valid_until": "2031-01-01", "expires": "2032-01-01"}


def lived(engine: Engine, folder: Path) -> None:
    """Store something of everything an export can hold."""
    tea = engine.add("Robin prefers tea", scope="user:1", tags=["drinks"], importance=4, decay="stable", trust="agent")
    engine.add("Robin prefers coffee", scope="user:1", supersedes=tea.id, entities=["Robin"])
    boat = engine.add("the boat is blue", **BOAT)
    engine.update(boat.id, text="the boat is red", importance=2)
    engine.update(boat.id, date="2026-03-14")
    engine.mark_used(boat.id)
    (folder / "note.md").write_text("# Mast\n\nThe mast is oak.\n\n# Sail\n\nThe sail is white.\n", encoding="utf-8")
    engine.ingest(folder / "note.md")
    engine.pins.add("which boat", boat.id)
    engine.pins.add("what is the mast", "note.md", scope="user:1")


def test_a_round_trip_is_the_identity(tmp_path: Path, opened: Opened) -> None:
    with opened("one.db") as engine:
        lived(engine, tmp_path)
        before, listed = lines(engine), engine.pins.list(all_scopes=True)
        files = engine._store.manifest(whyrank.Scope("global"))
    with opened("two.db") as engine:
        done = engine.import_from("whyrank", written(tmp_path, before))
        assert (done.new, done.unchanged, done.pins, done.skipped, done.bad) == (4, 0, 2, (), ())
        assert lines(engine) == before
        assert engine.pins.list(all_scopes=True) == listed
        assert engine._store.manifest(whyrank.Scope("global")) == files
        assert engine.ingest(tmp_path / "note.md").unchanged == 1
        assert engine.add("the boat is blue", **BOAT).text == "the boat is red"  # the key is known
        assert engine.doctor().is_sound


def test_a_second_import_changes_nothing(tmp_path: Path, opened: Opened) -> None:
    with opened("one.db") as engine:
        lived(engine, tmp_path)
        file = written(tmp_path, lines(engine))
    with opened("two.db") as engine:
        engine.import_from("whyrank", file)
        before = lines(engine)
        again = engine.import_from("whyrank", file)
        assert (again.new, again.unchanged, again.pins, again.skipped) == (0, 4, 0, ())
        assert lines(engine) == before


def test_a_dry_run_says_the_same_and_changes_nothing(tmp_path: Path, opened: Opened) -> None:
    with opened("one.db") as engine:
        lived(engine, tmp_path)
        file = written(tmp_path, [*lines(engine), "not JSON"])
    with opened("two.db") as engine:
        dry = engine.import_from("whyrank", file, dry_run=True)
        assert lines(engine) == []
        assert engine.pins.list(all_scopes=True) == []
        assert engine.import_from("whyrank", file)._replace(dry_run=True) == dry


def test_what_the_store_holds_otherwise_stays(tmp_path: Path, opened: Opened) -> None:
    with opened("one.db") as engine:
        tea = engine.add("Robin prefers tea")
        boat = engine.add("the boat is blue", key="k")
        other = engine.add("the mast is oak")
        engine.update(other.id, text="the mast is elm")
        file = written(tmp_path, lines(engine))
    with opened("two.db") as engine:
        engine.add("Robin prefers tea", importance=5)
        mine = engine.add("the mast is elm")
        sail = engine.add("the sail is white", key="k")
        before = lines(engine)
        done = engine.import_from("whyrank", file)
        assert done.new == 1
        assert sorted((one.id, one.reason) for one in done.skipped) == sorted([
            (tea.id, "the store holds it already, with other content, which stays"),
            (other.id, f"{mine.id} says the same already"),
            (boat.id, f"it was imported without its key 'k', which belongs to {sail.id}"),
        ])  # fmt: skip
        assert {*before} < {*lines(engine)}


def test_an_id_of_another_scope_is_not_taken(tmp_path: Path, opened: Opened) -> None:
    with opened("one.db") as engine:
        engine.facts.import_memories([whyrank.Memory("m", "tea", scope=whyrank.Scope("user", "1"))])
        file = written(tmp_path, lines(engine))
    with opened("two.db") as engine:
        engine.facts.import_memories([whyrank.Memory("m", "milk", scope=whyrank.Scope("user", "2"))])
        assert [one.reason for one in engine.import_from("whyrank", file).skipped] == ["its id belongs to user:2"]


GOOD: dict[str, Any] = {"id": "m_1", "text": "tea", "scope": "global", "created": "2026-01-01T00:00:00Z", "format": 1}
BAD = {
    "not JSON": "{",
    "nested too deeply": "[" * 100_000,
    "a list": "[1]",
    "without an id": json.dumps({"text": "tea", "scope": "global", "format": 1}),
    "of a later format": json.dumps({**GOOD, "format": 2}),
    "half a surrogate pair": json.dumps({**GOOD, "text": "\ud83d"}),
    **{
        f"{name} {value!r}": json.dumps({**GOOD, name: value})
        for name, value in {
            "id": "", "text": 7, "scope": "nobody", "created": None, "date": "soon", "kind": "song", "trust": "all",
            "importance": "high", "position": 2**64, "tags": "a", "aliases": [1], "history": [7], "evergreen": 1,
            "start_line": "x", "expires": float("nan"), "recalls": True, "keys": [], "file": {"size": 1}, "exact": [],
        }.items()
    },
    "no pin": json.dumps({"pin": {"query": "tea"}, "format": 1}),
}  # fmt: skip


@pytest.mark.parametrize("line", BAD.values(), ids=BAD)
def test_a_bad_line_is_named_and_the_others_are_taken(tmp_path: Path, opened: Opened, line: str) -> None:
    file = written(tmp_path, [line, json.dumps({**GOOD, "id": "m_2", "text": "milk"})])
    with opened("one.db") as engine:
        done = engine.import_from("whyrank", file)
        assert (done.new, [one.line for one in done.bad]) == (1, [1])
        assert done.bad[0].reason
        assert [memory.text for memory in engine.list()] == ["milk"]


def test_bytes_that_are_no_text_and_lines_without_end_are_bad_lines(
    tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("whyrank.engine.export._LONGEST_LINE", 1_000)
    good = json.dumps(GOOD).encode()
    (tmp_path / "all.jsonl").write_bytes(b"\xff\xfe\n" + b"x" * 2_500 + b"\n\n" + good)
    with opened("one.db") as engine:
        done = engine.import_from("whyrank", tmp_path / "all.jsonl")
        assert [(one.line, one.reason) for one in done.bad] == [
            (1, "it is not UTF-8"),
            (2, "it is longer than 1,000 bytes"),
        ]
        assert done.new == 1


def test_the_first_of_two_memories_of_one_id_counts(tmp_path: Path, opened: Opened) -> None:
    file = written(tmp_path, [json.dumps(GOOD), json.dumps({**GOOD, "text": "milk"})])
    with opened("one.db") as engine:
        done = engine.import_from("whyrank", file)
        assert (done.new, [one.line for one in done.skipped]) == (1, [2])
        assert engine.get("m_1").text == "tea"


def test_an_unknown_format_and_a_missing_file_are_named(tmp_path: Path, opened: Opened) -> None:
    with opened("one.db") as engine:
        with pytest.raises(ConfigError, match="there is no format 'mem0' to import") as told:
            engine.import_from("mem0", tmp_path / "all.jsonl")
        assert "the formats are whyrank" in told.value.hint
        with pytest.raises(ConfigError, match="there is no file"):
            engine.import_from("whyrank", tmp_path / "nowhere.jsonl")


def test_a_moment_between_two_microseconds_comes_back_as_it_was(tmp_path: Path, opened: Opened) -> None:
    """1763430000.1234567 is not a whole number of microseconds: ISO 8601 alone would give ….123457."""
    moment = 1763430000.1234567
    with opened("one.db") as engine:
        engine.facts.import_memories(
            [whyrank.Memory("m", "tea", created=moment, date=-1e20, expires=2e18, source=Source("a.md"))]
        )
        before = lines(engine)
    with opened("two.db") as engine:
        engine.import_from("whyrank", written(tmp_path, before))
        held = engine._store.get(["m"], frozenset({whyrank.Scope("global")}))["m"]
        assert (held.created, held.date, held.expires) == (moment, -1e20, 2e18)
        assert lines(engine) == before


IMPORT = """
import whyrank, whyrank.engine.export

def act(store, workspace, file):
    with whyrank.open(store, workspace=workspace, embedding="none", calibration="manual") as engine:
        engine.import_from("whyrank", file)
"""


def test_a_killed_import_leaves_whole_memories_and_goes_on(tmp_path: Path, opened: Opened) -> None:
    with opened("one.db") as engine:
        engine.facts.import_memories(
            [whyrank.Memory(f"m{number}", f"the boat number {number}") for number in range(300)]
        )
        engine.update("m1", text="the boat of Robin")
        engine.update("m299", text="the boat of Suzy")
        before = lines(engine)
    file = written(tmp_path, before)
    counts = set()
    with killer(IMPORT, "whyrank/engine/export.py") as killing:
        stores = (tmp_path / f"whole{number}.db" for number in range(2))
        moments = killing.events(lambda: [next(stores), tmp_path, file])
        for at in (moments // 2, moments - 200, moments - 3):
            store = f"killed{at}.db"
            assert killing.killed(at, tmp_path / store, tmp_path, file)
            with opened(store) as engine:
                there = lines(engine)
                counts.add(len(there))
                assert {*there} <= {*before}
                done = engine.import_from("whyrank", file)
                assert (done.unchanged, done.new) == (len(there), 300 - len(there))
                assert lines(engine) == before
    assert 256 in counts  # one transaction of two
