"""An upgrade that is killed leaves the store wholly old or wholly new, and no copy of it that is not whole."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import whyrank
from tests.kills import killer
from whyrank.storage.sqlite.schema import MIGRATIONS

from .lanes import Counts, Lane

STORES = sorted(file for file in (Path(__file__).parent.parent / "golden/stores").glob("*.db"))
OLD = [file for file in STORES if file.stem != f"schema{MIGRATIONS[-1].version}"]
KILLS = 20  # of each schema in a round
OPEN = """
import logging
from pathlib import Path
from whyrank.storage.store import SqliteStore

logging.disable(logging.WARNING)  # each upgrade says that it was made

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
    """Copy a store into a folder that holds nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return Path(shutil.copy(file, folder / "memory.db"))


def kill_upgrades(folder: Path, old: Path, seed: int) -> Counts:
    """Kill upgrades of a store all along their way: each leaves the old store or the new one."""
    chance, before, after = random.Random(f"{old.stem} {seed}"), schema_of(old), MIGRATIONS[-1].version
    found: list[int] = []
    with killer(OPEN, "storage/sqlite") as killing:
        moments = killing.events(lambda: [fresh(folder / "whole", old)])
        for number in range(KILLS):  # somewhere in each part of it, so that the last ones are behind the upgrade
            store = fresh(folder / "killed", old)
            assert killing.killed(1 + int((number + chance.random()) * (moments - 1) / KILLS), store)
            found.append(schema_of(store))
            assert {schema_of(copy) for copy in store.parent.glob("*.bak")} <= {before}
            assert found[-1] == before or [*store.parent.glob("*.bak")]
            with whyrank.open(store, workspace=store.parent) as engine:
                assert engine.search("Tea Pot")[0].memory.text.endswith("one litre.")
                assert engine.status().schema == after
            assert not [*store.parent.glob(".*.part*")]
    assert set(found) == {before, after}
    return {f"kills_of_{old.stem}": len(found), "kills_after_the_upgrade": found.count(after)}


def play(seed: int, folder: Path) -> Counts:
    counted = Counter[str]()
    for old in OLD:
        counted.update(kill_upgrades(folder, old, seed))
    return counted


LANE = Lane(
    "upgrades",
    "a killed upgrade leaves the store wholly old or wholly new, and no copy that is not whole",
    play,
    {f"kills_of_{old.stem}": 200 for old in OLD},
    seconds=900.0,
)
