"""Rows: what a memory is after it was stored, and what is known of it before it is made."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import whyrank
from tests.damage import ask, told
from whyrank.analysis.document import content_hash, entry_for
from whyrank.protocols import FIRST_PLACE
from whyrank.storage.sqlite.rows import COLUMNS, read_row, to_row
from whyrank.storage.store import SqliteStore
from whyrank.testing.store_contract import NOW, fact

if TYPE_CHECKING:
    from pathlib import Path

    from whyrank.protocols import Waiting
    from whyrank.types.memory import Memory


def row_of(memory: Memory) -> tuple[Any, ...]:
    return to_row(entry_for(memory, "en"), 0)[: len(COLUMNS)]


def test_a_row_gives_back_the_memory_it_was_made_of() -> None:
    memory = replace(fact("m_1", "green tea"), tags=("drinks",), expires=NOW + 1, superseded_by="m_2")
    held = read_row(row_of(memory))
    assert held.memory == memory


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [
        ("text", b"\0", "(its text was damaged"),
        ("tags", "[", ""),
        ("path", 7, ""),
        ("start_line", "x", ""),
        ("scope", "a b", ""),
    ],
)
def test_what_cannot_be_read_is_blank_and_told_and_harms_nobody_else(column: str, value: object, shown: str) -> None:
    row = list(row_of(fact("m_1", "green tea")))
    row[COLUMNS.index(column)] = value
    held, other = read_row(tuple(row)), read_row(row_of(fact("m_2", "black tea")))
    assert (held.is_mended, held.memory.id, held.memory.text.startswith(shown)) == (True, "m_1", True)
    assert (other.is_mended, other.memory.text) == (False, "black tea")


def test_a_chunk_keeps_its_text_once_and_is_embedded_as_before(tmp_path: Path) -> None:
    (tmp_path / "roses.md").write_text("# Roses\n\nThey want pruning in March.\n", encoding="utf-8")
    path = tmp_path / "memory.db"
    with whyrank.open(path, workspace=tmp_path, embedding="none") as memory:
        memory.ingest(tmp_path / "roses.md")
        memory.add("Robin waters them", name="Watering")
        memory.get(memory.list()[0].id)  # whoever reads has the fact indexed first
        kept: dict[str, str] = dict(ask(path, "SELECT kind, embed_text FROM memories"))
    assert kept == {"chunk": "", "fact": "Watering\nRobin waters them"}
    with closing(SqliteStore(path)) as store:
        texts = {waiting.hash: waiting.text for waiting in store.without_vector("another", 9)}
    assert sorted(texts.values()) == ["Roses\n# Roses\n\nThey want pruning in March.", "Watering\nRobin waters them"]
    assert all(content_hash(text) == text_hash for text_hash, text in texts.items())


@pytest.mark.parametrize(
    ("damage", "told_of"),
    [("text = 'They want water'", 1), ("text = x'ff'", 1), ("summary = CAST(x'ff41' AS TEXT)", 2)],
)
def test_a_chunk_whose_text_was_altered_gets_no_vector_and_keeps_nobody_from_theirs(
    tmp_path: Path, damage: str, told_of: int
) -> None:
    for name in ("roses", "tulips"):
        (tmp_path / f"{name}.md").write_text(f"# {name}\n\nThey want pruning.\n", encoding="utf-8")
    path = tmp_path / "memory.db"
    with whyrank.open(path, workspace=tmp_path, embedding="none") as memory:
        memory.ingest(tmp_path)
    told(path, f"UPDATE memories SET {damage} WHERE path = 'roses.md'")
    found: list[Waiting] = []
    with closing(SqliteStore(path)) as store:
        while some := store.without_vector("another", 1, after=found[-1].place if found else FIRST_PLACE):
            found += some
    assert ["tulips" in one.text for one in found] == [False, True][-told_of:]
    assert all(content_hash(one.text) == one.hash for one in found)


@pytest.mark.parametrize("damaged", ["x'ff'", "CAST(x'ff41' AS TEXT)", "''"])
def test_a_fact_is_embedded_as_it_says_where_what_was_kept_for_that_was_damaged(tmp_path: Path, damaged: str) -> None:
    path = tmp_path / "memory.db"
    with whyrank.open(path, workspace=tmp_path, embedding="none") as memory:
        memory.get(memory.add("Robin waters them", name="Watering").id)  # whoever reads has it indexed first
    told(path, f"UPDATE memories SET embed_text = {damaged}")
    with closing(SqliteStore(path)) as store:
        assert [one.text for one in store.without_vector("another", 9)] == ["Watering\nRobin waters them"]
