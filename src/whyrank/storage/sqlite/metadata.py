"""The table `meta` and other metadata: notes, files, spaces, analyzer versions, history."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ...analysis.document import content_hash
from ...analysis.normalize import text_key
from ...errors import StoreChanged, StoreDamaged
from ...protocols import FIRST_PLACE, Failure, Waiting, Written
from ...types.memory import Former
from .database import Connection, Key, meta_value, portions, raise_generation, rows_at, rows_of, set_meta
from .doc_values import ranges_in, with_ends
from .rows import AS_IT_SAYS, SELECT, text_embedded, to_memory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ...protocols import Changes
    from ...types.memory import Memory, MemoryId, Scope

# -- notes and counts of rows ------------------------------------------------------------------------------------------

_PREFIX = "note:"
_LAST = "\U0010ffff"  # sorts behind every other character
COUNTS = "rows of "  # prefix of the keys with counts of rows
_COUNTED = {"history": "history", "write_keys": "write_keys", "meta": "meta WHERE key >= 'note:' AND key < 'note;'"}


@lru_cache(maxsize=16)  # called for every fact that is stored
def note_key(name: str) -> str:
    """Return the key of `meta` for a note."""
    return _PREFIX + name


def drop_notes(connection: Connection, names: Iterable[str]) -> None:
    """Delete notes, inside the current transaction."""
    for name in names:
        gone = connection.execute("DELETE FROM meta WHERE key = ?", (_PREFIX + name,))
        count_rows(connection, "meta", -gone.rowcount)


def notes_with(connection: Connection, prefix: str = "") -> dict[str, str]:
    """Return all notes whose names have a prefix."""
    first = _PREFIX + prefix
    rows = connection.execute(
        "SELECT substr(key, ?), value FROM meta WHERE key BETWEEN ? AND ? ORDER BY key",
        (len(_PREFIX) + 1, first, first + _LAST),
    ).fetchall()
    return dict(rows)


def check_note(connection: Connection, noted: tuple[str, str] | None) -> None:
    """Refuse a change on a version conflict: the note it is based on has changed."""
    if noted is not None and meta_value(connection, note_key(noted[0])) != noted[1]:
        raise StoreChanged(f"the note {noted[0]!r} has changed meanwhile", "read it again; nothing was stored")


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
    count_rows(connection, "meta", sum(meta_value(connection, _PREFIX + name) is None for name in notes))
    for name, text in notes.items():
        set_meta(connection, _PREFIX + name, text)


# -- scopes to be scrubbed ---------------------------------------------------------------------------------------------

PURGE_MARK = "purge"  # key of `meta` until a purge has ended


def mark_for_purge(connection: Connection, scopes: Iterable[str]) -> None:
    """Mark scopes as to be scrubbed, inside the transaction that removes memories from them."""
    set_meta(connection, PURGE_MARK, json.dumps(sorted({*scopes, *(scopes_to_purge(connection) or ())})))


def scopes_to_purge(connection: Connection) -> list[str] | None:
    """Return the scopes still to be scrubbed; all of them if the mark is damaged, None if no purge is unfinished."""
    mark = meta_value(connection, PURGE_MARK)
    if mark is None:
        return None
    try:
        said = json.loads(mark)
    except (ValueError, TypeError):
        said = None
    if isinstance(said, list) and all(isinstance(scope, str) for scope in said):
        return said
    return [scope for (scope,) in connection.execute("SELECT scope FROM scopes WHERE typeof(scope) = 'text'")]


# -- the keyword index in use ------------------------------------------------------------------------------------------

IndexName = tuple[str, str]  # the name of an index, and the generation since which it is the live one
INDEX_NAMES = ("postings", "fts5")


INDEX_TO_COME = "keyword-to-come"  # the key of `meta` with the index that is being built
INDEX_IN = "SELECT key, value FROM meta WHERE key IN ('keyword', 'keyword-since')"


def index_in(connection: Connection) -> IndexName | None:
    """Return the name of the live index of a file and the generation it is live since; None without one."""
    said = dict(connection.execute(INDEX_IN).fetchall())
    return (said["keyword"], said.get("keyword-since", "0")) if "keyword" in said else None


# -- embedding spaces ------------------------------------------------------------------------------------------------

# Vectors deleted per transaction, so that writers do not wait long: a megabyte or two, overwritten with zeros.
_DROPPED_AT_ONCE = 1_000


def texts_without_vector(
    connection: Connection, space: str, limit: int, after: Key = FIRST_PLACE, due: float | None = None
) -> list[Waiting]:
    """Return texts without a vector by scope and number; failed ones only when their retry is due."""
    found: list[Waiting] = []
    while len(found) < limit and (some := _some_waiting(connection, space, limit - len(found), after, due)):
        found += _as_embedded(connection, some)
        after = some[-1].place
    return found


def _some_waiting(connection: Connection, space: str, limit: int, after: Key, due: float | None) -> list[Waiting]:
    """Return texts without a vector as they are stored, which may be a placeholder."""
    later = "" if due is None else (
        " AND NOT EXISTS (SELECT 1 FROM embedding_failures AS f"
        " WHERE f.space = :space AND f.hash = m.embed_hash AND f.next_try > :due)"
    )  # fmt: skip
    rows = rows_of(
        connection,
        "SELECT m.embed_hash, m.embed_text, m.scope, m.number FROM memories AS m "
        "WHERE (m.scope, m.number) > (:scope, :number) AND NOT EXISTS "
        f"(SELECT 1 FROM vectors AS v WHERE v.scope = m.scope AND v.space = :space AND v.number = m.number){later} "
        "ORDER BY m.scope, m.number LIMIT :limit",
        {"space": space, "scope": after[0], "number": after[1], "due": due, "limit": limit},
    )
    return [Waiting(text_hash, text, (scope, number)) for text_hash, text, scope, number in rows]


def _as_embedded(connection: Connection, some: Sequence[Waiting]) -> list[Waiting]:
    """Rebuild texts that are not stored, or damaged.

    One that is not the text of its hash is left out: its vector would be taken for that of the right one.
    """
    wanted = [one.place for one in some if one.text == AS_IT_SAYS or not isinstance(one.text, str)]
    rows = rows_at(connection, f"SELECT m.scope, m.number, {SELECT} FROM memories AS m", wanted)
    made = {(scope, number): text_embedded(AS_IT_SAYS, tuple(row)) for scope, number, *row in rows}
    whole = [one._replace(text=made.get(one.place, one.text)) for one in some]
    return [one for one in whole if one.place not in made or content_hash(one.text) == one.hash]


def embedding_failures(connection: Connection, space: str, scopes: frozenset[Scope] | None = None) -> list[Failure]:
    """Return a space's failures with counts of visible memories; the provider's own (hash '') is first."""
    rows = connection.execute(
        "SELECT hash, attempts, error, failed, next_try, (SELECT count(*) FROM memories AS m WHERE "
        "m.embed_hash = f.hash AND (?2 OR m.scope IN (SELECT value FROM json_each(?3)))) AS held "
        "FROM embedding_failures AS f WHERE space = ?1 AND attempts > 0 AND (?2 OR hash = '' OR EXISTS "
        "(SELECT 1 FROM memories AS m "
        "WHERE m.embed_hash = f.hash AND m.scope IN (SELECT value FROM json_each(?3)))) ORDER BY hash",
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


# A lease is a row of `embedding_failures` without an attempt: until `next_try` nobody else embeds the text. A failure
# that is due is leased by the next try it already has. The error is the name of the worker.
_LEASE = (
    "INSERT INTO embedding_failures SELECT ?1, value, 0, ?2, ?3, ?4 FROM json_each(?5) WHERE true "
    "ON CONFLICT DO UPDATE SET next_try = excluded.next_try, "
    "error = iif(embedding_failures.attempts = 0, excluded.error, embedding_failures.error) "
    "WHERE embedding_failures.next_try <= excluded.failed RETURNING hash"
)
_IS_LEASE = "space = ? AND hash = ? AND attempts = 0"


class Lease(NamedTuple):
    """The right of a worker to embed texts alone, from a moment to another."""

    worker: str
    begin: float
    end: float


@dataclass
class Queue:
    """Texts of a space that wait for a vector, as one process reads them: where it goes on, and if any may be left."""

    space: str
    after: Key = FIRST_PLACE
    empty: tuple[int, int] | None = None  # when nothing waited: generation, and texts that were not due

    def read(self, connection: Connection, generation: int, limit: int, now: float) -> list[Waiting]:
        """Return the next texts that are due; while nothing has changed since none was found, nothing is scanned."""
        later = "SELECT count(*) FROM embedding_failures WHERE space = ? AND next_try > ?"
        moment = (generation, int(connection.execute(later, (self.space, now)).fetchone()[0]))
        if self.empty == moment:
            return []
        found = texts_without_vector(connection, self.space, limit, self.after, now)
        if not found and self.after != FIRST_PLACE:
            found = texts_without_vector(connection, self.space, limit, FIRST_PLACE, now)
        self.after = found[-1].place if found else FIRST_PLACE
        self.empty = None if found else moment
        return found


def take_leases(connection: Connection, space: str, found: Sequence[Waiting], lease: Lease) -> list[Waiting]:
    """Lease those of these texts that still wait and that nobody else takes at the same time."""
    waiting = {one.hash: one for one in found}
    places = [one.place for one in waiting.values()]
    held = rows_at(connection, "SELECT embed_hash FROM memories", places, " ORDER BY number /* SKIP LOCKED */")
    there = {text_hash for (text_hash,) in held}
    asked = json.dumps(sorted(there & waiting.keys()))  # in one order for all, so that no two wait for each other
    leased = {row[0] for row in connection.execute(_LEASE, (space, *lease, asked)).fetchall()}
    embedded = leased - hashes_without_vector(connection, space, leased)  # while the leases were taken
    connection.executemany(
        f"DELETE FROM embedding_failures WHERE {_IS_LEASE}", ((space, text_hash) for text_hash in embedded)
    )
    return [one for one in waiting.values() if one.hash in leased - embedded]


def release_leases(connection: Connection, space: str, hashes: Iterable[str], worker: str) -> None:
    """End the leases of a worker on texts that it did not embed; one on an earlier failure ends by its time."""
    connection.executemany(
        f"DELETE FROM embedding_failures WHERE {_IS_LEASE} AND error = ?",
        ((space, text_hash, worker) for text_hash in sorted(hashes)),
    )


def leaves_texts(connection: Connection, changes: Changes) -> bool:
    """Return whether new texts of a writer with an embedder have no vector in its space."""
    without: dict[str, set[str]] = defaultdict(set)
    for entry in changes.put if changes.space else ():
        if entry.embed_hash not in changes.vectors:
            without[str(entry.memory.scope)].add(entry.embed_hash)
    return any(hashes_with_vectors(connection, changes.space, scope, texts) < texts for scope, texts in without.items())


def hashes_with_vectors(connection: Connection, space: str, scope: str, hashes: Iterable[str]) -> set[str]:
    """Return those of these embedded texts that have a vector in a space and scope."""
    found: set[str] = set()
    for part, marks in portions(sorted(set(hashes))):
        query = (
            "SELECT m.embed_hash FROM memories AS m JOIN vectors AS v ON v.scope = m.scope AND v.number = m.number "
            f"WHERE m.scope = ? AND v.space = ? AND m.embed_hash IN ({marks})"
        )
        found |= {row[0] for row in rows_of(connection, query, (scope, space, *part))}
    return found


def hashes_without_vector(connection: Connection, space: str, hashes: Iterable[str]) -> set[str]:
    """Return those of these embedded texts that some memory has without a vector in a space."""
    found: set[str] = set()
    for part, marks in portions(sorted(set(hashes))):
        query = (
            f"SELECT m.embed_hash FROM memories AS m WHERE m.embed_hash IN ({marks}) AND NOT EXISTS "
            "(SELECT 1 FROM vectors AS v WHERE v.scope = m.scope AND v.space = ? AND v.number = m.number)"
        )
        found |= {row[0] for row in rows_of(connection, query, (*part, space))}
    return found


def drop_orphaned_failures(connection: Connection, hashes: Iterable[str]) -> None:
    """Delete the failures of texts that no memory has any more."""
    spaces = [space for (space,) in connection.execute("SELECT DISTINCT space FROM embedding_failures")]
    connection.executemany(
        "DELETE FROM embedding_failures WHERE space = ? AND hash = ? AND NOT EXISTS "
        "(SELECT 1 FROM memories WHERE embed_hash = embedding_failures.hash)",
        ((space, text_hash) for space in spaces for text_hash in set(hashes)),
    )


def drop_vectors(connection: Connection, space: str, after: str) -> tuple[int, str]:
    """Delete some vectors of a space, from a scope on; return their count (0: none is left) and the last scope."""
    found = connection.execute(
        "SELECT scope, space, number FROM vectors WHERE scope >= ? AND space = ? ORDER BY scope LIMIT ?",
        (after, space, _DROPPED_AT_ONCE),
    ).fetchall()
    connection.executemany("DELETE FROM vectors WHERE scope = ? AND space = ? AND number = ?", found)
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


def read_before(connection: Connection, reader: int) -> Iterator[Memory]:
    """Yield the memories indexed by an older analyzer version; unreadable rows are skipped."""
    held = "SELECT DISTINCT scope FROM memories"
    scopes = connection.execute(
        f"SELECT m.scope, s.readers FROM ({held}) AS m LEFT JOIN scopes AS s ON s.scope = m.scope ORDER BY m.scope"
    ).fetchall()
    for scope, readers in scopes:
        for (first, version), end in with_ends(ranges_in(readers)):
            if version >= reader:
                continue
            rows = connection.execute(
                f"SELECT {SELECT} FROM memories AS m WHERE m.scope = ? AND m.number >= ? AND m.number < ? "
                "ORDER BY m.number",
                (scope, first, end),
            )
            for row in rows:
                try:
                    yield to_memory(row)
                except StoreDamaged:
                    continue


# -- memories by what was written before -----------------------------------------------------------------------------

MISREAD = (StoreDamaged, ValueError, TypeError, KeyError, AttributeError)  # raised by damaged bytes
BY_ID = f"SELECT {SELECT} FROM memories AS m WHERE m.id = ?"


def by_id(connection: Connection, identity: MemoryId) -> Memory | None:
    """Return a memory, if it exists."""
    row = connection.execute(BY_ID, (identity,)).fetchone()
    return to_memory(row) if row is not None else None


def history_of(connection: Connection, ids: Sequence[MemoryId]) -> dict[MemoryId, list[Former]]:
    """Return the former versions of memories, the latest change last."""
    found: dict[MemoryId, list[Former]] = {}
    for part, marks in portions(ids):
        for identity, changed, was in connection.execute(
            f"SELECT memory, changed, was FROM history WHERE memory IN ({marks}) ORDER BY entry", part
        ):
            # Damaged parts are empty, so that the rest can be shown.
            at = float(changed) if isinstance(changed, float | int) else None
            found.setdefault(identity, []).append(Former(identity, at, was_in(was) or {}))
    return found


def was_in(stored: object) -> dict[str, object] | None:
    """Decode the former fields of a memory; None if they are damaged or empty, as every change has some."""
    try:
        read = json.loads(stored) if isinstance(stored, str) else None
    except ValueError:
        return None
    return read if read and isinstance(read, dict) else None


def written_with(connection: Connection, scope: Scope, key: str) -> Written | None:
    """Return the result of a write with a key, if there was one."""
    row = connection.execute(
        "SELECT memory, content FROM write_keys WHERE scope = ? AND key = ?", (str(scope), key)
    ).fetchone()
    return Written(*row) if row else None


def with_text(connection: Connection, text: str, scope: Scope) -> list[Memory]:
    """Return the facts of a scope with the same text key."""
    rows = connection.execute(
        f"SELECT {SELECT} FROM memories AS m WHERE m.scope = ? AND m.text_key = ? AND m.text_key <> '' "
        "ORDER BY m.number",
        (str(scope), text_key(text)),
    )
    return [to_memory(row) for row in rows.fetchall()]
