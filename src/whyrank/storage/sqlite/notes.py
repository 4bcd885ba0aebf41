"""Texts by name in the table `meta`, cached for one generation of the file."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ...errors import StoreChanged, StoreDamaged
from .connection import SAVE, Connection

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

RESTORED = "restored"  # key of `meta`: the generation of the last restore; rows mean something else since
_PREFIX = "note:"
_LAST = "\U0010ffff"  # sorts behind every other character
_DIGITS = 15
COUNTS = "rows of "  # prefix of the keys with counts of rows
_COUNTED = {"history": "history", "write_keys": "write_keys", "meta": "meta WHERE key >= 'note:' AND key < 'note;'"}
_RAISE = (
    "UPDATE meta SET value = value + 1 WHERE key = 'generation' AND typeof(value) = 'text' "
    f"AND value NOT GLOB '*[^0-9]*' AND length(value) BETWEEN 1 AND {_DIGITS} RETURNING value"
)


@lru_cache(maxsize=16)  # called for every fact that is stored
def note_key(name: str) -> str:
    """Return the key of `meta` for a note."""
    return _PREFIX + name


def drop_notes(connection: Connection, names: Iterable[str]) -> None:
    """Delete notes, inside the current transaction."""
    for name in names:
        gone = connection.execute("DELETE FROM meta WHERE key = ?", (_PREFIX + name,))
        count_rows(connection, "meta", -gone.rowcount)


class Notes:
    """Notes by name, cached until the next write, as every search reads one."""

    def __init__(self) -> None:
        self._read: tuple[int, dict[str, str | None]] = (-1, {})

    def get(self, connection: Connection, generation: int, name: str) -> str | None:
        """Return the note under a name, if there is one."""
        return self.value(connection, generation, _PREFIX + name)

    def value(self, connection: Connection, generation: int, key: str) -> str | None:
        """Return the value of a key in `meta`, a note or not."""
        since, known = self._read
        if since != generation:
            known = {}
            self._read = (generation, known)
        if key not in known:
            known[key] = _value(connection, key)
        return known[key]

    def stored(self, connection: Connection, name: str) -> str | None:
        """Return the note under a name from the file, bypassing the cache."""
        return _value(connection, _PREFIX + name)

    def all(self, connection: Connection, prefix: str) -> dict[str, str]:
        """Return all notes whose names have a prefix."""
        first = _PREFIX + prefix
        rows = connection.execute(
            "SELECT substr(key, ?), value FROM meta WHERE key BETWEEN ? AND ? ORDER BY key",
            (len(_PREFIX) + 1, first, first + _LAST),
        ).fetchall()
        return dict(rows)


def _value(connection: Connection, key: str) -> str | None:
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return row[0] if row else None


def check_note(connection: Connection, noted: tuple[str, str] | None) -> None:
    """Refuse a change on a version conflict: the note it is based on has changed."""
    if noted is not None and _value(connection, note_key(noted[0])) != noted[1]:
        raise StoreChanged(f"the note {noted[0]!r} has changed meanwhile", "read it again; nothing was stored")


def raise_generation(connection: Connection) -> int:
    """Raise the generation of the file, inside the current transaction; return the new one."""
    raised = connection.execute(_RAISE).fetchone()
    if raised is None:
        raise generation_unknown()
    return int(raised[0])


def is_generation(value: object) -> bool:
    """Check the format of a generation; longer numbers were damaged, and leave no range for later ones."""
    return isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= _DIGITS


def generation_unknown() -> StoreDamaged:
    """Return the error of a store whose generation is damaged, so that no cache can be trusted."""
    return StoreDamaged("the store does not say which generation it is of", SAVE)


def count_rows(connection: Connection, table: str, change: int) -> None:
    """Add to the stored count of rows of a table, by which losses of underived rows are detected."""
    if change:
        connection.execute(
            "UPDATE meta SET value = CAST(CAST(value AS INTEGER) + ? AS TEXT) WHERE key = ?", (change, COUNTS + table)
        )


def miscounted(connection: Connection) -> dict[str, int]:
    """Return the number of missing rows of each counted table; tables without a count are left out."""
    said = dict(connection.execute("SELECT key, value FROM meta WHERE key > ? AND key < ?", (COUNTS, COUNTS + _LAST)))
    found: dict[str, int] = {}
    for table, rows in _COUNTED.items():
        known = said.get(COUNTS + table)
        if isinstance(known, str) and known.isascii() and known.isdecimal():
            [(there,)] = connection.execute(f"SELECT count(*) FROM {rows}")
            found |= {table: int(known) - there} if int(known) > there else {}
    return found


def recount(connection: Connection) -> None:
    """Recount the rows, after missing ones were given up or could not be saved."""
    for table, rows in _COUNTED.items():
        connection.execute(
            f"INSERT INTO meta VALUES (?, (SELECT CAST(count(*) AS TEXT) FROM {rows})) "
            "ON CONFLICT DO UPDATE SET value = excluded.value",
            (COUNTS + table,),
        )


def write_notes(connection: Connection, notes: Mapping[str, str]) -> None:
    """Write notes by name, inside the current transaction."""
    count_rows(connection, "meta", sum(_value(connection, _PREFIX + name) is None for name in notes))
    for name, text in notes.items():
        connection.execute(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", (_PREFIX + name, text)
        )
