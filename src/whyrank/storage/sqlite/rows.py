"""Memories as rows: conversion, damage, and a cache of recent rows for one generation of the file."""

from __future__ import annotations

import hashlib
import json
import threading
import zlib
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from ...analysis.document import content_hash, embedded_text
from ...analysis.normalize import STRING_BYTES, ByteBoundedCache, text_cache, text_key
from ...errors import StoreDamaged
from ...types.memory import GLOBAL, USUAL_IMPORTANCE, Memory, Order, Scope, Source
from .database import Connection, Key, Row, rows_at, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...types.memory import Entry
    from ...types.results import ContentKey

COLUMNS = (
    "id", "scope", "kind", "text", "name", "title", "slug", "owner", "aliases", "summary", "headings", "path",
    "start_line", "end_line", "content_hash", "category", "tags", "entities", "importance", "created", "date",
    "evergreen", "valid_from", "valid_until", "expires", "supersedes", "superseded_by", "superseded_at", "trust",
    "session", "speaker", "position", "decay", "recalls", "recalled", "expires_given", "metadata", "subject",
    "attribute",
)  # fmt: skip
_NOTHING = "[]"
_NO_METADATA = "{}"
AS_IT_SAYS = ""  # stored in place of an embedded text that can be derived again: no memory has an empty one
_DAMAGED = "(its text was damaged; see `whyrank doctor`)"
_MEND = "`whyrank doctor --repair` restores what can be read of a fact; ingest or store again what it sets aside"
_as_json = json.JSONEncoder(ensure_ascii=False).encode  # made once: `dumps` makes another for every text
DERIVED = ("number", "letters", "dates", "grouping", "length", "embed_text", "embed_hash", "text_key", "checksum")

_LISTS = ("aliases", "headings", "tags", "entities")
_NO_LISTS = (_NOTHING,) * len(_LISTS)
_lists = itemgetter(*(COLUMNS.index(name) for name in _LISTS))

_SENSELESS = (ValueError, TypeError, AttributeError)  # raised by damaged values
_REALS = frozenset({"created", "date", "valid_from", "valid_until", "expires", "superseded_at", "recalled"})
_WHOLES = frozenset({"start_line", "end_line", "importance", "evergreen", "position", "recalls", "expires_given"})
_TYPES: tuple[type | tuple[type, ...], ...] = tuple(
    (float, int) if name in _REALS else int if name in _WHOLES else str for name in COLUMNS
)
_SCOPE, _TEXT, _HASH, _METADATA = (COLUMNS.index(name) for name in ("scope", "text", "content_hash", "metadata"))
STORED = ("embed_hash", "checksum")  # verify that a row is as stored; they follow the columns of SELECT
_STORED = ", ".join(f"m.{column}" for column in STORED)
_SIZED = frozenset({str, bytes})
_ROW_BYTES = 2_000  # of a memory beside its texts: a value for each column, and those made of them
_CHECKED_AT_ONCE = 64
_CHECKED = tuple(name for name in COLUMNS if name not in ("recalls", "recalled"))
_LATER = ("metadata", "subject", "attribute")  # columns of schema 7, in a checksum where they hold something
_checked = itemgetter(*(COLUMNS.index(name) for name in _CHECKED if name not in _LATER))
_later = itemgetter(*map(COLUMNS.index, _LATER))
_NOTHING_LATER = (_NO_METADATA, "", "")
_REAL_CHECKED = [place for place, name in enumerate(_CHECKED) if name in _REALS]
HASH_LETTERS = 32  # of a hash of ours; callers may have stored others
_seen: set[tuple[type, ...]] = set()  # the types of rows that were found valid
_KINDS_KEPT = 1_000

SELECT = ", ".join(f"m.{column}" for column in COLUMNS)
INSERT = f"INSERT INTO memories ({', '.join(COLUMNS + DERIVED)}) VALUES ({', '.join('?' * len(COLUMNS + DERIVED))})"
# Condition of a memory whose number its scope has given, in SQL; + keeps SQLite from using an index on the number.
NUMBERED = "typeof(number) = 'integer' AND +number >= 0 AND +number < ?"
# The order of ties, in SQL; the same as Memory.content_key.
CONTENT_KEY = "m.path, m.start_line, m.content_hash, m.id"
# The same for comparisons: a value of a wrong type is blank, as in the memory made from the row.
COMPARED_KEY = (
    "iif(typeof(m.path) = 'text', m.path, ''), iif(typeof(m.start_line) = 'integer', m.start_line, 0), "
    "iif(typeof(m.content_hash) = 'text', m.content_hash, ''), iif(typeof(m.id) = 'text', m.id, '')"
)
# The key of a memory in each order, as ports.sorting_key has it.
SORTING_KEYS: dict[Order, str] = {
    "place": CONTENT_KEY,
    "created": f"-m.created, {CONTENT_KEY}",
    "date": f"m.date IS NULL, -coalesce(m.date, 0.0), {CONTENT_KEY}",
    "importance": f"-coalesce(m.importance, {USUAL_IMPORTANCE}), {CONTENT_KEY}",
    "recalls": f"-m.recalls, {CONTENT_KEY}",
}


def legible_key(key: Sequence[Any]) -> ContentKey:
    """Return the content key of a row of COMPARED_KEY; damaged texts are blank."""
    if bytes in map(type, key):
        key = ["" if isinstance(value, bytes) else value for value in key]
    path, line, text_hash, identity = key
    return path, line, text_hash, identity


@lru_cache(maxsize=64)  # the chunks of a file and the turns of a session have one
def code(text: str) -> int:
    """Return a 64-bit hash of a text, the same in every store."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", errors="replace"), digest_size=8).digest(), "little")


def columns_of(memory: Memory) -> Row:
    """Return the columns of a memory, as COLUMNS names them."""
    place = memory.source or Source("")
    return (
        memory.id, str(memory.scope), memory.kind, memory.text, memory.name, memory.title, memory.slug, memory.owner,
        _as_json(memory.aliases) if memory.aliases else _NOTHING, memory.summary,
        _as_json(memory.headings) if memory.headings else _NOTHING, place.path, place.start_line, place.end_line,
        place.content_hash, memory.category, _as_json(memory.tags) if memory.tags else _NOTHING,
        _as_json(memory.entities) if memory.entities else _NOTHING, memory.importance,
        memory.created, memory.date, int(memory.evergreen), memory.valid_from, memory.valid_until, memory.expires,
        memory.supersedes, memory.superseded_by, memory.superseded_at, memory.trust, memory.session, memory.speaker,
        memory.position, memory.decay, memory.recalls, memory.recalled, int(memory.expires_given),
        _as_json(memory.metadata) if memory.metadata else _NO_METADATA, memory.subject, memory.attribute,
    )  # fmt: skip


_BLANKS = columns_of(Memory("", _DAMAGED))


def to_row(entry: Entry, number: int) -> Row:
    """Return a memory's columns, with those derived from it.

    The embedded text of a fact is stored, as its text is restored from it after damage. That of a chunk is not, and is
    derived from its row again: the file or the owner of the document has the text, and a second copy would be most of a
    store.
    """
    memory, is_fact, columns = entry.memory, entry.memory.kind == "fact", columns_of(entry.memory)
    return (
        *columns, number, int(entry.letters), " ".join(entry.marks), memory.group, len(entry.tokens),
        entry.embed_text if is_fact else AS_IT_SAYS, entry.embed_hash, text_key(memory.text) if is_fact else "",
        row_checksum(columns),
    )  # fmt: skip


def row_checksum(row: Row) -> int:
    """Return the checksum of a row of SELECT, without its recalls, which are updated in place."""
    said = list(_checked(row))
    for place in _REAL_CHECKED:
        if said[place] is not None:
            said[place] = float(said[place])  # as SQLite returns it
    if len(said[_HASH]) == HASH_LETTERS:
        said[_TEXT] = None  # covered by its hash
    if (later := _later(row)) != _NOTHING_LATER:
        said += later
    return zlib.crc32(repr(said).encode("utf-8", errors="replace"))


def check_rows(connection: Connection) -> None:
    """Add checksums to some of the rows without one: changed rows, or those of an earlier version."""
    unchecked = f"SELECT {SELECT}, m.number FROM memories AS m WHERE m.checksum IS NULL LIMIT {_CHECKED_AT_ONCE}"
    connection.executemany(
        "UPDATE memories SET checksum = ? WHERE scope = ? AND number = ?",
        [(row_checksum(row), row[_SCOPE], row[-1]) for row in rows_of(connection, unchecked) if typed(row) is row],
    )


def text_embedded(kept: Any, row: Row) -> Any:
    """Return the embedded text of a memory: as stored, or derived from its row of SELECT."""
    return embedded_text(as_far_as_legible(row)) if kept == AS_IT_SAYS else kept


class FetchedRow(NamedTuple):
    """A row of SELECT with its memory; unreadable values are blank, so that a search has results, and are reported."""

    stored: Row
    memory: Memory
    is_mended: bool  # some of it could not be read and is blank
    is_altered: bool  # it differs from its stored checksum, or its text from its content hash


def read_row(row: Row) -> FetchedRow:
    """Make the memory of a row of SELECT, which STORED may follow, and check it.

    A foreign content hash is accepted, and so is a mismatch if the embedded text has its own hash.
    """
    whole = without_damage(row)
    memory, is_mended, is_altered = _memory(whole), whole is not row, False
    if not is_mended and len(row) >= len(COLUMNS) + len(STORED):
        embedded, checksum = row[len(COLUMNS) : len(COLUMNS) + len(STORED)]
        kept = row[_HASH]
        if checksum is not None and checksum != row_checksum(row):
            is_altered = True
        elif len(kept) == HASH_LETTERS and content_hash(row[_TEXT]) != kept:
            is_altered = content_hash(embedded_text(memory)) != embedded
    return FetchedRow(row, memory, is_mended, is_altered)


def to_memory(row: Row) -> Memory:
    """Return the memory in a row of SELECT; values of wrong types count as missing."""
    whole = typed(row)
    if whole[_TEXT] is _DAMAGED:
        raise _damaged(row, TypeError("its text is missing"))
    try:
        return _memory(whole)
    except _SENSELESS as error:
        raise _damaged(row, error) from error


def as_far_as_legible(row: Row) -> Memory:
    """Return the memory in a row of SELECT with unreadable values blank, for scans of many rows."""
    return _memory(without_damage(row))


def without_damage(row: Row) -> Row:
    """Return a row with unreadable values blanked; nearly always the row itself."""
    whole = row if tuple(map(type, row)) in _seen else typed(row)
    try:
        _scope(whole[_SCOPE])
        if (lists := _lists(whole)) != _NO_LISTS:
            for stored in lists:
                _texts(stored)
        if (metadata := whole[_METADATA]) != _NO_METADATA:
            _object(metadata)
    except _SENSELESS:
        return _legible(whole)
    return whole


def typed(row: Row) -> Row:
    """Return a row with values of wrong types blanked; nearly always the row itself."""
    kinds = tuple(map(type, row))
    if kinds in _seen:
        return row
    odd = [place for place, value in enumerate(row[: len(COLUMNS)]) if not _fits(place, value)]
    if not odd:
        if len(_seen) < _KINDS_KEPT:
            _seen.add(kinds)
        return row
    return tuple(_BLANKS[place] if place in odd else value for place, value in enumerate(row))


def _fits(place: int, value: object) -> bool:
    blank = _BLANKS[place]
    return isinstance(value, _TYPES[place]) or (value is None and blank is None)


def _legible(row: Row) -> Row:
    """Return a row with damaged lists blanked; an unreadable scope becomes the global one."""
    mended = list(row)
    for name in _LISTS:
        place = COLUMNS.index(name)
        mended[place] = row[place] if legible(row[place]) else _NOTHING
    if not legible_object(row[_METADATA]):
        mended[_METADATA] = _NO_METADATA
    try:
        _scope(row[_SCOPE])
    except _SENSELESS:
        mended[_SCOPE] = str(GLOBAL)
    return tuple(mended)


def legible(stored: str) -> tuple[str, ...]:
    """Return a list of texts; empty if it was damaged."""
    try:
        return _texts(stored)
    except _SENSELESS:
        return ()


def legible_object(stored: Any) -> Mapping[str, Any]:
    """Return a JSON object; empty if it was damaged."""
    try:
        return _object(stored)
    except _SENSELESS:
        return {}


def _object(stored: str) -> dict[str, Any]:
    read = json.loads(stored)
    if not isinstance(read, dict):
        raise ValueError("metadata are no object")
    return read


def _damaged(row: Row, error: Exception) -> StoreDamaged:
    return StoreDamaged(f"the memory {row[0]!r} cannot be read: {error}", _MEND)


def _memory(row: Row) -> Memory:
    # Dozens of rows are read per search, so columns are unpacked by position; COLUMNS has their names.
    (
        identity, scope, kind, text, name, title, slug, owner, aliases, summary, headings, path, start_line, end_line,
        content_hash, category, tags, entities, importance, created, date, evergreen, valid_from, valid_until, expires,
        supersedes, superseded_by, superseded_at, trust, session, speaker, position, decay, recalls, recalled,
        expires_given, metadata, subject, attribute,
    ) = row[: len(COLUMNS)]  # fmt: skip
    source = Source(path, start_line, end_line, content_hash) if path or content_hash else None
    return Memory(
        identity, text, kind, name, title, slug, owner, _texts(aliases), summary, _texts(headings), source,
        _scope(scope), category, _texts(tags), _texts(entities), importance, created, date, bool(evergreen), valid_from,
        valid_until, expires, supersedes, superseded_by, superseded_at, trust, session, speaker, position,
        decay, recalls, recalled, bool(expires_given), {} if metadata == _NO_METADATA else _object(metadata), subject,
        attribute,
    )  # fmt: skip


_scope = lru_cache(maxsize=1_024)(Scope.parse)


@text_cache(4_096)  # the chunks of a file have many of these in common
def _texts(stored: str) -> tuple[str, ...]:
    if stored == _NOTHING:
        return ()
    read = json.loads(stored)
    if not isinstance(read, list) or not all(isinstance(text, str) for text in read):
        raise ValueError("a list of texts holds something else")
    return tuple(read)


# -- the cache -------------------------------------------------------------------------------------------------------

MEMORY_BYTES = 32 * 1024 * 1024  # of recently read rows, and their content keys
_KEY_SHARE = 3 / 8  # of these bytes, for content keys


class RowCache:
    """Memories and content keys by their keys, for one generation of the file."""

    def __init__(self, max_bytes: int = MEMORY_BYTES) -> None:
        self._generation = -1
        key_bytes = int(max_bytes * _KEY_SHARE)
        # Texts count twice, for the row and for the memory made from it.
        self._memories: ByteBoundedCache[Key, FetchedRow] = ByteBoundedCache(
            max_bytes - key_bytes,
            lambda _, row: _ROW_BYTES + 2 * sum([len(value) for value in row.stored if type(value) in _SIZED]),
        )
        self._content_keys: ByteBoundedCache[Key, ContentKey] = ByteBoundedCache(
            key_bytes, lambda _, key: len(key) * STRING_BYTES
        )
        self._turn = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Return the approximate memory of the rows and content keys, in bytes."""
        return self._memories.nbytes + self._content_keys.nbytes

    def _prepare(self, generation: int) -> None:
        """Clear everything when the file has changed."""
        if generation != self._generation:
            self._memories.clear()
            self._content_keys.clear()
            self._generation = generation

    def fetched(self, connection: Connection, generation: int, keys: Sequence[Key]) -> dict[Key, FetchedRow]:
        """Return the memories that exist, as far as they can be read."""
        with self._turn:
            self._prepare(generation)
            known = dict(zip(keys, self._memories.get_many(keys), strict=True))
            missing = [key for key, held in known.items() if held is None]
            if missing:
                stored = rows_at(connection, f"SELECT {SELECT}, {_STORED}, m.number FROM memories AS m", missing)
                read = {(row[_SCOPE], row[-1]): read_row(row) for row in stored}
                self._memories.update(read)
                known.update(read)
            return {key: held for key, held in known.items() if held is not None}

    def memories(self, connection: Connection, generation: int, keys: Sequence[Key]) -> dict[Key, Memory]:
        """Return the memories that exist; raise StoreDamaged for an unreadable one."""
        found = self.fetched(connection, generation, keys).items()
        return {key: to_memory(held.stored) if held.is_mended else held.memory for key, held in found}

    def content_keys(self, connection: Connection, generation: int, keys: Sequence[Key]) -> Sequence[ContentKey | None]:
        """Return the content key of each memory; None if it does not exist."""
        with self._turn:
            self._prepare(generation)
            known = self._content_keys.get_many(keys)
            missing = [key for key, held in zip(keys, known, strict=True) if held is None]
            if not missing:
                return known
            read = content_keys(connection, missing)
            self._content_keys.update(read)
            return [held or read.get(key) for key, held in zip(keys, known, strict=True)]


def content_keys(connection: Connection, keys: Sequence[Key]) -> dict[Key, ContentKey]:
    """Return the content keys of memories that exist."""
    rows = rows_at(connection, f"SELECT m.scope, m.number, {COMPARED_KEY} FROM memories AS m", keys)
    return {row[:2]: legible_key(row[2:]) for row in rows}
