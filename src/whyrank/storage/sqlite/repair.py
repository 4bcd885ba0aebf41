"""Repair of a store: damaged derived data is rebuilt, unreadable memories are set aside and reported.

Blocks that fail their checksum are rebuilt in place. Where pages, tables or memories are damaged, the whole store is
rebuilt beside the old one and written over it by SQLite in one transaction: other processes see the old one or the new
one, and a kill leaves the old one. The file as it was is kept under a name of its own.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import closing
from glob import escape
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...analysis.document import entry_for
from ...errors import StoreDamaged, StoreLocked
from .check import (
    IN_PLACE,
    LEFT,
    UNOWNED,
    UNOWNED_VECTOR,
    Finding,
    Tick,
    broken_records,
    broken_segments,
    broken_signs,
    broken_vectors,
    check_store,
    misstated_sizes,
)
from .copies import back_up, free_name, sweep
from .database import Connection, Database, is_generation, lenient, leniently, place_mask, raise_generation, set_meta
from .doc_values import ASIDE, RecordWriter
from .indexes import DEFAULT, INDEXES, index_to_come, prepare_index, uncached_index
from .metadata import dimensions_key, index_in, recount
from .names import NameIndex
from .pending import MARKS, Arrived
from .postings import segments
from .postings.format import is_segment_number
from .recovery import (
    CheckedRow,
    ReadableRows,
    check_row,
    column_expressions,
    legible_id,
    memory_rows,
    missing_memories,
    select_readable,
    table_columns,
)
from .rows import COLUMNS
from .schema import MIGRATIONS, prepare, restate, version_of
from .vectors.checksums import is_vector, vector_checksum
from .vectors.table import vector_bytes, write_all_signs
from .writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ...types.memory import Memory, MemoryId

_SET_ASIDE = frozenset({"unreadable", "lost", "chunks"})  # so that the others can be searched, and files read again
_SENSELESS = (ValueError, TypeError, LookupError, ArithmeticError)  # raised by damaged values
_ROWS_AT_ONCE = 500
_HOLDERS = "SELECT scope, number FROM memories WHERE embed_hash = ?1 AND scope = coalesce(?2, scope)"
_GIVE_VECTOR = (
    "INSERT INTO vectors (scope, space, number, hash, checksum, vector) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT DO NOTHING"
)
_LANGUAGE = "en"  # of texts without a detected language, if the store does not record one
_COPIED = ("files", "history", "write_keys", "embedding_failures", "arrivals")
_NUMBERED = frozenset({"history", "arrivals"})
_BLANKS = {("history", "scope"): "''"}  # of columns that an earlier schema lacks
_OWNED = "UPDATE history SET scope = m.scope FROM memories AS m WHERE m.id = history.memory AND history.scope = ''"
_MADE_ANEW = ("keyword", "keyword-since", "keyword-to-come", "keyword-moved", "readers")
_HIGHEST = 2**53  # of numbers that were given out: a higher one was damaged, and leaves no range for others


class DeepCheck(NamedTuple):
    """The findings of a deep check, and the check, which is made again after a repair."""

    findings: Sequence[Finding]
    check: Callable[[Path, Tick], list[Finding]]


def repair_store(path: Path, tick: Tick, deep: DeepCheck | None = None) -> tuple[list[Finding], str]:
    """Repair a store; return the findings, and the path of the old file if the store was rebuilt.

    With findings of a deep check, the whole store is rebuilt, and checked deeply again.
    """
    found, check = (check_store(path, tick), check_store) if deep is None else ([*deep.findings], deep.check)
    kept = ""
    with closing(Database(path, forgiving=True)) as database:
        wanted = {finding.code for finding in found if finding.derived or finding.code in _SET_ASIDE}
        if not wanted:
            return found, ""
        if "schema" in wanted:
            restate(database)
        if wanted == {"schema"}:
            return _repaired(found, check(path, tick)), ""
        if deep is not None or wanted - IN_PLACE or version_of(database) != MIGRATIONS[-1].version:
            try:
                kept = str(_rebuild(database, tick))
            except StoreDamaged as error:
                return _hopeless(found, error.message), ""
            except _SENSELESS as error:
                return _hopeless(found, f"the readable parts of the store do not fit together: {error}"), ""
        else:
            repair_in_place(database)
    return _repaired(found, check(path, tick)), kept


def discard_damaged(path: Path) -> tuple[str, ...]:
    """Delete the memories that were set aside as unreadable; return their ids."""
    with closing(Database(path)) as database, database.writing() as connection:
        gone = connection.execute("DELETE FROM arrivals WHERE entry < 0 RETURNING id").fetchall()
        recount(connection)
        raise_generation(connection)
    return tuple(sorted(str(identity) for (identity,) in gone))


def _hopeless(found: list[Finding], why: str) -> list[Finding]:
    """Add the finding that no repair is possible; hints that suggest a repair are removed."""
    said = [one._replace(hint="") if one.derived else one for one in found]
    return [*said, Finding("hopeless", why, LEFT, derived=False)]


def _repaired(before: list[Finding], after: list[Finding]) -> list[Finding]:
    """Mark the repaired findings, and add new ones, except for memories that this repair has set aside."""
    still = {finding.code for finding in after if finding.derived}
    done = [one._replace(mended=one.code not in still) for one in before if one.derived]
    left = [one for one in before if not one.derived and one.code != "aside"]
    known = {name for one in before if one.code != "aside" for name in one.names}
    aside = [one for one in after if one.code == "aside" and not known.issuperset(one.names)]
    codes = {one.code for one in before} | {"aside"}
    return [*done, *left, *aside, *(one for one in after if one.code not in codes)]


# -- in place --------------------------------------------------------------------------------------------------------


def repair_in_place(database: Any) -> None:
    """Make damaged blocks of doc values, pages, vectors and signs anew; the database may be of any backend."""
    with database.writing() as connection, leniently(connection):
        named = index_in(connection)
        if named is None:
            raise StoreDamaged(f"{database.path} does not say which keyword index it has", "take a copy of the store")
        if named[0] == "postings":
            _repair_segments(connection)
        index = uncached_index(named[0])
        ledger = RecordWriter(connection, raise_generation(connection), index.stored_tokens)
        for scope, first in broken_records(connection):
            if isinstance(first, int) and isinstance(scope, str):
                ledger.mend(scope, first)
            else:
                # As bytes: invalid UTF-8 was read as bytes, which never equal a text.
                which = "CAST(scope AS BLOB) IS CAST(? AS BLOB) AND first IS ?"
                connection.execute(f"DELETE FROM records WHERE {which}", (scope, first))
        ledger.close()
        _repair_vectors(connection, Writer(connection, index, NameIndex(), index_to_come(connection)))


def _repair_segments(connection: Connection) -> None:
    for scope, segment, answers in broken_segments(connection):
        if answers:
            segments.rewrite(connection, scope, [segment])
        else:  # a merge, which begins again
            segments.drop(connection, scope, segment.segment)


def _repair_vectors(connection: Connection, writing: Writer) -> None:
    """Drop damaged and orphaned vectors, which are embedded again if needed, and rebuild the signs."""
    for space, dimensions in misstated_sizes(connection).items():
        set_meta(connection, dimensions_key(space), str(dimensions))
    for space, numbers in broken_vectors(connection).items():
        writing.drop_vectors(space, numbers)
    if broken_signs(connection):
        write_all_signs(connection)
    connection.execute(f"DELETE FROM vectors AS o WHERE {UNOWNED_VECTOR}")
    connection.execute(f"DELETE FROM embedding_failures AS o WHERE {UNOWNED} AND o.hash <> ''")


# -- the whole store -------------------------------------------------------------------------------------------------


def _rebuild(database: Database, tick: Tick) -> Path:
    """Rebuild a store from all that can be read of it; return the path of the copy made before."""
    folder, prefix = database.file.parent, f".{database.file.name}-anew-"
    with database.alone() as damaged:
        for left in folder.glob(f"{escape(prefix)}*"):  # of a killed repair: under the lock no other one runs
            shutil.rmtree(left, ignore_errors=True)
        with (
            tempfile.TemporaryDirectory(prefix=prefix, dir=folder) as place,
            closing(Database(Path(place) / "memory.db")) as fresh,
        ):
            before = _data_version(damaged)
            _fill(database.reader(), fresh, tick)
            kept = free_name(database.file, "damaged")
            sweep(database.file.with_name(f"{database.file.name}.damaged"))
            back_up(damaged, kept)
            if _data_version(damaged) != before:
                raise StoreLocked(
                    f"{database.path} was written to during the repair", "stop the processes that write, and try again"
                )
            fresh.reader().backup(damaged)
            damaged.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return kept


def _data_version(connection: Connection) -> int:
    """Return a number that changes when another connection has written."""
    version: int = connection.execute("PRAGMA data_version").fetchone()[0]
    return version


def _fill(damaged: Connection, fresh: Database, tick: Tick) -> None:
    lenient(damaged)
    notes = {
        key: value
        for key, value in select_readable(damaged, "SELECT key, value FROM meta")
        if isinstance(key, str) and isinstance(value, str)
    }
    prepare(fresh)
    index = notes.get("keyword", DEFAULT)
    index = prepare_index(fresh, index if index in INDEXES else DEFAULT)
    with fresh.writing() as connection:
        _copy_tables(damaged, connection, notes)
        for scope, last in sorted(_segment_counts(damaged).items()) if index == "postings" else ():
            segments.keep_count(connection, scope, last)
    keyword, names = uncached_index(index), NameIndex()
    aside: list[CheckedRow] = []
    seen: dict[int, str] = {}
    language = notes.get("language", _LANGUAGE)
    memories = _memories(damaged, seen, aside, tick)
    while part := list(islice(memories, _ROWS_AT_ONCE)):
        with fresh.writing() as connection:
            arrived = [Arrived(entry_for(memory, language), "", None) for memory in part]
            Writer(connection, keyword, names).take_in(arrived)
    aside += missing_memories(damaged, seen)
    with fresh.writing() as connection:
        _set_aside(connection, aside)
        connection.execute(_OWNED)
        _copy_vectors(damaged, connection)
        connection.execute(f"DELETE FROM embedding_failures AS o WHERE {UNOWNED} AND o.hash <> ''")
        write_all_signs(connection)
        _raise_counters(connection, damaged)
        recount(connection)
        for (scope,) in connection.execute("SELECT scope FROM scopes").fetchall():
            keyword.compact(connection, scope)
    held = "SELECT (SELECT count(*) FROM memories) + (SELECT count(*) FROM arrivals WHERE entry >= 0)"
    if not fresh.reader().execute(held).fetchone()[0]:  # another program may get more out of the file
        raise StoreDamaged("no memory can be read from the file", LEFT)


def _memories(damaged: Connection, seen: dict[int, str], aside: list[CheckedRow], tick: Tick) -> Iterator[Memory]:
    """Yield the readable memories in order; set aside the others, and altered chunks, which files have.

    A page that was written in the place of another brings memories a second time; those it replaced are still in the
    indexes, and so reported.
    """
    yielded: set[MemoryId] = set()
    total = next((row[0] for row in select_readable(damaged, "SELECT count(*) FROM memories")), 0)
    for row, *values in memory_rows(damaged):
        one = check_row(row, tuple(values))
        seen[row] = one.id
        if len(seen) % _ROWS_AT_ONCE == 0:
            tick(len(seen), total, "memories")
        if one.memory is None or one.wrong == "chunks":
            aside.append(one)
        elif one.id not in yielded:
            yielded.add(one.id)
            yield one.memory


def _copy_tables(damaged: Connection, fresh: Connection, notes: dict[str, str]) -> None:
    """Copy data that is not derived, and sound vectors; sequences continue where they were."""
    generation = notes.get("generation", "")
    notes = {**notes, "generation": str(int(generation) + 1 if is_generation(generation) else 1)}
    for key, value in notes.items():
        if key not in _MADE_ANEW and not key.startswith(MARKS):
            set_meta(fresh, key, value)
    # Caches of other processes are keyed by these numbers: none may ever be reused.
    for name, last in select_readable(damaged, "SELECT name, seq FROM sqlite_sequence"):
        if isinstance(name, str) and isinstance(last, int) and last < _HIGHEST and name != "posting_segments":
            fresh.execute("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
            fresh.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (name, last))
    for table in _COPIED:
        _copy_table(damaged, fresh, table)


def _segment_counts(damaged: Connection) -> dict[str, int]:
    """Return the last number of a segment that each scope has given; before schema 8 all scopes counted together."""
    counts: dict[str, int] = {}
    for scope, number in select_readable(
        damaged,
        "SELECT scope, segments FROM posting_scopes",
        "SELECT scope, segment FROM posting_segments",
        "SELECT f.scope, s.seq FROM posting_scopes AS f, sqlite_sequence AS s WHERE s.name = 'posting_segments'",
    ):
        if isinstance(scope, str) and is_segment_number(number):
            counts[scope] = max(number, counts.get(scope, 0))
    return counts


def _copy_table(damaged: Connection, fresh: Connection, table: str) -> None:
    """Copy the sound rows; damaged facts that wait to be indexed are set aside."""
    given, columns = column_expressions(damaged, table), table_columns(table)
    if not given:
        return
    is_numbered = table in _NUMBERED
    read = [given.get(column.name, _BLANKS.get((table, column.name), "NULL")) for column in columns[is_numbered:]]
    insert = f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))}) ON CONFLICT DO NOTHING"
    for row in ReadableRows(damaged, table, read, numbered=is_numbered):
        told = {column.name: value for column, value in zip(columns, row, strict=True)}
        is_sound = all(column.fits(told[column.name]) for column in columns)
        if is_sound and not (isinstance(row[0], int) and abs(row[0]) >= _HIGHEST):
            fresh.execute(insert, row)
        elif table == "arrivals":
            scope, text = (str(_shown(told[name] or "")) for name in ("scope", "text"))
            fresh.execute(ASIDE, (legible_id(told["id"], f"arrival {told['entry']}"), scope, text, ""))


def _copy_vectors(damaged: Connection, fresh: Connection) -> None:
    """Give the memories of a new file the sound vectors of their texts; before schema 8 scopes shared them."""
    given = column_expressions(damaged, "vectors")
    read = [given.get(name, "NULL") for name in ("scope", "number", "space", "hash", "checksum", "vector")]
    for _, scope, number, space, *vector in ReadableRows(damaged, "vectors", read, numbered=True) if given else ():
        bound = 0 if scope is None else place_mask(scope, number)
        if isinstance(space, str) and is_vector(vector_bytes(fresh, space), bound, *vector):
            text_hash, _, blob = vector
            for owner, place in fresh.execute(_HOLDERS, (text_hash, scope)).fetchall():
                checksum = vector_checksum(owner, place, text_hash, blob)
                fresh.execute(_GIVE_VECTOR, (owner, space, place, text_hash, checksum, blob))


def _set_aside(connection: Connection, aside: Sequence[CheckedRow]) -> None:
    """Store the remains of unreadable memories, and have their files read again."""
    for one in aside:
        told = dict(zip(COLUMNS, map(_shown, one.row), strict=False))
        rest = json.dumps({**told, "path": one.path}, ensure_ascii=False)
        connection.execute(ASIDE, (one.id, one.scope, told.get("text") or "", rest))
        connection.execute("DELETE FROM files WHERE scope = ? AND path = ?", (one.scope, one.path))


def _raise_counters(connection: Connection, damaged: Connection) -> None:
    """Raise the counters that caches of other processes are keyed by above all earlier values."""
    epochs = [epoch for (epoch,) in select_readable(damaged, "SELECT epoch FROM scopes") if isinstance(epoch, int)]
    epoch = max((epoch for epoch in epochs if epoch < _HIGHEST), default=0)
    generation = raise_generation(connection)
    connection.execute("UPDATE scopes SET epoch = ?, changed = ?", (epoch + 1, generation))
    connection.execute("UPDATE records SET changed = ?", (generation,))
    set_meta(connection, "keyword-since", str(generation))


def _shown(value: object) -> object:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
