"""What waits for a vector: derived from the memories and vectors themselves, with a small table of what went wrong."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache

from ...ports import Failure, Waiting
from ...types import Scope
from .connection import Connection
from .notes import raise_generation
from .rows import SELECT, text_embedded

# Each transaction deletes so many vectors, so that nobody waits long: a megabyte or two, overwritten with zeros.
_DROPPED_AT_ONCE = 1_000


def waiting(connection: Connection, space: str, limit: int, after: int, due: float | None) -> list[Waiting]:
    """Return texts without a vector in the order of their rows; of those that failed, only the ones that are due."""
    later = "" if due is None else (
        " AND NOT EXISTS (SELECT 1 FROM embedding_failures AS f"
        " WHERE f.space = :space AND f.hash = m.embed_hash AND f.next_try > :due)"
    )  # fmt: skip
    rows = connection.execute(
        f"SELECT m.embed_hash, m.embed_text, m.row, {SELECT} FROM memories AS m WHERE m.row > :after AND NOT EXISTS "
        f"(SELECT 1 FROM vectors AS v WHERE v.space = :space AND v.hash = m.embed_hash){later} "
        "ORDER BY m.row LIMIT :limit",
        {"space": space, "after": after, "due": due, "limit": limit},
    )
    return [Waiting(text_hash, text_embedded(kept, said), row) for text_hash, kept, row, *said in rows]


def failures(connection: Connection, space: str, scopes: frozenset[Scope] | None = None) -> list[Failure]:
    """Return what went wrong in a space, with what scopes see; the empty hash of the provider itself sorts first."""
    rows = connection.execute(
        "SELECT hash, attempts, error, failed, next_try, (SELECT count(*) FROM memories AS m WHERE "
        "m.embed_hash = f.hash AND (?2 OR m.scope IN (SELECT value FROM json_each(?3)))) AS held "
        "FROM embedding_failures AS f WHERE space = ?1 AND (?2 OR hash = '' OR held) ORDER BY hash",
        (space, scopes is None, as_json(scopes or ())),
    )
    return [Failure(*row)._replace(memories=max(1, row[-1])) for row in rows]


def as_json(scopes: Iterable[Scope]) -> str:
    """Return scopes as one value, so that the same statement serves any number of them."""
    return json.dumps([str(scope) for scope in scopes])


def put_failures(connection: Connection, space: str, found: Mapping[str, Failure | None]) -> None:
    """Write down what went wrong, and take out what is over."""
    if not found:
        return
    connection.executemany(
        "DELETE FROM embedding_failures WHERE space = ? AND hash = ?",
        ((space, text_hash) for text_hash, failure in found.items() if failure is None),
    )
    connection.executemany(
        "INSERT INTO embedding_failures VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
        "attempts = excluded.attempts, error = excluded.error, failed = excluded.failed, next_try = excluded.next_try",
        ((space, text_hash, *failure[1:-1]) for text_hash, failure in found.items() if failure is not None),
    )


def drop_orphaned_failures(connection: Connection, hashes: Iterable[str]) -> None:
    """Forget what went wrong with texts that are gone."""
    spaces = [space for (space,) in connection.execute("SELECT DISTINCT space FROM embedding_failures")]
    connection.executemany(
        "DELETE FROM embedding_failures WHERE space = ? AND hash = ? AND NOT EXISTS "
        "(SELECT 1 FROM memories WHERE embed_hash = embedding_failures.hash)",
        ((space, text_hash) for space in spaces for text_hash in set(hashes)),
    )


def drop_some(connection: Connection, space: str, after: int) -> tuple[int, int]:
    """Delete some vectors of a space behind an entry; return how many and the last one, (0, …) when none is left."""
    found = connection.execute(
        "SELECT entry FROM vectors WHERE entry > ? AND space = ? ORDER BY entry LIMIT ?",
        (after, space, _DROPPED_AT_ONCE),
    ).fetchall()
    connection.executemany("DELETE FROM vectors WHERE entry = ?", found)
    return len(found), found[-1][0] if found else after


def forget_space(connection: Connection, space: str) -> None:
    """Delete what is left of a space without vectors, and have every reader look again."""
    generation = raise_generation(connection)
    connection.execute("DELETE FROM sign_blocks WHERE space = ?", (space,))
    connection.execute("DELETE FROM embedding_failures WHERE space = ?", (space,))
    connection.execute("DELETE FROM meta WHERE key = ?", (dimensions_key(space),))
    # What is held in memory of its vectors must not outlive them, should the space be filled again.
    connection.execute("UPDATE scopes SET changed = ?, epoch = epoch + 1", (generation,))


@lru_cache(maxsize=16)  # every fact that is stored asks
def dimensions_key(space: str) -> str:
    """Return under which key of `meta` the number of dimensions of a space stands."""
    return f"dimensions of {space}"
