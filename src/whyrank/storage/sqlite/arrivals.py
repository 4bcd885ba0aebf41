"""New facts, and facts that earlier versions left to be indexed or that cannot be read any more.

Up to schema 5 a new fact was one row of `arrivals`, indexed by whoever came next. Rows below zero are facts that could
not be read: they are set aside, so that they keep nobody from the others.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...analysis.entries import entry_for
from ...analysis.text import text_key
from ...columns import MemoryId
from ...errors import StoreDamaged
from ...lifetimes import NEVER
from ...ports import UNREADABLE, Arrival, Entry, Vector
from ...types import Memory, Notice, Scope
from ...wording import counted, which
from .connection import Connection
from .notes import note_key
from .past import MISREAD
from .queue import as_json, dimensions_key
from .restating import IS_MARKED, SET_ASIDE
from .rows import COLUMNS, columns_of, to_memory, typed

_FLOATS = np.dtype("<f4")
_OWN = ("id", "scope", "text", "content_hash", "created", "date")  # what every fact says
_BLANK = columns_of(Memory("", ""))  # of the other columns most say nothing
_IS_NEW = f"""
SELECT NOT EXISTS (SELECT 1 FROM memories WHERE id = ?1)
    AND NOT EXISTS (SELECT 1 FROM arrivals WHERE id = ?1)
    AND NOT EXISTS (SELECT 1 FROM memories WHERE scope = ?2 AND text_key = ?3 AND text_key <> '')
    AND NOT EXISTS (SELECT 1 FROM memories WHERE supersedes = ?1)
    AND NOT EXISTS (SELECT 1 FROM embedding_failures WHERE space = ?4 AND next_try < {NEVER})
    AND NOT EXISTS (SELECT 1 FROM write_keys WHERE scope = ?2 AND key = ?5)
    AND (SELECT value FROM meta WHERE key = ?6) IS ?7
    AND (?9 IS NULL OR (SELECT value FROM meta WHERE key = ?8) = ?9)
"""
_SET_ASIDE = "UPDATE arrivals SET entry = (SELECT min(0, min(entry)) - 1 FROM arrivals) WHERE entry = ?"


class Arrived(NamedTuple):
    """A fact ready to be indexed, with its vector in a space if it has one."""

    entry: Entry
    space: str
    vector: Vector | None


def is_new(connection: Connection, arrival: Arrival) -> bool:
    """Tell whether nothing is known of a fact and its vector fits, so that it is stored without a further look."""
    memory, _, space, vector, keyed, noted = arrival
    if vector is not None and not _has_length(vector):
        return False
    note, text = (note_key(noted[0]), noted[1]) if noted is not None else (None, None)
    key = None if keyed is None else keyed[0]
    size = None if vector is None else str(vector.size)
    asked = (memory.id, str(memory.scope), text_key(memory.text), space, key, note, text, dimensions_key(space), size)
    return bool(connection.execute(_IS_NEW, asked).fetchone()[0])


def arrived(arrival: Arrival) -> Arrived:
    """Analyse a new fact."""
    return Arrived(entry_for(arrival.memory, arrival.language), arrival.space, arrival.vector)


def is_waiting(connection: Connection) -> bool:
    """Tell whether an earlier version has left facts, or texts that were changed, to be indexed."""
    found = connection.execute(f"SELECT EXISTS (SELECT 1 FROM arrivals WHERE entry >= 0) OR {IS_MARKED}").fetchone()
    return bool(found[0])


def _has_length(vector: Vector) -> bool:
    return 0.0 < float(vector.dot(vector)) < math.inf


def _fits(vector: Vector, dimensions: str | None) -> bool:
    """Tell whether a vector may wait here: what would be refused later, or is the first of its space, may not."""
    return dimensions is not None and vector.shape == (int(dimensions),) and _has_length(vector)


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
    """Delete what was set aside of these, which are written whole or to be forgotten."""
    if not connection.execute("SELECT EXISTS (SELECT 1 FROM arrivals)").fetchone()[0]:
        return
    for identity in ids:
        connection.execute("DELETE FROM arrivals WHERE id = ?", (identity,))
    for scope in scopes:
        connection.execute("DELETE FROM arrivals WHERE scope = ?", (str(scope),))


def left_out(connection: Connection, scopes: Collection[Scope]) -> tuple[Notice, ...]:
    """Say how many facts that a caller may see cannot be read, or not be indexed, any more."""
    aside = "SELECT count(*) FROM arrivals WHERE entry < 0 AND scope IN (SELECT value FROM json_each(?))"
    lost: int = connection.execute(aside, (as_json(scopes),)).fetchone()[0]
    changed = f"SELECT count(*) FROM memories WHERE id IN ({SET_ASIDE}) AND scope IN (SELECT value FROM json_each(?))"
    unfit: int = connection.execute(changed, (as_json(scopes),)).fetchone()[0]
    notices: list[Notice] = []
    if lost:
        said = f"{counted(lost, 'fact')} cannot be read any more, because the file was damaged"
        notices.append(Notice(UNREADABLE, f"{said}; take them from a backup, or store them again"))
    if unfit:
        facts = f"{counted(unfit, 'fact')} {which(unfit, 'was', 'were')}"
        said = f"{facts} changed and cannot be indexed, because the file was damaged"
        notices.append(Notice(UNREADABLE, f"{said}; `whyrank doctor --repair` mends that"))
    return tuple(notices)
