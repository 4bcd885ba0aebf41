"""Writing the index: fresh memories wait as tokens, are flushed into posting lists, and small lists are merged."""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import takewhile

import numpy as np

from ....ports import Entry
from ....types import Memory
from ...contexts import Unit
from ...fields import FIELDS, fields_of
from ..connection import Connection
from .codec import GONE, RECORD, checked, decode, encode, joined, seal

# Fresh memories are inverted anew by whoever reads after a write, so there must be few of them.
FRESH_MEMORIES = 256
FRESH_BYTES = 32_768  # of packed tokens
FLUSHES_PER_MERGE = 8
SMALL_LISTS = 4  # so many small lists of a term are worth joining
SMALL_LIST_BYTES = 10_240  # about two thousand postings; a larger list is left alone, so that a removal stays cheap

TABLES = """
CREATE TABLE posting_scopes (
    scope TEXT PRIMARY KEY,
    numbers INTEGER NOT NULL,
    flushes INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE posting_rows (
    row INTEGER PRIMARY KEY,
    scope TEXT NOT NULL,
    number INTEGER NOT NULL,
    tokens BLOB NOT NULL
);
CREATE TABLE posting_fresh (
    scope TEXT NOT NULL,
    number INTEGER NOT NULL,
    record BLOB NOT NULL,
    tokens BLOB NOT NULL,
    PRIMARY KEY (scope, number)
) WITHOUT ROWID;
CREATE TABLE posting_records (
    scope TEXT NOT NULL,
    first INTEGER NOT NULL,
    records BLOB NOT NULL,
    PRIMARY KEY (scope, first)
) WITHOUT ROWID;
CREATE TABLE posting_lists (
    scope TEXT NOT NULL,
    field INTEGER NOT NULL,
    term TEXT NOT NULL,
    flush INTEGER NOT NULL,
    list BLOB NOT NULL,
    PRIMARY KEY (scope, field, term, flush)
) WITHOUT ROWID;
"""

TABLE_NAMES = ("posting_scopes", "posting_rows", "posting_fresh", "posting_records", "posting_lists")

Key = tuple[int, str]


def put(connection: Connection, row: int, entry: Entry) -> None:
    """Take in one memory; it can be found at once."""
    scope = str(entry.memory.scope)
    number = _next_number(connection, scope)
    tokens = pack(entry.tokens)
    connection.execute("INSERT INTO posting_rows VALUES (?, ?, ?, ?)", (row, scope, number, tokens))
    record = _record(row, entry.memory, entry.tokens)
    connection.execute("INSERT INTO posting_fresh VALUES (?, ?, ?, ?)", (scope, number, record, tokens))
    waiting, size = connection.execute(
        "SELECT count(*), sum(length(tokens)) FROM posting_fresh WHERE scope = ?", (scope,)
    ).fetchone()
    if waiting >= FRESH_MEMORIES or size >= FRESH_BYTES:
        flush(connection, scope)


def _next_number(connection: Connection, scope: str) -> int:
    row = connection.execute(
        "INSERT INTO posting_scopes VALUES (?, 1, 0) ON CONFLICT DO UPDATE SET numbers = numbers + 1 RETURNING numbers",
        (scope,),
    ).fetchone()
    return int(row[0]) - 1


def _record(row: int, memory: Memory, tokens: Sequence[str]) -> bytes:
    lengths = [len(terms) for terms in fields_of(tokens)]
    unit = Unit.TURN if memory.is_turn else Unit.CHUNK if memory.kind == "chunk" and memory.source else Unit.FACT
    session = code(f"{memory.session}") if memory.is_turn else 0
    return np.array([(row, unit, *lengths, code(memory.group), session, memory.position)], RECORD).tobytes()


def code(text: str) -> int:
    """Return a number for a text: the same for the same text in every store."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", errors="replace"), digest_size=8).digest(), "little")


def pack(tokens: Iterable[str]) -> bytes:
    """Write tokens small."""
    return zlib.compress(" ".join(tokens).encode("utf-8", errors="replace"), 1)


def unpack(blob: bytes) -> list[str]:
    """Read packed tokens."""
    text = zlib.decompress(blob).decode("utf-8")
    return text.split(" ") if text else []


def flush(connection: Connection, scope: str) -> None:
    """Turn the fresh memories of a scope into posting lists and records."""
    fresh = connection.execute(
        "SELECT number, record, tokens FROM posting_fresh WHERE scope = ? ORDER BY number", (scope,)
    ).fetchall()
    if not fresh:
        return
    number = connection.execute(
        "UPDATE posting_scopes SET flushes = flushes + 1 WHERE scope = ? RETURNING flushes", (scope,)
    ).fetchone()[0]
    lists = inverted((number, unpack(tokens)) for number, _, tokens in fresh)
    connection.executemany(
        "INSERT INTO posting_lists VALUES (?, ?, ?, ?, ?)",
        ((scope, field, term, number, encode(*zip(*found, strict=True))) for (field, term), found in lists.items()),
    )
    first = fresh[0][0]
    records = np.zeros(fresh[-1][0] - first + 1, RECORD)
    records["unit"] = GONE
    for place, record, _ in fresh:
        records[place - first] = np.frombuffer(record, RECORD)[0]
    connection.execute("INSERT INTO posting_records VALUES (?, ?, ?)", (scope, first, seal(records.tobytes())))
    connection.execute("DELETE FROM posting_fresh WHERE scope = ?", (scope,))
    if number % FLUSHES_PER_MERGE == 0:
        for field, term in lists:
            _merge(connection, scope, field, term)


def inverted(texts: Iterable[tuple[int, Sequence[str]]]) -> dict[Key, list[tuple[int, int]]]:
    """Return, for each term of each field, the numbers of the texts that hold it and how often they do."""
    lists: dict[Key, list[tuple[int, int]]] = defaultdict(list)
    for number, tokens in texts:
        for field, terms in zip(FIELDS, fields_of(tokens), strict=True):
            for term, frequency in Counter(terms).items():
                lists[field.number, term].append((number, frequency))
    return lists


def _merge(connection: Connection, scope: str, field: int, term: str) -> None:
    """Join the small lists at the end of a term's; terms that are not in this flush are too rare to need it."""
    sizes = connection.execute(
        "SELECT flush, length(list) FROM posting_lists WHERE scope = ? AND field = ? AND term = ? ORDER BY flush DESC",
        (scope, field, term),
    )
    small = [flushed for flushed, _ in takewhile(lambda found: found[1] < SMALL_LIST_BYTES, sizes)]
    if len(small) < SMALL_LISTS:
        return
    place = (scope, field, term, small[-1])
    where = "WHERE scope = ? AND field = ? AND term = ? AND flush >= ?"
    lists = connection.execute(f"SELECT list FROM posting_lists {where} ORDER BY flush", place).fetchall()
    merged = joined(decode(blob) for (blob,) in lists)
    connection.execute(f"DELETE FROM posting_lists {where}", place)
    blob = encode(merged.numbers.tolist(), merged.frequencies.astype(int).tolist())
    connection.execute("INSERT INTO posting_lists VALUES (?, ?, ?, ?, ?)", (*place[:3], small[0], blob))


def remove(connection: Connection, rows: Iterable[int]) -> None:
    """Take memories out of every list, so that no term of theirs stays behind."""
    for row in rows:
        found = connection.execute(
            "DELETE FROM posting_rows WHERE row = ? RETURNING scope, number, tokens", (row,)
        ).fetchone()
        if found is None:
            continue
        scope, number, tokens = found
        if not connection.execute("DELETE FROM posting_fresh WHERE scope = ? AND number = ?", (scope, number)).rowcount:
            _remove_flushed(connection, scope, number, unpack(tokens))


def _remove_flushed(connection: Connection, scope: str, number: int, tokens: Sequence[str]) -> None:
    for field, terms in zip(FIELDS, fields_of(tokens), strict=True):
        for term in set(terms):
            _strip(connection, scope, field.number, term, number)
    first, blob = connection.execute(
        "SELECT first, records FROM posting_records WHERE scope = ? AND first <= ? ORDER BY first DESC LIMIT 1",
        (scope, number),
    ).fetchone()
    records = np.frombuffer(checked(blob), RECORD).copy()
    records[number - first] = np.zeros(1, RECORD)[0]
    records["unit"][number - first] = GONE
    connection.execute(
        "UPDATE posting_records SET records = ? WHERE scope = ? AND first = ?", (seal(records.tobytes()), scope, first)
    )


def _strip(connection: Connection, scope: str, field: int, term: str, number: int) -> None:
    for flushed, blob in connection.execute(
        "SELECT flush, list FROM posting_lists WHERE scope = ? AND field = ? AND term = ?", (scope, field, term)
    ).fetchall():
        postings = decode(blob)
        kept = postings.numbers != number
        if kept.all():
            continue
        place = (scope, field, term, flushed)
        if kept.any():
            body = encode(postings.numbers[kept].tolist(), postings.frequencies[kept].astype(int).tolist())
            connection.execute(
                "UPDATE posting_lists SET list = ? WHERE scope = ? AND field = ? AND term = ? AND flush = ?",
                (body, *place),
            )
        else:
            connection.execute(
                "DELETE FROM posting_lists WHERE scope = ? AND field = ? AND term = ? AND flush = ?", place
            )
        return
