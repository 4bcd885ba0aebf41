"""What replaced what: kept when memories are written again, moved or forgotten, and never across scopes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from ...columns import MemoryId
from ...errors import StoreChanged, StoreError
from ...ports import Entry
from .connection import Connection
from .portions import portions

Life = tuple[MemoryId, float] | None
_TWIN = (
    "SELECT twin.id FROM memories AS own JOIN memories AS twin "
    "ON twin.scope = own.scope AND twin.text_key = own.text_key "
    "WHERE own.id = ? AND own.superseded_by IS NULL AND own.text_key <> '' AND twin.text_key <> '' "
    "AND twin.superseded_by IS NULL AND twin.expires IS NULL AND twin.valid_until IS NULL AND twin.id <> own.id LIMIT 1"
)


def refuse_foreign_ids(connection: Connection, entries: Iterable[Entry]) -> None:
    """Ids are unique in a store; one that belongs to another scope is not to be overwritten."""
    scopes = {entry.memory.id: str(entry.memory.scope) for entry in entries}
    for portion in portions([*scopes]):
        query = f"SELECT id, scope FROM memories WHERE id IN ({portion.marks})"
        for identity, scope in connection.execute(query, portion.values):
            if scope != scopes[identity]:
                raise StoreError(f"the id {identity!r} is taken", "give another id; nothing was stored")


def lives_of(
    connection: Connection, put: Collection[MemoryId], gone: Collection[MemoryId], renamed: Mapping[MemoryId, MemoryId]
) -> dict[MemoryId, Life]:
    """Return what is to be said of memories after a write, before anything of it happens.

    What is written again stays replaced; what moved takes its successor along; what a vanished memory had replaced
    is handed on to that memory's own successor, or comes back.
    """
    successors = {identity: (by, at) for identity, by, at in _superseded(connection, [*put, *gone, *renamed])}
    lives: dict[MemoryId, Life] = {identity: successors[identity] for identity in put if identity in successors}
    lives |= {new: successors[old] for old, new in renamed.items() if old in successors}
    for old, new in renamed.items():
        connection.execute("UPDATE memories SET supersedes = ? WHERE supersedes = ?", (new, old))
    for identity, by, at in _replaced_by(connection, gone):
        lives.setdefault(identity, (by, at))
    for identity, by, created in _waiting_successors(connection, put):
        lives.setdefault(identity, (by, created))
    return {identity: _living(life, gone, successors) for identity, life in lives.items()}


def _living(life: Life, gone: Collection[MemoryId], successors: Mapping[MemoryId, tuple[MemoryId, float]]) -> Life:
    """Follow successors that vanish to the first that stays."""
    while life is not None and life[0] in gone:
        life = successors.get(life[0])
    return life


def _superseded(connection: Connection, ids: list[MemoryId]) -> Iterator[tuple[MemoryId, MemoryId, float]]:
    yield from _select(connection, "SELECT id, superseded_by, superseded_at FROM memories", "id", ids)


def _replaced_by(connection: Connection, gone: Collection[MemoryId]) -> Iterator[tuple[MemoryId, MemoryId, float]]:
    query = "SELECT id, superseded_by, superseded_at FROM memories"
    yield from _select(connection, query, "superseded_by", list(gone))


def _waiting_successors(
    connection: Connection, put: Collection[MemoryId]
) -> Iterator[tuple[MemoryId, MemoryId, float]]:
    """Find memories that replaced one which was away for a while, as a file of another branch is."""
    query = "SELECT supersedes, id, created FROM memories"
    yield from _select(connection, query, "supersedes", list(put))


def _select(
    connection: Connection, query: str, column: str, values: list[MemoryId]
) -> Iterator[tuple[MemoryId, MemoryId, float]]:
    for portion in portions(values):
        for first, second, third in connection.execute(f"{query} WHERE {column} IN ({portion.marks})", portion.values):
            if second is not None:
                yield first, second, third


def end_claims(connection: Connection, superseded: Mapping[MemoryId, Life]) -> None:
    """A memory that is brought back was not replaced after all: nobody says any more that it was."""
    for identity in (identity for identity, life in superseded.items() if life is None):
        connection.execute("UPDATE memories SET supersedes = NULL WHERE supersedes = ?", (identity,))


def refuse_circles(connection: Connection, superseded: Mapping[MemoryId, Life]) -> None:
    """Refuse that a memory should be replaced, over whatever others, by itself."""
    for identity in (identity for identity, life in superseded.items() if life is not None):
        met, by = {identity}, _successor(connection, identity)
        while by is not None and by not in met:
            met.add(by)
            by = _successor(connection, by)
        if by is not None:
            raise StoreError(f"{by} would be replaced by itself, over {len(met) - 1} others", "nothing was stored")


def refuse_twins(connection: Connection, ids: Iterable[MemoryId]) -> None:
    """Refuse that one of these facts should live beside another of its scope that says the same.

    Whoever thought the change out has looked, but outside the transaction: another may have said it meanwhile. What has
    an end may have come to it, and is left to whoever knows the time.
    """
    for identity in ids:
        twin = connection.execute(_TWIN, (identity,)).fetchone()
        if twin is not None:
            raise StoreChanged(f"{twin[0]} says what {identity} says", "read it again; nothing was stored")


def _successor(connection: Connection, identity: MemoryId) -> MemoryId | None:
    found = connection.execute("SELECT superseded_by FROM memories WHERE id = ?", (identity,)).fetchone()
    return found[0] if found else None


def mark_superseded(connection: Connection, lives: Mapping[MemoryId, Life]) -> list[tuple[str, int]]:
    """Write what replaced what; only a memory of the same scope can, and none replaces itself. Return whom it met."""
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
