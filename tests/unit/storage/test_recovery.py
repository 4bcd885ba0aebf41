"""Of a damaged file all is read that its pages still give, whatever its tables say of themselves."""

from __future__ import annotations

import random
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from tests.damage import PAGE_BYTES, ask, cut, flip, pages_of, scribble, settled, told, zero
from whyrank.storage.sqlite.check import CODES
from whyrank.storage.sqlite.database import SqlError, connect

from .test_repair import WORDS, answers, codes, doctor, opened


@pytest.mark.parametrize("seed", [0, 3, 6])
def test_rows_that_no_scan_reaches_are_read_one_by_one(tmp_path: Path, seed: int) -> None:
    path, chance = tmp_path / "memory.db", random.Random(7)
    with opened(path) as memory:
        for number in range(14):
            memory.add(f"Robin told number {number} {' '.join(chance.choices(WORDS, k=30))}")
        memory.status()
    everything = {identity for (identity,) in ask(path, "SELECT id FROM memories")}
    leaves = pages_of(path, "memories")
    scribble(path, leaves[0], 1_500, seed)
    with pytest.raises(SqlError, match="malformed"):
        ask(path, "SELECT text FROM memories NOT INDEXED ORDER BY row")
    mended = doctor(path, repair=True)
    [lost] = [one for one in mended.findings if one.code == "lost"]
    left = {identity for (identity,) in ask(path, "SELECT id FROM memories")}
    assert len(leaves) == 3  # so that at least the other two thirds can be read
    assert len(left) >= 8
    assert left == everything - set(lost.names)
    with opened(path) as memory:
        assert {one.id for one in memory.list(limit=20)} == left
    assert codes(doctor(path)) == {"aside"}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store of fifteen facts in two scopes, of a few dozen pages."""
    path = tmp_path_factory.mktemp("small") / "memory.db"
    with opened(path) as memory:
        for number in range(15):
            memory.add(f"Robin told number {number} {' '.join(WORDS)}", scope=("global", "user:42")[number % 2])
        memory.update(memory.list(limit=1)[0].id, importance=4)
    settled(path)
    return path


@pytest.mark.parametrize("place", range(3))
def test_damaged_definitions_of_tables_are_no_riddle(small: Path, tmp_path: Path, place: int) -> None:
    path = Path(shutil.copy(small, tmp_path / "memory.db"))
    pages = pages_of(path, "sqlite_schema")
    assert len(pages) == 3
    scribble(path, pages[place], 2_000)
    found = doctor(path, repair=True)
    assert found.findings
    # What is read of the file afterwards is all mended, or nothing of it was touched.
    assert codes(doctor(path)) <= {"aside"} or "hopeless" in codes(found)


def test_a_letter_of_the_name_of_a_column_costs_nothing(small: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(small, tmp_path / "memory.db"))
    for column in (b" end_line I", b" signs B", b" attempts ", b" was T"):
        assert flip(path, column) == 1
    assert codes(doctor(path)) >= {"pages"}
    assert doctor(path, repair=True).is_sound
    assert ask(path, "SELECT text FROM memories ORDER BY id") == ask(small, "SELECT text FROM memories ORDER BY id")
    assert ask(path, "SELECT * FROM history") == ask(small, "SELECT * FROM history")
    assert doctor(path).is_whole


@pytest.mark.parametrize("column", ["key", "value"])
def test_a_store_that_does_not_say_its_index_gets_one(small: Path, tmp_path: Path, column: str) -> None:
    path = Path(shutil.copy(small, tmp_path / "memory.db"))
    told(path, f"UPDATE meta SET {column} = 'oops' WHERE key = 'keyword'")
    assert codes(doctor(path)) == {"pages"}
    assert doctor(path, repair=True).is_sound
    assert answers(path) == answers(small)


def test_facts_that_waited_and_cannot_be_read_are_not_passed_over(small: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(small, tmp_path / "memory.db"))
    zero(path, pages_of(path, "arrivals")[0])
    lost = [one for one in doctor(path, repair=True).findings if one.code == "lost"]
    assert [one.message for one in lost] == ["facts that waited to be indexed may be lost"]
    assert ask(path, "SELECT count(*) FROM memories") == [(15,)]


def lose(path: Path, column: str, row: int) -> str:
    """Take a value from a row that must have one; return the id of its memory."""
    with closing(connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE name = 'memories'",
            (f" {column} TEXT NOT NULL" if column != "start_line" else " start_line INTEGER NOT NULL", f" {column}"),
        )
    told(path, f"UPDATE memories SET {column} = NULL WHERE row = {row}")
    [(identity,)] = ask(path, f"SELECT id FROM memories WHERE row = {row}")
    return str(identity)


@pytest.mark.parametrize("column", ["scope", "text", "kind"])
def test_a_row_that_lost_what_makes_it_a_memory_is_set_aside(small: Path, tmp_path: Path, column: str) -> None:
    path = Path(shutil.copy(small, tmp_path / "memory.db"))
    identity = lose(path, column, 3)
    told(path, "UPDATE memories SET embed_text = '' WHERE row = 3")  # or its text would be restored from that
    mended = doctor(path, repair=True)
    assert (identity,) in [one.names for one in mended.findings if one.code == "unreadable"]
    assert codes(doctor(path)) == {"aside"}


@pytest.mark.parametrize("column", ["start_line", "tags"])
def test_a_fact_that_lost_a_field_is_mended(small: Path, tmp_path: Path, column: str) -> None:
    path = Path(shutil.copy(small, tmp_path / "memory.db"))
    identity = lose(path, column, 3)
    mended = doctor(path, repair=True)
    assert [(one.names, one.mended) for one in mended.findings if one.code == "fields"] == [((identity,), True)]
    assert codes(doctor(path)) == set()
    assert ask(path, f"SELECT {column} FROM memories WHERE id = '{identity}'") == [
        (0,) if column == "start_line" else ("[]",)
    ]


@pytest.mark.parametrize("seed", range(40))
def test_no_damage_is_answered_with_a_traceback(small: Path, tmp_path: Path, seed: int) -> None:
    path, chance = Path(shutil.copy(small, tmp_path / "memory.db")), random.Random(seed)
    if chance.random() < 0.2:
        cut(path, chance.randrange(3, path.stat().st_size // PAGE_BYTES))
    pages = path.stat().st_size // PAGE_BYTES
    for _ in range(chance.choice([1, 1, 5])):
        page = chance.randrange(2, pages)
        if chance.random() < 0.5:
            zero(path, page)
        else:
            scribble(path, page, chance.randrange(PAGE_BYTES), seed)
    found = doctor(path, repair=True)
    assert codes(found) <= CODES
    left = doctor(path)
    assert codes(left) <= {"aside", "altered"} or codes(found) & {"hopeless", "unusable"}
