"""Facts whose text was changed: said anew in their rows at once, and indexed by whoever comes next.

A change of text is one row written in place, its vector, and a mark. Whoever reads a fact by its id, lists or exports
it has the new text; its words, signs and records are made along with those of facts that wait, before anybody searches.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from ...analysis.documents import embedded_text
from ...analysis.entries import content_hash, entry_for
from ...analysis.text import text_key
from ...errors import StoreChanged
from ...ports import Changes, Entry
from ...types import Memory
from .connection import Connection
from .past import MISREAD, by_id

BATCH = 64  # as of facts that wait
_MARK, _PAST_MARKS = "restated ", "restated!"  # keys of `meta` between the two are marks, each with the id of a memory
MARKED = f"SELECT substr(key, {len(_MARK) + 1}) FROM meta WHERE key > '{_MARK}' AND key < '{_PAST_MARKS}'"
IS_MARKED = f"EXISTS (SELECT 1 FROM meta WHERE key > '{_MARK}' AND key < '{_PAST_MARKS}')"
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


def say(connection: Connection, changes: Changes) -> int:
    """Write the new texts of memories into their rows; return how many wait to be indexed anew."""
    for memory in changes.restated:
        place = memory.source.content_hash if memory.source is not None else ""
        said = (memory.text, place, text_key(memory.text), memory.id, str(memory.scope))
        if not connection.execute(_SAY, said).rowcount:
            raise StoreChanged(f"{memory.id} is not there any more, or said by another", "nothing was stored")
        _leave_mark(connection, memory, changes)
    waiting: int = connection.execute(f"SELECT count(*) FROM ({MARKED})").fetchone()[0]
    return waiting


def _leave_mark(connection: Connection, memory: Memory, changes: Changes) -> None:
    """Say that a memory waits, and in which space it has a vector; whoever knows none takes nothing from it."""
    key = _MARK + memory.id
    stored = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    known = _Mark("", "", ()) if stored is None else _read(stored[0])
    given = [text for text in [content_hash(embedded_text(memory))] if text in changes.vectors]
    told = (changes.space or known.space, changes.language, *known.hashes, *given)
    connection.execute(_LEAVE_MARK, (key, json.dumps(told)))


def _read(value: str) -> _Mark:
    space, language, *hashes = json.loads(value)
    return _Mark(space, language, hashes)


def waiting(connection: Connection) -> list[Restated]:
    """Analyse all that wait, by space; what cannot be read any more is left to whoever looks for damage."""
    marks = connection.execute(
        f"SELECT substr(key, {len(_MARK) + 1}), value FROM meta WHERE key > ? AND key < ?", (_MARK, _PAST_MARKS)
    ).fetchall()
    if not marks:
        return []
    entries: dict[str, list[Entry]] = defaultdict(list)
    hashes: dict[str, list[str]] = defaultdict(list)
    for identity, value in marks:
        with suppress(*MISREAD):
            space, language, given = _read(value)
            hashes[space] += given
            memory = by_id(connection, identity)
            if memory is not None:
                entries[space].append(entry_for(memory, language))
    return [Restated(space, entries[space], hashes[space]) for space in hashes]


def clear(connection: Connection) -> None:
    """Let nothing wait any more, in the transaction that has indexed it."""
    connection.execute("DELETE FROM meta WHERE key > ? AND key < ?", (_MARK, _PAST_MARKS))
