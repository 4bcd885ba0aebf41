"""Facts whose text was changed: said anew in their rows at once, and indexed by whoever comes next.

A change of text is one row written in place, its vector, and a mark. Whoever reads a fact by its id, lists or exports
it has the new text; its words, signs and records are made along with those of facts that wait, before anybody searches.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from ...analysis.documents import embedded_text
from ...analysis.entries import content_hash, entry_for
from ...analysis.text import text_key
from ...columns import MemoryId
from ...errors import StoreChanged
from ...ports import Changes, Entry
from ...types import Memory
from .connection import Connection, IntegrityError
from .past import MISREAD, by_id

BATCH = 64  # as of facts that wait
_MARK, _PAST_MARKS = "restated ", "restated!"  # keys of `meta` between the two are marks, each with the id of a memory
MARKED = f"SELECT substr(key, {len(_MARK) + 1}) FROM meta WHERE key > '{_MARK}' AND key < '{_PAST_MARKS}'"
_ASIDE, _PAST_ASIDE = "unindexed ", "unindexed!"  # the same for those that could not be indexed
SET_ASIDE = f"SELECT substr(key, {len(_ASIDE) + 1}) FROM meta WHERE key > '{_ASIDE}' AND key < '{_PAST_ASIDE}'"
MARKS = (_MARK, _ASIDE)  # with which the keys of all of them begin
IS_MARKED = f"EXISTS (SELECT 1 FROM meta WHERE key > '{_MARK}' AND key < '{_PAST_MARKS}')"
IS_SET_ASIDE = f"EXISTS ({SET_ASIDE})"
UNFIT = (*MISREAD, LookupError, ArithmeticError, IntegrityError)  # what indexing a damaged row may raise
_HASHES = "json_each(iif(json_valid(meta.value), meta.value, '[]'))"
HASHES_GIVEN = (
    f"SELECT told.value FROM meta, {_HASHES} AS told WHERE meta.key > '{_MARK}' AND meta.key < '{_PAST_MARKS}'"
)
# Words and vectors are of one time: what was embedded stays as it was until the words are read.
_SAY = """
UPDATE memories SET text = ?1, content_hash = ?2, text_key = ?3
WHERE id = ?4 AND scope = ?5 AND NOT EXISTS (SELECT 1 FROM arrivals WHERE scope = ?5 AND text_key = ?3 AND entry >= 0)
"""
_LEAVE_MARK = "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
# A memory that is changed again and again leaves a vector each time, so each of them counts.
_WAITING = (
    "SELECT total(iif(json_valid(value), max(1, json_array_length(value) - 2), 1)) FROM meta WHERE key > ? AND key < ?"
)


class _Mark(NamedTuple):
    """What is known of a memory that waits: a space and a language, and the hashes of texts that got vectors for it."""

    space: str
    language: str
    hashes: Sequence[str]


class Restated(NamedTuple):
    """Memories to be indexed anew with a space of theirs, and hashes of what was embedded for them."""

    space: str
    entries: Sequence[Entry]
    hashes: Sequence[str]

    @classmethod
    def joined(cls, parts: Iterable[Restated]) -> list[Restated]:
        """Return the same by space, so that each takes one write."""
        by_space: dict[str, list[Restated]] = defaultdict(list)
        for part in parts:
            by_space[part.space].append(part)
        return [
            cls(
                space, [entry for one in found for entry in one.entries], [text for one in found for text in one.hashes]
            )
            for space, found in by_space.items()
        ]


def say(connection: Connection, changes: Changes) -> int:
    """Write the new texts of memories into their rows; return how many changes wait to be indexed."""
    for memory in changes.restated:
        place = memory.source.content_hash if memory.source is not None else ""
        said = (memory.text, place, text_key(memory.text), memory.id, str(memory.scope))
        if not connection.execute(_SAY, said).rowcount:
            raise StoreChanged(f"{memory.id} is not there any more, or said by another", "nothing was stored")
        _leave_mark(connection, memory, changes)
    return int(connection.execute(_WAITING, (_MARK, _PAST_MARKS)).fetchone()[0])


def _leave_mark(connection: Connection, memory: Memory, changes: Changes) -> None:
    """Say that a memory waits, and in which space it has a vector; whoever knows none takes nothing from it."""
    key = _MARK + memory.id
    stored = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    known = _Mark("", "", ()) if stored is None else _read(connection, stored[0])
    given = [text for text in [content_hash(embedded_text(memory))] if text in changes.vectors]
    told = (changes.space or known.space, changes.language, *known.hashes, *given)
    connection.execute(_LEAVE_MARK, (key, json.dumps(told)))


def _read(connection: Connection, value: object) -> _Mark:
    """Read a mark; of one that was damaged enough is known all the same: that its memory waits, and how texts are read.

    Vectors that only it knew of are found by whoever looks for what belongs to nobody.
    """
    try:
        told = json.loads(value) if isinstance(value, str) else None
    except ValueError:
        told = None
    if isinstance(told, list) and len(told) >= 2 and all(isinstance(one, str) for one in told):
        return _Mark(told[0], told[1], told[2:])
    spoken = connection.execute("SELECT value FROM meta WHERE key = 'language'").fetchone()
    return _Mark("", spoken[0] if spoken else "", ())


def waiting(connection: Connection) -> list[Restated]:
    """Analyse all that wait, each by itself; what cannot be read any more is set aside."""
    marks = connection.execute(
        f"SELECT substr(key, {len(_MARK) + 1}), value FROM meta WHERE key > ? AND key < ?", (_MARK, _PAST_MARKS)
    ).fetchall()
    found: list[Restated] = []
    for identity, value in marks:
        space, language, hashes = _read(connection, value)
        try:
            memory = by_id(connection, identity)
            entries = [] if memory is None else [entry_for(memory, language)]
        except MISREAD:
            set_aside(connection, identity)
            entries = []
        found.append(Restated(space, entries, hashes))
    return found


def set_aside(connection: Connection, identity: MemoryId) -> None:
    """Let a memory wait no more that cannot be indexed, so that it keeps nobody from the others; it is told of."""
    connection.execute("UPDATE OR REPLACE meta SET key = ? WHERE key = ?", (_ASIDE + identity, _MARK + identity))


def clear(connection: Connection) -> None:
    """Let nothing wait any more, in the transaction that has indexed it."""
    connection.execute("DELETE FROM meta WHERE key > ? AND key < ?", (_MARK, _PAST_MARKS))


def forget(connection: Connection, ids: Collection[MemoryId]) -> None:
    """Take back that some could not be indexed, which are written whole or gone."""
    if connection.execute(f"SELECT {IS_SET_ASIDE}").fetchone()[0]:
        connection.executemany("DELETE FROM meta WHERE key = ?", ((_ASIDE + identity,) for identity in ids))
