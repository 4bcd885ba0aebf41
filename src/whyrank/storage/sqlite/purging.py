"""Purging: after it no byte of what was removed is left in the file or in its log.

Deleted rows are overwritten at once (`secure_delete`), but copies of them may stand in pages that were split, and in
the log. So the file is written anew, and the log cut off. Word is left in the file until that is done: a process that
is killed on the way, or kept from it by a reader, leaves it to the next.
"""

from __future__ import annotations

from .connection import Connection, Database

_WORD = "purge"


def leave_word(connection: Connection) -> None:
    """Say that something is to be purged, inside the transaction that removes it."""
    connection.execute("INSERT INTO meta VALUES (?, '1') ON CONFLICT DO NOTHING", (_WORD,))


def is_due(connection: Connection) -> bool:
    """Tell whether a purge was begun and not finished."""
    return connection.execute("SELECT 1 FROM meta WHERE key = ?", (_WORD,)).fetchone() is not None


def purge(database: Database) -> bool:
    """Write the file anew; tell whether all is done, or a reader still holds old pages."""
    if not database.rewrite():
        return False
    with database.writing() as connection:
        connection.execute("DELETE FROM meta WHERE key = ?", (_WORD,))
    return True
