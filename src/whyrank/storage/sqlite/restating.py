"""Facts whose text was changed by an earlier version, which left it to whoever came next to index them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from ...analysis.entries import entry_for
from ...columns import MemoryId
from ...ports import Entry
from .connection import Connection, IntegrityError
from .past import MISREAD, by_id

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
