"""After a purge no byte of the text, its tokens or its vectors is in any file of the store."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import whyrank
from whyrank.storage.sqlite import purging
from whyrank.storage.sqlite.database import Database

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
            done = engine.forget_scope("user:1", purge=True)
            assert done.memories == 131
            assert done.remains == ("the store still lists user:1 among the scopes it has known, by its name alone",)
        else:
            assert engine.forget(fact.id, scope="user:1", purge=True) == (1, ())
        assert [trace for trace in sought if trace in raw(tmp_path)] == []
        left = engine.search("parcel beside gate", scope="user:1", limit=3).hits
        assert len(left) == (0 if whole_scope else 3)
    assert [trace for trace in sought if trace in raw(tmp_path)] == []


def test_without_a_purge_the_log_would_still_tell(tmp_path: Path) -> None:
    """So that the test above can fail."""
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        engine.forget(engine.add(SECRET).id)
        assert SECRET.encode() in raw(tmp_path)


def test_a_purge_that_was_killed_on_the_way_is_ended_by_the_next_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    with whyrank.open(path, workspace=tmp_path, embedding="none") as engine:
        fact = engine.add(SECRET)
        with monkeypatch.context() as patched:
            patched.setattr(Database, "rewrite", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                engine.forget(fact.id, purge=True)
        assert SECRET.encode() in raw(tmp_path)
        with whyrank.open(path, workspace=tmp_path, embedding="none") as other:
            assert SECRET.encode() not in raw(tmp_path)
            assert other.status().memories == 0


def test_a_reader_in_the_way_and_old_backups_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("schema2.bak", "damaged.bak", "before-restore.bak")
    backups = [tmp_path / f"memory.db.{name}" for name in names]
    for backup in (*backups, tmp_path / ".memory.db.schema2.bak.x1.part"):
        backup.write_bytes(b"old")
    (tmp_path / ".memory.db-anew-x").mkdir()
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        one, two = engine.add("tea"), engine.add("milk")
        assert engine.forget(one.id, purge=True).remains == (
            f"{backups[0]} is a copy from before an upgrade: delete it if it is not needed",
            f"{backups[1]} is a copy from before a repair: delete it if it is not needed",
            f"{backups[2]} is a copy from before a restore: delete it if it is not needed",
            f"{tmp_path / '.memory.db-anew-x'} is of a repair that was cut short: delete it",
            f"{tmp_path / '.memory.db.schema2.bak.x1.part'} is a copy that is being made or was cut short: delete it",
        )
        monkeypatch.setattr(Database, "rewrite", lambda self: False)
        assert "still read by another process" in engine.forget(two.id, purge=True).remains[-1]
        assert purging.is_due(sqlite3.connect(tmp_path / "memory.db"))
