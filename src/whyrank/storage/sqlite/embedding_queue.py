"""Queue of texts without a vector, derived from memories and vectors, with a small table of failures."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ...analysis.document import content_hash
from ...protocols import Failure, Waiting
from .connection import Connection, portions, rows_of
from .notes import raise_generation
from .rows import AS_IT_SAYS, SELECT, text_embedded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ...types.memory import Scope

# Vectors deleted per transaction, so that writers do not wait long: a megabyte or two, overwritten with zeros.
_DROPPED_AT_ONCE = 1_000


def waiting(connection: Connection, space: str, limit: int, after: int, due: float | None) -> list[Waiting]:
    """Return texts without a vector in the order of their rows; failed ones only when their retry is due."""
    found: list[Waiting] = []
    while len(found) < limit and (some := _some_waiting(connection, space, limit - len(found), after, due)):
        found += _as_embedded(connection, some)
        after = some[-1].place
    return found


def _some_waiting(connection: Connection, space: str, limit: int, after: int, due: float | None) -> list[Waiting]:
    """Return texts without a vector as they are stored, which may be a placeholder."""
    later = "" if due is None else (
        " AND NOT EXISTS (SELECT 1 FROM embedding_failures AS f"
        " WHERE f.space = :space AND f.hash = m.embed_hash AND f.next_try > :due)"
    )  # fmt: skip
    rows = rows_of(
        connection,
        "SELECT m.embed_hash, m.embed_text, m.row FROM memories AS m WHERE m.row > :after AND NOT EXISTS "
        f"(SELECT 1 FROM vectors AS v WHERE v.space = :space AND v.hash = m.embed_hash){later} "
        "ORDER BY m.row LIMIT :limit",
        {"space": space, "after": after, "due": due, "limit": limit},
    )
    return [Waiting(*row) for row in rows]


def _as_embedded(connection: Connection, some: Sequence[Waiting]) -> list[Waiting]:
    """Rebuild texts that are not stored, or damaged.

    One that is not the text of its hash is left out: its vector would be taken for that of the right one.
    """
    made: dict[int, Any] = {}
    for part, marks in portions([one.place for one in some if not _is_kept(one.text)]):
        rows = rows_of(connection, f"SELECT m.row, {SELECT} FROM memories AS m WHERE m.row IN ({marks})", part)
        made |= {row[0]: text_embedded(AS_IT_SAYS, row[1:]) for row in rows}
    whole = [one._replace(text=made.get(one.place, one.text)) for one in some]
    return [one for one in whole if one.place not in made or content_hash(one.text) == one.hash]


def _is_kept(text: object) -> bool:
    return isinstance(text, str) and text != AS_IT_SAYS


def failures(connection: Connection, space: str, scopes: frozenset[Scope] | None = None) -> list[Failure]:
    """Return a space's failures with counts of visible memories; the provider's own (hash '') is first."""
    rows = connection.execute(
        "SELECT hash, attempts, error, failed, next_try, (SELECT count(*) FROM memories AS m WHERE "
        "m.embed_hash = f.hash AND (?2 OR m.scope IN (SELECT value FROM json_each(?3)))) AS held "
        "FROM embedding_failures AS f WHERE space = ?1 AND (?2 OR hash = '' OR held) ORDER BY hash",
        (space, scopes is None, as_json(scopes or ())),
    )
    return [Failure(*row)._replace(memories=max(1, row[-1])) for row in rows]


def as_json(scopes: Iterable[Scope]) -> str:
    """Return scopes as one JSON parameter, so that the same statement serves any number of them."""
    return json.dumps([str(scope) for scope in scopes])


def put_failures(connection: Connection, space: str, found: Mapping[str, Failure | None]) -> None:
    """Store failures, and delete those that are resolved."""
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
    """Delete the failures of texts that no memory has any more."""
    spaces = [space for (space,) in connection.execute("SELECT DISTINCT space FROM embedding_failures")]
    connection.executemany(
        "DELETE FROM embedding_failures WHERE space = ? AND hash = ? AND NOT EXISTS "
        "(SELECT 1 FROM memories WHERE embed_hash = embedding_failures.hash)",
        ((space, text_hash) for space in spaces for text_hash in set(hashes)),
    )


def drop_some(connection: Connection, space: str, after: int) -> tuple[int, int]:
    """Delete some vectors of a space after an entry; return their count (0: none is left) and last entry."""
    found = connection.execute(
        "SELECT entry FROM vectors WHERE entry > ? AND space = ? ORDER BY entry LIMIT ?",
        (after, space, _DROPPED_AT_ONCE),
    ).fetchall()
    connection.executemany("DELETE FROM vectors WHERE entry = ?", found)
    return len(found), found[-1][0] if found else after


def forget_space(connection: Connection, space: str) -> None:
    """Delete the metadata of a space without vectors, and invalidate the caches of every reader."""
    generation = raise_generation(connection)
    connection.execute("DELETE FROM sign_blocks WHERE space = ?", (space,))
    connection.execute("DELETE FROM embedding_failures WHERE space = ?", (space,))
    connection.execute("DELETE FROM meta WHERE key = ?", (dimensions_key(space),))
    # Cached vectors must not outlive the stored ones, should the space be filled again.
    connection.execute("UPDATE scopes SET changed = ?, epoch = epoch + 1", (generation,))


@lru_cache(maxsize=16)  # called for every fact that is stored
def dimensions_key(space: str) -> str:
    """Return the key of `meta` with the number of dimensions of a space."""
    return f"dimensions of {space}"
