"""Facts that were stored one by one and wait to be indexed: acknowledged, safe, and in no other table yet.

Indexing a fact touches ten tables, and costs the less of each the more facts are indexed together. So a new fact is
one row here, and whoever comes next takes them all in: a reader before it looks, a writer before it changes anything.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from ...analysis.entries import entry_for
from ...analysis.text import text_key
from ...columns import MemoryId
from ...errors import StoreDamaged
from ...ports import NOT_INDEXED, Arrival, Entry, Vector
from ...types import Memory, Notice, Scope
from .connection import Connection
from .notes import note_key
from .queue import dimensions_key
from .rows import COLUMNS, columns_of, to_memory

BATCH = 64  # as many as a block of records holds, and as the keyword index makes a segment of

_BLANK = columns_of(Memory("", ""))  # of most columns a fact says nothing
_IS_TAKEN = """
SELECT EXISTS (SELECT 1 FROM memories WHERE id = :id)
    OR EXISTS (SELECT 1 FROM memories WHERE scope = :scope AND text_key = :text AND text_key <> '')
    OR EXISTS (SELECT 1 FROM memories WHERE supersedes = :id)
    OR EXISTS (SELECT 1 FROM write_keys WHERE scope = :scope AND key = :key)
    OR EXISTS (SELECT 1 FROM embedding_failures WHERE space = :space),
    (SELECT value FROM meta WHERE key = :dimensions),
    (SELECT value FROM meta WHERE key = :note)
"""
_PUT = (
    "INSERT INTO arrivals (id, scope, text_key, memory, language, space, vector) VALUES (?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT DO NOTHING"
)


class Arrived(NamedTuple):
    """A fact ready to be indexed, with its vector in a space if it has one."""

    entry: Entry
    space: str
    vector: Vector | None


def put(connection: Connection, arrival: Arrival) -> int | None:
    """Write a new fact down and return how many wait now; None, and nothing is written, if it is not all new."""
    memory, vector = arrival.memory, arrival.vector
    scope, said = str(memory.scope), text_key(memory.text)
    key, written = arrival.key or (None, None)
    note, text = arrival.note or (None, None)
    taken, dimensions, stands = connection.execute(
        _IS_TAKEN,
        {
            "id": memory.id, "scope": scope, "text": said, "key": key, "space": arrival.space,
            "dimensions": dimensions_key(arrival.space), "note": note and note_key(note),
        },
    ).fetchone()  # fmt: skip
    if taken or stands != text or (vector is not None and not _fits(vector, dimensions)):
        return None
    blob = None if vector is None else vector.astype("<f4", copy=False).tobytes()
    row = (memory.id, scope, said, _told(memory), arrival.language, arrival.space, blob)
    made = connection.execute(_PUT, row)
    if not made.rowcount:
        return None
    if written is not None:
        connection.execute("INSERT INTO write_keys VALUES (?, ?, ?, ?)", (scope, key, *written))
    # The table is emptied as a whole, and then its numbers begin at one again.
    return made.lastrowid


def _fits(vector: Vector, dimensions: str | None) -> bool:
    """Tell whether a vector may wait here: what would be refused later, or is the first of its space, may not."""
    if dimensions is None or vector.shape != (int(dimensions),):
        return False
    square = float(np.vdot(vector, vector))
    return 0.0 < square < np.inf


def _told(memory: Memory) -> str:
    """Write a memory down as the columns of which it says something, so that a later schema can still read it."""
    pairs = zip(COLUMNS, columns_of(memory), _BLANK, strict=True)
    return json.dumps({name: value for name, value, blank in pairs if value != blank}, ensure_ascii=False)


def _read(told: str) -> Memory:
    try:
        said = json.loads(told)
    except ValueError as error:
        raise StoreDamaged(f"a fact that waits to be indexed cannot be read: {error}", "restore a backup") from error
    return to_memory(tuple(said.get(name, blank) for name, blank in zip(COLUMNS, _BLANK, strict=True)))


def waiting(connection: Connection) -> list[Arrived]:
    """Analyse all that wait, in the order in which they came."""
    rows = connection.execute("SELECT memory, language, space, vector FROM arrivals ORDER BY entry").fetchall()
    return [
        Arrived(entry_for(_read(told), language), space, None if blob is None else np.frombuffer(blob, "<f4"))
        for told, language, space, blob in rows
    ]


def clear(connection: Connection) -> None:
    """Let nothing wait any more, in the transaction that has indexed it."""
    connection.execute("DELETE FROM arrivals")


def among(connection: Connection, ids: Collection[MemoryId], scopes: Collection[str]) -> dict[MemoryId, Memory]:
    """Return those of these memories that wait and may be seen."""
    rows = connection.execute("SELECT id, scope, memory FROM arrivals").fetchall()
    return {identity: _read(told) for identity, scope, told in rows if identity in ids and scope in scopes}


def left_out(connection: Connection, scopes: Collection[Scope]) -> tuple[Notice, ...]:
    """Say how many facts that a caller may see are not in an answer yet."""
    owners = sorted(str(scope) for scope in scopes)
    marks = ", ".join("?" * len(owners))
    count = connection.execute(f"SELECT count(*) FROM arrivals WHERE scope IN ({marks})", owners).fetchone()[0]
    if not count:
        return ()
    facts = "1 fact is" if count == 1 else f"{count} facts are"
    message = f"{facts} stored but not indexed yet, because this process cannot write to the store now; ask again later"
    return (Notice(NOT_INDEXED, message),)
