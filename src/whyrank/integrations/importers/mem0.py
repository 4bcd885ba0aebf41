"""Exports of mem0: lists of memories with their owners, categories and metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...engine.export import Item
from ...types.memory import Scope
from . import streams
from .records import Numbering, category_of, fact, file_moment, filled, moment_of, names_in, owner_of, read_item

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ...types.memory import Memory
    from .records import Findings

_LISTS = ("results", "memories")  # keys of an answer of its API, and of an export
# The first that a memory names owns it; the others are kept in its metadata.
_OWNERS = {"user_id": "user", "agent_id": "agent", "run_id": "session"}
_IN_METADATA = ("agent_id", "run_id", "app_id", "actor_id", "role")
_KNOWN = frozenset({
    "id", "memory", "hash", "metadata", "categories", "created_at", "updated_at", "expiration_date", "score",
    "user_id", *_IN_METADATA,
})  # fmt: skip
_WRAPPER = frozenset({*_LISTS, "relations", "count", "next", "previous", "version"})


def records(path: Path, scope: Scope, findings: Findings) -> Iterator[Item]:
    """Yield a fact for every memory."""
    streams.check_file(path, "a JSON file with a list of memories")
    return _read(path, scope, findings)


def _read(path: Path, scope: Scope, findings: Findings) -> Iterator[Item]:
    numbering, written, number = Numbering(), file_moment(path), 0
    with path.open("rb") as stream:
        try:
            for key, said in streams.elements(stream, _LISTS):
                if key not in ("", *_LISTS):
                    findings.name_unknown("export", [key], _WRAPPER)
                    continue
                number += 1
                yield _item(number, said, scope, findings, numbering, written)
        except streams.Unreadable as error:
            yield Item(f"after memory {number}", None, str(error))
    if not number:
        findings.remark(path.name, "it holds no memory")


def _item(number: int, said: Any, scope: Scope, findings: Findings, numbering: Numbering, written: float) -> Item:
    place = f"memory {number}"
    if not isinstance(said, dict):
        return Item(place, None, "it is no object with a memory")
    findings.name_unknown("memory", said, _KNOWN)
    named = f"{place} ({said['id']})" if isinstance(said.get("id"), str) else place
    return read_item(named, _memory, said, scope, numbering, written)


def _memory(said: Mapping[str, Any], scope: Scope, numbering: Numbering, written: float) -> Memory:
    owned = next(((kind, said[name]) for name, kind in _OWNERS.items() if said.get(name)), None)
    owner = scope if owned is None else owner_of(*owned)
    created = moment_of("created_at", said.get("created_at"))
    updated = moment_of("updated_at", said.get("updated_at"))
    tags = names_in(said.get("categories"))
    given = said.get("metadata")
    metadata = {**(given if isinstance(given, dict) else {}), **{name: said.get(name) for name in _IN_METADATA}}
    if owned is not None:
        metadata = {name: value for name, value in metadata.items() if _OWNERS.get(name) != owned[0]}
    ours = [category_of(tag)[0] for tag in tags]
    fields = {
        "tags": tags,
        "category": next((one for one in ours if one not in ("", "other")), ""),
        "metadata": filled(metadata),
        "expires": moment_of("expiration_date", said.get("expiration_date")),
        "date": updated if updated is not None else created,
        "trust": "agent",
    }
    return fact(said.get("memory"), owner, written if created is None else created, fields, numbering)
