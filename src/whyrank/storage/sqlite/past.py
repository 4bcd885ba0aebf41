"""What memories were, which writes had keys, how often memories were recalled, and when they are over."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

from ...analysis.text import text_key
from ...columns import MemoryId
from ...errors import ConfigError, StoreChanged, StoreDamaged
from ...ports import Entry, Recall, Written
from ...types import Former, Memory, Scope
from .connection import Connection, Row
from .notes import count_rows
from .rows import COLUMNS, SELECT, columns_of, to_memory

MISREAD = (StoreDamaged, ValueError, TypeError, KeyError, AttributeError)  # what bytes that were changed may raise
_PER_STATEMENT = 500
_BY_ID = f"SELECT {SELECT} FROM memories AS m WHERE m.id = ?"
_told = itemgetter(*(place for place, name in enumerate(COLUMNS) if name not in ("recalls", "recalled")))
# What replaced a memory and how often it was recalled is written elsewhere.
_REVISABLE = (
    "category", "tags", "entities", "importance", "valid_from", "valid_until", "expires", "supersedes", "trust",
    "decay", "expires_given",
)  # fmt: skip
_revisable = itemgetter(*map(COLUMNS.index, _REVISABLE))
_SET = ", ".join(f"{name} = ?" for name in _REVISABLE)
_REVISE = f"UPDATE memories SET {_SET} WHERE id = ? AND scope = ? RETURNING scope"
_as_json = json.JSONEncoder(ensure_ascii=False).encode  # made once: `dumps` makes another for every text


def check_basis(connection: Connection, basis: Mapping[MemoryId, Memory | None]) -> None:
    """Refuse changes that were thought out over memories that are others by now; their recalls are no change."""
    for identity, known in basis.items():
        row = connection.execute(_BY_ID, (identity,)).fetchone()
        if not (_is_still(row, known) if row is not None and known is not None else row is known):
            raise StoreChanged(f"{identity} has changed meanwhile", "read it again; nothing was stored")


def by_id(connection: Connection, identity: MemoryId) -> Memory | None:
    """Return a memory, if it is there."""
    row = connection.execute(_BY_ID, (identity,)).fetchone()
    return to_memory(row) if row is not None else None


def _is_still(row: Row, known: Memory) -> bool:
    """Tell whether a row holds a memory; nearly always it does so to the letter, and none need be made of it."""
    return _told(row) == _told(columns_of(known)) or unrecalled(to_memory(row)) == unrecalled(known)


def revise(connection: Connection, memories: Iterable[Memory]) -> Iterator[str]:
    """Change what no index reads of memories, in their rows; yield their scopes."""
    for memory in memories:
        told = _revisable(columns_of(memory))
        found = connection.execute(_REVISE, (*told, memory.id, str(memory.scope))).fetchone()
        if found is None:
            raise StoreChanged(f"{memory.id} is not there any more", "read it again; nothing was stored")
        yield found[0]


def unrecalled(memory: Memory) -> Memory:
    """Return a memory as it is apart from how often it was recalled, which a store keeps by itself."""
    return replace(memory, recalls=0, recalled=None)


def with_recalls(
    connection: Connection, entries: Mapping[MemoryId, Entry], renamed: Mapping[MemoryId, MemoryId]
) -> list[Entry]:
    """Return what is put, each with the recalls that were counted under its id, or under the one it moved from."""
    before = {new: old for old, new in renamed.items()}
    counted = dict(_recalls(connection, {*entries, *renamed}))
    return [
        _recalled(entry, counted.get(identity) or counted.get(before.get(identity, "")))
        for identity, entry in entries.items()
    ]


def _recalled(entry: Entry, counted: tuple[int, float] | None) -> Entry:
    memory = entry.memory
    if counted is None or memory.recalls >= counted[0]:
        return entry
    return replace(entry, memory=replace(memory, recalls=counted[0], recalled=counted[1]))


def _recalls(connection: Connection, ids: Collection[MemoryId]) -> Iterator[tuple[MemoryId, tuple[int, float]]]:
    for part, marks in _portions(list(ids)):
        for identity, count, last in connection.execute(
            f"SELECT id, recalls, recalled FROM memories WHERE recalls > 0 AND id IN ({marks})", part
        ):
            if isinstance(count, int) and isinstance(last, float | int):  # what is none was damaged, and counts as none
                yield identity, (count, last)


def count_recalls(connection: Connection, recalls: Iterable[Recall]) -> list[str]:
    """Count recalls and put expiry off, never forward; return the scopes of those whose expiry has changed."""
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
    """Write down what memories were."""
    rows = [(one.memory, one.changed, _as_json(one.was)) for one in formers]
    connection.executemany("INSERT INTO history (memory, changed, was) VALUES (?, ?, ?)", rows)
    count_rows(connection, "history", len(rows))


def history_of(connection: Connection, ids: Sequence[MemoryId]) -> dict[MemoryId, list[Former]]:
    """Return what memories were, the latest change last."""
    found: dict[MemoryId, list[Former]] = {}
    for part, marks in _portions(ids):
        for identity, changed, was in connection.execute(
            f"SELECT memory, changed, was FROM history WHERE memory IN ({marks}) ORDER BY entry", part
        ):
            found.setdefault(identity, []).append(_former(identity, changed, was))
    return found


def _former(identity: MemoryId, changed: object, was: object) -> Former:
    """Return what a memory was; of what was damaged nothing, so that the rest can be told."""
    return Former(identity, float(changed) if isinstance(changed, float | int) else None, was_in(was) or {})


def was_in(stored: object) -> dict[str, object] | None:
    """Return the fields a memory had, as they are stored; None if that says none, as no change does."""
    try:
        read = json.loads(stored) if isinstance(stored, str) else None
    except ValueError:
        return None
    return read if read and isinstance(read, dict) else None


def take_keys(connection: Connection, keys: Mapping[tuple[Scope, str], Written]) -> None:
    """Write down what writes with keys came to; a key that stands for other content is refused."""
    for (scope, key), written in keys.items():
        made = connection.execute(
            "INSERT INTO write_keys VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", (str(scope), key, *written)
        )
        count_rows(connection, "write_keys", made.rowcount)
        known = written_with(connection, scope, key)
        if known is not None and known.content != written.content:
            raise ConfigError(f"the key {key!r} was used for another write", "give each write a key of its own")


def written_with(connection: Connection, scope: Scope, key: str) -> Written | None:
    """Return what a write with a key came to, if there was one."""
    row = connection.execute(
        "SELECT memory, content FROM write_keys WHERE scope = ? AND key = ?", (str(scope), key)
    ).fetchone()
    return Written(*row) if row else None


def forget_past(connection: Connection, gone: Iterable[MemoryId], cleared: Sequence[Scope]) -> None:
    """Delete what is known of memories that are gone: their past, and the keys they were written with."""
    for identity in gone:
        for table in ("history", "write_keys"):
            gone = connection.execute(f"DELETE FROM {table} WHERE memory = ?", (identity,))
            count_rows(connection, table, -gone.rowcount)
    for scope in cleared:
        gone = connection.execute("DELETE FROM write_keys WHERE scope = ?", (str(scope),))
        count_rows(connection, "write_keys", -gone.rowcount)
        connection.execute("DELETE FROM files WHERE scope = ?", (str(scope),))


def with_text(connection: Connection, text: str, scope: Scope) -> list[Memory]:
    """Return the facts of a scope that say the same."""
    rows = connection.execute(
        f"SELECT {SELECT} FROM memories AS m WHERE m.scope = ? AND m.text_key = ? AND m.text_key <> '' ORDER BY m.row",
        (str(scope), text_key(text)),
    )
    return [to_memory(row) for row in rows.fetchall()]


def all_in(connection: Connection, scopes: Iterable[Scope]) -> list[MemoryId]:
    """Return the ids of everything in some scopes."""
    return [
        identity
        for scope in scopes
        for (identity,) in connection.execute("SELECT id FROM memories WHERE scope = ?", (str(scope),))
    ]


def still_expired(connection: Connection, prune: Mapping[MemoryId, float]) -> set[MemoryId]:
    """Return those of some memories that have expired by a moment, and were not put off meanwhile."""
    query = "SELECT 1 FROM memories WHERE id = ? AND expires <= ?"
    return {identity for identity, at in prune.items() if connection.execute(query, (identity, at)).fetchone()}


def _portions(values: Sequence[MemoryId]) -> Iterator[tuple[Sequence[MemoryId], str]]:
    for start in range(0, len(values), _PER_STATEMENT):
        part = values[start : start + _PER_STATEMENT]
        yield part, ", ".join("?" * len(part))
