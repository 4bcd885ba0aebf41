"""The facts of openclaw-hybrid-memory: fields, owners, what was replaced, vectors; its database is never touched."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from whyrank.errors import ConfigError
from whyrank.integrations.importers import import_into

if TYPE_CHECKING:
    from pathlib import Path

    import whyrank
    from tests.unit.importers.conftest import Bring, Counting

MARCH = 1773446400  # 2026-03-14, in seconds
COLUMNS = (
    "id TEXT PRIMARY KEY, text TEXT, why TEXT, category TEXT, importance REAL, entity TEXT, key TEXT, value TEXT, "
    "source TEXT, created_at INTEGER, decay_class TEXT, expires_at INTEGER, confidence REAL, summary TEXT, tags TEXT, "
    "recall_count INTEGER, last_accessed INTEGER, superseded_at INTEGER, superseded_by TEXT, supersedes_id TEXT, "
    "valid_from INTEGER, valid_until INTEGER, source_date INTEGER, scope TEXT, scope_target TEXT, embedding_model TEXT"
)
USUAL: dict[str, Any] = {"category": "fact", "importance": 0.5, "created_at": MARCH, "scope": "global"}


def written(folder: Path, *facts: dict[str, Any], columns: str = COLUMNS) -> Path:
    file = folder / "facts.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(f"CREATE TABLE facts ({columns})")
        for number, one in enumerate(facts):
            said = {"id": f"f{number}", **USUAL, **one}
            names, marks = ", ".join(said), ", ".join("?" * len(said))
            connection.execute(f"INSERT INTO facts ({names}) VALUES ({marks})", [*said.values()])
    return file


def test_fields_of_a_fact_are_mapped(engine: whyrank.Engine, bring: Bring, tmp_path: Path) -> None:
    """Importance 0.8 of 0 to 1 is 1 + round(4 · 0.8) = 4 of 1 to 5; milliseconds are seconds · 1000."""
    bring("hybrid-mem", written(tmp_path, {
        "text": "Suzy prefers tea", "category": "preference", "importance": 0.8, "entity": "Suzy", "key": "drink",
        "value": "tea", "tags": "kitchen,hot drinks", "decay_class": "stable", "created_at": MARCH * 1000,
        "source_date": MARCH - 86_400, "recall_count": 3, "last_accessed": MARCH, "summary": "tea", "confidence": 0.9,
    }))  # fmt: skip
    [memory] = engine.list()
    assert (memory.category, memory.importance, memory.decay) == ("preference", 4, "stable")
    assert (memory.subject, memory.attribute, memory.entities) == ("Suzy", "drink", ("Suzy",))
    assert (memory.tags, memory.summary, memory.recalls) == (("kitchen", "hot drinks"), "tea", 3)
    assert (memory.created, memory.date, memory.recalled) == (MARCH, MARCH - 86_400, MARCH)
    assert memory.metadata == {"value": "tea", "confidence": 0.9}
    assert memory.expires is None  # the class alone, the default of old rows, ends nothing


@pytest.mark.parametrize(
    ("kind", "target", "scope"),
    [("global", None, "global"), (None, None, "global"), ("user", "42", "user:42"), ("agent", "a/b", "agent:a%2Fb")],
)
def test_owners_become_scopes(
    engine: whyrank.Engine, bring: Bring, tmp_path: Path, kind: str | None, target: str | None, scope: str
) -> None:
    bring("hybrid-mem", written(tmp_path, {"text": "tea", "scope": kind, "scope_target": target}))
    assert [str(memory.scope) for memory in engine.list(scope=scope)] == [scope]


def test_a_fact_of_an_owner_without_a_name_is_nobodys(bring: Bring, tmp_path: Path) -> None:
    done = bring("hybrid-mem", written(tmp_path, {"text": "tea", "scope": "user"}, {"text": "x", "scope": "team"}))
    assert [(one.line, one.reason) for one in done.bad] == [
        ("fact f0", "it belongs to a user that is not named"),
        ("fact f1", "its scope is 'team'; global, user, agent and session are known"),
    ]


def test_what_was_replaced_stays_replaced_in_whichever_column_it_stands(
    engine: whyrank.Engine, bring: Bring, tmp_path: Path
) -> None:
    bring("hybrid-mem", written(
        tmp_path,
        {"id": "tea", "text": "Suzy prefers tea", "superseded_by": "coffee", "superseded_at": MARCH + 5},
        {"id": "coffee", "text": "Suzy prefers coffee", "created_at": MARCH + 5},
        {"id": "again", "text": "Suzy prefers tea", "supersedes_id": "coffee", "created_at": MARCH + 9},
    ))  # fmt: skip
    assert [memory.text for memory in engine.list()] == ["Suzy prefers tea"]
    first, second = sorted(
        (one for one in engine.list(include_superseded=True) if one.superseded_by), key=lambda one: one.created
    )
    assert (first.text, first.superseded_by, first.superseded_at) == ("Suzy prefers tea", second.id, MARCH + 5)
    assert second.superseded_at == MARCH + 9


def test_a_correction_that_came_later_replaces_what_was_imported_before(
    engine: whyrank.Engine, bring: Bring, tmp_path: Path
) -> None:
    bring("hybrid-mem", written(tmp_path, {"id": "tea", "text": "Suzy prefers tea"}))
    (tmp_path / "facts.db").unlink()
    done = bring("hybrid-mem", written(
        tmp_path,
        {"id": "tea", "text": "Suzy prefers tea", "superseded_by": "coffee"},
        {"id": "coffee", "text": "Suzy prefers coffee", "created_at": MARCH + 5},
    ))  # fmt: skip
    assert (done.new, done.unchanged) == (1, 1)
    assert [memory.text for memory in engine.list()] == ["Suzy prefers coffee"]


def test_what_expired_is_left_out_and_what_was_withdrawn_is_no_longer_valid(
    engine: whyrank.Engine, bring: Bring, tmp_path: Path
) -> None:
    done = bring("hybrid-mem", written(
        tmp_path, {"text": "old", "expires_at": MARCH}, {"text": "withdrawn", "superseded_at": MARCH + 5},
        {"text": "lost", "superseded_by": "gone", "superseded_at": MARCH + 5},
        {"text": "later", "expires_at": int(time.time()) + 9_999, "decay_class": "short"},
    ))  # fmt: skip
    assert [(one.line, one.reason) for one in done.skipped] == [("fact f0", "it has expired")]
    [later] = engine.list()
    assert (later.text, later.expires_given) == ("later", False)  # a recall renews it, as its class says
    assert {memory.text for memory in engine.list(as_of=MARCH + 1)} == {"withdrawn", "lost", "later"}


def test_a_fact_that_was_withdrawn_at_once_is_not_valid(engine: whyrank.Engine, bring: Bring, tmp_path: Path) -> None:
    times = {"valid_from": MARCH + 5, "superseded_at": MARCH + 5}
    assert bring("hybrid-mem", written(tmp_path, {"text": "a slip", **times})).new == 1
    assert engine.list() == []


def test_a_second_import_stores_nothing_new(bring: Bring, tmp_path: Path) -> None:
    file = written(tmp_path, {"text": "tea", "superseded_by": "f1"}, {"text": "coffee"}, {"text": "TEA"})
    assert bring("hybrid-mem", file).new == 3
    again = bring("hybrid-mem", file)
    assert (again.new, again.unchanged, again.skipped) == (0, 3, [])


def test_unknown_columns_categories_and_classes_are_named(engine: whyrank.Engine, bring: Bring, tmp_path: Path) -> None:
    done = bring("hybrid-mem", written(
        tmp_path, {"text": "tea", "category": "brew", "decay_class": "glacial", "mood": 1},
        {"text": "rule", "category": "edict"}, columns=f"{COLUMNS}, mood INTEGER",
    ))  # fmt: skip
    assert done.unknown == {"facts.mood": 1}
    assert [one.place for one in done.remarks] == ["decay class 'glacial'"]
    held = {memory.text: memory for memory in engine.list()}
    assert (held["tea"].category, held["tea"].metadata) == ("other", {"category": "brew"})
    assert held["rule"].category == "rule"


def test_a_database_of_an_early_version_is_read(engine: whyrank.Engine, bring: Bring, tmp_path: Path) -> None:
    file = tmp_path / "facts.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE facts (id TEXT, text TEXT, category TEXT, created_at INTEGER)")
        connection.execute("INSERT INTO facts VALUES ('a', 'tea', 'fact', ?)", [MARCH])
    assert bring("hybrid-mem", tmp_path).new == 1  # the folder with it
    assert engine.list()[0].created == MARCH


def test_a_database_in_use_is_read_with_what_is_not_in_it_yet(bring: Bring, tmp_path: Path) -> None:
    """In WAL mode a committed fact may stand in the file beside: the copy has it, and the folder stays as it was."""
    file = written(tmp_path, {"text": "tea"})
    with closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("INSERT INTO facts (id, text, created_at) VALUES ('w', 'milk', 1)")
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO facts (id, text, created_at) VALUES ('x', 'not committed', 1)")
        before = {one.name: one.stat().st_mtime_ns for one in tmp_path.iterdir() if one.name.startswith("facts")}
        assert bring("hybrid-mem", file).new == 2
        after = {one.name: one.stat().st_mtime_ns for one in tmp_path.iterdir() if one.name.startswith("facts")}
        assert before == after


@pytest.mark.parametrize("content", [b"", b"no database at all, but long enough to be one" * 40])
def test_what_is_no_database_of_facts_is_refused(bring: Bring, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "facts.db").write_bytes(content)
    with pytest.raises(ConfigError, match=r"is no SQLite database|has no table facts"):
        bring("hybrid-mem", tmp_path / "facts.db")


def test_a_damaged_database_is_refused(bring: Bring, tmp_path: Path) -> None:
    file = written(tmp_path, *({"text": f"note {number} " + "x" * 500} for number in range(50)))
    data = bytearray(file.read_bytes())
    data[8_192:16_384] = b"\xff" * 8_192
    file.write_bytes(data)
    with pytest.raises(ConfigError, match=r"is damaged|is no SQLite database"):
        bring("hybrid-mem", file)


def test_vectors_of_the_same_model_are_taken_over_and_others_are_not(
    embedding: whyrank.Engine, embedder: Counting, tmp_path: Path
) -> None:
    lancedb = pytest.importorskip("lancedb")
    file = written(
        tmp_path, {"text": "tea", "embedding_model": "tiny-3"}, {"text": "milk", "embedding_model": "other-model"}
    )
    rows = [{"id": f"f{number}", "text": "", "vector": [1.0, 0.0, 0.0]} for number in range(3)]
    lancedb.connect(tmp_path / "lancedb").create_table("memories", rows)
    done = import_into(embedding, "hybrid-mem", file)
    assert embedder.asked == ["milk"]
    assert [one.reason for one in done.skipped] == ["1 row is of no fact of the database: deleted or pruned there"]
    assert (done.vectors.offered, done.vectors.taken) == (2, 1)
    assert dict(done.vectors.refused) == {"they are of other-model, and this store embeds with openai/tiny-3": 1}
    assert embedding.search("zzz").hits[0].memory.text == "tea"  # its vector is that of every question
