"""Patterns of paths: PostgreSQL finds what SQLite's GLOB finds."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import whyrank
from whyrank.storage.postgres.dialect import translate
from whyrank.storage.store import PostgresStore
from whyrank.types.memory import Memory, Source

from .. import postgres

LETTERS = "*?[]^-!ab./\\\n$é"
PATTERNS = st.lists(st.one_of(st.sampled_from(LETTERS), st.text(LETTERS, max_size=4).map("[{}]".format)), max_size=6)
TEXTS = st.lists(st.text(LETTERS, max_size=5), min_size=1, max_size=30)
FOUND = "SELECT value FROM json_each(CAST(? AS TEXT)) WHERE value GLOB ?"


@pytest.fixture(scope="module")
def postgresql() -> Iterator[Any]:
    address = postgres.new_store()
    with closing(PostgresStore(address)), postgres.connected(address) as connection:
        connection.execute(f"SET search_path = {address.partition('schema=')[2]}".encode())
        yield connection


@pytest.fixture(scope="module")
def sqlite() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        yield connection


@settings(max_examples=300)
@given(pattern=PATTERNS.map("".join), texts=TEXTS)
@example("[abc", ["[abc", "a"])
@example("[]", ["]", "[]", "a"])
@example("[^]", ["^", "]", "a"])
@example("[]-a]", ["]", "-", "a", "^"])
@example("*[b-a]*", ["a", "b", "-"])
@example("[--a]", ["-", "/", "^", "b"])
@example("[a-b--b]", ["-", "/", "b", "é"])
@example("*^b.md", ["a^b.md", "a^bxmd"])
@example("a?b", ["a\nb", "ab"])
@example("*", ["", "\n"])
@example("A[b]", ["ab", "aB", "Ab"])
def test_a_pattern_finds_the_same_texts_in_both_databases(
    sqlite: sqlite3.Connection, postgresql: Any, pattern: str, texts: list[str]
) -> None:
    asked, given = translate(FOUND), (json.dumps(texts), pattern)
    found = postgresql.execute(asked.text, asked.bind(given)).fetchall()
    assert found == sqlite.execute(FOUND, given).fetchall()


@pytest.mark.parametrize(
    ("pattern", "found"),
    [("[abc", []), ("*[z-y]*", []), ("*^b.md", ["n/a^b.md"]), ("n/[!a]*", ["n/b.md"]), ("N/*", [])],
)
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_a_search_takes_any_pattern(database: str, pattern: str, found: list[str], tmp_path: Path) -> None:
    store = postgres.new_store() if database == "postgres" else str(tmp_path / "memory.db")
    with whyrank.open(store, embedding="none") as engine:
        paths = ["n/a^b.md", "n/b.md"]
        engine.facts.import_memories(
            [Memory(f"m_{place}", f"green tea {place}", source=Source(path)) for place, path in enumerate(paths)]
        )
        hits = engine.search("green tea", path=pattern)
    assert [hit.memory.source.path for hit in hits if hit.memory.source] == found
