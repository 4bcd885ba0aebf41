"""Pending writes of earlier versions, and facts that cannot be read any more.

Up to schema 5 a new fact was one row of `arrivals`, and a changed text a mark in `meta`, indexed by the next process.
Rows below zero are unreadable facts: they are set aside, so that they do not block the others.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...analysis.document import entry_for
from ...analysis.normalize import text_key
from ...errors import StoreDamaged
from ...formatting import counted, which
from ...protocols import UNREADABLE, Arrival, Vector
from ...types.memory import NEVER, Entry, Memory, Notice, Scope
from .database import ASIDE_PREFIX, SET_ASIDE, Connection, IntegrityError, meta_value
from .metadata import MISREAD, as_json, by_id, dimensions_key, note_key
from .rows import COLUMNS, columns_of, to_memory, typed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from ...types.memory import MemoryId
    from .database import Asked

_MARK, _PAST_MARKS = "restated ", "restated!"  # keys of `meta` between the two are marks, each with the id of a memory
MARKED = f"SELECT substr(key, {len(_MARK) + 1}) FROM meta WHERE key > '{_MARK}' AND key < '{_PAST_MARKS}'"
MARKS = (_MARK, ASIDE_PREFIX)  # prefixes of the keys of both
IS_MARKED = f"EXISTS (SELECT 1 FROM meta WHERE key > '{_MARK}' AND key < '{_PAST_MARKS}')"
UNFIT = (*MISREAD, LookupError, ArithmeticError, IntegrityError)  # raised by indexing a damaged row


class _Mark(NamedTuple):
    """Mark of a pending memory: space, language, and the hashes of texts that were embedded for it."""

    space: str
    language: str
    hashes: Sequence[str]


class ChangedTexts(NamedTuple):
    """Memories to be indexed again with their space, and the hashes of texts embedded for them."""

    space: str
    entries: Sequence[Entry]
    hashes: Sequence[str]

    @classmethod
    def joined(cls, parts: Iterable[ChangedTexts]) -> list[ChangedTexts]:
        """Return changes grouped by space, so that each takes one write."""
        by_space: dict[str, list[ChangedTexts]] = defaultdict(list)
        for part in parts:
            by_space[part.space].append(part)
        return [
            cls(
                space, [entry for one in found for entry in one.entries], [text for one in found for text in one.hashes]
            )
            for space, found in by_space.items()
        ]


def _read_mark(connection: Connection, value: object) -> _Mark:
    """Read a mark; a damaged one still marks its memory as pending, with the language of the store.

    Vectors that only a damaged mark lists are found by the check for orphans.
    """
    try:
        told = json.loads(value) if isinstance(value, str) else None
    except ValueError:
        told = None
    if isinstance(told, list) and len(told) >= 2 and all(isinstance(one, str) for one in told):
        return _Mark(told[0], told[1], told[2:])
    return _Mark("", meta_value(connection, "language") or "", ())


def waiting_changes(connection: Connection) -> list[ChangedTexts]:
    """Analyze all pending changes one by one; unreadable memories are set aside."""
    marks = connection.execute(
        f"SELECT substr(key, {len(_MARK) + 1}), value FROM meta WHERE key > ? AND key < ?", (_MARK, _PAST_MARKS)
    ).fetchall()
    found: list[ChangedTexts] = []
    for identity, value in marks:
        space, language, hashes = _read_mark(connection, value)
        try:
            memory = by_id(connection, identity)
            entries = [] if memory is None else [entry_for(memory, language)]
        except MISREAD:
            set_change_aside(connection, identity)
            entries = []
        found.append(ChangedTexts(space, entries, hashes))
    return found


def set_change_aside(connection: Connection, identity: MemoryId) -> None:
    """Mark a memory as set aside instead of pending, so that it does not block the others; it is reported."""
    connection.execute("UPDATE OR REPLACE meta SET key = ? WHERE key = ?", (ASIDE_PREFIX + identity, _MARK + identity))


def clear_changes(connection: Connection) -> None:
    """Delete all marks, in the transaction that has indexed their memories."""
    connection.execute("DELETE FROM meta WHERE key > ? AND key < ?", (_MARK, _PAST_MARKS))


_FLOATS = np.dtype("<f4")
_OWN = ("id", "scope", "text", "content_hash", "created", "date")  # columns that every fact has
_BLANK = columns_of(Memory("", ""))  # most of the other columns are blank
_IS_NEW = f"""
SELECT NOT EXISTS (SELECT 1 FROM memories WHERE id = ?1)
    AND NOT EXISTS (SELECT 1 FROM arrivals WHERE id = ?1)
    AND NOT EXISTS (SELECT 1 FROM memories WHERE scope = ?2 AND text_key = ?3 AND text_key <> '')
    AND NOT EXISTS (SELECT 1 FROM memories WHERE supersedes = ?1)
    AND NOT EXISTS (SELECT 1 FROM embedding_failures WHERE space = ?4 AND attempts > 0 AND next_try < {NEVER})
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
    """Check that a fact is unknown and its vector fits, so that it is stored without further checks."""
    if arrival.vector is not None and not _has_length(arrival.vector):
        return False
    return bool(connection.execute(*new_asked(arrival)).fetchone()[0])


def new_asked(arrival: Arrival) -> Asked:
    """Return the statement that checks whether a fact is unknown."""
    memory, _, space, vector, keyed, noted = arrival
    note, text = (note_key(noted[0]), noted[1]) if noted is not None else (None, None)
    key = None if keyed is None else keyed[0]
    size = None if vector is None else str(vector.size)
    asked = (memory.id, str(memory.scope), text_key(memory.text), space, key, note, text, dimensions_key(space), size)
    return _IS_NEW, asked


def arrived(arrival: Arrival) -> Arrived:
    """Analyze a new fact."""
    return Arrived(entry_for(arrival.memory, arrival.language), arrival.space, arrival.vector)


def is_waiting(connection: Connection) -> bool:
    """Return whether an earlier version has left facts or changed texts to be indexed."""
    found = connection.execute(f"SELECT EXISTS (SELECT 1 FROM arrivals WHERE entry >= 0) OR {IS_MARKED}").fetchone()
    return bool(found[0])


def _has_length(vector: Vector) -> bool:
    return 0.0 < float(vector.dot(vector)) < math.inf


def _read_fact(own: Sequence[Any], rest: str) -> Memory:
    try:
        said = {**dict(zip(_OWN, own, strict=True)), **(json.loads(rest) if rest else {})}
    except ValueError as error:
        raise StoreDamaged(
            f"{own[0]} waits to be indexed and cannot be read: {error}", "restore it from a copy"
        ) from error
    row = tuple(said.get(name, blank) for name, blank in zip(COLUMNS, _BLANK, strict=True))
    if typed(row) is not row:  # no value is dropped silently
        raise StoreDamaged(f"{own[0]} waits to be indexed and has values that are not valid", "restore it from a copy")
    return to_memory(row)


def waiting_facts(connection: Connection) -> list[Arrived]:
    """Analyze all pending facts in order of arrival; unreadable ones are set aside."""
    # An older version that had the file open does not know of pending facts, and may have stored the same.
    connection.execute("DELETE FROM arrivals WHERE EXISTS (SELECT 1 FROM memories AS m WHERE m.id = arrivals.id)")
    rows = connection.execute(
        f"SELECT entry, language, space, vector, rest, {', '.join(_OWN)} FROM arrivals WHERE entry >= 0 ORDER BY entry"
    ).fetchall()
    arrived: list[Arrived] = []
    for number, language, space, blob, rest, *own in rows:
        try:
            entry = entry_for(_read_fact(own, rest), language)
        except MISREAD:
            connection.execute(_SET_ASIDE, (number,))
        else:
            arrived.append(Arrived(entry, space, None if blob is None else _vector(connection, space, blob)))
    return arrived


def _vector(connection: Connection, space: str, blob: bytes) -> Vector | None:
    """Decode a vector; None if it does not fit its space, so that it is embedded again."""
    dimensions = meta_value(connection, dimensions_key(space))
    try:
        vector = np.frombuffer(blob, _FLOATS)
    except MISREAD:
        return None
    return vector if dimensions is not None and vector.shape == (int(dimensions),) and _has_length(vector) else None


def clear_facts(connection: Connection) -> None:
    """Delete the pending facts, in the transaction that has indexed them."""
    connection.execute("DELETE FROM arrivals WHERE entry >= 0")


def left_out(connection: Connection, scopes: Collection[Scope]) -> tuple[Notice, ...]:
    """Return notices on the visible facts that cannot be read or indexed."""
    aside = "SELECT count(*) FROM arrivals WHERE entry < 0 AND scope IN (SELECT value FROM json_each(?))"
    lost: int = connection.execute(aside, (as_json(scopes),)).fetchone()[0]
    changed = f"SELECT count(*) FROM memories WHERE id IN ({SET_ASIDE}) AND scope IN (SELECT value FROM json_each(?))"
    unfit: int = connection.execute(changed, (as_json(scopes),)).fetchone()[0]
    notices: list[Notice] = []
    if lost:
        said = f"{counted(lost, 'fact')} cannot be read any more, because the file was damaged"
        notices.append(Notice(UNREADABLE, f"{said}; restore them from a backup, or store them again"))
    if unfit:
        facts = f"{counted(unfit, 'fact')} {which(unfit, 'was', 'were')}"
        said = f"{facts} changed and cannot be indexed, because the file was damaged"
        notices.append(Notice(UNREADABLE, f"{said}; `whyrank doctor --repair` repairs this"))
    return tuple(notices)
