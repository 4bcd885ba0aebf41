"""Columns of the indexes that hold what no writer writes: answers come from the texts, and the doctor says so."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank.errors import StoreDamaged
from whyrank.storage.sqlite.database import Database
from whyrank.storage.sqlite.postings import segments
from whyrank.storage.sqlite.vectors import index

from ...damage import ask, settled, told
from .test_odd_types import damage

if TYPE_CHECKING:
    from whyrank.engine.engine import Engine

# Any whole number may be the key of a page; segments and blocks have only some.
TYPES: tuple[object, ...] = (b"\xff\0\xfe", None, 1.5, "odd")
ODD: tuple[object, ...] = (*TYPES, 2**62, 2**63 - 1, -3, -(2**63))
SEGMENTS = [("posting_segments", column) for column in ("segment", "scope", "first", "last", "memories", "state")]
PAGES = [("posting_pages", column) for column in ("scope", "segment", "field", "first_key", "page")]
SIGNS = [("sign_blocks", column) for column in ("space", "scope", "first", "present", "signs")]
ASKED = [("green tea kettle1", "default"), ('"black tea number"', "keyword"), ("muller", "keyword"), ("cake", "vector")]
Answers = list[list[tuple[str, float]]]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with several segments and blocks of signs, and facts that are in none of them."""
    store = tmp_path_factory.mktemp("odd") / "memory.db"
    with whyrank.open(store) as memory:
        memory.ingest(notes(store.parent))
        for number in range(148):
            memory.add(f"Suzy drinks black tea number {number}")
        memory.search("tea")
    settled(store)
    assert len(ask(store, "SELECT 1 FROM posting_segments")) > 1
    return store


def notes(folder: Path) -> Path:
    """Return a folder of notes."""
    (folder / "notes").mkdir()
    for number in range(150):
        text = f"# Tea {number}\n\nGreen tea {number} in the café of Müller, kettle{number % 3}, cake.\n"
        (folder / "notes" / f"tea{number}.md").write_text(text, encoding="utf-8")
    return folder / "notes"


@pytest.fixture
def store(sound: Path, tmp_path: Path) -> Path:
    """Return a copy of the sound store."""
    return Path(shutil.copy(sound, tmp_path / "memory.db"))


@pytest.fixture(scope="module")
def wanted(sound: Path) -> Answers:
    """Return what the sound store answers."""
    with whyrank.open(sound) as memory:
        return answered(memory)


def answered(memory: Engine) -> Answers:
    """Ask by words, phrases, other spellings, beginnings and meaning."""
    found = [memory.search(question, recipe=recipe, limit=20) for question, recipe in ASKED]
    found.append(memory.search("kett* OR muel*", syntax="advanced"))
    return [[(hit.memory.id, round(hit.score, 9)) for hit in answer] for answer in found]


def is_told(memory: Engine) -> bool:
    """Tell whether an answer says that an index is damaged."""
    return any(notice.code == "index-damaged" for notice in memory.search("green tea").notices)


def codes(store: Path) -> set[str]:
    """Return what the doctor finds."""
    return {finding.code for finding in whyrank.doctor(store).findings}


@pytest.mark.parametrize(("table", "column"), [*SEGMENTS, *PAGES, *SIGNS])
def test_what_an_index_cannot_say_is_read_from_the_texts(
    table: str, column: str, sound: Path, store: Path, wanted: Answers
) -> None:
    for value in TYPES if column in ("first_key", "space", "scope") else ODD:
        shutil.copy(sound, store)
        if not damage(store, table, column, [value]):
            continue
        with whyrank.open(store) as memory:
            assert answered(memory) == wanted, value
            assert memory.list()
            memory.add("The cup is yellow")
            assert memory.search("yellow cup")[0].memory.text == "The cup is yellow"


@pytest.mark.parametrize(("table", "column"), [*SEGMENTS[1:], *PAGES, *SIGNS[2:]])
def test_the_doctor_names_it_and_a_repair_mends_it(
    table: str, column: str, sound: Path, store: Path, wanted: Answers
) -> None:
    for value in (b"\xff", 1.5, -3):
        shutil.copy(sound, store)
        assert damage(store, table, column, [value])
        assert codes(store) & {"words", "postings", "signs"}, value
        assert all(finding.mended for finding in whyrank.doctor(store, repair=True).findings)
        assert whyrank.doctor(store).is_sound
        with whyrank.open(store) as memory:
            assert answered(memory) == wanted, value
            assert not is_told(memory)


@pytest.mark.parametrize(("table", "column"), [*SEGMENTS, *PAGES])
def test_an_answer_from_the_texts_is_told(table: str, column: str, store: Path) -> None:
    assert damage(store, table, column, [-3 if column in ("segment", "first_key") else 2**62])
    with whyrank.open(store) as memory:
        assert is_told(memory)


@pytest.mark.parametrize(("table", "column"), [*SEGMENTS[2:5], *PAGES[2:]])
def test_the_next_write_mends_it(table: str, column: str, store: Path) -> None:
    assert damage(store, table, column, [b"\xff"])
    with whyrank.open(store) as memory:
        memory.search("green tea")
        for number in range(3):
            memory.add(f"The cup {number} is yellow")
            memory.search("yellow")
        assert not is_told(memory)
    assert whyrank.doctor(store).is_sound


@pytest.mark.parametrize("column", ["segment", "first", "last", "memories", "field", "next_key"])
@pytest.mark.parametrize("value", [b"\xff", 1.5, "odd", 2**62, -3], ids=repr)
def test_a_merge_that_cannot_have_come_so_far_begins_again(
    column: str, value: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "POSTINGS_PER_STEP", 1)
    store = tmp_path / "memory.db"
    with whyrank.open(store, embedding="none") as memory:
        for number in range(128):
            memory.add(f"Suzy drinks black tea number {number}")
    told(store, "UPDATE posting_scopes SET due = 1")
    with closing(Database(store)) as database, database.writing() as connection:
        assert segments.merge_step(connection)
    assert ask(store, "SELECT count(*) FROM posting_segments GROUP BY state") == [(2,), (1,)]
    told(store, f"UPDATE posting_segments SET {column} = ? WHERE state = 1", value)
    with whyrank.open(store, embedding="none") as memory:
        for number in range(128, 140):
            memory.add(f"Suzy drinks black tea number {number}")
            found = [memory.search(f'"number {said}"')[0].memory.text for said in (3, 100, number)]
            assert found == [f"Suzy drinks black tea number {said}" for said in (3, 100, number)]
    assert ask(store, "SELECT count(*) FROM posting_segments") == [(1,)]
    assert whyrank.doctor(store).is_sound


def test_signs_of_another_size_are_made_from_the_vectors(
    store: Path, wanted: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "EXACT_ROWS", 0)
    assert damage(store, "sign_blocks", "first", [-64])
    with whyrank.open(store) as memory:
        assert [hit.memory.id for hit in memory.search("cake", recipe="vector", limit=20)] == [
            identity for identity, _ in wanted[3]
        ]


@pytest.mark.parametrize("key", ["generation", "keyword"])
@pytest.mark.parametrize("value", [b"\xff", None, "odd", "-3", "", "9" * 30, str(2**63 - 1), "٣"], ids=repr)
def test_a_store_that_does_not_say_what_it_is_of_is_refused_until_it_is_mended(
    key: str, value: object, store: Path, wanted: Answers
) -> None:
    told(store, "DELETE FROM meta WHERE key = ?", key)
    if value is not None:
        told(store, "INSERT INTO meta VALUES (?, ?)", key, value)
    with pytest.raises(StoreDamaged, match="does not say"), whyrank.open(store) as memory:
        memory.search("green tea")
    with pytest.raises(StoreDamaged, match="does not say"), whyrank.open(store) as memory:
        memory.add("The cup is yellow")
    assert "pages" in codes(store)
    whyrank.doctor(store, repair=True)
    assert whyrank.doctor(store).is_sound
    with whyrank.open(store) as memory:
        assert answered(memory) == wanted
