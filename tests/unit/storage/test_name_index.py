"""Names in the file: what is listed of them, what goes with a memory, and what is read when somebody mistypes one."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

import whyrank
from tests.damage import ask, told
from whyrank.analysis.document import entry_for
from whyrank.analysis.names import probe_for
from whyrank.protocols import Changes
from whyrank.storage.sqlite.database import Database
from whyrank.storage.sqlite.schema import prepare
from whyrank.storage.store import SqliteStore
from whyrank.types.memory import Memory, Scope
from whyrank.types.query import Where

HOME, ELSEWHERE = Scope("user", "1"), Scope("user", "2")
WORDS = "SELECT word FROM name_words ORDER BY word"


def put(store: SqliteStore, *names: str, scope: Scope = HOME) -> None:
    memories = [Memory(f"m_{name}", f"about {name}", name=name, scope=scope) for name in names]
    store.write(Changes(put=[entry_for(memory, "en") for memory in memories]))


def found(store: SqliteStore, mistyped: str) -> list[str]:
    run = store.named(probe_for(mistyped, typos=True), Where(frozenset({HOME})), 5)
    return [candidate.id for candidate in run.candidates]


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return SqliteStore(tmp_path / "memory.db")


def test_folders_are_no_names_of_the_files_in_them(tmp_path: Path) -> None:
    (tmp_path / "garden").mkdir()
    (tmp_path / "garden" / "roses.md").write_text("They want pruning in March.\n", encoding="utf-8")
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as memory:
        memory.ingest(tmp_path / "garden")
        assert memory.search("garden/roses.md").hits[0].memory.source is not None
        assert ask(tmp_path / "memory.db", WORDS) == [("md",), ("roses",)]
        assert memory.doctor().is_whole


def test_names_go_with_their_memory(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with whyrank.open(path, workspace=tmp_path, embedding="none") as memory:
        gone = memory.add("It holds one litre", name="Green Pot")
        memory.add("It is warm", name="Green Jacket")
        assert memory.search("Green Pot").hits[0].memory.id == gone.id
        memory.forget(gone.id)
        assert ask(path, WORDS) == [("green",), ("jacket",)]
        assert ask(path, "SELECT text, place FROM names") == [("Green Jacket", 0)]
        assert memory.doctor().is_whole


@pytest.mark.parametrize("purge", [False, True])
@pytest.mark.parametrize("words", ["CAST(x'ff6162' AS TEXT)", "x'ff'"])
def test_names_that_were_damaged_go_with_their_memory(tmp_path: Path, words: str, purge: bool) -> None:
    path = tmp_path / "memory.db"
    with whyrank.open(path, workspace=tmp_path, embedding="none") as memory:
        gone = memory.add("It holds one litre", name="Green Pot")
        memory.get(gone.id)  # whoever reads has it indexed first
    told(path, f"UPDATE names SET words = {words}")
    with whyrank.open(path, workspace=tmp_path, embedding="none") as memory:
        memory.forget(gone.id, purge=purge)
        assert ask(path, WORDS) == []


def test_a_purge_takes_the_words_of_names_that_were_lost(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with whyrank.open(path, workspace=tmp_path, embedding="none") as memory:
        gone = memory.add("It holds one litre", name="Zanzibarian Pot")
        memory.get(gone.id)
    told(path, "UPDATE names SET number = x'00'")
    with whyrank.open(path, workspace=tmp_path, embedding="none") as memory:
        memory.forget(gone.id, purge=True)
    assert not any(b"zanzibarian" in file.read_bytes().lower() for file in tmp_path.glob("memory.db*"))


def test_names_that_come_later_are_mistyped_as_well(store: SqliteStore) -> None:
    put(store, "Alabaster", "Basement", "Cardigan")
    assert found(store, "Alabastre") == ["m_Alabaster"]
    put(store, "Dandelion")  # one more than three that are known: it is read alone
    assert found(store, "Dandelino") == ["m_Dandelion"]
    put(store, *(f"Elsewhere {number}" for number in range(9)), scope=ELSEWHERE)  # more than are known: all are read
    put(store, "Farmhouse")
    assert found(store, "Framhouse") == ["m_Farmhouse"]
    assert found(store, "Alabastre") == ["m_Alabaster"]
    assert found(store, "Elsewhree 3") == []


def test_a_row_that_was_damaged_keeps_nobody_from_the_names(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memory.db")
    put(store, "Alabaster", "Basement")
    store.close()
    told(tmp_path / "memory.db", "UPDATE names SET number = x'00ff' WHERE text = 'Basement'")
    with closing(SqliteStore(tmp_path / "memory.db")) as again:
        assert found(again, "Alabastre") == ["m_Alabaster"]
        put(again, "Cardigan")
        assert found(again, "Cradigan") == ["m_Cardigan"]


def test_names_of_the_schema_before_are_taken_over_but_those_of_no_memory(tmp_path: Path) -> None:
    path = Path(shutil.copy(Path(__file__).parents[2] / "golden/stores/schema4.db", tmp_path / "memory.db"))
    columns, own = "n.text, n.key, n.words, n.sorted_words, n.specificity", "m.scope = n.scope AND m.number = n.number"
    names = f"SELECT m.row, n.scope, {columns} FROM names AS n JOIN memories AS m ON {{}} ORDER BY m.row, {{}}"
    before, words = ask(path, names.format("m.row = n.memory", "entry")), ask(path, WORDS)
    told(path, "INSERT INTO name_words SELECT scope, 'nobody', 999 FROM names LIMIT 1")
    told(path, "DROP INDEX names_by_entry")
    told(
        path, "INSERT INTO names SELECT 99, 999, scope, text, key, words, sorted_words, specificity FROM names LIMIT 1"
    )
    with closing(Database(path)) as database:
        prepare(database)
    assert ask(path, names.format(own, "place")) == before != []
    assert ask(path, WORDS) == words != []
