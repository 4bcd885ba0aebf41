"""Purging: after it no byte of what was removed is left in the file or in its log.

Deleted rows are overwritten at once (`secure_delete`), but copies of them may stand in pages that were split, and in
the log. So the file is written anew, and the log cut off. Word is left in the file until that is done: a process that
is killed on the way, or kept from it by a reader, leaves it to the next.
"""

from __future__ import annotations

from glob import escape

from .connection import Connection
from .copying import left_behind
from .database import Database

_WORD = "purge"


def leave_word(connection: Connection) -> None:
    """Say that something is to be purged, inside the transaction that removes it."""
    connection.execute("INSERT INTO meta VALUES (?, '1') ON CONFLICT DO NOTHING", (_WORD,))


def is_due(connection: Connection) -> bool:
    """Tell whether a purge was begun and not finished."""
    return connection.execute("SELECT 1 FROM meta WHERE key = ?", (_WORD,)).fetchone() is not None


def purge(database: Database) -> tuple[str, ...]:
    """Write the file anew; say what may still hold what was removed: a log that is read, copies from before."""
    name, folder = escape(database.file.name), database.file.parent
    remains = [
        f"{copy} is a copy from before {what}: delete it if it is not needed"
        for pattern, what in (
            (f"{name}.schema*.bak", "an upgrade"),
            (f"{name}.damaged*.bak", "a repair"),
            (f"{name}.before-restore*.bak", "a restore"),
        )
        for copy in sorted(folder.glob(pattern))
    ]
    unfinished = sorted(folder.glob(f".{name}-anew-*"))
    remains += [f"{left} is of a repair that was cut short: delete it" for left in unfinished]
    copies = [*sorted(folder.glob(f".{name}-restore-*")), *left_behind(database.file)]
    remains += [f"{left} is a copy that is being made or was cut short: delete it" for left in copies]
    if database.rewrite():
        with database.writing() as connection:
            connection.execute("DELETE FROM meta WHERE key = ?", (_WORD,))
    else:
        remains.append(f"{database.path}-wal is still read by another process: it is emptied when the store is opened")
    return tuple(remains)
