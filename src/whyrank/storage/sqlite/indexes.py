"""Keyword indexes by the names users type, and the way from one to another in place."""

from __future__ import annotations

from collections.abc import Callable

from ...ports import Entry
from .connection import Connection, Database
from .fts5 import Fts5Index
from .keyword import KeywordIndex
from .postings.index import PostingsIndex
from .rows import SELECT, to_memory

INDEXES: dict[str, Callable[[], KeywordIndex]] = {"postings": PostingsIndex, "fts5": Fts5Index}
DEFAULT = "postings"


def prepare_index(database: Database, name: str) -> KeywordIndex:
    """Return the index asked for, made and filled if the file has none, or another one."""
    index = INDEXES[name]()
    if index.exists(database.reader()):
        return index
    if database.read_only:
        # What cannot be made serves as it is.
        others = (make() for make in INDEXES.values())
        return next((other for other in others if other.exists(database.reader())), index)
    with database.writing() as connection:
        # One transaction: a kill leaves the old index whole, and the next opening begins again.
        if not index.exists(connection):
            index.create(connection)
            for other in (make() for key, make in INDEXES.items() if key != name):
                if other.exists(connection):
                    _move(connection, other, index)
    return index


def _move(connection: Connection, old: KeywordIndex, new: KeywordIndex) -> None:
    rows = connection.execute("SELECT row FROM memories ORDER BY row").fetchall()
    for (row,) in rows:
        memory = to_memory(connection.execute(f"SELECT {SELECT} FROM memories AS m WHERE m.row = ?", (row,)).fetchone())
        new.put(connection, row, Entry(memory, tuple(old.stored_tokens(connection, row)), (), "", ""))
    old.drop(connection)
    connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
