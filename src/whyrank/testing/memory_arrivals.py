"""What it takes to store one new fact in dictionaries: that nothing of it is known."""

from __future__ import annotations

from collections.abc import Mapping

from ..analysis.entries import entry_for
from ..columns import MemoryId
from ..lifetimes import NEVER
from ..ports import Arrival, Changes, Entry, Store


def changes_of(arrival: Arrival, entries: Mapping[MemoryId, Entry], store: Store) -> Changes | None:
    """Return the changes that store a new fact; None where more must be thought of."""
    memory, vector = arrival.memory, arrival.vector
    keys = {(memory.scope, arrival.key[0]): arrival.key[1]} if arrival.key else {}
    is_taken = memory.id in entries or any(entry.memory.supersedes == memory.id for entry in entries.values())
    is_said = bool(store.with_text(memory.text, memory.scope))
    if is_taken or is_said or any(store.written(*place) for place in keys):
        return None
    has_failed = any(failure.next_try < NEVER for failure in store.failures(arrival.space))
    if has_failed or (arrival.note and store.note(arrival.note[0]) != arrival.note[1]):
        return None
    if vector is not None and (store.dimensions(arrival.space) != vector.size or not vector.any()):
        return None
    entry = entry_for(memory, arrival.language)
    vectors = {} if vector is None else {entry.embed_hash: vector}
    return Changes(put=[entry], space=arrival.space, vectors=vectors, keys=keys)
