"""Facts that were stored one by one and wait to be indexed: acknowledged, safe, and in no other table yet.

Indexing a fact touches ten tables, and costs the less of each the more facts are indexed together. So a new fact is
one row here, and whoever comes next takes them all in: a reader before it looks, a writer before it changes anything.
Rows that cannot be read any more are set aside under numbers below zero, so that they keep nobody from the others.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from ...analysis.entries import entry_for
from ...analysis.text import text_key
from ...columns import MemoryId
from ...errors import StoreDamaged
from ...lifetimes import NEVER
from ...ports import NOT_INDEXED, UNREADABLE, Arrival, Entry, Vector
from ...types import Memory, Notice, Scope
from ...wording import counted, which
from .connection import Connection, Row
from .database import Database
from .notes import note_key
from .past import MISREAD
from .queue import as_json, dimensions_key
from .restating import MARKED, SET_ASIDE
from .rows import COLUMNS, columns_of, to_memory, typed

BATCH = 64  # as many as a block of records holds, and as the keyword index makes a segment of

_FLOATS = np.dtype("<f4")
_OWN = ("id", "scope", "text", "content_hash", "created", "date")  # what every fact says
_BLANK = columns_of(Memory("", ""))  # of the other columns most say nothing
_own = itemgetter(*map(COLUMNS.index, _OWN))
_others = itemgetter(*(place for place, name in enumerate(COLUMNS) if name not in _OWN))
_BLANK_OTHERS = _others(_BLANK)
# One statement writes a fact down and finds out that it is new: whoever stores one need begin no transaction. Numbers
# below zero are those of facts set aside, and the largest of all may be one of them.
_PUT = f"""
INSERT INTO arrivals (entry, {", ".join(_OWN)}, text_key, rest, language, space, vector)
SELECT coalesce(max(0, (SELECT max(entry) FROM arrivals)), 0) + 1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11
WHERE NOT EXISTS (SELECT 1 FROM memories WHERE id = ?1)
    AND NOT EXISTS (SELECT 1 FROM memories WHERE scope = ?2 AND text_key = ?7 AND text_key <> '')
    AND NOT EXISTS (SELECT 1 FROM memories WHERE supersedes = ?1)
    AND NOT EXISTS (SELECT 1 FROM embedding_failures WHERE space = ?10 AND next_try < {NEVER})
    AND NOT EXISTS (SELECT 1 FROM write_keys WHERE scope = ?2 AND key = ?12)
    AND (SELECT value FROM meta WHERE key = ?13) IS ?14
    AND (?11 IS NULL OR (SELECT value FROM meta WHERE key = ?15) = ?16)
ON CONFLICT DO NOTHING
"""
_SET_ASIDE = "UPDATE arrivals SET entry = (SELECT min(0, min(entry)) - 1 FROM arrivals) WHERE entry = ?"


class Arrived(NamedTuple):
    """A fact ready to be indexed, with its vector in a space if it has one."""

    entry: Entry
    space: str
    vector: Vector | None


def put(database: Database, arrival: Arrival) -> int | None:
    """Write a new fact down, durably, and return the number it waits under; None, with nothing written, if it is known.

    What can be read leaves the table together, and then its numbers begin at one again: so many wait.
    """
    memory, language, space, vector, keyed, noted, said, is_plain = arrival
    if vector is not None and not _has_length(vector):
        return None
    scope, said = str(memory.scope), said or text_key(memory.text)
    if is_plain and memory.source is not None:
        own: Row = (memory.id, scope, memory.text, memory.source.content_hash, memory.created, memory.date)
        rest = ""
    else:
        columns = columns_of(memory)
        own, rest = _own(columns), _rest(columns)
    note, text = (note_key(noted[0]), noted[1]) if noted is not None else (None, None)
    blob = None if vector is None else vector.astype(_FLOATS, copy=False).tobytes()
    key = None if keyed is None else keyed[0]
    size = None if vector is None else str(vector.size)
    asked = (*own, said, rest, language, space, blob, key, note, text, dimensions_key(space), size)
    if keyed is None:
        made = database.run(_PUT, asked)
    else:
        with database.writing() as connection:
            made = connection.execute(_PUT, asked)
            if made.rowcount:
                connection.execute("INSERT INTO write_keys VALUES (?, ?, ?, ?)", (scope, keyed[0], *keyed[1]))
    return made.lastrowid if made.rowcount else None


def _has_length(vector: Vector) -> bool:
    return 0.0 < float(vector.dot(vector)) < math.inf


def _fits(vector: Vector, dimensions: str | None) -> bool:
    """Tell whether a vector may wait here: what would be refused later, or is the first of its space, may not."""
    return dimensions is not None and vector.shape == (int(dimensions),) and _has_length(vector)


def _rest(columns: Row) -> str:
    """Write the other columns down of which a memory says something, so that a later schema can still read them."""
    if _others(columns) == _BLANK_OTHERS:
        return ""
    pairs = zip(COLUMNS, columns, _BLANK, strict=True)
    return json.dumps({name: value for name, value, blank in pairs if value != blank and name not in _OWN})


def _read(own: Sequence[Any], rest: str) -> Memory:
    try:
        said = {**dict(zip(_OWN, own, strict=True)), **(json.loads(rest) if rest else {})}
    except ValueError as error:
        raise StoreDamaged(
            f"{own[0]} waits to be indexed and cannot be read: {error}", "take it from a copy"
        ) from error
    row = tuple(said.get(name, blank) for name, blank in zip(COLUMNS, _BLANK, strict=True))
    if typed(row) is not row:  # nothing is taken from it unsaid
        raise StoreDamaged(f"{own[0]} waits to be indexed and says what no memory does", "take it from a copy")
    return to_memory(row)


def waiting(connection: Connection) -> list[Arrived]:
    """Analyse all that wait, in the order in which they came; what cannot be read is set aside."""
    # An older version that had the file open knows nothing of what waits, and may have stored the same.
    connection.execute("DELETE FROM arrivals WHERE EXISTS (SELECT 1 FROM memories AS m WHERE m.id = arrivals.id)")
    rows = connection.execute(
        f"SELECT entry, language, space, vector, rest, {', '.join(_OWN)} FROM arrivals WHERE entry >= 0 ORDER BY entry"
    ).fetchall()
    arrived: list[Arrived] = []
    for number, language, space, blob, rest, *own in rows:
        try:
            entry = entry_for(_read(own, rest), language)
        except MISREAD:
            connection.execute(_SET_ASIDE, (number,))
        else:
            arrived.append(Arrived(entry, space, None if blob is None else _vector(connection, space, blob)))
    return arrived


def _vector(connection: Connection, space: str, blob: bytes) -> Vector | None:
    """Read a vector; one that does not fit its space any more is made again, as for whatever has none."""
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (dimensions_key(space),)).fetchone()
    try:
        vector = np.frombuffer(blob, _FLOATS)
    except MISREAD:
        return None
    return vector if _fits(vector, found and found[0]) else None


def clear(connection: Connection) -> None:
    """Let nothing wait any more, in the transaction that has indexed it."""
    connection.execute("DELETE FROM arrivals WHERE entry >= 0")


def drop(connection: Connection, ids: Collection[MemoryId], scopes: Collection[Scope]) -> None:
    """Delete what was set aside of these, which are to be forgotten."""
    for identity in ids:
        connection.execute("DELETE FROM arrivals WHERE id = ?", (identity,))
    for scope in scopes:
        connection.execute("DELETE FROM arrivals WHERE scope = ?", (str(scope),))


def saying(connection: Connection, text: str, scope: Scope) -> list[Memory]:
    """Return the fact of a scope that says this and waits, if one does."""
    asked = (str(scope), text_key(text))
    found = connection.execute("SELECT id FROM arrivals WHERE scope = ? AND text_key = ? AND entry >= 0", asked)
    return list(among(connection, [identity for (identity,) in found], {str(scope)}).values())


def among(connection: Connection, ids: Collection[MemoryId], scopes: Collection[str]) -> dict[MemoryId, Memory]:
    """Return those of these memories that wait and may be seen."""
    rows = connection.execute(
        f"SELECT rest, {', '.join(_OWN)} FROM arrivals WHERE entry >= 0 AND id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    ).fetchall()
    return {own[0]: _read(own, rest) for rest, *own in rows if own[1] in scopes}


def of(connection: Connection, scopes: Collection[Scope]) -> list[Memory]:
    """Return all facts of some scopes that wait and can be read; `left_out` says how many cannot."""
    return [one for one in _each(connection, scopes) if one is not None]


def _each(connection: Connection, scopes: Collection[Scope]) -> Iterator[Memory | None]:
    """Yield the facts of some scopes that wait, and nothing for each that cannot be read."""
    rows = connection.execute(
        f"SELECT rest, {', '.join(_OWN)} FROM arrivals WHERE entry >= 0 AND scope IN (SELECT value FROM json_each(?))",
        (as_json(scopes),),
    ).fetchall()
    for rest, *own in rows:
        try:
            yield _read(own, rest)
        except MISREAD:  # whoever indexes it sets it aside
            yield None


def counted_by(connection: Connection, scopes: Collection[Scope] | None) -> list[tuple[str, str, int]]:
    """Count the facts that wait, of some scopes or all, by scope and the space they have a vector in, "" for none."""
    return connection.execute(
        "SELECT scope, iif(vector IS NULL, '', space), count(*) FROM arrivals WHERE entry >= 0 AND "
        "(? OR scope IN (SELECT value FROM json_each(?))) GROUP BY 1, 2",
        (scopes is None, as_json(scopes or ())),
    ).fetchall()


def left_out(connection: Connection, scopes: Collection[Scope]) -> tuple[Notice, ...]:
    """Say how many facts that a caller may see are not in an answer yet, or cannot be read any more."""
    aside = "SELECT count(*) FROM arrivals WHERE entry < 0 AND scope IN (SELECT value FROM json_each(?))"
    lost: int = connection.execute(aside, (as_json(scopes),)).fetchone()[0]
    waiting = [*_each(connection, scopes)]
    late = sum(one is not None for one in waiting)
    lost += len(waiting) - late
    changed = "SELECT count(*) FROM memories WHERE id IN ({}) AND scope IN (SELECT value FROM json_each(?))"
    late += connection.execute(changed.format(MARKED), (as_json(scopes),)).fetchone()[0]
    unfit: int = connection.execute(changed.format(SET_ASIDE), (as_json(scopes),)).fetchone()[0]
    notices: list[Notice] = []
    if late:
        facts = f"{counted(late, 'fact')} {which(late, 'is', 'are')}"
        said = f"{facts} stored but not indexed yet, because this process cannot write to the store now"
        notices.append(Notice(NOT_INDEXED, f"{said}; ask again later"))
    if lost:
        said = f"{counted(lost, 'fact')} cannot be read any more, because the file was damaged"
        notices.append(Notice(UNREADABLE, f"{said}; take them from a backup, or store them again"))
    if unfit:
        facts = f"{counted(unfit, 'fact')} {which(unfit, 'was', 'were')}"
        said = f"{facts} changed and cannot be indexed, because the file was damaged"
        notices.append(Notice(UNREADABLE, f"{said}; `whyrank doctor --repair` mends that"))
    return tuple(notices)
