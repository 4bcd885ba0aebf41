"""History of memories: supersession, versions, write keys, recalls and expiry; never across scopes."""

from __future__ import annotations

import json
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING

from ...errors import ConfigError, StoreChanged, StoreError
from ...protocols import Recall, Written
from ...types.memory import Entry, Former, Memory, MemoryId, Scope
from .database import ASIDE_PREFIX, SET_ASIDE, Connection, portions
from .metadata import BY_ID, count_rows, written_with
from .rows import COLUMNS, columns_of, to_memory

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from ...protocols import Recall, Written

Life = tuple[MemoryId, float] | None
_ANY_SET_ASIDE = f"SELECT EXISTS ({SET_ASIDE}), EXISTS (SELECT 1 FROM arrivals)"
_TWIN = (
    "SELECT twin.id FROM memories AS own JOIN memories AS twin "
    "ON twin.scope = own.scope AND twin.text_key = own.text_key "
    "WHERE own.id = ? AND own.superseded_by IS NULL AND own.text_key <> '' AND twin.text_key <> '' "
    "AND twin.superseded_by IS NULL AND twin.expires IS NULL AND twin.valid_until IS NULL AND twin.id <> own.id LIMIT 1"
)


def refuse_foreign_ids(connection: Connection, entries: Iterable[Entry]) -> None:
    """Refuse to overwrite an id that belongs to another scope: ids are unique in a store."""
    scopes = {entry.memory.id: str(entry.memory.scope) for entry in entries}
    for portion in portions([*scopes]):
        query = f"SELECT id, scope FROM memories WHERE id IN ({portion.marks})"
        for identity, scope in connection.execute(query, portion.values):
            if scope != scopes[identity]:
                raise StoreError(f"the id {identity!r} is taken", "give another id; nothing was stored")


def lives_of(
    connection: Connection, put: Collection[MemoryId], gone: Collection[MemoryId], renamed: Mapping[MemoryId, MemoryId]
) -> dict[MemoryId, Life]:
    """Return the successors that memories will have after a write, computed before it.

    A rewritten memory stays superseded; a renamed one keeps its successor; a memory superseded by one that is deleted
    gets that one's own successor, or becomes current again.
    """
    supersession = "SELECT id, superseded_by, superseded_at FROM memories"
    own = _select(connection, supersession, "id", [*put, *gone, *renamed])
    successors = {identity: (by, at) for identity, by, at in own}
    lives: dict[MemoryId, Life] = {identity: successors[identity] for identity in put if identity in successors}
    lives |= {new: successors[old] for old, new in renamed.items() if old in successors}
    for old, new in renamed.items():
        connection.execute("UPDATE memories SET supersedes = ? WHERE supersedes = ?", (new, old))
    for identity, by, at in _select(connection, supersession, "superseded_by", list(gone)):
        lives.setdefault(identity, (by, at))
    # Successors of memories that were absent for a while, as a file of another branch is.
    for identity, by, created in _select(
        connection, "SELECT supersedes, id, created FROM memories", "supersedes", list(put)
    ):
        lives.setdefault(identity, (by, created))
    for identity, life in lives.items():
        while life is not None and life[0] in gone:  # follow deleted successors to the first that remains
            life = successors.get(life[0])
        lives[identity] = life
    return lives


def _select(
    connection: Connection, query: str, column: str, values: list[MemoryId]
) -> Iterator[tuple[MemoryId, MemoryId, float]]:
    for portion in portions(values):
        for first, second, third in connection.execute(f"{query} WHERE {column} IN ({portion.marks})", portion.values):
            if second is not None:
                yield first, second, third


def end_claims(connection: Connection, superseded: Mapping[MemoryId, Life]) -> None:
    """Clear `supersedes` wherever it names a memory that became current again."""
    for identity in (identity for identity, life in superseded.items() if life is None):
        connection.execute("UPDATE memories SET supersedes = NULL WHERE supersedes = ?", (identity,))


def refuse_circles(connection: Connection, superseded: Mapping[MemoryId, Life]) -> None:
    """Refuse a cycle: a memory superseded by itself, through any number of others."""
    for identity in (identity for identity, life in superseded.items() if life is not None):
        met, by = {identity}, _successor(connection, identity)
        while by is not None and by not in met:
            met.add(by)
            by = _successor(connection, by)
        if by is not None:
            raise StoreError(f"{by} would be replaced by itself, over {len(met) - 1} others", "nothing was stored")


def refuse_twins(connection: Connection, ids: Iterable[MemoryId]) -> None:
    """Refuse a current fact with the same text as another of its scope.

    The caller has checked, but outside the transaction: another writer may have stored it meanwhile. Facts with an
    expiry or end of validity are exempt, as only the caller knows the current time.
    """
    for identity in ids:
        twin = connection.execute(_TWIN, (identity,)).fetchone()
        if twin is not None:
            raise StoreChanged(f"{twin[0]} has the same text as {identity}", "read it again; nothing was stored")


def _successor(connection: Connection, identity: MemoryId) -> MemoryId | None:
    found = connection.execute("SELECT superseded_by FROM memories WHERE id = ?", (identity,)).fetchone()
    return found[0] if found else None


def mark_superseded(connection: Connection, lives: Mapping[MemoryId, Life]) -> list[tuple[str, int]]:
    """Write the successors, of the same scope only and never the memory itself; return the changed places."""
    changed: list[tuple[str, int]] = []
    for identity, life in lives.items():
        by, at = life or (None, None)
        changed += connection.execute(
            "UPDATE memories SET superseded_by = :by, superseded_at = :at WHERE id = :id AND (:by IS NULL OR "
            "(:by <> :id AND scope = coalesce((SELECT scope FROM memories WHERE id = :by), scope))) "
            "RETURNING scope, number",
            {"by": by, "at": at, "id": identity},
        ).fetchall()
    return changed


_told = itemgetter(*(place for place, name in enumerate(COLUMNS) if name not in ("recalls", "recalled")))
# The successor of a memory and its recalls are written elsewhere.
_REVISABLE = (
    "category", "tags", "entities", "importance", "valid_from", "valid_until", "expires", "supersedes", "trust",
    "decay", "expires_given", "metadata", "subject", "attribute",
)  # fmt: skip
_revisable = itemgetter(*map(COLUMNS.index, _REVISABLE))
_SET = ", ".join(f"{name} = ?" for name in _REVISABLE)
_REVISE = f"UPDATE memories SET {_SET} WHERE id = ? AND scope = ? RETURNING scope"
_as_json = json.JSONEncoder(ensure_ascii=False).encode  # made once: `dumps` makes another for every text


def check_basis(connection: Connection, basis: Mapping[MemoryId, Memory | None]) -> None:
    """Refuse a change on a version conflict: a memory it is based on has changed, recalls aside."""
    for identity, known in basis.items():
        row = connection.execute(BY_ID, (identity,)).fetchone()
        if row is None or known is None:
            is_same = row is known
        else:  # raw columns are compared first, as they nearly always match
            is_same = _told(row) == _told(columns_of(known)) or unrecalled(to_memory(row)) == unrecalled(known)
        if not is_same:
            raise StoreChanged(f"{identity} has changed since it was read", "read it again; nothing was stored")


def revise(connection: Connection, memories: Iterable[Memory]) -> Iterator[str]:
    """Update the columns of memories that no index reads; yield their scopes."""
    for memory in memories:
        told = _revisable(columns_of(memory))
        found = connection.execute(_REVISE, (*told, memory.id, str(memory.scope))).fetchone()
        if found is None:
            raise StoreChanged(f"{memory.id} no longer exists", "read it again; nothing was stored")
        yield found[0]


def unrecalled(memory: Memory) -> Memory:
    """Return a memory without its recalls, which the store counts by itself."""
    return replace(memory, recalls=0, recalled=None)


def with_recalls(
    connection: Connection, entries: Mapping[MemoryId, Entry], renamed: Mapping[MemoryId, MemoryId]
) -> list[Entry]:
    """Return the entries with the recalls counted under their ids, or the ids they were renamed from."""
    before = {new: old for old, new in renamed.items()}
    counted: dict[MemoryId, tuple[int, float]] = {}
    for part, marks in portions([*{*entries, *renamed}]):
        for identity, count, last in connection.execute(
            f"SELECT id, recalls, recalled FROM memories WHERE recalls > 0 AND id IN ({marks})", part
        ):
            if isinstance(count, int) and isinstance(last, float | int):  # a damaged count is taken as none
                counted[identity] = count, last
    recalled: list[Entry] = []
    for identity, entry in entries.items():
        count, last = counted.get(identity) or counted.get(before.get(identity, "")) or (0, None)
        if count > entry.memory.recalls:
            entry = replace(entry, memory=replace(entry.memory, recalls=count, recalled=last))
        recalled.append(entry)
    return recalled


def count_recalls(connection: Connection, recalls: Iterable[Recall]) -> list[str]:
    """Count recalls and extend expiry, never shorten it; return the scopes whose expiry has changed."""
    changed: list[str] = []
    for recall in recalls:
        connection.execute(
            "UPDATE memories SET recalls = recalls + 1, recalled = max(coalesce(recalled, :at), :at) WHERE id = :id",
            {"id": recall.memory, "at": recall.at},
        )
        if recall.expires is not None:
            changed += [
                scope
                for (scope,) in connection.execute(
                    "UPDATE memories SET expires = ? WHERE id = ? AND expires < ? RETURNING scope",
                    (recall.expires, recall.memory, recall.expires),
                )
            ]
    return changed


def write_history(connection: Connection, formers: Iterable[Former]) -> None:
    """Store former versions of memories."""
    rows = [(one.memory, one.memory, one.changed, _as_json(one.was)) for one in formers]
    owner = "coalesce((SELECT scope FROM memories WHERE id = ?), '')"
    connection.executemany(f"INSERT INTO history (scope, memory, changed, was) VALUES ({owner}, ?, ?, ?)", rows)
    count_rows(connection, "history", len(rows))


def put_past(connection: Connection, rows: Sequence[tuple[str, MemoryId, float, str]]) -> None:
    """Store former versions as rows: scope, memory, moment of the change, former fields as JSON."""
    connection.executemany("INSERT INTO history (scope, memory, changed, was) VALUES (?, ?, ?, ?)", rows)
    count_rows(connection, "history", len(rows))


def put_keys(connection: Connection, rows: Sequence[tuple[str, str, str, str]]) -> None:
    """Store write keys as rows (scope, key, memory, content), in place of those that are there."""
    before = [row[:2] for row in rows]
    gone = connection.executemany("DELETE FROM write_keys WHERE scope = ? AND key = ?", before)
    connection.executemany("INSERT INTO write_keys VALUES (?, ?, ?, ?)", rows)
    count_rows(connection, "write_keys", len(rows) - max(0, gone.rowcount))


def take_keys(connection: Connection, keys: Mapping[tuple[Scope, str], Written]) -> None:
    """Store the results of writes with keys; refuse a key that was used for other content."""
    for (scope, key), written in keys.items():
        made = connection.execute(
            "INSERT INTO write_keys VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", (str(scope), key, *written)
        )
        count_rows(connection, "write_keys", made.rowcount)
        known = written_with(connection, scope, key)
        if known is not None and known.content != written.content:
            raise ConfigError(f"the key {key!r} was used for another write", "give each write a key of its own")


def forget_past(connection: Connection, gone: Iterable[MemoryId], cleared: Sequence[Scope]) -> None:
    """Delete history and write keys of deleted memories, and write keys and files of cleared scopes."""
    for identity in gone:
        for table in ("history", "write_keys"):
            gone = connection.execute(f"DELETE FROM {table} WHERE memory = ?", (identity,))
            count_rows(connection, table, -gone.rowcount)
    for scope in cleared:
        gone = connection.execute("DELETE FROM write_keys WHERE scope = ?", (str(scope),))
        count_rows(connection, "write_keys", -gone.rowcount)
        connection.execute("DELETE FROM files WHERE scope = ?", (str(scope),))


def forget_set_aside(connection: Connection, ids: Collection[MemoryId], cleared: Collection[Scope]) -> None:
    """Delete what was set aside of memories that are rewritten or deleted, and of cleared scopes."""
    has_marks, has_facts = connection.execute(_ANY_SET_ASIDE).fetchone()
    if has_marks:
        connection.executemany("DELETE FROM meta WHERE key = ?", ((ASIDE_PREFIX + identity,) for identity in ids))
    if has_facts:
        connection.executemany("DELETE FROM arrivals WHERE id = ?", ((identity,) for identity in ids))
        connection.executemany("DELETE FROM arrivals WHERE scope = ?", ((str(scope),) for scope in cleared))


def all_in(connection: Connection, scopes: Iterable[Scope]) -> list[MemoryId]:
    """Return the ids of all memories in some scopes."""
    return [
        identity
        for scope in scopes
        for (identity,) in connection.execute("SELECT id FROM memories WHERE scope = ?", (str(scope),))
    ]


def still_expired(connection: Connection, prune: Mapping[MemoryId, float]) -> set[MemoryId]:
    """Return those of some memories that are still expired at the given times, not extended meanwhile."""
    query = "SELECT 1 FROM memories WHERE id = ? AND expires <= ?"
    return {identity for identity, at in prune.items() if connection.execute(query, (identity, at)).fetchone()}
