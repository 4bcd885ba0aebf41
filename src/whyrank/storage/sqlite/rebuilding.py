"""A damaged store written anew: what can be read of it is copied, and what is derived is made again.

The new store is made beside the old one and then laid over it by SQLite itself, in one transaction: others who have the
store open see the old one or the new one, and a kill leaves the old one. The file as it was is kept under a name of its
own. What cannot be read is set aside, so that it is named until somebody stores it again or gives it up.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from glob import escape
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ...analysis.entries import entry_for
from ...columns import MemoryId
from ...errors import StoreDamaged, StoreLocked
from ...types import Memory
from .arrivals import Arrived
from .connection import Connection, Row, lenient
from .copying import back_up, free_name, sweep
from .database import Database
from .examining import Tick
from .held import vector_bytes
from .indexes import DEFAULT, INDEXES, prepare_index
from .judging import judged, legible_id, memory_rows, missing
from .keyword import KeywordIndex
from .layout import layout
from .names import NameIndex
from .notes import is_generation, raise_generation, recount
from .records import ASIDE
from .restating import MARKS
from .rows import COLUMNS
from .salvaging import Rows, columns_of, known_of
from .schema import prepare
from .sealed import is_vector
from .vectors import VectorIndex
from .writing import Writing

LEFT = (
    "the file is left as it is: look for a copy of it (a `.bak` beside it, a backup, lines of `whyrank export`), "
    "or move it away and ingest the files again; facts that stand in no file must be stored again"
)
_ROWS_AT_ONCE = 500
_LANGUAGE = "en"  # of texts that do not show theirs, where the store does not say it
_COPIED = ("files", "history", "write_keys", "embedding_failures", "vectors", "arrivals")
_NUMBERED = frozenset({"history", "vectors", "arrivals"})
_MADE_ANEW = ("keyword", "keyword-since", "keyword-to-come", "keyword-moved", "readers")
_TAKEN_OVER = "INSERT INTO {} VALUES ({}) ON CONFLICT DO NOTHING"
_HIGHEST = 2**53  # of numbers that were given out: one that is higher was damaged, and leaves no room for others


class _Aside(NamedTuple):
    """A memory that cannot be put into the new store."""

    id: str
    scope: str
    path: str
    row: Row = ()


def rebuild(database: Database, tick: Tick) -> Path:
    """Write a store anew with all that can be read of it; return where it lies as it was before."""
    folder, prefix = database.file.parent, f".{database.file.name}-anew-"
    with (
        database.alone() as damaged,
        _swept(folder, prefix),
        tempfile.TemporaryDirectory(prefix=prefix, dir=folder) as place,
        closing(Database(Path(place) / "memory.db")) as fresh,
    ):
        before = _version(damaged)
        _fill(database.reader(), fresh, tick)
        _refuse_nothing(fresh)
        kept = free_name(database.file, "damaged")
        sweep(database.file.with_name(f"{database.file.name}.damaged"))
        back_up(damaged, kept)
        if _version(damaged) != before:
            raise StoreLocked(f"{database.path} was written to while it was mended", "stop who writes, and try again")
        fresh.reader().backup(damaged)
        damaged.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return kept


@contextmanager
def _swept(folder: Path, prefix: str) -> Iterator[None]:
    """Take away what a repair that was killed has left: who is alone here knows that nobody works at it."""
    for left in folder.glob(f"{escape(prefix)}*"):
        shutil.rmtree(left, ignore_errors=True)
    yield


def _refuse_nothing(fresh: Database) -> None:
    """A store of which no memory can be read is left as it lies: somebody else may get more out of it."""
    held = fresh.reader().execute(
        "SELECT (SELECT count(*) FROM memories) + (SELECT count(*) FROM arrivals WHERE entry >= 0)"
    )
    if not held.fetchone()[0]:
        raise StoreDamaged("no memory can be read from the file", LEFT)


def _version(connection: Connection) -> int:
    """Return what changes when somebody else has written."""
    version: int = connection.execute("PRAGMA data_version").fetchone()[0]
    return version


def _fill(damaged: Connection, fresh: Database, tick: Tick) -> None:
    lenient(damaged)
    notes = {
        key: value
        for key, value in known_of(damaged, "SELECT key, value FROM meta")
        if isinstance(key, str) and isinstance(value, str)
    }
    prepare(fresh)
    index = notes.get("keyword", DEFAULT)
    index = prepare_index(fresh, index if index in INDEXES else DEFAULT)
    with fresh.writing() as connection:
        _take_over(damaged, connection, notes)
    keyword, names, vectors = INDEXES[index](0, None), NameIndex(), VectorIndex()
    aside: list[_Aside] = []
    seen: set[int] = set()
    language = notes.get("language", _LANGUAGE)
    memories = _memories(damaged, seen, aside, tick)
    while part := list(islice(memories, _ROWS_AT_ONCE)):
        with fresh.writing() as connection:
            arrived = [Arrived(entry_for(memory, language), "", None) for memory in part]
            Writing(connection, keyword, names, vectors).take_in(arrived)
    aside += [_Aside(*one[1:]) for one in missing(damaged, seen)]
    with fresh.writing() as connection:
        _finish(connection, damaged, aside, vectors)
        _settle(connection, keyword)


def _take_over(damaged: Connection, fresh: Connection, notes: dict[str, str]) -> None:
    """Copy what is nowhere but here, and vectors that are sound; numbers go on where they were."""
    generation = notes.get("generation", "")
    notes = {**notes, "generation": str(int(generation) + 1 if is_generation(generation) else 1)}
    fresh.executemany(
        "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
        [(key, value) for key, value in notes.items() if key not in _MADE_ANEW and not key.startswith(MARKS)],
    )
    # What another process keeps in memory goes by these numbers: none may ever mean something else.
    for name, last in known_of(damaged, "SELECT name, seq FROM sqlite_sequence"):
        if isinstance(name, str) and isinstance(last, int) and last < _HIGHEST:
            fresh.execute("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
            fresh.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (name, last))
    for table in _COPIED:
        _copy(fresh, table, _rows(damaged, table))


def _rows(connection: Connection, table: str) -> Iterator[Row]:
    """Yield the rows of a table that can be read, each with all columns of today."""
    given = columns_of(connection, table)
    names = [column.name for column in layout(table)]
    columns = [given.get(name, "NULL") for name in names[table in _NUMBERED :]]
    return iter(Rows(connection, table, columns, numbered=table in _NUMBERED)) if given else iter(())


def _copy(fresh: Connection, table: str, rows: Iterator[Row]) -> None:
    """Copy the rows that are what they were; of facts that wait, the others are set aside."""
    columns = layout(table)
    take_over = _TAKEN_OVER.format(table, ", ".join("?" * len(columns)))
    for row in rows:
        told = {column.name: value for column, value in zip(columns, row, strict=True)}
        is_sound = table != "vectors" or _is_vector(fresh, told)
        if is_sound and all(column.fits(told[column.name]) for column in columns) and abs(_number(row)) < _HIGHEST:
            fresh.execute(take_over, row)
        elif table == "arrivals":
            scope, text = (str(_shown(told[name] or "")) for name in ("scope", "text"))
            identity = legible_id(told["id"], f"arrival {told['entry']}")
            fresh.execute(ASIDE, (identity, scope, text, ""))


def _is_vector(fresh: Connection, told: dict[str, object]) -> bool:
    size = vector_bytes(fresh, str(told["space"]))
    return is_vector(size, told["hash"], told["checksum"], told["vector"])


def _number(row: Row) -> int:
    return row[0] if isinstance(row[0], int) else 0


def _memories(damaged: Connection, seen: set[int], aside: list[_Aside], tick: Tick) -> Iterator[Memory]:
    """Yield the memories that can be read, in their order; the others go aside.

    A chunk that is not as it was stored goes aside too: its file has it as it was. A page that was written in the place
    of another brings memories a second time; those it took the place of are still known to indexes, and so named.
    """
    yielded: set[MemoryId] = set()
    total = next((row[0] for row in known_of(damaged, "SELECT count(*) FROM memories")), 0)
    for row, *values in memory_rows(damaged):
        seen.add(row)
        if len(seen) % _ROWS_AT_ONCE == 0:
            tick(len(seen), total, "memories")
        one = judged(row, tuple(values))
        is_altered = one.wrong and "restored" not in one.wrong
        if one.memory is None or (is_altered and one.memory.kind == "chunk"):
            aside.append(_Aside(one.id, one.scope, one.path, one.row))
        elif one.id not in yielded:
            yielded.add(one.id)
            yield one.memory


def _finish(connection: Connection, damaged: Connection, aside: Sequence[_Aside], vectors: VectorIndex) -> None:
    """Set aside what could not be read, have its files read anew, and make the signs of the vectors."""
    for one in aside:
        told = dict(zip(COLUMNS, map(_shown, one.row), strict=False))
        rest = json.dumps({**told, "path": one.path}, ensure_ascii=False)
        connection.execute(ASIDE, (one.id, one.scope, told.get("text") or "", rest))
        connection.execute("DELETE FROM files WHERE scope = ? AND path = ?", (one.scope, one.path))
    connection.execute("DELETE FROM vectors WHERE NOT EXISTS (SELECT 1 FROM memories WHERE embed_hash = vectors.hash)")
    connection.execute(
        "DELETE FROM embedding_failures WHERE hash <> '' AND hash NOT IN (SELECT embed_hash FROM memories)"
    )
    vectors.make_signs_anew(connection)
    epochs = [epoch for (epoch,) in known_of(damaged, "SELECT epoch FROM scopes") if isinstance(epoch, int)]
    epoch = max((epoch for epoch in epochs if epoch < _HIGHEST), default=0)
    generation = raise_generation(connection)
    connection.execute("UPDATE scopes SET epoch = ?, changed = ?", (epoch + 1, generation))
    connection.execute("UPDATE records SET changed = ?", (generation,))
    connection.execute("INSERT INTO meta VALUES ('keyword-since', ?)", (str(generation),))
    recount(connection)


def _settle(connection: Connection, keyword: KeywordIndex) -> None:
    for (scope,) in connection.execute("SELECT scope FROM scopes").fetchall():
        keyword.settle(connection, scope)


def _shown(value: object) -> object:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
