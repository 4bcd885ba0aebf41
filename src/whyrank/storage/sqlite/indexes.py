"""Keyword indexes by the names users type, and the stepwise move from one to another in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import StoreDamaged
from ...types.memory import Entry
from .connection import SAVE, Connection
from .fts5 import Fts5Index
from .keyword import KeywordIndex, NumberedMemory
from .postings.index import PostingsIndex
from .postings.loops import NUMPY
from .rows import SELECT, to_memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from .database import Database
    from .postings.loops import Kernel

# Factories; they take the size of the caches in bytes and the kernel to search with.
INDEXES: dict[str, Callable[[int, Kernel], KeywordIndex]] = {
    "postings": lambda cache_bytes, kernel: PostingsIndex(cache_bytes, kernel=kernel),
    "fts5": lambda *_: Fts5Index(),  # SQLite has a cache of its own
}
DEFAULT = "postings"
IndexName = tuple[str, str]  # its name, and the generation since which it is the live one
ROWS_PER_STEP = 500  # moved in one transaction; a kill loses no more than that


def prepare_index(database: Database, name: str) -> str:
    """Make the given index, and fill it if the file has another one; return the name of the live one."""
    with database.connection() as connection:
        current = _meta(connection, "keyword")
    if current is not None and current not in INDEXES:
        raise _index_unknown()
    if current == name or (current is not None and database.read_only):
        # A read-only store keeps the index it has.
        return current
    if not database.read_only:
        _begin(database, name)
        while _step(database, name):
            pass
    return name


def index_in(connection: Connection) -> IndexName | None:
    """Return the name of the live index of a file and the generation it is live since; None without one."""
    said = dict(connection.execute("SELECT key, value FROM meta WHERE key IN ('keyword', 'keyword-since')").fetchall())
    return (said["keyword"], said.get("keyword-since", "0")) if "keyword" in said else None


def answering(connection: Connection) -> IndexName:
    """Return the live index of an opened store; raise StoreDamaged without a known one."""
    named = index_in(connection)
    if named is None or named[0] not in INDEXES:
        raise _index_unknown()
    return named


def _index_unknown() -> StoreDamaged:
    return StoreDamaged("the store does not say which keyword index it has", SAVE)


def index_to_come(connection: Connection) -> str | None:
    """Return the name of the index that is being built, if there is one."""
    return _meta(connection, "keyword-to-come")


def _begin(database: Database, name: str) -> None:
    """Create the new index, empty; drop an unfinished one of another name."""
    with database.writing() as connection:
        current, to_come = _meta(connection, "keyword"), index_to_come(connection)
        if current is None:
            if any(uncached_index(known).exists(connection) for known in INDEXES):
                raise _index_unknown()
            uncached_index(name).create(connection)
            _set(connection, "keyword", name)
        elif name not in (current, to_come):
            if to_come is not None:
                uncached_index(to_come).drop(connection)
            uncached_index(name).create(connection)
            _set(connection, "keyword-to-come", name)
            _set(connection, "keyword-moved", "0")


def _step(database: Database, name: str) -> bool:
    """Move some memories from the live index to the new one; return whether there are more."""
    with database.writing() as connection:
        current = _meta(connection, "keyword")
        if current is None or current == name:
            return False
        old, new = uncached_index(current), uncached_index(name)
        after = int(_meta(connection, "keyword-moved") or 0)
        rows = connection.execute(
            f"SELECT m.row, m.number, m.letters, m.dates, {SELECT} FROM memories AS m "
            "WHERE m.row > ? ORDER BY m.row LIMIT ?",
            (after, ROWS_PER_STEP),
        ).fetchall()
        placed: list[NumberedMemory] = []
        numbers: dict[str, int] = {}
        for row, number, letters, dates, *columns in rows:
            memory = to_memory(tuple(columns))
            tokens = tuple(old.stored_tokens(connection, row))
            entry = Entry(memory, tokens, (), "", "", bool(letters), tuple(dates.split()))
            placed.append(NumberedMemory(row, number, entry))
            numbers[str(memory.scope)] = number + 1
        new.put(connection, placed)
        new.close(connection, numbers)
        if rows:
            _set(connection, "keyword-moved", str(rows[-1][0]))
            return True
        old.drop(connection)
        _set(connection, "keyword", name)
        connection.execute("DELETE FROM meta WHERE key IN ('keyword-to-come', 'keyword-moved')")
        connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
        # Numbers of segments restart with their table: caches of an index must not outlive it.
        _set(connection, "keyword-since", _meta(connection, "generation") or "0")
        return False


def uncached_index(name: str) -> KeywordIndex:
    """Return an index without caches, to write with."""
    return INDEXES[name](0, NUMPY)


def _meta(connection: Connection, key: str) -> str | None:
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return found[0] if found else None


def _set(connection: Connection, key: str, value: str) -> None:
    connection.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", (key, value))
