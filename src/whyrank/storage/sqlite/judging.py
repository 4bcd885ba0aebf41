"""Whether a stored memory is still what was stored: it can be read, and its text has the hash it was stored with."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...analysis.entries import content_hash
from ...errors import StoreDamaged
from ...types import Memory
from .connection import Connection, Row
from .layout import layout
from .records import code, recorded
from .rows import COLUMNS, HASH_LETTERS, row_checksum, text_embedded, to_memory, without_damage
from .salvaging import Rows, columns_of, known_of

_TEXT, _EMBEDDED, _EMBED_HASH, _CHECKSUM = COLUMNS.index("text"), len(COLUMNS), len(COLUMNS) + 1, len(COLUMNS) + 2
_ID, _SCOPE, _PATH, _HASH = (COLUMNS.index(name) for name in ("id", "scope", "path", "content_hash"))
_KIND = COLUMNS.index("kind")
# Without these it is not known which memory a row is, whose, what it says, or whether it was replaced.
_ESSENTIAL = [
    COLUMNS.index(name)
    for name in ("id", "scope", "kind", "text", "path", "content_hash", "supersedes", "superseded_by")
]
FIELDS = "has damaged fields, restored as if nobody had said them"
READ = [*COLUMNS, "embed_text", "embed_hash", "checksum"]


class Judged(NamedTuple):
    """A stored row: what it is called, the memory it holds if it can be read, and what is wrong with it."""

    id: str
    scope: str
    path: str
    memory: Memory | None
    wrong: str = ""
    row: Row = ()


def judged(number: int, row: Row) -> Judged:
    """Judge the columns READ of a row; a text that was altered is restored from what was embedded of it, if it can.

    A memory whose id is none any more is known by the number of its row.
    """
    scope, path = _shown(row[_SCOPE]), _shown(row[_PATH])
    said = Judged(legible_id(row[_ID], f"row {number}"), scope, path, None, row=row)
    if said.id != row[_ID]:
        return said._replace(wrong="has lost its id")
    whole = _without_odd_fields(row)
    if whole is not row:
        known = judged(number, whole)
        return known._replace(wrong=FIELDS, row=row) if known.memory is not None and not known.wrong else known
    if not _is_text(row):
        restored = _restored(row)
        if restored is None:
            return said._replace(wrong="holds bytes that are no text")
        return said._replace(memory=restored, wrong="altered, and restored from what was embedded of it")
    if not _fits(row):
        return said._replace(wrong="holds values that no memory has")
    try:
        memory = to_memory(row)
    except StoreDamaged as error:
        return said._replace(wrong=error.message)
    if not _has_checksum(row):
        return said._replace(memory=memory, wrong="says what was not stored")
    if _is_as_stored(row):
        return said._replace(memory=memory)
    restored = _restored(row)
    if restored is not None:
        return said._replace(memory=restored, wrong="altered, and restored from what was embedded of it")
    return said._replace(memory=memory, wrong="its text is not the one that was stored")


def _without_odd_fields(row: Row) -> Row:
    """Return a row with blanks in place of values that no memory has, if all that makes it this memory stands.

    That of a chunk stays as it is: its file knows what stood there.
    """
    told = row[: len(COLUMNS)]
    whole = without_damage(told)
    is_known = told[_KIND] == "fact" and all(whole[place] is told[place] for place in _ESSENTIAL)
    return (*whole, *row[len(COLUMNS) :]) if whole is not told and is_known else row


def _is_text(row: Row) -> bool:
    return not any(isinstance(value, bytes) for value in row[: len(COLUMNS)])


def _fits(row: Row) -> bool:
    columns = {column.name: column for column in layout("memories")}
    return all(columns[name].fits(value) for name, value in zip(COLUMNS, row, strict=False))


def _is_as_stored(row: Row) -> bool:
    """Tell whether a text has its hash; what was stored without one of ours is believed if it was embedded so."""
    kept = row[_HASH]
    if not isinstance(kept, str) or len(kept) != HASH_LETTERS:
        return _embedded(row).endswith(row[_TEXT]) or not has_sound_embedding(row)
    return content_hash(row[_TEXT]) == kept or (has_sound_embedding(row) and _embedded(row).endswith(row[_TEXT]))


def _has_checksum(row: Row) -> bool:
    """Tell whether a row has its checksum, or none; the text may be another all the same, and has a hash."""
    return row[_CHECKSUM] is None or row[_CHECKSUM] == row_checksum(row)


def _restored(row: Row) -> Memory | None:
    """Return the memory with the text as it stands at the end of what was embedded, if that has the right hash."""
    embedded, kept = row[_EMBEDDED], row[_HASH]
    if not isinstance(embedded, str):
        return None
    starts = [0, *(place + 1 for place, letter in enumerate(embedded) if letter == "\n")]
    text = next((embedded[start:] for start in starts if content_hash(embedded[start:]) == kept), None)
    mended = (*row[:_TEXT], text, *row[_TEXT + 1 :])
    if text is None or not _is_text(mended) or not _fits(mended):
        return None
    try:
        return to_memory(mended)
    except StoreDamaged:
        return None


def has_sound_embedding(row: Row) -> bool:
    """Tell whether what was embedded of a memory has its hash."""
    embedded, kept = _embedded(row), row[_EMBED_HASH]
    return isinstance(embedded, str) and content_hash(embedded) == kept


def _embedded(row: Row) -> Any:
    return text_embedded(row[_EMBEDDED], row[: len(COLUMNS)])


def legible_id(stored: object, otherwise: str) -> str:
    """Return an id as it is stored if it can be shown and typed, or else what stands for it."""
    return stored if isinstance(stored, str) and stored.isprintable() and stored.strip() else otherwise


def _shown(value: object) -> str:
    """Return a value as text that can be shown; of what is none, nothing."""
    said = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value if value is not None else "")
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in said)


def memory_rows(connection: Connection) -> Rows:
    """Return the rows of all memories that can be read; columns that the file does not have yet are empty."""
    columns = columns_of(connection, "memories")
    return Rows(connection, "memories", [columns.get(column, _blank(column)) for column in READ], numbered=True)


def _blank(column: str) -> str:
    return {"decay": "''", "recalls": "0", "expires_given": "0"}.get(column, "NULL")


class Missing(NamedTuple):
    """A memory that an index still knows and its table does not."""

    row: int
    id: str
    scope: str
    path: str


def missing(connection: Connection, read: set[int]) -> list[Missing]:
    """Return the memories that only indexes and records know: which they were, and the file they came from."""
    ids = dict(known_of(connection, "SELECT rowid, id FROM memories INDEXED BY sqlite_autoindex_memories_1"))
    places = {
        row: (scope, path)
        for row, scope, path in known_of(
            connection, "SELECT rowid, scope, path FROM memories INDEXED BY memories_by_path ORDER BY scope, path"
        )
    }
    for scope, first, blob in known_of(connection, "SELECT scope, first, records FROM records"):
        sources = {code(f"{scope}/{path}"): path for path in _files(connection, scope)}
        for row, identity, group in recorded(blob, scope, first) if isinstance(blob, bytes) else ():
            ids.setdefault(row, identity)
            places.setdefault(row, (scope, sources.get(group, "")))
    gone = sorted((ids.keys() | places.keys()) - read)
    named = {row: legible_id(ids.get(row), f"row {row}") for row in gone}
    return [Missing(row, named[row], *map(_shown, places.get(row, ("", "")))) for row in gone]


def _files(connection: Connection, scope: object) -> list[str]:
    """Return the paths of a scope that files were read from."""
    read = known_of(connection, "SELECT scope, path FROM files")
    return [path for owner, path in read if owner == scope and isinstance(path, str)]
