"""Records of fixed size: what searching must know of every memory without reading it, in blocks by scope."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...errors import StoreDamaged
from ...ports import Entry
from ...types import Memory, Source
from ..contexts import Unit
from ..fields import lengths_of
from .connection import Connection
from .rows import SELECT, as_far_as_legible
from .sealed import BrokenSeal, seal, unseal

RECORD = np.dtype(
    [
        ("row", "<i8"),
        ("unit", "<i1"),
        ("words", "<u4"),
        ("pairs", "<u4"),
        ("grams", "<u4"),
        ("dates", "<u4"),
        ("group", "<u8"),
        ("session", "<u8"),
        ("position", "<i8"),
        ("id", "S20"),
        ("tie", "S24"),
    ]
)
_ID_BYTES, _TIE_BYTES = RECORD["id"].itemsize, RECORD["tie"].itemsize
_MEND = "`whyrank doctor --repair` writes the store anew with all that can be read; nothing was changed"
GONE = -1  # the unit of a record whose memory was removed
BLOCK = 64  # records that are written and read together: six kilobytes, so that one more memory rewrites little

Records = NDArray[np.void]
Record = tuple[int | bytes, ...]
# Of a memory whose number its scope has given, in SQL; +, because it is no way to find one.
NUMBERED = "typeof(number) = 'integer' AND +number >= 0 AND +number < ?"
StoredTokens = Callable[[Connection, int], Sequence[str]]
# What cannot be read waits under a number below zero, with a key that no text has, until it is stored again.
ASIDE = (
    "INSERT INTO arrivals (entry, id, scope, text_key, text, content_hash, created, date, rest, language, space) "
    "VALUES ((SELECT min(0, coalesce(min(entry), 0)) - 1 FROM arrivals), ?1, ?2, 'aside ' || ?1, ?3, '', 0, NULL, ?4, "
    "'', '') ON CONFLICT DO NOTHING"
)


def record_of(row: int, entry: Entry) -> Record:
    """Return what is recorded of a memory."""
    memory = entry.memory
    session = code(memory.session) if memory.is_turn else 0
    place = (code(memory.group), session, memory.position, _short_id(memory), tie_of(memory))
    return row, unit_of(memory), *lengths_of(entry), *place


def _short_id(memory: Memory) -> bytes:
    """Return the id if it fits; one that is given and longer than ours is looked up in its row."""
    fits = memory.id.isascii() and len(memory.id) <= _ID_BYTES and "\0" not in memory.id
    return memory.id.encode("ascii") if fits else b""


def tie_of(memory: Memory) -> bytes:
    """Return the beginning of the content key, in its order: of the path, or of the hash of what has none.

    Nothing says nothing: such rows, and those that begin alike, are ordered by their whole keys.
    """
    place = memory.source or Source("")
    if place.path:
        return place.path.encode("utf-8", errors="replace")[:_TIE_BYTES].rstrip(b"\0")
    return b"\1" + place.content_hash.encode("utf-8")[:23] if place.content_hash and not place.start_line else b""


def unit_of(memory: Memory) -> Unit:
    """Return what a memory is, as far as its surroundings go."""
    if memory.is_turn:
        return Unit.TURN
    return Unit.CHUNK if memory.kind == "chunk" and memory.source else Unit.FACT


@lru_cache(maxsize=64)  # the chunks of a file and the turns of a session have one
def code(text: str) -> int:
    """Return a number for a text: the same for the same text in every store."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", errors="replace"), digest_size=8).digest(), "little")


def vacant(count: int) -> Records:
    """Return records of nothing."""
    records = np.zeros(count, RECORD)
    records["unit"] = GONE
    return records


def numbers_given(connection: Connection, scope: str, said: object) -> int:
    """Return how many numbers a scope has given out: as it says, unless that was damaged; then as its memories say."""
    # Every memory that was ever stored took one row, and one number of its scope; the rows there are know it as well.
    [(most,)] = connection.execute(
        "SELECT coalesce(max(most), 0) FROM (SELECT max(row) AS most FROM memories UNION ALL "
        "SELECT seq FROM sqlite_sequence WHERE name = 'memories' AND typeof(seq) = 'integer')"
    )
    last = connection.execute(
        "SELECT number FROM memories WHERE scope = ? AND number < ? AND typeof(number) = 'integer' "
        "ORDER BY number DESC LIMIT 1",
        (scope, most),
    ).fetchone()
    least = max(0, last[0] + 1) if last else 0
    return said if isinstance(said, int) and least <= said <= most else least


class Ledger:
    """The records one transaction changes, written block by block at its end."""

    def __init__(self, connection: Connection, generation: int, tokens: StoredTokens) -> None:
        self._connection = connection
        self._generation = generation
        self._tokens = tokens
        self._numbers: dict[str, int] = {}
        self._changed: dict[str, dict[int, Record | None]] = defaultdict(dict)
        self._touched: set[str] = set()
        self._names: dict[str, tuple[int, int]] = {}
        self._unknown: set[str] = set()  # scopes whose own row was lost

    def next_number(self, scope: str) -> int:
        """Return a number that no memory of the scope ever had."""
        self._numbers[scope] = self._size(scope) + 1
        return self._numbers[scope] - 1

    def _size(self, scope: str) -> int:
        if scope not in self._numbers:
            known = self._connection.execute("SELECT numbers FROM scopes WHERE scope = ?", (scope,)).fetchone()
            self._numbers[scope] = numbers_given(self._connection, scope, known[0] if known else None)
            if known is None and self._numbers[scope]:
                self._unknown.add(scope)
        return self._numbers[scope]

    def count_names(self, scope: str, names: int, words: int) -> None:
        """Count the names and the words of names that a scope gains, or loses where a number is negative."""
        before = self._names.get(scope, (0, 0))
        self._names[scope] = (before[0] + names, before[1] + words)

    def put(self, scope: str, number: int, record: Record) -> None:
        """Record a new memory."""
        self._changed[scope][number] = record

    def remove(self, scope: str, number: int) -> None:
        """Strike a memory out; a number that its scope never gave would make a block that nobody can read."""
        if not isinstance(number, int) or not 0 <= number < self._size(scope):
            raise StoreDamaged(f"a memory of {scope} has the number {number!r}, which no memory has", _MEND)
        self._changed[scope][number] = None

    def touch(self, scope: str, numbers: Iterable[int] = ()) -> None:
        """Say that something else about a scope, or about some of its memories, has changed."""
        self._touched.add(scope)
        for first in {number - number % BLOCK for number in numbers}:
            self._connection.execute(
                "UPDATE records SET changed = ? WHERE scope = ? AND first = ?", (self._generation, scope, first)
            )

    def mend(self, scope: str, first: int) -> None:
        """Write a block anew from the memories themselves; those that only the block knows are set aside."""
        set_aside_lost(self._connection, scope, first)
        self._write(scope, first, made_anew(self._connection, scope, first, self._tokens))
        self._touched.add(scope)

    def close(self) -> None:
        """Write what has changed."""
        for scope, changes in self._changed.items():
            for first, records in self._blocks(scope, changes):
                self._write(scope, first, records)
        for scope in {*self._changed, *self._touched, *self._names}:
            size, (names, words) = self._size(scope), self._names.get(scope, (0, 0))
            is_unknown = scope in self._unknown  # what it had before nobody has counted
            self._connection.execute(
                "INSERT INTO scopes VALUES (:scope, :numbers, :generation, 0, :first_names, :first_words) "
                "ON CONFLICT DO UPDATE SET numbers = :numbers, changed = :generation, "
                "names = names + :names, name_words = name_words + :words",
                {
                    "scope": scope,
                    "numbers": size,
                    "generation": self._generation,
                    "names": names,
                    "words": words,
                    "first_names": None if is_unknown else names,
                    "first_words": None if is_unknown else words,
                },
            )
        self._names.clear()

    def _write(self, scope: str, first: int, records: Records) -> None:
        self._connection.execute(
            "INSERT INTO records VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET changed = excluded.changed, "
            "records = excluded.records",
            (scope, first, self._generation, seal(records.tobytes(), scope, first)),
        )

    def _blocks(self, scope: str, changes: dict[int, Record | None]) -> Iterator[tuple[int, Records]]:
        by_block: dict[int, list[int]] = defaultdict(list)
        for number in changes:
            by_block[number - number % BLOCK].append(number)
        for first, numbers in by_block.items():
            records = self._stored(scope, first)
            for number in numbers:
                change = changes[number]
                records[number - first] = change if change is not None else vacant(1)[0]
            yield first, records

    def _stored(self, scope: str, first: int) -> Records:
        stored = self._connection.execute(
            "SELECT records FROM records WHERE scope = ? AND first = ?", (scope, first)
        ).fetchone()
        if stored is None:
            return vacant(BLOCK)
        try:
            return decoded(stored[0], scope, first).copy()
        except BrokenSeal:
            return made_anew(self._connection, scope, first, self._tokens)


def decoded(blob: bytes, scope: object, first: object) -> Records:
    """Read the block of a place."""
    return np.frombuffer(unseal(blob, scope, first), RECORD)


def made_anew(connection: Connection, scope: str, first: int, tokens: StoredTokens) -> Records:
    """Make a block from the memories themselves."""
    records = vacant(BLOCK)
    for number, row, letters, dates, *columns in connection.execute(
        f"SELECT m.number, m.row, m.letters, m.dates, {SELECT} FROM memories AS m "
        "WHERE m.scope = ? AND m.number BETWEEN ? AND ? AND typeof(m.number) = 'integer'",
        (scope, first, first + BLOCK - 1),
    ).fetchall():
        memory, spoken = as_far_as_legible(tuple(columns)), tuple(tokens(connection, row))
        entry = Entry(memory, spoken, (), "", "", bool(letters), tuple(dates.split()) if isinstance(dates, str) else ())
        records[number - first] = record_of(row, entry)
    return records


def set_aside_lost(connection: Connection, scope: str, first: int) -> None:
    """Set the memories aside that a block of records knows and whose rows are lost, so that they are not forgotten."""
    stored = connection.execute("SELECT records FROM records WHERE scope = ? AND first = ?", (scope, first)).fetchone()
    for row, identity, _ in recorded(stored[0], scope, first) if stored else ():
        if connection.execute("SELECT 1 FROM memories WHERE row = ?", (row,)).fetchone() is None:
            connection.execute(ASIDE, (identity, scope, "", ""))


def recorded(blob: bytes, scope: object, first: object) -> list[tuple[int, str, int]]:
    """Return the memories a block knows: the row of each, its id or what stands for it, and the code of its source."""
    try:
        records = decoded(blob, scope, first)
    except (BrokenSeal, ValueError):
        return []
    living = records[records["unit"] != GONE]
    columns = (living["row"].tolist(), living["id"].tolist(), living["group"].tolist())
    return [
        (row, identity.decode("ascii", "replace") or f"row {row}", group)
        for row, identity, group in zip(*columns, strict=True)
    ]
