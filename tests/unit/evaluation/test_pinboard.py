"""Pins: recorded once, known again after texts were cut, edited, corrected or renamed, and never across scopes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import whyrank
from whyrank.errors import ConfigError, NotFound
from whyrank.evaluation.pins import LOOKED_AT, SKETCH, from_line, shared, to_line

if TYPE_CHECKING:
    from pathlib import Path

BACKUPS = """# Backups

The photo disk is copied to the attic every Friday evening by a small script that Malik wrote last winter.

The database is dumped at night, encrypted with the key from the safe, and sent to the cellar of the old mill.

Restoring was tried in March: the mail came back whole, the calendar lost one week, nobody missed anything.
"""
QUERY = "where is the database dump sent at night"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "backups.md").write_text(BACKUPS, encoding="utf-8")
    for number in range(8):
        text = f"# Note {number}\n\nThe garden needs water on day {number}, and the night was cold again.\n"
        (folder / f"garden-{number}.md").write_text(text, encoding="utf-8")
    return folder


Opener = Callable[..., whyrank.Engine]


@pytest.fixture
def opened(tmp_path: Path, notes: Path) -> Iterator[Opener]:
    engines: list[whyrank.Engine] = []

    def again(**settings: Any) -> whyrank.Engine:
        engine = whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none", **settings)
        engine.ingest(notes)
        engines.append(engine)
        return engine

    yield again
    for engine in engines:
        engine.close()


def chunk_id(engine: whyrank.Engine, path: str = "notes/backups.md") -> str:
    return engine.list(path=path)[0].id


def statuses(engine: whyrank.Engine, **options: object) -> list[str]:
    return [one.status for one in engine.pins.check(**options).checked]  # type: ignore[arg-type]


def test_a_pin_is_kept_as_long_as_it_is_found(opened: Opener) -> None:
    engine = opened()
    pin = engine.pins.add(QUERY, chunk_id(engine))
    assert (pin.within, pin.path, pin.line, pin.headings) == (5, "notes/backups.md", 1, ("Backups",))
    checkup = engine.pins.check()
    assert [(one.status, one.rank) for one in checkup.checked] == [("kept", 1)]
    assert str(checkup) == "pins lost: 0 of 1"


def test_a_pin_holds_no_text_of_the_memory(opened: Opener, tmp_path: Path) -> None:
    engine = opened()
    pin = engine.pins.add("attic", chunk_id(engine))
    assert len(pin.sketch) == SKETCH
    written = (tmp_path / "memory.pins").read_text(encoding="utf-8")
    assert "Malik" not in written
    assert "cellar" not in written


def test_a_chunk_that_is_cut_otherwise_has_moved(opened: Opener) -> None:
    engine = opened()
    old = engine.pins.add(QUERY, chunk_id(engine)).id
    other = opened(chunk_tokens=32, chunk_overlap=4)
    [one] = other.pins.check().checked
    assert (one.status, one.rank) == ("moved", 1)
    assert one.memory is not None
    assert one.memory.id != old
    assert "dumped at night" in one.memory.text


def test_a_chunk_that_was_edited_has_moved(opened: Opener, notes: Path) -> None:
    engine = opened()
    engine.pins.add(QUERY, chunk_id(engine))
    (notes / "backups.md").write_text(BACKUPS.replace("every Friday", "every Sunday"), encoding="utf-8")
    assert statuses(opened()) == ["moved"]


def test_a_renamed_file_has_moved_whether_chunk_or_file_was_pinned(opened: Opener, notes: Path) -> None:
    engine = opened()
    engine.pins.add(QUERY, chunk_id(engine))
    engine.pins.add(QUERY, "notes/backups.md")
    (notes / "backups.md").rename(notes / "copies.md")
    assert statuses(opened()) == ["moved", "moved"]


def test_a_corrected_fact_has_moved_to_its_correction(opened: Opener) -> None:
    engine = opened()
    tea = engine.add("Robin prefers tea")
    engine.pins.add("what does Robin drink?", tea.id)
    mint = engine.add("Robin prefers mint tea", supersedes=tea.id)
    engine.add("Robin prefers cold mint tea", supersedes=mint.id)
    [one] = engine.pins.check().checked
    assert one.status == "moved"
    assert one.memory is not None
    assert one.memory.text == "Robin prefers cold mint tea"


def test_a_lost_pin_says_where_it_went(opened: Opener) -> None:
    engine = opened()
    engine.pins.add("garden water night", "notes/garden-7.md", within=1)
    engine.pins.add("zeppelin", "notes/backups.md", within=3)
    lost = {one.pin.query: one for one in engine.pins.check().checked}
    [first, second] = (lost["garden water night"], lost["zeppelin"])
    assert (first.status, second.status) == ("lost", "lost")
    assert first.rank is not None
    assert first.rank > 1
    assert f"ranked {first.rank}, and result 1 was asked for" in first.why
    assert "no run found it; keyword: no shared term" in second.why


def test_a_file_that_is_gone_is_lost_and_said_so(opened: Opener, notes: Path) -> None:
    engine = opened()
    engine.pins.add(QUERY, chunk_id(engine))
    (notes / "backups.md").unlink()
    (notes / "other.md").write_text(
        "# Backups\n\nWhere a database dump is sent at night is secret.\n", encoding="utf-8"
    )
    [one] = opened().pins.check().checked
    assert (one.status, one.why) == ("lost", "it is no longer in the store")


def test_a_text_that_is_gone_from_its_file_is_lost(opened: Opener, notes: Path) -> None:
    engine = opened()
    engine.pins.add(QUERY, chunk_id(engine))
    (notes / "backups.md").write_text("# Pears\n\nThe pear tree bore nothing, night frost took it.\n", encoding="utf-8")
    [one] = opened().pins.check().checked
    assert one.status == "lost"
    assert one.why.startswith("its text is no longer in the file; of the rest: ")


def test_a_change_of_settings_can_lose_a_pin(opened: Opener) -> None:
    engine = opened()
    engine.pins.add("Note 3", "notes/garden-3.md", within=1)
    assert statuses(engine) == ["kept"]
    assert statuses(engine, recipe="openclaw-2026-02") == ["lost"]


def test_a_pin_further_down_holds_where_it_is(opened: Opener) -> None:
    engine = opened()
    found = [hit.memory.source for hit in engine.search("night", limit=LOOKED_AT)]
    assert len(found) == 9
    last = found[-1]
    assert last is not None
    assert engine.pins.add("night", last.path).within == 9


def test_what_is_not_found_is_pinned_only_as_a_goal(opened: Opener) -> None:
    engine = opened()
    with pytest.raises(ConfigError, match="not among the first 50 results"):
        engine.pins.add("zeppelin", "notes/backups.md")
    assert engine.pins.list() == []
    engine.pins.add("zeppelin", "notes/backups.md", within=2)
    assert [pin.within for pin in engine.pins.list()] == [2]


def test_pinning_again_replaces(opened: Opener) -> None:
    engine = opened()
    engine.pins.add(QUERY, "notes/backups.md")
    engine.pins.add(QUERY, "notes/backups.md", within=1)
    assert [pin.within for pin in engine.pins.list()] == [1]


def test_pins_are_removed_by_query_or_one_by_one(opened: Opener) -> None:
    engine = opened()
    identity = chunk_id(engine)
    for answer in (identity, "notes/backups.md"):
        engine.pins.add(QUERY, answer)
    engine.pins.add("attic", identity)
    assert [pin.id for pin in engine.pins.remove(QUERY, identity)] == [identity]
    assert len(engine.pins.remove(QUERY)) == 1
    assert [pin.query for pin in engine.pins.list()] == ["attic"]
    with pytest.raises(NotFound):
        engine.pins.remove(QUERY)


def test_pins_made_at_the_same_time_are_all_kept(opened: Opener) -> None:
    engine = opened()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: engine.pins.add(f"night {number}", "notes/backups.md", within=9), range(24)))
    assert len(engine.pins.list()) == 24


def test_a_check_of_nothing_proves_nothing(opened: Opener) -> None:
    with pytest.raises(NotFound, match="no pins to check"):
        opened().pins.check()


def test_pins_do_not_cross_scopes(opened: Opener) -> None:
    engine = opened()
    mine = engine.add("Robin prefers tea", scope="user:1")
    engine.pins.add("Robin", mine.id, scope="user:1")
    engine.pins.add(QUERY, "notes/backups.md")
    assert [pin.query for pin in engine.pins.list()] == [QUERY]
    assert [pin.query for pin in engine.pins.list(scope="user:2")] == [QUERY]
    assert {pin.query for pin in engine.pins.list(scope="user:1")} == {QUERY, "Robin"}
    assert len(engine.pins.check(scope="user:2").checked) == 1
    assert statuses(engine, all_scopes=True) == ["kept", "kept"]
    with pytest.raises(NotFound):
        engine.pins.remove("Robin", scope="user:2")
    with pytest.raises(NotFound):
        engine.pins.add("Robin", mine.id, scope="user:2")


def test_a_foreign_copy_of_the_text_keeps_no_pin(opened: Opener) -> None:
    engine = opened()
    mine = engine.add("Robin prefers tea", scope="user:1")
    engine.pins.add("Robin", mine.id, scope="user:1")
    engine.add("Robin prefers tea", scope="user:2")
    engine.forget(mine.id, scope="user:1")
    assert statuses(engine, scope="user:1") == ["lost"]


def test_the_setting_says_where_pins_are(opened: Opener, tmp_path: Path) -> None:
    opened(pins="kept/answers.pins").pins.add(QUERY, "notes/backups.md")
    assert (tmp_path / "kept/answers.pins").is_file()
    assert not (tmp_path / "memory.pins").exists()


@pytest.mark.parametrize(
    "line",
    ["<<<<<<< ours", "[]", '{"query": "a"}', '{"query": "a", "within": 0, "id": "m"}', '{"query": "a", "within": 1}'],
)
def test_a_line_that_is_no_pin_is_named(opened: Opener, tmp_path: Path, line: str) -> None:
    engine = opened()
    engine.pins.add(QUERY, "notes/backups.md")
    file = tmp_path / "memory.pins"
    file.write_text(file.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"memory\.pins:2 is not a pin"):
        engine.pins.check()
    with pytest.raises(ConfigError, match=r"memory\.pins:2 is not a pin"):
        engine.pins.add("attic", "notes/backups.md")
    assert line in file.read_text(encoding="utf-8")


def test_a_pin_survives_being_written_and_read(opened: Opener) -> None:
    engine = opened()
    pin = engine.pins.add('naïve "quotes"\n и строки', chunk_id(engine), within=7)
    assert from_line(to_line(pin), "here") == pin


def test_the_share_of_a_text_is_that_of_its_three_word_runs(opened: Opener) -> None:
    engine = opened()
    pin = engine.pins.add(QUERY, chunk_id(engine))
    assert shared(pin, BACKUPS.upper()) == 1.0
    half = BACKUPS.split("encrypted")[0]
    assert 0.25 < shared(pin, half) < 0.75
    assert shared(pin, "nothing of the kind was ever said") == 0.0


def test_pins_are_not_written_through_a_link_that_lies_in_wait(opened: Opener, tmp_path: Path) -> None:
    engine = opened()
    file = engine.config.pins
    victim = tmp_path / "victim"
    victim.write_text("precious", encoding="utf-8")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.with_name(f"{file.name}.new").symlink_to(victim)
    engine.pins.add(QUERY, chunk_id(engine))
    assert victim.read_text(encoding="utf-8") == "precious"
    assert not file.is_symlink()


@pytest.mark.parametrize(
    "line",
    [
        '{"query": "a", "within": 1e999, "id": "m"}',
        '{"query": "t\\ud800ea", "within": 1, "id": "m"}',
        '{"query": "a", "within": 1, "id": "m", "scopes": "user:1"}',
    ],
)
def test_an_odd_pin_is_named_by_its_line(opened: Opener, line: str) -> None:
    engine = opened()
    engine.config.pins.write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=":1 is not a pin"):
        engine.pins.check()
