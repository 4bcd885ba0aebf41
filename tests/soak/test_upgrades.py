"""An upgrade that is killed leaves the store wholly old or wholly new, and no copy of it that is not whole.

Twenty kills of each schema in the suite; `make soak` makes two hundred.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import whyrank
from tests.kills import killer
from whyrank.storage.sqlite.migrations import MIGRATIONS

STORES = sorted(file for file in (Path(__file__).parent.parent / "golden/stores").glob("*.db"))
OLD = [file for file in STORES if file.stem != f"schema{MIGRATIONS[-1].version}"]
KILLS = 200 if os.environ.get("SOAK") else 20  # of each schema
OPEN = """
from pathlib import Path
from whyrank.storage.sqlite.store import SqliteStore

def act(path):
    SqliteStore(Path(path)).close()
"""


def schema_of(file: Path) -> int:
    """Return the schema of a file that SQLite finds whole."""
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def fresh(folder: Path, file: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return Path(shutil.copy(file, folder / "memory.db"))


def test_a_copy_is_never_torn_wherever_its_making_is_killed(tmp_path: Path) -> None:
    old = STORES[0]
    with killer(OPEN, "sqlite/schema.py", "sqlite/copying.py") as killing:
        moments = killing.events(lambda: [fresh(tmp_path / "whole", old)])
        for at in range(1, moments + 1):
            store = fresh(tmp_path / "killed", old)
            assert killing.killed(at, store)
            for copy in store.parent.glob("*.bak"):
                assert schema_of(copy) == schema_of(old)
                assert copy.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("old", OLD, ids=lambda file: file.stem)
def test_a_killed_upgrade_leaves_the_old_store_or_the_new_one(tmp_path: Path, old: Path) -> None:
    chance, before, after = random.Random(old.stem), schema_of(old), MIGRATIONS[-1].version
    found: list[int] = []
    with killer(OPEN, "storage/sqlite") as killing:
        moments = killing.events(lambda: [fresh(tmp_path / "whole", old)])
        for number in range(KILLS):  # somewhere in each part of it, so that the last ones are behind the upgrade
            store = fresh(tmp_path / "killed", old)
            assert killing.killed(1 + int((number + chance.random()) * (moments - 1) / KILLS), store)
            found.append(schema_of(store))
            assert {schema_of(copy) for copy in store.parent.glob("*.bak")} <= {before}
            assert found[-1] == before or [*store.parent.glob("*.bak")]
            with whyrank.open(store, workspace=store.parent) as engine:
                assert engine.search("Tea Pot")[0].memory.text.endswith("one litre.")
                assert engine.status().schema == after
            assert not [*store.parent.glob(".*.part*")]
    assert set(found) == {before, after}
    print(f"{old.stem}: {KILLS} kills, {found.count(after)} after the upgrade was done")
