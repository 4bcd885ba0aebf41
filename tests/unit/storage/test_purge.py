"""After a purge no byte of the text, its tokens or its vectors is in any file of the store."""

from __future__ import annotations

import random
import sqlite3
import time
from typing import TYPE_CHECKING

import pytest

import whyrank
from tests import canaries
from whyrank.analysis.document import entry_for
from whyrank.protocols import Changes
from whyrank.storage.sqlite import metadata
from whyrank.storage.sqlite.copies import copy_store
from whyrank.storage.sqlite.database import connect
from whyrank.types.memory import GLOBAL, Memory

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "Xyzzyplugh drinks quinoa lemonade in the conservatory on thursdays"


def raw(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.glob("memory.db*"))


def traces(path: Path, identity: str) -> list[bytes]:
    """Return what a memory has left in the tables, as it is stored."""
    connection = sqlite3.connect(path)
    [(text, key, row, scope, number)] = connection.execute(
        "SELECT embed_text, embed_hash, row, scope, number FROM memories WHERE id = ?", (identity,)
    ).fetchall()
    [(vector,)] = connection.execute("SELECT vector FROM vectors WHERE hash = ?", (key,)).fetchall()
    tokens = []
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'posting_tokens'").fetchone():
        asked = "SELECT tokens FROM posting_tokens WHERE scope = ? AND number = ?"
        tokens = [blob for (blob,) in connection.execute(asked, (scope, number))]
    connection.close()
    assert row
    # A vector may be cut by the end of a page, its beginning, middle and end not all.
    return [text.encode(), vector[8:24], vector[400:416], vector[-24:-8], *tokens]


@pytest.mark.parametrize("keyword", ["postings", "fts5"])
@pytest.mark.parametrize("whole_scope", [False, True], ids=["one", "scope"])
def test_no_byte_is_left(tmp_path: Path, keyword: str, whole_scope: bool) -> None:
    path = tmp_path / "memory.db"
    with whyrank.open(path, workspace=tmp_path, keyword=keyword, calibration="manual") as engine:
        for number in range(130):
            engine.add(f"the parcel {number} waits beside gate {number * 7 % 31}", scope="user:1")
        fact = engine.add(SECRET, scope="user:1", name="Frobozzco", tags=["grue"], entities=["Zork"], key="hunter2")
        engine.get(fact.id, scope="user:1")  # whoever reads has it indexed first
        old = traces(path, fact.id)
        engine.update(fact.id, scope="user:1", text=SECRET.replace("thursdays", "wednesdays"))
        sought = [*old, *traces(path, fact.id), b"xyzzyplugh", b"Frobozzco", b"frobozzco", b"grue", b"Zork", b"hunter2"]
        there = [trace in raw(tmp_path) for trace in sought]
        assert sum(there) >= len(sought) - 2  # of the old vector and tokens only the log may know
        if whole_scope:
            done = engine.memories.forget_scope("user:1", purge=True)
            assert done.memories == 131
            assert done.remains == ("the store still lists the name of user:1 among the scopes it has known",)
        else:
            assert engine.forget(fact.id, scope="user:1", purge=True) == (1, ())
        assert [trace for trace in sought if trace in raw(tmp_path)] == []
        left = engine.search("parcel beside gate", scope="user:1", limit=3).hits
        assert len(left) == (0 if whole_scope else 3)
    assert [trace for trace in sought if trace in raw(tmp_path)] == []


@pytest.mark.parametrize("keyword", ["postings", "fts5"])
def test_fifty_canaries_on_every_route_leave_nothing(tmp_path: Path, keyword: str) -> None:
    chance, path, backup = random.Random(25), tmp_path / "memory.db", tmp_path / "backup.db"
    with canaries.opened(tmp_path, keyword) as engine:
        planted = []
        for number in range(250):
            engine.add(canaries.note(chance, number), scope=canaries.SCOPE, name=canaries.some_word(chance))
            if number % 5 == 4:
                planted.append(canaries.plant(engine, tmp_path, chance, canaries.ROUTES[number // 5 % 5]))
        assert len(planted) == 50
        # Every canary is there before, so that what is not found afterwards was taken out.
        assert len(canaries.found_in(path, planted)) >= 50 * 6
        for canary in planted:
            engine.forget(*canary.ids, scope=canaries.SCOPE, purge=True)
        assert canaries.found_in(path, planted) == []
        assert canaries.stale_signs(path) == 0
        copy_store(path, backup)
        assert backup.stat().st_size == path.stat().st_size
        assert canaries.found_in(backup, planted) == []
        answer = engine.search("parcel gate", scope=canaries.SCOPE, limit=5)
        assert not {"index-damaged", "vectors-damaged"} & {notice.code for notice in answer.notices}
        assert engine.status().memories == 250
    assert whyrank.doctor(path, workspace=tmp_path, deep=True).findings == ()


def test_without_a_purge_the_log_would_still_tell(tmp_path: Path) -> None:
    """So that the test above can fail."""
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        engine.forget(engine.add(SECRET).id)
        assert SECRET.encode() in raw(tmp_path)


def copies_of_moved_cells(path: Path) -> bytes:
    """Return what stands in the unallocated areas of the b-tree pages of a file, whose log is empty."""
    raw, found = path.read_bytes(), []
    for start in range(0, len(raw), 4096):
        page = raw[start : start + 4096]
        head = 100 if not start else 0
        header = {2: 12, 5: 12, 10: 8, 13: 8}.get(page[head], 0)
        if header:
            cells, content = (int.from_bytes(page[head + at : head + at + 2], "big") for at in (3, 5))
            found.append(page[head + header + 2 * cells : content])
    return b"|".join(found)


def test_copies_that_sqlite_leaves_in_split_pages_are_overwritten(tmp_path: Path) -> None:
    chance, path = random.Random(1), tmp_path / "memory.db"
    with whyrank.open(path, workspace=tmp_path, embedding="none") as engine:
        named = {}
        for number in range(600):
            name = canaries.some_word(chance)
            named[name] = engine.add(canaries.note(chance, number), name=name).id
    copied = copies_of_moved_cells(path)
    moved = [name for name in named if name.encode() in copied]
    assert moved
    with whyrank.open(path, workspace=tmp_path, embedding="none") as engine:
        engine.search("parcel")  # connections of this process have pages with copies in their caches
        engine.forget(*(named[name] for name in moved), purge=True)
        engine.add("tea", name="zzz")
    raw = path.read_bytes()
    assert [name for name in moved if name.encode() in raw] == []


def pages_changed_by_a_purge(folder: Path, notes: int) -> int:
    """Purge one fact of a store that was purged before; return how many pages of its file that changed."""
    folder.mkdir()
    chance, path = random.Random(3), folder / "memory.db"
    with whyrank.open(path, workspace=folder, embedding="none") as engine:
        texts = [canaries.note(chance, number) for number in range(notes)]
        texts[notes // 2] = "tea for ann"  # what is written goes by how many terms a memory has
        put = [entry_for(Memory(f"m_{number}", text, created=1.0), "") for number, text in enumerate(texts)]
        engine._store.write(Changes(put=put))
        engine._store.settle([GLOBAL])
        engine.forget("m_10", purge=True)  # overwrites, once, what all earlier writes have left behind
        before = path.read_bytes()
        engine.forget(f"m_{notes // 2}", purge=True)
        after = path.read_bytes()
    return sum(before[at : at + 4096] != after[at : at + 4096] for at in range(0, len(after), 4096))


def test_a_purge_writes_no_more_in_a_large_store_than_in_a_small_one(tmp_path: Path) -> None:
    small, large = pages_changed_by_a_purge(tmp_path / "1", 1_000), pages_changed_by_a_purge(tmp_path / "5", 5_000)
    assert 0 < large <= 1.5 * small


def test_a_reader_delays_a_purge_no_longer_than_a_write_may_wait_and_the_next_write_finishes_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memory.db"
    with whyrank.open(path, workspace=tmp_path, embedding="none") as engine:
        kept, gone = engine.add("tea in the afternoon"), engine.add(SECRET)
        engine.search("tea")
        reader = connect(str(path), isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM memories").fetchone()
        began = time.monotonic()
        [remains] = engine.forget(gone.id, purge=True).remains
        assert time.monotonic() - began < 15  # SQLite would wait half a minute for a reader
        assert "in use by another process and may hold what was removed" in remains
        assert SECRET.encode() in raw(tmp_path)
        reader.execute("COMMIT")
        reader.close()
        while SECRET.encode() in raw(tmp_path):  # a purge is tried again after a second, by whoever writes
            assert time.monotonic() - began < 60
            engine.add(f"milk at {time.monotonic()}")
        assert engine.search("tea")[0].id == kept.id


def test_a_purge_that_was_not_finished_is_finished_by_the_next_opening(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with whyrank.open(path, workspace=tmp_path, embedding="none") as engine:
        fact = engine.add(SECRET)
        engine.search("lemonade")
        engine._store.write(Changes(remove=[fact.id], purge=True))  # killed before the rest
        assert SECRET.encode() in raw(tmp_path)
    with whyrank.open(path, workspace=tmp_path, embedding="none") as engine:
        assert SECRET.encode() not in raw(tmp_path)
        assert engine.status().memories == 0


def test_a_purge_in_an_old_store_whose_mark_names_no_scopes_is_finished(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with whyrank.open(path, workspace=tmp_path, embedding="none") as engine:
        fact = engine.add(SECRET)
    connection = connect(str(path))
    connection.execute("INSERT INTO meta VALUES ('purge', '1')")
    connection.commit()
    assert metadata.scopes_to_purge(connection) == ["global"]
    connection.close()
    with whyrank.open(path, workspace=tmp_path, embedding="none") as engine:
        assert engine.get(fact.id).text == SECRET
    connection = connect(str(path))
    assert metadata.scopes_to_purge(connection) is None
    connection.close()


def test_old_backups_are_named(tmp_path: Path) -> None:
    names = ("schema2.bak", "damaged.bak", "before-restore.bak")
    backups = [tmp_path / f"memory.db.{name}" for name in names]
    for backup in (*backups, tmp_path / ".memory.db.schema2.bak.x1.part"):
        backup.write_bytes(b"old")
    (tmp_path / ".memory.db-anew-x").mkdir()
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        assert engine.forget(engine.add("tea").id, purge=True).remains == (
            f"{backups[0]} is a copy from before an upgrade: delete it if it is not needed",
            f"{backups[1]} is a copy from before a repair: delete it if it is not needed",
            f"{backups[2]} is a copy from before a restore: delete it if it is not needed",
            f"{tmp_path / '.memory.db-anew-x'} is left over from an interrupted repair: delete it",
            f"{tmp_path / '.memory.db.schema2.bak.x1.part'} is an unfinished copy: delete it unless a copy is running",
        )
