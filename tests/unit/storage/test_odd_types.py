"""Columns that hold values of other types than they should: every door that reads goes on, and the doctor says so."""

from __future__ import annotations

import io
import json
import math
import shutil
import sqlite3
from contextlib import closing
from itertools import count
from typing import TYPE_CHECKING

import pytest

import whyrank

from ...damage import settled, told

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from whyrank.storage.sqlite.check import Checkup
    from whyrank.types.results import Results

# One of each in turn, row by row; a text column makes texts of numbers, which is no damage anybody could see.
ODD: tuple[object, ...] = (b"\xff\0\xfe", None, 1.5, "odd", 2**62, b"", -3)
TABLES = ("memories", "scopes", "records", "names", "name_words", "vectors", "posting_tokens", "history", "files")
WITH_ROWS = ("memories", "names", "vectors", "history")
ASKED = [("green tea kettle", "default"), ("Tea 3", "openvault"), ("mueller E-473", "default"), ("Suzy?", "hybrid-mem")]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with notes, turns, facts, a past and names, from which copies are made and damaged."""
    folder = tmp_path_factory.mktemp("odd")
    notes = folder / "notes"
    notes.mkdir()
    for number in range(9):
        front = f"---\ntags: [a]\naliases: [Cup {number}]\ndate: 2025-03-0{number + 1}\n---\n"
        text = f"{front}# Tea {number}\n\nGreen tea {number} in the café of Müller, E-47{number}.\n"
        (notes / f"tea{number}.md").write_text(text, encoding="utf-8")
    turns = [{"speaker": "Suzy", "text": f"turn {number} about the green kettle"} for number in range(5)]
    (notes / "log.jsonl").write_text("\n".join(map(json.dumps, turns)), encoding="utf-8")
    with whyrank.open(folder / "memory.db") as memory:
        memory.ingest(notes)
        drink = memory.add("Suzy drinks green tea").id
        memory.add("Suzy drinks coffee", supersedes=drink)
        memory.update(memory.add("The kettle is red", expires="2999-01-01").id, text="The kettle is blue")
        memory.search("kettle")
    settled(folder / "memory.db")
    return folder / "memory.db"


def copies(sound: Path, folder: Path, table: str) -> Iterator[tuple[str, Path]]:
    """Yield copies of the store with odd values in one column after the other, past all that would refuse them."""
    store = folder / "memory.db"
    with closing(sqlite3.connect(sound)) as connection:
        columns = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
    for column in columns:
        for values in [ODD] if table in WITH_ROWS else [[value] for value in ODD[:5]]:
            shutil.copy(sound, store)
            if damage(store, table, column, values):
                yield f"{table}.{column} = {values}", store


def damage(store: Path, table: str, column: str, values: Sequence[object]) -> bool:
    """Put values into a column, row by row; tell whether SQLite lets us."""
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("PRAGMA writable_schema = 1")
        connection.execute("UPDATE sqlite_schema SET sql = replace(sql, ' NOT NULL', '') WHERE name = ?", (table,))
        connection.commit()
    with closing(sqlite3.connect(store)) as connection:
        place = f"WHERE rowid % {len(values)} = ?" if len(values) > 1 else "WHERE ? = 0"
        try:
            connection.executemany(f"UPDATE OR IGNORE {table} SET {column} = ? {place}", zip(values, count()))
        except sqlite3.Error:
            return False
        connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
        connection.commit()
        return connection.total_changes > 1


def looked_at(store: Path) -> tuple[list[Results], Checkup]:
    """Read a store through every door that goes on where something was damaged; return answers and findings."""
    with whyrank.open(store) as memory:
        answers = [memory.search(question, recipe=recipe, limit=20) for question, recipe in ASKED]
        answers.append(memory.search("tag:a OR name:tea* OR tea", syntax="advanced"))
        answers.append(memory.search("green tea", path="notes/*", since="2020-01-01", as_of="2990-01-01"))
        for answer in answers:
            for hit in answer:
                assert math.isfinite(hit.score)
                assert hit.explain()
        memory.list()
        memory.status()
        memory.export(io.StringIO())
        memory.models.backlog()
    return answers, whyrank.doctor(store)


@pytest.mark.parametrize("table", TABLES)
def test_no_type_in_any_column_stops_a_reader_or_the_doctor(table: str, sound: Path, tmp_path: Path) -> None:
    for what, store in copies(sound, tmp_path, table):
        try:
            looked_at(store)
            whyrank.doctor(store, repair=True)
            looked_at(store)
        except Exception as error:
            raise AssertionError(what) from error


@pytest.mark.parametrize("column", ["path", "start_line", "end_line", "content_hash", "name", "created", "text"])
def test_a_memory_with_a_field_of_another_type_answers_with_a_notice(column: str, sound: Path, tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    shutil.copy(sound, store)
    assert damage(store, "memories", column, [b"\xff"])
    answers, found = looked_at(store)
    assert all(any(notice.code == "facts-damaged" for notice in answer.notices) for answer in answers if answer)
    assert any(answer.hits for answer in answers)
    assert not found.is_sound


@pytest.mark.parametrize(("table", "column"), [("names", "words"), ("names", "specificity"), ("name_words", "number")])
def test_a_name_of_another_type_is_told_and_named_by_the_doctor(
    table: str, column: str, sound: Path, tmp_path: Path
) -> None:
    store = tmp_path / "memory.db"
    shutil.copy(sound, store)
    assert damage(store, table, column, [b"\xff"])
    answers, found = looked_at(store)
    assert any("damaged and cannot be read" in notice.message for answer in answers for notice in answer.notices)
    assert {finding.code for finding in found.findings} == {"names"}


def test_a_scope_that_says_nothing_of_its_memories_loses_none(sound: Path, tmp_path: Path) -> None:
    with whyrank.open(sound) as memory:
        wanted = [hit.memory.id for hit in memory.search("green tea")]
    store = tmp_path / "memory.db"
    for said in (b"\xff", 3, 2**62, -1, 1.5, "many"):
        shutil.copy(sound, store)
        assert damage(store, "scopes", "numbers", [said])
        with whyrank.open(store) as memory:
            assert [hit.memory.id for hit in memory.search("green tea")] == wanted
            memory.add("The cup is yellow")
            assert memory.search("yellow cup")[0].memory.text == "The cup is yellow"
            assert memory.doctor().is_sound


@pytest.mark.parametrize("said", ["NULL", "'many'", "x'ff'", "1", "-1", "4611686018427387904", None], ids=str)
def test_how_many_rows_there_were_is_not_believed_against_those_there_are(
    said: str | None, sound: Path, tmp_path: Path
) -> None:
    with whyrank.open(sound) as memory:
        wanted = [hit.memory.id for hit in memory.search("green tea")]
    store = tmp_path / "memory.db"
    shutil.copy(sound, store)
    what = "DELETE FROM sqlite_sequence" if said is None else f"UPDATE sqlite_sequence SET seq = {said}"
    told(store, f"{what} WHERE name = 'memories'")
    told(store, "UPDATE meta SET value = value + 1 WHERE key = 'generation'")
    with whyrank.open(store) as memory:
        assert [hit.memory.id for hit in memory.search("green tea")] == wanted


@pytest.mark.parametrize(
    ("table", "column", "key"),
    [("memories", "scope", "row"), ("vectors", "space", "entry"), ("posting_tokens", "dates", "number")],
)
def test_a_text_that_is_none_any_more_stops_neither_reader_nor_doctor(
    table: str, column: str, key: str, sound: Path, tmp_path: Path
) -> None:
    store = tmp_path / "memory.db"
    shutil.copy(sound, store)
    told(store, f"UPDATE {table} SET {column} = CAST(x'ff' AS TEXT) WHERE {key} = (SELECT max({key}) FROM {table})")
    told(store, "UPDATE meta SET value = value + 1 WHERE key = 'generation'")
    answers, _ = looked_at(store)
    assert all(len(answer) for answer in answers[:2])


@pytest.mark.parametrize(("table", "column", "key"), [("vectors", "hash", "entry"), ("records", "scope", "first")])
def test_a_text_that_is_none_any_more_is_mended(table: str, column: str, key: str, sound: Path, tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    shutil.copy(sound, store)
    told(store, f"UPDATE {table} SET {column} = CAST(x'ff' AS TEXT) WHERE {key} = (SELECT max({key}) FROM {table})")
    assert not whyrank.doctor(store).is_sound
    assert all(finding.mended for finding in whyrank.doctor(store, repair=True).findings)
    assert whyrank.doctor(store).is_sound


def test_records_that_are_gone_are_made_anew_and_told(sound: Path, tmp_path: Path) -> None:
    with whyrank.open(sound) as memory:
        wanted = [hit.memory.id for hit in memory.search("green tea")]
    store = tmp_path / "memory.db"
    shutil.copy(sound, store)
    assert damage(store, "records", "first", ["odd"])
    with whyrank.open(store) as memory:
        answer = memory.search("green tea")
    assert [hit.memory.id for hit in answer] == wanted
    assert any(notice.code == "index-damaged" for notice in answer.notices)


@pytest.mark.parametrize("column", ["text", "path", "title", "name", "tags", "content_hash", "summary", "grouping"])
def test_a_text_that_is_none_any_more_stops_no_reader(column: str, sound: Path, tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    shutil.copy(sound, store)
    told(store, f"UPDATE memories SET {column} = CAST(x'ff41' AS TEXT) WHERE row % 2 = 0")
    answers, _ = looked_at(store)
    notices = {notice.code for answer in answers for notice in answer.notices}
    assert column == "grouping" or "facts-damaged" in notices
