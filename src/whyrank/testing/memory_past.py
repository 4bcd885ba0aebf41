"""What the store in dictionaries knows of the past of memories, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ..analysis.text import same_text
from ..columns import MemoryId
from ..errors import ConfigError, StoreChanged, StoreError
from ..ports import Changes, Entry, Recall, Written
from ..types import Former, Memory, Scope


@dataclass
class Past:
    """What memories were, and what writes with keys came to."""

    formers: dict[MemoryId, list[Former]] = field(default_factory=dict)
    keys: dict[tuple[Scope, str], Written] = field(default_factory=dict)

    def check_keys(self, keys: Mapping[tuple[Scope, str], Written]) -> None:
        """Refuse a key that stands for other content."""
        for place, written in keys.items():
            if self.keys.get(place, written).content != written.content:
                raise ConfigError(f"the key {place[1]!r} was used for another write", "give each a key of its own")

    def change(self, changes: Changes, gone: Iterable[MemoryId]) -> None:
        """Take in what a write says, and forget what is gone."""
        lost = {*gone}
        self.formers = {key: list(told) for key, told in self.formers.items() if key not in lost}
        for former in changes.history:
            self.formers.setdefault(former.memory, []).append(former)
        kept = {
            place: written
            for place, written in self.keys.items()
            if written.memory not in lost and place[0] not in changes.clear
        }
        self.keys = {**changes.keys, **kept}


def refuse_others(entries: Mapping[MemoryId, Entry], notes: Mapping[str, str], changes: Changes) -> None:
    """Refuse changes thought out over memories or a note that are others by now, or over texts that are said by now."""
    if changes.noted is not None and notes.get(changes.noted[0]) != changes.noted[1]:
        raise StoreChanged("a note has changed meanwhile", "read it again; nothing was stored")
    for key, known in changes.basis.items():
        found = _unrecalled(entries[key].memory) if key in entries else None
        if found != (None if known is None else _unrecalled(known)):
            raise StoreChanged(f"{key} has changed meanwhile", "read it again; nothing was stored")
    _refuse_twins({key: entry.memory for key, entry in entries.items()}, changes)


def _refuse_twins(before: Mapping[MemoryId, Memory], changes: Changes) -> None:
    """Refuse that a fact should live from now on beside another of its scope that says the same."""
    told = {entry.memory.id: entry.memory for entry in changes.put}
    after = {key: one for key, one in {**before, **told}.items() if key not in changes.remove}
    replaced = {key for key, one in before.items() if one.superseded_by} | changes.superseded.keys()
    revived = {key for key, life in changes.superseded.items() if life is None}
    living = {key: one for key, one in after.items() if key not in replaced - revived and one.kind == "fact"}
    for key in (changes.basis.keys() & told.keys()) | revived:
        known, now = changes.basis.get(key), living.get(key)
        if now is None or (key not in revived and known is not None and same_text(known.text) == same_text(now.text)):
            continue
        others = (one for other, one in living.items() if other != key and one.scope == now.scope)
        # What has an end may have come to it, and is left to whoever knows the time.
        others = (one for one in others if one.expires is None and one.valid_until is None)
        if any(same_text(one.text) == same_text(now.text) for one in others):
            raise StoreChanged(f"another says what {key} says", "read it again; nothing was stored")


def revised(changes: Changes, entries: Mapping[MemoryId, Entry]) -> Iterator[Entry]:
    """Return what is revised, which must be there, with all that was read of it before."""
    for memory in changes.revised:
        if memory.id not in entries:
            raise StoreChanged(f"{memory.id} is not there any more", "read it again; nothing was stored")
    yield from (replace(entries[memory.id], memory=memory) for memory in changes.revised)


def _unrecalled(memory: Memory) -> Memory:
    return replace(memory, recalls=0, recalled=None)


def refuse_circles(entries: Mapping[MemoryId, Entry], changes: Changes) -> None:
    """Refuse that a memory should be replaced, over whatever others, by itself."""
    successors = {key: entry.memory.superseded_by for key, entry in entries.items()}
    scopes = {key: entry.memory.scope for key, entry in entries.items()}
    scopes |= {entry.memory.id: entry.memory.scope for entry in changes.put}
    for key, life in changes.superseded.items():
        if life is None:
            successors[key] = None
        elif life[0] != key and scopes.get(life[0]) in (None, scopes.get(key)):
            successors[key] = life[0]
    for key, life in changes.superseded.items():
        met, by = {key}, successors.get(key) if life is not None else None
        while by is not None and by not in met:
            met.add(by)
            by = successors.get(by)
        if by is not None:
            raise StoreError(f"{by} would be replaced by itself", "nothing was stored")


def end_claims(entries: dict[MemoryId, Entry], superseded: Mapping[MemoryId, tuple[MemoryId, float] | None]) -> None:
    """Let nobody say any more that it has replaced what is brought back."""
    back = {identity for identity, life in superseded.items() if life is None}
    for key, entry in entries.items():
        if entry.memory.supersedes in back:
            entries[key] = replace(entry, memory=replace(entry.memory, supersedes=None))


def with_recalls(entry: Entry, entries: Mapping[MemoryId, Entry], renamed: Mapping[MemoryId, MemoryId]) -> Entry:
    """Return what is put with the recalls of what it takes the place of."""
    sources = [entry.memory.id, *(old for old, new in renamed.items() if new == entry.memory.id)]
    known = next((entries[key].memory for key in sources if key in entries and entries[key].memory.recalls), None)
    if known is None or known.recalls <= entry.memory.recalls:
        return entry
    return replace(entry, memory=replace(entry.memory, recalls=known.recalls, recalled=known.recalled))


def counted(memory: Memory, recall: Recall) -> Memory:
    """Return a memory after one more recall."""
    last, expires = max(memory.recalled or recall.at, recall.at), memory.expires
    if expires is not None and recall.expires is not None:
        expires = max(expires, recall.expires)
    return replace(memory, recalls=memory.recalls + 1, recalled=last, expires=expires)


def life_of(memory: Memory) -> tuple[MemoryId, float] | None:
    """Return what has replaced a memory, and when."""
    return (memory.superseded_by, memory.superseded_at or 0.0) if memory.superseded_by else None
