"""Migrations: each once, backed up, and nothing that is not ours is touched."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from whyrank.errors import SchemaTooNew, StoreDamaged, StoreError
from whyrank.storage.sqlite.check import check_store
from whyrank.storage.sqlite.database import Database
from whyrank.storage.sqlite.schema import APPLICATION_ID, MIGRATIONS, Migration, prepare
from whyrank.storage.store import SqliteStore

GOLDEN = Path(__file__).parents[2] / "golden/stores"
NEXT = (
    *MIGRATIONS,
    Migration(MIGRATIONS[-1].version + 1, "CREATE TABLE extra (x INTEGER);\nINSERT INTO extra VALUES (7);"),
)
BROKEN = (
    *MIGRATIONS,
    Migration(MIGRATIONS[-1].version + 1, "CREATE TABLE extra (x INTEGER);\nINSERT INTO nowhere VALUES (1);"),
)


def fingerprint(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def foreign(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_new_file_gets_the_newest_schema(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memory.db")
    assert store.status("").schema == MIGRATIONS[-1].version
    store.close()


def test_an_older_file_is_backed_up_and_brought_forward(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    SqliteStore(path).close()
    database = Database(path)
    prepare(database, NEXT)
    assert database.reader().execute("SELECT x FROM extra").fetchone() == (7,)
    backup = path.with_name(f"memory.db.schema{MIGRATIONS[-1].version}.bak")
    old = sqlite3.connect(backup)
    assert old.execute("PRAGMA user_version").fetchone() == (MIGRATIONS[-1].version,)
    old.close()
    database.close()


def test_a_migration_that_fails_leaves_the_old_schema(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    SqliteStore(path).close()
    database = Database(path)
    with pytest.raises(Exception, match="nowhere"):
        prepare(database, BROKEN)
    assert database.reader().execute("PRAGMA user_version").fetchone() == (MIGRATIONS[-1].version,)
    assert database.reader().execute("SELECT count(*) FROM sqlite_schema WHERE name = 'extra'").fetchone() == (0,)
    assert not [*tmp_path.glob("*.bak")]
    database.close()
    SqliteStore(path).close()


def test_a_newer_file_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    SqliteStore(path).close()
    foreign(path, "PRAGMA user_version = 99")
    before = fingerprint(path)
    with pytest.raises(SchemaTooNew, match="99"):
        SqliteStore(path)
    assert fingerprint(path) == before


def test_somebody_elses_database_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    foreign(path, "CREATE TABLE recipes (name TEXT)")
    before = fingerprint(path)
    with pytest.raises(StoreDamaged, match="not a whyrank store"):
        SqliteStore(path)
    assert fingerprint(path) == before


def test_a_text_file_is_no_store(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("just a note, long enough to be taken for a header of a database file\n" * 20)
    before = fingerprint(path)
    with pytest.raises(StoreDamaged):
        SqliteStore(path)
    assert fingerprint(path) == before


def test_a_store_from_before_the_first_release_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    foreign(path, "CREATE TABLE chunks (text TEXT)")
    foreign(path, f"PRAGMA application_id = {APPLICATION_ID}")
    foreign(path, "PRAGMA user_version = 1")
    before = fingerprint(path)
    with pytest.raises(StoreError, match="before the first release"):
        SqliteStore(path)
    assert fingerprint(path) == before


@pytest.mark.parametrize("version", range(MIGRATIONS[0].version, MIGRATIONS[-1].version))
def test_a_store_of_an_earlier_schema_lists_and_counts_what_it_has(tmp_path: Path, version: int) -> None:
    path = Path(shutil.copy(GOLDEN / f"schema{version}.db", tmp_path / "memory.db"))
    SqliteStore(path).close()
    assert check_store(path, lambda *_: None) == []
    with closing(sqlite3.connect(path)) as connection:
        unlisted = "SELECT count(*) FROM posting_segments WHERE directory IS NULL"
        assert connection.execute(unlisted).fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM scopes WHERE names IS NULL").fetchone() == (0,)
