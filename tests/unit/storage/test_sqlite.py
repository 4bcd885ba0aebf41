"""What is special about the SQLite store: durability settings, locks, caches, damage."""

from __future__ import annotations

import gc
import sqlite3
import threading
from functools import partial
from pathlib import Path

import pytest

import whyrank
from whyrank.analysis.document import entry_for
from whyrank.analysis.names import probe_for
from whyrank.errors import StoreDamaged, StoreError, StoreFull, StoreLocked
from whyrank.protocols import Changes
from whyrank.storage.sqlite.database import Database, translated
from whyrank.storage.sqlite.database import sqlite3 as library  # type: ignore[attr-defined]
from whyrank.storage.store import SqliteStore
from whyrank.testing.fakes import WordDirections
from whyrank.testing.store_contract import NOW, StoreContract, fact, ids
from whyrank.types.query import Where

EMBEDDER = WordDirections()
SPACE = EMBEDDER.fingerprint
EVERYTHING = Where(now=NOW)


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    made = SqliteStore(tmp_path / "memory.db")
    StoreContract().put(made, [fact("m_1", "green tea"), fact("m_2", "black tea")])
    return made


def test_connections_are_durable_and_careful(store: SqliteStore) -> None:
    with store._database.writing() as connection:
        settings = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in (
                "journal_mode",
                "synchronous",
                "secure_delete",
                "foreign_keys",
                "trusted_schema",
                "busy_timeout",
            )
        }
    assert settings == {
        "journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "foreign_keys": 1, "trusted_schema": 0,
        "busy_timeout": 30_000,
    }  # fmt: skip


def test_readers_cannot_write(store: SqliteStore) -> None:
    with pytest.raises(library.OperationalError, match="readonly"):
        store._database.reader().execute("DELETE FROM memories")


def test_a_failed_transaction_leaves_nothing(store: SqliteStore) -> None:
    before = store.status(SPACE)

    def fail_halfway() -> None:
        with store._database.writing() as connection:
            connection.execute("DELETE FROM memories")
            connection.execute("INSERT INTO no_such_table VALUES (1)")

    with pytest.raises(StoreError, match="no_such_table"):
        fail_halfway()
    assert store.status(SPACE) == before


def test_a_reader_sees_one_moment_while_others_write(store: SqliteStore) -> None:
    with store.reading():
        before = ids(store.keyword(["tea"], EVERYTHING, 9))
        writer = threading.Thread(target=store.write, args=(Changes(put=[entry_for(fact("m_3", "tea"), "en")]),))
        writer.start()
        writer.join()
        assert ids(store.keyword(["tea"], EVERYTHING, 9)) == before
    assert set(ids(store.keyword(["tea"], EVERYTHING, 9))) == {*before, "m_3"}


def test_caches_notice_the_writes_of_another_process(store: SqliteStore) -> None:
    vector = EMBEDDER.query("coffee")
    assert ids(store.nearest(vector, SPACE, EVERYTHING, 9))[0] != "m_3"
    other = SqliteStore(store._database.path)
    probe = probe_for("Cofee Bar", typos=True)
    assert ids(store.named(probe, EVERYTHING, 9)) == []
    before = store.statistics(["tea"], EVERYTHING.scopes)
    StoreContract().put(other, [fact("m_3", "coffee", name="Coffee Bar"), fact("m_4", "tea")])
    assert ids(store.nearest(vector, SPACE, EVERYTHING, 9))[0] == "m_3"
    assert ids(store.named(probe, EVERYTHING, 9)) == ["m_3"]
    assert store.statistics(["tea"], EVERYTHING.scopes).frequency["tea"] == before.frequency["tea"] + 1
    other.close()


def test_connections_are_closed_with_their_threads(store: SqliteStore) -> None:
    for _ in range(20):
        thread = threading.Thread(target=store.status, args=(SPACE,))
        thread.start()
        thread.join()
    gc.collect()
    assert len(store._database._readers) <= 2


def test_a_full_disk_is_called_full_and_nothing_is_lost(store: SqliteStore) -> None:
    before = store.status(SPACE)
    pages = store._database.reader().execute("PRAGMA page_count").fetchone()[0]
    store._database._write_connection().execute(f"PRAGMA max_page_count={pages}")
    long = " ".join(f"word{i}" for i in range(20_000))
    with pytest.raises(StoreFull, match="no room left"):
        store.write(Changes(put=[entry_for(fact("m_long", long), "en")]))
    assert store.status(SPACE) == before
    assert ids(store.keyword(["tea"], EVERYTHING, 9))


def test_damaged_vectors_are_made_anew_by_the_next_ingest(store: SqliteStore) -> None:
    with store._database.writing() as connection:
        connection.execute("UPDATE vectors SET vector = substr(vector, 5)")
    assert store.drop_damaged_vectors(SPACE) == 2
    assert len(store.without_vector(SPACE, 9)) == 2


def test_a_store_others_write_can_be_read_without_the_right_to_write(store: SqliteStore) -> None:
    reader = Database(store._database.path)
    reader.read_only = True
    assert reader.reader().execute("SELECT count(*) FROM memories").fetchone() == (2,)
    StoreContract().put(store, [fact("m_3", "coffee")])
    assert reader.reader().execute("SELECT count(*) FROM memories").fetchone() == (3,)
    reader.close()


def test_a_row_that_cannot_be_read_is_damage_and_no_crash(store: SqliteStore) -> None:
    with store._database.writing() as connection:
        connection.execute("UPDATE memories SET tags = 'oops' WHERE id = 'm_1'")
    with pytest.raises(StoreDamaged, match="m_1"):
        store.get(["m_1"], EVERYTHING.scopes)


@pytest.mark.parametrize(
    ("column", "value"),
    [("tags", "oops"), ("aliases", "5"), ("headings", ""), ("entities", "{")],
)
def test_a_row_that_cannot_be_read_is_fetched_as_far_as_it_can_be(
    store: SqliteStore, column: str, value: object
) -> None:
    with store._database.writing() as connection:
        connection.execute(f"UPDATE memories SET {column} = ? WHERE id = 'm_1'", (value,))
    text = store.get(["m_2"], EVERYTHING.scopes)["m_2"].text
    with store.reading():
        assert len(store.keyword(["tea"], EVERYTHING, 10).ids) == 2  # as in a search, whose runs know rows and scopes
        fetched = store.fetch(["m_2", "m_1"], EVERYTHING.scopes)
    assert (sorted(fetched.mended), sorted(fetched.altered)) == (["m_1"], [])
    assert [memory.text == text for memory in fetched.memories.values()] == [True, False]
    with pytest.raises(StoreDamaged, match="m_1"):
        store.get(["m_1"], EVERYTHING.scopes)


ODD = [
    *[(column, value) for column in ("expires", "valid_from", "valid_until", "created") for value in ("abc", b"\1")],
    ("date", "abc"),
    ("importance", b"\1"), ("importance", "high"), ("importance", 7.5), ("recalls", "many"), ("recalled", "abc"),
    ("superseded_at", "abc"), ("evergreen", "abc"), ("expires_given", "abc"), ("start_line", "abc"), ("position", "x"),
    ("category", b"\0"), ("name", b"\xff"), ("trust", b"\xff"),
]  # fmt: skip


@pytest.mark.parametrize("recipe", ["default", "openclaw"])
@pytest.mark.parametrize(("column", "value"), ODD)
def test_a_field_of_an_odd_type_keeps_nobody_from_an_answer_and_is_mended(
    tmp_path: Path, column: str, value: object, recipe: str
) -> None:
    opened = partial(whyrank.open, tmp_path / "memory.db", workspace=tmp_path, embedding="none", calibration="manual")
    with opened() as engine:
        odd, *_ = [engine.add(text) for text in ("Robin drinks tea", "Kim drinks tea", "tea is green")]
        assert engine.maintenance.damage_notices() == ()
    other = library.connect(tmp_path / "memory.db")
    other.execute(f"UPDATE memories SET {column} = ? WHERE id = ?", (value, odd.id))
    other.commit()
    other.close()
    with opened() as engine:
        results = engine.search("tea", recipe=recipe)
        assert {hit.memory.text for hit in results} == {"Robin drinks tea", "Kim drinks tea", "tea is green"}
        assert [hit.explain() for hit in results]
        assert "facts-damaged" in [notice.code for notice in results.notices]
        assert [notice.code for notice in engine.maintenance.damage_notices()] == ["facts-damaged"]
        assert engine.get(odd.id).text == "Robin drinks tea"
        [found] = engine.doctor().findings
        assert (found.code, found.names, found.derived) == ("fields", (odd.id,), True)
    with opened() as engine:
        assert engine.doctor(repair=True).is_sound
        assert engine.doctor().is_sound
        assert engine.maintenance.damage_notices() == ()
    with opened() as engine:
        assert "facts-damaged" not in [notice.code for notice in engine.search("tea").notices]
        assert len(engine.list()) == 3


def test_a_search_that_shows_a_damaged_row_says_so(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        engine.add("Robin drinks tea", tags=["drinks"])
        engine.status()  # whoever reads has it indexed first
        other = sqlite3.connect(tmp_path / "memory.db")
        other.execute("UPDATE memories SET tags = '[\"drinks'")
        other.commit()
        other.close()
        results = engine.search("tea")
        assert [hit.memory.text for hit in results] == ["Robin drinks tea"]
        assert [notice.message for notice in results.notices if notice.code == "facts-damaged"] == [
            "1 memory that answers was damaged, and shown as far as it can be read; `whyrank doctor` lists what is "
            "damaged, and `--repair` fixes it"
        ]


def test_two_writers_wait_for_each_other(store: SqliteStore) -> None:
    other = SqliteStore(store._database.path)
    stores = [store, other]

    def write(number: int) -> None:
        for i in range(10):
            stores[number % 2].write(Changes(put=[entry_for(fact(f"m_{number}_{i}", f"tea {number} {i}"), "en")]))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.status(SPACE).memories == 2 + 4 * 10
    other.close()


def test_a_damaged_vector_is_left_out_with_a_notice(store: SqliteStore) -> None:
    with store._database.writing() as connection:
        connection.execute(
            "UPDATE vectors SET vector = zeroblob(length(vector)) WHERE hash = (SELECT min(hash) FROM vectors)"
        )
        connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
    run = store.nearest(EMBEDDER.query("tea"), SPACE, EVERYTHING, 9)
    assert len(run.candidates) == 1
    assert [notice.code for notice in run.notices] == ["vectors-damaged"]


def test_nothing_of_a_removed_text_stays_in_the_file(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memory.db")
    StoreContract().put(store, [fact("m_1", "zyzzyvacanary lives here"), fact("m_2", "tea")])
    store.write(Changes(remove=["m_1"]))
    store.close()
    assert b"zyzzyvacanary" not in (tmp_path / "memory.db").read_bytes()


@pytest.mark.parametrize(
    ("said", "kind"),
    [("database is locked", StoreLocked), ("database or disk is full", StoreFull), ("disk I/O error", StoreError)],
)
def test_errors_of_the_library_become_ours(said: str, kind: type[StoreError]) -> None:
    with pytest.raises(kind, match=r"memory\.db"), translated(Path("memory.db")):
        raise library.OperationalError(said)


def test_a_database_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    database = Database(tmp_path / "memory.db")
    database.read_only = True
    with pytest.raises(StoreError, match="cannot be written"), database.writing():
        pass
