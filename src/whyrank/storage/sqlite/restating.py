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
from .connection import Connection
from .past import MISREAD, by_id

BATCH = 64  # as of facts that wait
_MARK, _PAST_MARKS = "restated ", "restated!"  # keys of `meta` between the two are marks, each with the id of a memory
MARKED = f"SELECT substr(key, {len(_MARK) + 1}) FROM meta WHERE key > '{_MARK}' AND key < '{_PAST_MARKS}'"
IS_MARKED = f"EXISTS (SELECT 1 FROM meta WHERE key > '{_MARK}' AND key < '{_PAST_MARKS}')"
HASHES_BEFORE = (
    f"SELECT told.value FROM meta, json_each(iif(json_valid(meta.value), meta.value, '[]')) AS told "
    f"WHERE meta.key > '{_MARK}' AND meta.key < '{_PAST_MARKS}'"
)
_SAY = """
UPDATE memories SET text = ?1, content_hash = ?2, text_key = ?3, embed_text = ?4, embed_hash = ?5
WHERE id = ?6 AND scope = ?7 AND NOT EXISTS (SELECT 1 FROM arrivals WHERE scope = ?7 AND text_key = ?3 AND entry >= 0)
"""
_LEAVE_MARK = (
    "INSERT INTO meta VALUES (?, json_array(?, ?, ?)) ON CONFLICT DO UPDATE "
    "SET value = json_insert(meta.value, '$[#]', json_extract(excluded.value, '$[2]'))"
)


class Restated(NamedTuple):
    """Memories to be indexed anew with a space of theirs, and hashes of what they embedded before."""

    space: str
    entries: Sequence[Entry]
    hashes: Sequence[str]


def say(connection: Connection, changes: Changes) -> int:
    """Write the new texts of memories into their rows; return how many wait to be indexed anew."""
    for memory in changes.restated:
        text, before = embedded_text(memory), changes.basis.get(memory.id)
        place = memory.source.content_hash if memory.source is not None else ""
        said = (memory.text, place, text_key(memory.text), text, content_hash(text), memory.id, str(memory.scope))
        if before is None or not connection.execute(_SAY, said).rowcount:
            raise StoreChanged(f"{memory.id} is not there any more, or said by another", "nothing was stored")
        mark = (_MARK + memory.id, changes.space, changes.language, content_hash(embedded_text(before)))
        connection.execute(_LEAVE_MARK, mark)
    waiting: int = connection.execute(f"SELECT count(*) FROM ({MARKED})").fetchone()[0]
    return waiting


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
            space, language, *before = json.loads(value)
            hashes[space] += before
            memory = by_id(connection, identity)
            if memory is not None:
                entries[space].append(entry_for(memory, language))
    return [Restated(space, entries[space], hashes[space]) for space in hashes]


def clear(connection: Connection) -> None:
    """Let nothing wait any more, in the transaction that has indexed it."""
    connection.execute("DELETE FROM meta WHERE key > ? AND key < ?", (_MARK, _PAST_MARKS))
