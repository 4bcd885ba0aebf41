"""Numbers are given out once, so a scope that is rewritten often has many gaps: then it is renumbered."""

from __future__ import annotations

from .connection import Connection
from .keyword import KeywordIndex
from .records import BLOCK, made_anew, set_aside_lost
from .sealed import seal

LOOKED_AT_EVERY = 4_096  # numbers given out
MAX_MEMORIES = 50_000  # more take longer than a writer should be kept waiting; their gaps cost less than they do


def is_crowded_with_gaps(connection: Connection, scope: str, numbers: int) -> bool:
    """Tell whether most numbers of a scope belong to nobody any more."""
    living: int = connection.execute("SELECT count(*) FROM memories WHERE scope = ?", (scope,)).fetchone()[0]
    return living <= MAX_MEMORIES and 2 * living < numbers


def is_mostly_gone(connection: Connection, scope: str, lost: int) -> bool:
    """Tell whether a scope has at most as many memories left as it has lost: renumbering then costs no more."""
    left = connection.execute(
        "SELECT count(*) FROM (SELECT 1 FROM memories WHERE scope = ? LIMIT ?)", (scope, lost + 1)
    ).fetchone()[0]
    return bool(left <= lost)


def renumber(connection: Connection, index: KeywordIndex, scope: str, generation: int) -> int:
    """Give the memories of a scope numbers without gaps, in their order; return how many there are.

    What goes by numbers is written anew, but for signs, which are the vectors' own.
    """
    old = [
        number
        for (number,) in connection.execute("SELECT number FROM memories WHERE scope = ? ORDER BY number", (scope,))
    ]
    # Each new number is at most the old one, and taken in order, so none is ever in the way of another.
    moves = [(new, scope, number) for new, number in enumerate(old) if new != number]
    connection.executemany("UPDATE memories SET number = ? WHERE scope = ? AND number = ?", moves)
    index.renumber(connection, scope, moves, len(old))
    connection.execute("DELETE FROM sign_blocks WHERE scope = ?", (scope,))
    for (first,) in connection.execute("SELECT first FROM records WHERE scope = ?", (scope,)).fetchall():
        set_aside_lost(connection, scope, first)
    connection.execute("DELETE FROM records WHERE scope = ?", (scope,))
    for first in range(0, len(old), BLOCK):
        records = made_anew(connection, scope, first, index.stored_tokens)
        connection.execute(
            "INSERT INTO records VALUES (?, ?, ?, ?)", (scope, first, generation, seal(records.tobytes(), scope, first))
        )
    connection.execute(
        "UPDATE scopes SET numbers = ?, changed = ?, epoch = epoch + 1 WHERE scope = ?", (len(old), generation, scope)
    )
    return len(old)
