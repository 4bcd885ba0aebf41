"""Memories to rows and back."""

from __future__ import annotations

import json
from typing import Any

from ...errors import StoreDamaged
from ...ports import Entry
from ...types import Memory, Scope, Source
from .connection import Row

COLUMNS = (
    "id", "scope", "kind", "text", "name", "title", "slug", "owner", "aliases", "summary", "headings", "path",
    "start_line", "end_line", "content_hash", "category", "tags", "entities", "importance", "created", "date",
    "evergreen", "valid_from", "valid_until", "expires", "supersedes", "superseded_by", "superseded_at", "trust",
    "session", "speaker", "position",
)  # fmt: skip
DERIVED = ("grouping", "length", "embed_text", "embed_hash")

SELECT = ", ".join(f"m.{column}" for column in COLUMNS)
INSERT = f"INSERT INTO memories ({', '.join(COLUMNS + DERIVED)}) VALUES ({', '.join('?' * len(COLUMNS + DERIVED))})"
# How ties are broken, in SQL; the same as Memory.content_key.
CONTENT_KEY = "m.path, m.start_line, m.content_hash, m.id"


def to_row(entry: Entry) -> Row:
    """Return a memory's columns, with what is derived from it."""
    memory = entry.memory
    place = memory.source or Source("")
    return (
        memory.id, str(memory.scope), memory.kind, memory.text, memory.name, memory.title, memory.slug, memory.owner,
        _list(memory.aliases), memory.summary, _list(memory.headings), place.path, place.start_line, place.end_line,
        place.content_hash, memory.category, _list(memory.tags), _list(memory.entities), memory.importance,
        memory.created, memory.date, int(memory.evergreen), memory.valid_from, memory.valid_until, memory.expires,
        memory.supersedes, memory.superseded_by, memory.superseded_at, memory.trust, memory.session, memory.speaker,
        memory.position, memory.group, len(entry.tokens), entry.embed_text, entry.embed_hash,
    )  # fmt: skip


def to_memory(row: Row) -> Memory:
    """Return the memory a row of SELECT holds."""
    try:
        return _memory(row)
    except (ValueError, TypeError) as error:
        raise StoreDamaged(f"the memory {row[0]!r} cannot be read: {error}", "ingest its file again") from error


def _memory(row: Row) -> Memory:
    values: dict[str, Any] = dict(zip(COLUMNS, row, strict=True))
    path, start, end = values.pop("path"), values.pop("start_line"), values.pop("end_line")
    content_hash = values.pop("content_hash")
    values["source"] = Source(path, start, end, content_hash) if path or content_hash else None
    values["scope"] = Scope.parse(values["scope"])
    values["evergreen"] = bool(values["evergreen"])
    for column in ("aliases", "headings", "tags", "entities"):
        values[column] = tuple(json.loads(values[column]))
    return Memory(**values)


def _list(values: tuple[str, ...]) -> str:
    return json.dumps(values, ensure_ascii=False)
