"""One file to memories: markdown and text as chunks, skills by name, logs turn by turn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ..analysis.text import clean
from ..types import Memory, Scope, Source
from .chunks import Chunk, ChunkSize, chunk
from .dates import date_in_name, is_evergreen, parse_date
from .entries import content_hash, id_for, occurrences
from .markdown import Document, parse_markdown, parse_plain
from .walk import LOGS, MARKDOWN

SKILL_FILE = "SKILL.md"

_TEXT_KEYS = ("text", "content", "message")
_SPEAKER_KEYS = ("speaker", "role", "author", "from", "name")
_DATE_KEYS = ("date", "timestamp", "time", "ts", "created_at")
_SESSION_KEYS = ("session", "session_id", "conversation", "thread")


@dataclass(frozen=True)
class Read:
    """What became of a file: its memories, and what is to be said about it."""

    memories: tuple[Memory, ...]
    remarks: tuple[str, ...] = ()


def memories_in(text: str, path: str, scope: Scope, mtime: float, size: ChunkSize) -> Read:
    """Return the memories a file holds."""
    suffix = PurePosixPath(path).suffix.lower()
    text = clean(text).text
    if suffix in LOGS:
        return _turns(text, path, scope, mtime)
    document = parse_markdown(text) if suffix in MARKDOWN else parse_plain(text)
    memories = tuple(_chunk_memories(document, path, scope, mtime, size))
    return Read(memories, (document.problem,) if document.problem else ())


def _chunk_memories(document: Document, path: str, scope: Scope, mtime: float, size: ChunkSize) -> Iterator[Memory]:
    fields = document.fields
    place = PurePosixPath(path)
    is_skill = place.name == SKILL_FILE
    name = _text(fields, "title", "name") if not is_skill else _text(fields, "name", "title")
    summary = _text(fields, "description", "summary")
    dated = parse_date(fields.get("date")) or date_in_name(path)
    chunks = chunk(document, size) or _summary_only(summary or name)
    heading = next((block.title for block in document.blocks if block.level), "")
    numbered = occurrences(piece.text for piece in chunks)
    for number, (piece, (text, occurrence)) in enumerate(zip(chunks, numbered, strict=True)):
        yield Memory(
            id=id_for(scope, path, text, occurrence),
            text=text,
            kind="chunk",
            name=name,
            title=name or heading or place.stem,
            slug=_text(fields, "slug") or (place.parent.name if is_skill else ""),
            aliases=_texts(fields, "aliases", "alias"),
            summary=summary if number == 0 and summary != text else "",
            headings=piece.headings,
            source=Source(path, piece.start_line, piece.end_line, content_hash(text)),
            scope=scope,
            tags=_texts(fields, "tags", "tag"),
            created=mtime,
            date=dated if dated is not None else mtime,
            evergreen=is_evergreen(path, dated is not None),
            trust="ingested",
        )


def _summary_only(summary: str) -> list[Chunk]:
    return [Chunk(summary, 1, 1, ())] if summary else []


def _text(fields: dict[str, Any], *keys: str) -> str:
    for key in keys:
        value = fields.get(key)
        if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
            return " ".join(clean(str(value)).text.split())
    return ""


def _texts(fields: dict[str, Any], *keys: str) -> tuple[str, ...]:
    for key in keys:
        value = fields.get(key)
        if isinstance(value, str):
            value = value.split(",")
        if isinstance(value, list):
            return tuple(dict.fromkeys(clean(str(item)).text.strip() for item in value if str(item).strip()))
    return ()


def _turns(text: str, path: str, scope: Scope, mtime: float) -> Read:
    turns: list[dict[str, Any]] = []
    bad: list[int] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            turn = _turn(line, number)
            turns.append(turn) if turn else bad.append(number)
    remarks = (f"{len(bad)} lines are no turns, the first is line {bad[0]}",) if bad else ()
    spoken = [f"{turn['speaker']}: {turn['text']}" if turn["speaker"] else turn["text"] for turn in turns]
    memories = tuple(
        _turn_memory(turn, position, text, occurrence, path, scope, mtime)
        for position, (turn, (text, occurrence)) in enumerate(zip(turns, occurrences(spoken), strict=True))
    )
    return Read(memories, remarks)


def _turn(line: str, number: int) -> dict[str, Any] | None:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    text = clean(_spoken_text(next((fields[key] for key in _TEXT_KEYS if key in fields), None))).text
    if not text:
        return None
    return {
        "text": text,
        "line": number,
        "speaker": _text(fields, *_SPEAKER_KEYS),
        "date": next((moment for key in _DATE_KEYS if (moment := parse_date(fields.get(key))) is not None), None),
        "session": _text(fields, *_SESSION_KEYS),
    }


def _spoken_text(value: object) -> str:
    """Return the text of a turn; some logs write it as a list of parts."""
    if isinstance(value, list):
        parts = [part.get("text", "") if isinstance(part, dict) else part for part in value]
        return "\n".join(part for part in parts if isinstance(part, str)).strip()
    return value.strip() if isinstance(value, str) else ""


def _turn_memory(
    turn: dict[str, Any], position: int, text: str, occurrence: int, path: str, scope: Scope, mtime: float
) -> Memory:
    moment = turn["date"] if turn["date"] is not None else date_in_name(path)
    return Memory(
        id=id_for(scope, path, text, occurrence),
        text=text,
        kind="chunk",
        title=PurePosixPath(path).stem,
        source=Source(path, turn["line"], turn["line"], content_hash(text)),
        scope=scope,
        created=mtime,
        date=moment if moment is not None else mtime,
        trust="ingested",
        session=turn["session"] or path,
        speaker=turn["speaker"],
        position=position,
    )
