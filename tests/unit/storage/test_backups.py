"""A backup is a whole store of one moment; a restore puts it in the place of what a store holds, for all readers."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import whyrank
from tests.damage import pages_of, zero
from tests.kills import killer
from whyrank.errors import ConfigError, SchemaTooNew, StoreDamaged, StoreFull
from whyrank.storage.sqlite import copies
from whyrank.storage.sqlite.database import Connection, connect
from whyrank.storage.sqlite.schema import MIGRATIONS
from whyrank.types.results import memory_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from whyrank.engine.engine import Engine

OLD_STORES = Path(__file__).parent.parent.parent / "golden/stores"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[Path], Engine]:
    return lambda path: whyrank.open(path, workspace=tmp_path, embedding="none", calibration="manual")


def texts(engine: Engine, scope: str = "global") -> list[str]:
    return sorted(memory.text for memory in engine.list(scope=scope, limit=1000))


def found(engine: Engine, query: str, **filters: Any) -> list[str]:
    return [hit.memory.text for hit in engine.search(query, **filters)]


def alone(folder: Path, file: Path) -> Path:
    """Copy a file into a folder of its own, where nothing is left of others."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return Path(shutil.copy(file, folder / file.name))


def spread(moments: int) -> list[int]:
    """Choose moments to be killed in: from all over, and each of the last, where one file takes another's place."""
    return sorted({*range(1, moments, moments // 12), *range(moments - 12, moments + 1)})


# -- backup ------------------------------------------------------------------------------------------------------------


def test_a_backup_is_a_store_that_holds_the_same(store: Path, opened: Callable[[Path], Engine]) -> None:
    target = store.with_name("copy.db")
    with opened(store) as engine:
        first = engine.add("Robin prefers tea", scope="user:1")
        engine.update(first.id, text="Robin prefers green tea", scope="user:1")
        made = engine.backup(target)
        assert (made.path, made.memories, made.schema) == (str(target), 1, MIGRATIONS[-1].version)
        assert made.bytes == target.stat().st_size
    assert target.stat().st_mode & 0o777 == 0o600
    with opened(Path(shutil.copy(target, store.with_name("again.db")))) as copy:
        assert [one.was["text"] for one in copy.history(first.id, scope="user:1")] == ["Robin prefers tea"]
        assert found(copy, "green tea", scope="user:1") == ["Robin prefers green tea"]


def test_a_backup_is_one_file_with_nothing_beside_it(store: Path, opened: Callable[[Path], Engine]) -> None:
    (folder := store.with_name("backups")).mkdir()
    with opened(store) as engine:
        engine.add("Robin prefers tea")
        for _ in range(2):
            engine.backup(folder / "copy.db")
    assert [file.name for file in folder.iterdir()] == ["copy.db"]
    with closing(sqlite3.connect(f"file:{folder}/copy.db?mode=ro", uri=True)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_fact_that_an_earlier_version_left_to_be_indexed_is_found_after_a_restore(
    store: Path, opened: Callable[[Path], Engine]
) -> None:
    target = store.with_name("copy.db")
    opened(target).close()
    with closing(sqlite3.connect(target)) as connection:
        connection.execute(
            "INSERT INTO arrivals (entry, id, scope, text, content_hash, created, date, text_key, rest, language, "
            "space) VALUES (1, 'm_1', 'global', 'Robin prefers tea', '', 1.0, 1.0, 'k', '', 'en', '')"
        )
        connection.commit()
    with opened(store) as engine:
        assert whyrank.restore(target, store).memories == 1
        assert found(engine, "tea") == ["Robin prefers tea"]


@pytest.mark.parametrize("content", [b"notes of mine\n" * 400, b"SQLite format 3\0" + bytes(5000)])
def test_what_whyrank_did_not_write_is_not_overwritten(
    store: Path, opened: Callable[[Path], Engine], content: bytes
) -> None:
    target = store.with_name("copy.db")
    target.write_bytes(content)
    with opened(store) as engine, pytest.raises(ConfigError, match="not a backup that whyrank wrote"):
        engine.backup(target)
    assert target.read_bytes() == content


def test_a_store_is_not_overwritten_by_the_backup_of_another(store: Path, opened: Callable[[Path], Engine]) -> None:
    other = store.with_name("other.db")
    with opened(other) as engine:
        engine.add("Suzy prefers coffee")
    with opened(store) as engine:
        for target in (other, store, store.with_name("memory.db-wal"), store.with_name("memory.pins"), store.parent):
            with pytest.raises(ConfigError):
                engine.backup(target)
    with opened(other) as engine:
        assert texts(engine) == ["Suzy prefers coffee"]


def test_a_backup_that_was_opened_as_a_store_is_one_and_not_replaced(
    store: Path, opened: Callable[[Path], Engine]
) -> None:
    target = store.with_name("copy.db")
    with opened(store) as engine:
        engine.backup(target)
        with opened(target) as other:
            other.add("Suzy prefers coffee")
        with pytest.raises(ConfigError, match="not a backup"):
            engine.backup(target)


def test_a_damaged_store_gives_no_backup_and_the_one_before_stays(
    store: Path, opened: Callable[[Path], Engine]
) -> None:
    target = store.with_name("copy.db")
    with opened(store) as engine:
        memory = engine.add("Robin prefers tea")
        engine.list()
        engine.backup(target)
    before = target.read_bytes()
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE memories SET text = 'Robin prefers rum', embed_text = '' WHERE id = ?", (memory.id,))
        connection.commit()
    with opened(store) as engine, pytest.raises(StoreDamaged, match="is damaged: 1 memory can be read, but differ"):
        engine.backup(target)
    assert target.read_bytes() == before
    assert not [*store.parent.glob(".copy.db*")]


def test_a_backup_that_finds_no_room_leaves_nothing(
    store: Path, opened: Callable[[Path], Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    def small(place: str, **options: Any) -> Connection:
        connection: Connection = connect(place, **options)
        connection.execute("PRAGMA max_page_count=5")
        return connection

    with opened(store) as engine:
        engine.add("Robin prefers tea")
        monkeypatch.setattr(copies, "connect", small)
        with pytest.raises(StoreFull):
            engine.backup(store.with_name("copy.db"))
    assert not [*store.parent.glob("*copy.db*")]


def test_a_backup_is_of_one_moment_while_others_write(store: Path, opened: Callable[[Path], Engine]) -> None:
    """Pairs are stored in one transaction each: a copy of two moments would hold half a pair."""
    with opened(store) as engine:
        engine.facts.import_memories([whyrank.Memory("a", "pair a first"), whyrank.Memory("b", "pair b second")])
        stop = threading.Event()

        def write() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                engine.facts.import_memories(
                    [whyrank.Memory(f"{side}{number}", f"{side} number {number}") for side in "ab"]
                )

        thread = threading.Thread(target=write)
        thread.start()
        try:
            counts = [engine.backup(store.with_name(f"copy{number}.db")).memories for number in range(10)]
        finally:
            stop.set()
            thread.join()
    assert counts == sorted(counts)
    for number, count in enumerate(counts):
        target = store.with_name(f"back{number}.db")
        assert whyrank.restore(store.with_name(f"copy{number}.db"), target).memories == count
        with opened(target) as engine:
            ids = {memory.id for memory in engine.list(limit=10_000)}
            assert {identity[1:] for identity in ids if identity[0] == "a"} == {
                identity[1:] for identity in ids if identity[0] == "b"
            }
            assert engine.doctor().is_sound


BACKUP = """
from pathlib import Path
from whyrank.storage.sqlite.backups import write_backup

def act(store, target):
    write_backup(Path(store), Path(target), lambda *_: None)
"""


def test_a_killed_backup_leaves_the_one_before_or_the_new_one(store: Path, opened: Callable[[Path], Engine]) -> None:
    target = store.with_name("copy.db")
    with opened(store) as engine:
        engine.add("Robin prefers tea")
        engine.backup(target)
        engine.add("Suzy prefers coffee")
    seen: set[int] = set()
    with killer(BACKUP, "sqlite/backups.py", "sqlite/copies.py") as killing:
        for at in spread(killing.events(lambda: [store, alone(store.with_name("whole"), target)])):
            place = alone(store.with_name("killed"), target)
            assert killing.killed(at, store, place)
            seen.add(whyrank.restore(place, store.with_name(f"back{at}.db")).memories)
    assert seen == {1, 2}


# -- restore -----------------------------------------------------------------------------------------------------------


def test_an_open_engine_sees_the_restored_content_with_its_next_search(
    store: Path, opened: Callable[[Path], Engine]
) -> None:
    target = store.with_name("copy.db")
    with opened(store) as engine:
        tea = engine.add("Robin prefers tea")
        engine.add("the boat is blue", scope="user:1")
        engine.backup(target)
        engine.forget(tea.id)
        engine.add("Robin prefers coffee")
        engine.add("the boat is red", scope="user:1")
        assert found(engine, "what does Robin prefer") == ["Robin prefers coffee"]
        assert "the boat is red" in found(engine, "boat", scope="user:1")
        restored = whyrank.restore(target, store)
        assert (restored.memories, restored.kept) == (2, f"{store}.before-restore.bak")
        assert found(engine, "what does Robin prefer") == ["Robin prefers tea"]
        assert found(engine, "boat", scope="user:1") == ["the boat is blue"]
        assert texts(engine, "user:1") == ["Robin prefers tea", "the boat is blue"]
        engine.add("the mast is oak", scope="user:1")
        assert found(engine, "mast", scope="user:1") == ["the mast is oak"]
        assert engine.doctor().is_sound
        assert whyrank.restore(restored.kept, store).memories == 3
        assert {*found(engine, "boat", scope="user:1")} == {"the boat is red", "the boat is blue"}


@pytest.mark.parametrize("memories", [3, 200])
def test_nothing_that_is_kept_in_memory_outlives_a_restore(store: Path, tmp_path: Path, memories: int) -> None:
    """The store and the backup give the same numbers to other texts: rows, segments, blocks and vectors collide."""
    other, target = store.with_name("other.db"), store.with_name("copy.db")
    for path, word in ((store, "tea"), (other, "engine")):
        with whyrank.open(path, workspace=tmp_path, calibration="manual") as engine:
            for scope in ("global", "user:1"):
                owner = whyrank.Scope.parse(scope)
                numbered = [(f"{word}{scope}{i}", f"{word} number {i} of {scope}") for i in range(memories)]
                engine.facts.import_memories(
                    [whyrank.Memory(identity, text, scope=owner) for identity, text in numbered]
                )
    with whyrank.open(other, workspace=tmp_path, calibration="manual") as engine:
        engine.backup(target)
        wanted = {
            (scope, query): [(hit.id, hit.score, hit.memory.text) for hit in engine.search(query, scope=scope)]
            for scope in ("global", "user:1")
            for query in ("engine number 2", "tea number 1", "motor")
        }
    with whyrank.open(store, workspace=tmp_path, calibration="manual") as engine:
        for scope, query in wanted:
            engine.search(query, scope=scope)
        whyrank.restore(target, store)
        for (scope, query), hits in wanted.items():
            assert [(hit.id, hit.score, hit.memory.text) for hit in engine.search(query, scope=scope)] == hits


def test_what_was_found_before_a_restore_is_never_read_as_another_memory(
    store: Path, opened: Callable[[Path], Engine]
) -> None:
    other, target = store.with_name("other.db"), store.with_name("copy.db")
    with opened(other) as engine:
        engine.facts.import_memories(
            [whyrank.Memory("secret", "tea of somebody else", scope=whyrank.Scope("user", "2"))]
        )
        engine.backup(target)
    with opened(store) as engine:
        engine.facts.import_memories([whyrank.Memory("mine", "tea of mine")])
        held = engine._store.held(["mine"], frozenset({whyrank.Scope("global")}))
        whyrank.restore(target, store)
        assert "somebody else" not in memory_of(held["mine"]).text
        assert "somebody else" not in memory_of(next(iter(held.values()))).text


def test_a_scope_that_the_backup_lacks_begins_anew(store: Path, opened: Callable[[Path], Engine]) -> None:
    target = store.with_name("copy.db")
    with opened(store) as engine:
        engine.add("Robin prefers tea")
        engine.backup(target)
        for number in range(70):  # more than a block of records
            engine.add(f"the boat number {number} is blue", scope="user:1")
        assert found(engine, "boat", scope="user:1", limit=2)
        whyrank.restore(target, store)
        assert texts(engine, "user:1") == ["Robin prefers tea"]
        engine.add("the boat number 3 is red", scope="user:1")
        assert found(engine, "boat", scope="user:1") == ["the boat number 3 is red"]
        assert engine.doctor().is_sound


def test_a_backup_can_be_restored_where_there_is_no_store(store: Path, opened: Callable[[Path], Engine]) -> None:
    target, new = store.with_name("copy.db"), store.with_name("new.db")
    with opened(store) as engine:
        engine.add("Robin prefers tea")
        engine.backup(target)
    restored = whyrank.restore(target, new)
    assert restored.kept == ""
    with opened(new) as engine:
        assert texts(engine) == ["Robin prefers tea"]
    assert not [*new.parent.glob(".new.db*")]


def test_a_damaged_store_can_be_restored(store: Path, opened: Callable[[Path], Engine]) -> None:
    target = store.with_name("copy.db")
    with opened(store) as engine:
        for number in range(200):
            engine.add(f"the boat number {number} is blue")
        engine.list()
        engine.backup(target)
    for table in ("memories", "meta"):
        zero(store, pages_of(store, table)[0])
    assert whyrank.restore(target, store).memories == 200
    assert whyrank.doctor(store).is_sound
    with opened(store) as engine:
        assert len(texts(engine)) == 200


@pytest.mark.parametrize("old", sorted(OLD_STORES.glob("*.db")), ids=lambda file: file.stem)
def test_a_backup_of_an_earlier_schema_is_upgraded_on_the_way(store: Path, old: Path) -> None:
    target = Path(shutil.copy(old, store.with_name("old.db")))
    before = target.read_bytes()
    with whyrank.open(store, workspace=store.parent) as engine:
        engine.add("Robin prefers coffee")
        restored = whyrank.restore(target, store)
        assert f"schema{restored.schema}" == old.stem
        assert engine.search("Tea Pot")[0].memory.text.endswith("one litre.")
        assert engine.status().schema == MIGRATIONS[-1].version
    assert target.read_bytes() == before
    assert not [*store.parent.glob("*schema*.bak")]


def damaged_backups() -> dict[str, Callable[[Path], object]]:
    def told(statement: str) -> Callable[[Path], object]:
        def run(path: Path) -> None:
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                connection.execute(statement)

        return run

    return {
        "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
        "cut to its header": lambda path: os.truncate(path, 50),
        "empty": lambda path: os.truncate(path, 0),
        "text": lambda path: path.write_text("a note\n" * 500),
        "a zeroed page": lambda path: zero(path, pages_of(path, "memories")[0]),
        "another text": told("UPDATE memories SET text = 'rum', embed_text = 'rum'"),
        "a memory less": told("DELETE FROM memories WHERE row = 1"),
        "foreign": told("PRAGMA application_id = 7"),
        "newer": told("PRAGMA user_version = 99"),
    }


@pytest.mark.parametrize("damage", damaged_backups())
def test_a_bad_backup_is_refused_before_anything_is_touched(
    store: Path, opened: Callable[[Path], Engine], damage: str
) -> None:
    target = store.with_name("copy.db")
    with opened(store) as engine:
        for number in range(40):
            engine.add(f"the boat number {number} is blue and long {'x' * 300}")
        engine.list()
        engine.backup(target)
    damaged_backups()[damage](target)
    before, content = target.read_bytes(), store.read_bytes()
    with pytest.raises(SchemaTooNew if damage == "newer" else StoreDamaged):
        whyrank.restore(target, store)
    assert (target.read_bytes(), store.read_bytes()) == (before, content)
    assert sorted(file.name for file in store.parent.iterdir() if "lock" not in file.name) == ["copy.db", "memory.db"]


def test_a_missing_file_and_the_store_itself_are_no_backups(store: Path, opened: Callable[[Path], Engine]) -> None:
    with opened(store):
        pass
    for file in (store.with_name("none.db"), store, store.parent):
        with pytest.raises(ConfigError):
            whyrank.restore(file, store)


def test_counters_of_a_store_only_ever_rise(store: Path, opened: Callable[[Path], Engine]) -> None:
    target = store.with_name("copy.db")

    def counters() -> dict[str, int]:
        with closing(sqlite3.connect(store)) as connection:
            rows = connection.execute("SELECT name, seq FROM sqlite_sequence").fetchall()
            generation = connection.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()[0]
            epoch = connection.execute("SELECT max(epoch) FROM scopes").fetchone()[0]
        return {**dict(rows), "generation": int(generation), "epoch": epoch}

    with opened(store) as engine:
        engine.add("Robin prefers tea")
        engine.list()
        engine.backup(target)
        for number in range(5):
            engine.add(f"the boat number {number} is blue")
            engine.list()
        before = counters()
        for _ in range(2):
            whyrank.restore(target, store)
            after = counters()
            assert (after["generation"], after["epoch"]) == (before["generation"] + 1, before["epoch"] + 1)
            assert all(after[name] >= last for name, last in before.items())
            before = after
        with closing(sqlite3.connect(store)) as connection:
            assert connection.execute("SELECT count(*) FROM meta WHERE key = 'backup'").fetchone() == (0,)


RESTORE = """
from pathlib import Path
from whyrank.storage.sqlite.backups import restore_backup
from whyrank.storage.store import SqliteStore

def act(store, target):
    opened = lambda copy, index: SqliteStore(copy, index).close()
    restore_backup(Path(store), Path(target), opened, keep=True, tick=lambda *_: None)
"""


def test_a_killed_restore_leaves_the_store_wholly_old_or_wholly_new(
    store: Path, opened: Callable[[Path], Engine]
) -> None:
    target = store.with_name("copy.db")
    with opened(store) as engine:
        for number in range(70):
            engine.add(f"the boat number {number} is blue")
        engine.backup(target)
        engine.memories.forget_scope("global")
        engine.add("Robin prefers tea")
        engine.list()
    new = {f"the boat number {number} is blue" for number in range(70)}
    seen = []
    with killer(RESTORE, "sqlite/backups.py", "sqlite/copies.py") as killing:
        for at in spread(killing.events(lambda: [alone(store.with_name("whole"), store), target])):
            place = alone(store.with_name("killed"), store)
            assert killing.killed(at, place, target)
            with opened(place) as engine:
                there = set(texts(engine))
                assert there in ({"Robin prefers tea"}, new)
                assert engine.doctor().is_sound
                seen.append(there == new)
    assert {*seen} == {True, False}
