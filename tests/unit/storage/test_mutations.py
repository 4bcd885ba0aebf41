"""Whatever row is lost and whatever bit is changed: found or harmless, never a wrong answer without a notice."""

from __future__ import annotations

import random
import shutil
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import whyrank
from tests.damage import ask, told
from tests.mutations import (
    DAMAGE,
    MINE,
    MUTATIONS,
    QUESTIONS,
    Answer,
    answers,
    delete_row,
    key_of,
    make_world,
    mutate,
    opened,
    tables_in,
)
from whyrank.errors import SchemaTooNew, StoreDamaged
from whyrank.storage.sqlite.database import connect
from whyrank.storage.sqlite.schema import APPLICATION_ID, MIGRATIONS
from whyrank.storage.sqlite.vectors.checksums import vector_checksum

if TYPE_CHECKING:
    from whyrank.storage.sqlite.check import Checkup

ROWS = 2  # of each table that are deleted, one after the other
SEEDS, PARTS, REPAIRED_EVERY = 200, 4, 10
NEWEST = MIGRATIONS[-1].version


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def before(world: Path) -> list[Answer]:
    given = answers(world)
    assert not any(answer.damage for answer in given)
    assert doctor(world).is_whole
    return given


@pytest.fixture
def path(world: Path, before: list[Answer], tmp_path: Path) -> Path:
    return Path(shutil.copy(world, tmp_path / "memory.db"))


def doctor(path: Path, *, repair: bool = False) -> Checkup:
    return whyrank.doctor(path, workspace=path.parent, repair=repair)


def codes(found: Checkup) -> set[str]:
    return {finding.code for finding in found.findings}


def shown(given: list[Answer]) -> list[object]:
    return [answer.shown for answer in given]


def said(given: list[Answer]) -> set[str]:
    return {code for answer in given for code in answer.damage}


def differing(before: list[Answer], after: list[Answer]) -> list[Answer]:
    return [other for one, other in zip(before, after, strict=True) if one.shown != other.shown]


# -- rows that are lost ----------------------------------------------------------------------------------------------


def test_every_table_is_one_that_rows_are_deleted_from(world: Path) -> None:
    empty = {"arrivals", "embedding_failures"}  # at rest nothing waits, and nothing has failed
    named = {name for (name,) in ask(world, "SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert {name for name in named if not name.startswith("sqlite")} == {*tables_in(world), *empty}


def test_any_row_of_any_table_that_is_lost_is_found_or_harmless(
    world: Path, before: list[Answer], tmp_path: Path
) -> None:
    chance = random.Random(25)
    for table in tables_in(world):
        keys = ask(world, f"SELECT {key_of(table)} FROM {table} ORDER BY {key_of(table)}")
        for number, key in enumerate(chance.sample(keys, min(ROWS, len(keys)))):
            asked, looked = (tmp_path / f"{table}{number}{name}.db" for name in ("asked", "looked"))
            for place in (asked, looked):
                shutil.copy(world, place)
                delete_row(place, table, key)
            after, what = answers(asked), f"row {key} of {table}"
            assert all(answer.damage for answer in differing(before, after)), f"{what} changed an answer silently"
            found = doctor(looked)
            assert not (said(after) & DAMAGE and found.is_whole), f"{what} is missed by searches, and not by doctor"


@pytest.mark.parametrize("table", ["posting_pages", "posting_tokens", "records", "names", "name_words", "vectors"])
def test_a_lost_row_of_what_is_derived_is_made_anew(path: Path, before: list[Answer], table: str) -> None:
    keys = ask(path, f"SELECT {key_of(table)} FROM {table} ORDER BY {key_of(table)}")
    delete_row(path, table, keys[len(keys) // 2])
    found = doctor(path)
    assert not found.is_whole
    assert all(finding.derived for finding in found.findings)
    assert doctor(path, repair=True).is_whole
    assert answers(path) == before


def test_each_page_of_postings_is_missed(path: Path, world: Path, before: list[Answer]) -> None:
    pages = ask(path, "SELECT scope, segment, field, first_key FROM posting_pages ORDER BY 1, 2, 3, 4")
    assert len(pages) > 8
    for page in pages:
        shutil.copy(world, path)
        told(path, "DELETE FROM posting_pages WHERE scope = ? AND segment = ? AND field = ? AND first_key = ?", *page)
        assert codes(doctor(path)) == {"postings"}
    after = answers(path)
    assert shown(after) == shown(before)  # the texts were read instead
    assert "index-damaged" in said(after)


def test_a_write_makes_a_segment_anew_that_has_lost_a_page(path: Path) -> None:
    told(path, "DELETE FROM posting_pages WHERE field = 0 AND rowid = (SELECT min(rowid) FROM posting_pages)")
    with opened(path) as memory:
        assert "index-damaged" in {notice.code for notice in memory.search(**QUESTIONS[0]).notices}
        for number in range(3):
            memory.add(f"one more fact, number {number}")
        memory.models.wait(1.0)
    assert doctor(path).findings == ()


def test_a_page_in_the_place_of_another_segments_is_found(path: Path, before: list[Answer]) -> None:
    own = "FROM posting_pages WHERE scope = ? AND segment = ? AND field = 0 ORDER BY first_key LIMIT 1"
    segment, other = ask(path, "SELECT scope, segment FROM posting_segments ORDER BY scope, segment")
    [(number,)], [(page,)] = ask(path, f"SELECT rowid {own}", *segment), ask(path, f"SELECT page {own}", *other)
    told(path, "UPDATE posting_pages SET page = ? WHERE rowid = ?", page, number)
    assert "postings" in codes(doctor(path))
    assert shown(answers(path)) == shown(before)


def test_a_segment_that_counts_from_another_number_is_not_believed(path: Path, before: list[Answer]) -> None:
    told(path, "UPDATE posting_segments SET last = last - 1 WHERE scope = 'global'")
    after = answers(path)
    assert shown(after) == shown(before)
    assert "index-damaged" in said(after)
    assert not doctor(path).is_whole


def test_a_scope_whose_own_row_is_lost_still_answers_and_takes_memories(path: Path, before: list[Answer]) -> None:
    told(path, "DELETE FROM scopes WHERE scope = ?", MINE)
    after = answers(path)
    assert shown(after) == shown(before)
    assert "index-damaged" in said(after)
    with opened(path) as memory:
        added = memory.add("a comet was seen over the harbour", scope=MINE)
        assert memory.search("comet", scope=MINE)[0].id == added.id
    assert ask(path, "SELECT count(*) FROM memories WHERE scope = ?", MINE) == [(92,)]


def test_a_lost_memory_is_named_until_it_is_given_up(path: Path) -> None:
    [(row, identity)] = ask(path, "SELECT row, id FROM memories WHERE scope = ? ORDER BY row LIMIT 1 OFFSET 40", MINE)
    told(path, "DELETE FROM memories WHERE row = ?", row)
    [lost] = [finding for finding in doctor(path).findings if finding.code == "lost"]
    assert (lost.names, lost.derived) == ((identity,), False)
    with opened(path) as memory:
        notices = memory.search("copper", scope=MINE).notices
        assert "1 memory is missing from the file" in " ".join(notice.message for notice in notices)
    doctor(path, repair=True)
    [aside] = doctor(path).findings
    assert (aside.code, aside.names) == ("aside", (identity,))
    with opened(path) as memory:
        assert memory.maintenance.discard_damaged() == (identity,)
    assert doctor(path).is_whole


def test_a_lost_memory_is_not_forgotten_by_a_write_that_mends_its_block(path: Path) -> None:
    [(row, identity)] = ask(path, "SELECT row, id FROM memories WHERE scope = ? ORDER BY row LIMIT 1 OFFSET 40", MINE)
    told(path, "DELETE FROM memories WHERE row = ?", row)
    with opened(path) as memory:
        memory.search("copper", scope=MINE)
        memory.forget(memory.list(scope=MINE, limit=1)[0].id, scope=MINE)  # mends what the search found broken
    assert [finding.names for finding in doctor(path).findings if finding.code == "aside"] == [(identity,)]


def test_a_lost_chunk_comes_back_with_its_file(path: Path, world: Path, before: list[Answer]) -> None:
    shutil.copytree(world.parent / "notes", path.parent / "notes")
    told(path, "DELETE FROM memories WHERE path = 'notes/note7.md'")
    assert "lost" in codes(doctor(path, repair=True))
    with opened(path) as memory:
        memory.ingest(path.parent / "notes")
    assert doctor(path).is_whole
    assert ask(path, "SELECT count(*) FROM memories WHERE path = 'notes/note7.md'") == [(1,)]


@pytest.mark.parametrize(
    ("table", "which"),
    [
        ("history", "1 of the history of memories is missing"),
        ("write_keys", "1 of the keys of writes is missing"),
        ("meta", "1 of notes: which model answers, calibration, counters is missing"),
    ],
)
def test_a_lost_row_that_cannot_be_made_anew_is_missed_until_it_is_given_up(path: Path, table: str, which: str) -> None:
    keys = ask(path, f"SELECT {key_of(table)} FROM {table}")
    delete_row(path, table, next(key for key in keys if table != "meta" or str(key[0]).startswith("note:")))
    [books] = doctor(path, repair=True).findings
    assert (books.code, books.message, books.derived) == ("books", which, False)
    with opened(path) as memory:
        memory.maintenance.discard_damaged()
    assert doctor(path).findings == ()


@pytest.mark.parametrize("identity", [None, b"\xff\x00\xfe", "m_\x01\x1b[2J", "", 7])
def test_a_memory_that_has_lost_its_id_is_set_aside_under_the_number_of_its_row(path: Path, identity: object) -> None:
    with closing(connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")  # the column takes what it never would
        connection.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, 'id TEXT NOT NULL', 'id BLOB') WHERE name = 'memories'"
        )
    told(path, "UPDATE memories SET id = ? WHERE row = 120", identity)
    with closing(connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, 'id BLOB', 'id TEXT NOT NULL') WHERE name = 'memories'"
        )
    doctor(path, repair=True)
    [aside] = doctor(path).findings
    assert (aside.code, aside.names) == ("aside", ("row 120",))


# -- what was changed ------------------------------------------------------------------------------------------------


def test_a_vector_of_another_length_is_left_out_named_and_made_anew(path: Path, before: list[Answer]) -> None:
    asked = "SELECT entry, scope, number, hash FROM vectors ORDER BY entry LIMIT 1 OFFSET 70"
    [(entry, scope, number, text_hash)] = ask(path, asked)
    short = np.ones(100, "<f4").tobytes()
    told(
        path,
        "UPDATE vectors SET vector = ?, checksum = ? WHERE entry = ?",
        short,
        vector_checksum(scope, number, text_hash, short),
        entry,
    )
    after = answers(path)
    assert "vectors-damaged" in said(after)
    assert codes(doctor(path)) == {"vectors"}
    assert doctor(path, repair=True).is_whole
    assert answers(path) == before


def test_a_vector_of_another_text_is_left_out_and_made_anew(path: Path, before: list[Answer]) -> None:
    one, other = ask(path, "SELECT entry, checksum, vector FROM vectors ORDER BY entry LIMIT 2 OFFSET 70")
    told(path, "UPDATE vectors SET checksum = ?, vector = ? WHERE entry = ?", *other[1:], one[0])
    assert codes(doctor(path)) == {"vectors"}
    assert doctor(path, repair=True).is_whole
    assert answers(path) == before


def test_a_model_that_says_other_dimensions_than_its_vectors_have_is_put_right(
    path: Path, before: list[Answer]
) -> None:
    told(path, "UPDATE meta SET value = '25' WHERE key LIKE 'dimensions of %'")
    assert "vectors" in codes(doctor(path))
    assert doctor(path, repair=True).is_whole
    assert answers(path) == before


def test_a_text_that_was_altered_is_shown_with_a_notice(path: Path) -> None:
    [(identity, text)] = ask(path, "SELECT id, text FROM memories WHERE scope = ? ORDER BY row LIMIT 1 OFFSET 40", MINE)
    told(path, "UPDATE memories SET text = ? WHERE id = ?", text.replace("number", "nvmber"), identity)
    with opened(path) as memory:
        found = memory.search(text, scope=MINE)
        assert found[0].id == identity
        assert "damaged-text" in {notice.code for notice in found.notices}
        memories = memory.list(scope=MINE, limit=500)
        assert "damaged-text" in {notice.code for notice in memory.memories.list_notices(memories, scope=MINE)}
        [told_of_it] = memory.memories.text_notices([memory.get(identity, scope=MINE)], scope=MINE)
        assert told_of_it.message.startswith("1 memory shown here is not as it was stored; ")
        [other] = [one for one in memories if one.text != text and one.id != identity][:1]
        assert memory.memories.text_notices([other], scope=MINE) == ()


def test_a_memory_that_answers_and_cannot_be_read_is_said_to_be_lost(path: Path) -> None:
    with opened(path) as memory:
        asked: dict[str, Any] = {"query": "copper violin ladder", "scope": MINE}
        last = memory.search(**asked, limit=3).dropped[0]
        # While the process holds its records: what it finds by them is not there any more.
        told(path, "DELETE FROM memories WHERE id = ?", last.id)
        found = memory.search(**asked, limit=100)
    assert last.id in {hit.id for hit in found}
    assert any("cannot be read from the file" in notice.message for notice in found.notices)


@pytest.mark.parametrize("version", [0, 1, *range(2, NEWEST), -1, 2**31 - 1, -(2**31)])
def test_another_number_of_the_schema_is_named_and_put_right(path: Path, before: list[Answer], version: int) -> None:
    told(path, f"PRAGMA user_version = {version}")
    with pytest.raises(StoreDamaged, match=f"is marked as schema {version}, .*doctor --repair"):
        opened(path)
    assert codes(doctor(path)) == {"schema"}
    mended = doctor(path, repair=True)
    assert mended.is_whole
    assert not mended.kept
    assert ask(path, "PRAGMA user_version") == [(NEWEST,)]
    assert answers(path) == before


def test_a_number_that_a_later_whyrank_may_have_given_is_left_alone(path: Path) -> None:
    told(path, f"PRAGMA user_version = {NEWEST + 1}")
    with pytest.raises(SchemaTooNew, match="upgrade whyrank"):
        doctor(path, repair=True)
    assert ask(path, "PRAGMA user_version") == [(NEWEST + 1,)]


def test_a_store_that_does_not_say_that_it_is_one_is_put_right(path: Path, before: list[Answer]) -> None:
    told(path, "PRAGMA application_id = 7")
    with pytest.raises(StoreDamaged, match="has the tables of one"):
        opened(path)
    assert codes(doctor(path)) == {"schema"}
    assert doctor(path, repair=True).is_whole
    assert ask(path, "PRAGMA application_id") == [(APPLICATION_ID,)]
    assert answers(path) == before


@pytest.mark.parametrize("table", ["names", "posting_pages", "embedding_failures", "vectors"])
def test_a_dropped_table_of_what_is_derived_is_made_anew(path: Path, before: list[Answer], table: str) -> None:
    told(path, f"DROP TABLE {table}")
    assert "StoreDamaged" in said(answers(path))
    assert any(f"the table {table} is missing" in finding.message for finding in doctor(path).findings)
    assert doctor(path, repair=True).is_whole
    assert answers(path) == before


def test_a_dropped_table_of_what_is_not_derived_is_named_and_the_rest_is_saved(path: Path) -> None:
    told(path, "DROP TABLE history")
    mended = doctor(path, repair=True)
    assert {finding.code for finding in mended.findings if not finding.mended} == {"books"}
    with opened(path) as memory:
        assert len(memory.list(scope=MINE, limit=500)) > 90
        assert memory.search("copper", scope=MINE)


def test_a_store_without_its_memories_is_named_and_left_as_it_is(path: Path) -> None:
    told(path, "DROP TABLE memories")
    content = path.read_bytes()
    mended = doctor(path, repair=True)
    assert {"hopeless", "lost"} <= codes(mended)
    assert path.read_bytes() == content


def test_a_dropped_index_is_named_and_made_anew(path: Path) -> None:
    told(path, "DROP INDEX memories_by_number")
    assert codes(doctor(path)) == {"pages"}
    assert doctor(path, repair=True).is_whole
    assert ask(path, "SELECT count(*) FROM sqlite_schema WHERE name = 'memories_by_number'") == [(1,)]


@pytest.mark.parametrize("part", range(PARTS))
def test_any_damage_is_found_or_harmless(world: Path, before: list[Answer], tmp_path: Path, part: int) -> None:
    seeds = range(part * SEEDS // PARTS, (part + 1) * SEEDS // PARTS)
    counted = mutate(world, before, tmp_path / "mutated", seeds, REPAIRED_EVERY)
    assert counted["found"] > len(seeds) // 2  # most damage is no harmless one
    assert {name.partition(":")[0] for name in counted if ":" in name} == {*MUTATIONS}
