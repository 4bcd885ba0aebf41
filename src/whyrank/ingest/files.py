"""One file to memories: markdown and text as chunks, skills by name, logs turn by turn."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ..analysis.text import clean
from ..making import Draft, finished
from ..places import stored_place
from ..types import Memory, Scope, Source
from ..wording import counted
from .chunks import Chunk, ChunkSize, chunk
from .dates import date_in_name, is_evergreen, parse_date
from .entries import content_hash, id_for, occurrences
from .frontmatter import FrontMatter
from .markdown import ParsedText, parse_markdown, parse_plain
from .markers import FRONT, FileFields, Mark, file_fields, lasting, scalar, section_fields
from .walk import LOGS, MARKDOWN

SKILL_FILE = "SKILL.md"
MOST_OF_A_NAME = 500  # characters: every chunk of a file is embedded and found by its name
MOST_REMARKS = 50  # of one file that are told one by one

_TEXT_KEYS = ("text", "content", "message")
_SPEAKER_KEYS = ("speaker", "role", "author", "from", "name")
_DATE_KEYS = ("date", "timestamp", "time", "ts", "created_at")
_SESSION_KEYS = ("session", "session_id", "conversation", "thread")


class Read(NamedTuple):
    """What became of a file: its memories, and what is to be said about it."""

    memories: tuple[Memory, ...]
    remarks: tuple[str, ...] = ()


def memories_in(text: str, path: str, scope: Scope, mtime: float, size: ChunkSize) -> Read:
    """Return the memories a file holds."""
    suffix = stored_place(path).suffix.lower()
    cleaned = clean(text)
    remarks = ("characters that cannot be stored were replaced",) if cleaned.replaced else ()
    if suffix in LOGS:
        read = _turns(cleaned.text, path, scope, mtime)
        return Read(read.memories, (*remarks, *read.remarks))
    document = parse_markdown(cleaned.text) if suffix in MARKDOWN else parse_plain(cleaned.text)
    whole = file_fields(document.front.fields, document.front.places)
    memories = tuple(_chunk_memories(document, whole, path, scope, mtime, size))
    problem = document.front.problem or ("" if memories else "it holds no text")
    said = (
        problem,
        *whole.problems,
        _scope_said(document.front, scope),
        *_cut_names(document.front),
        _unparsed(document),
    )
    told = [*dict.fromkeys(filter(None, (*said, *section_fields(document.marks).problems)))]
    if len(told) > MOST_REMARKS:
        told[MOST_REMARKS:] = [f"and {len(told) - MOST_REMARKS:,} more of the kind"]
    return Read(memories, (*remarks, *told))


def _unparsed(document: ParsedText) -> str:
    """Say from which line on a file was too much for the parser."""
    if document.plain_from is None:
        return ""
    return f"from line {document.plain_from + 1:,} on it is read as paragraphs: more than the parser is given"


def _cut_names(front: FrontMatter) -> Iterator[str]:
    """Say which names in front matter are too long to stand with every chunk."""
    for key in ("title", "name", "slug"):
        if (length := len(scalar(front.fields.get(key)))) > MOST_OF_A_NAME:
            place = front.places.get(key, FRONT)
            yield f"{place}: {key} has {length:,} characters, the first {MOST_OF_A_NAME} are kept"


def _scope_said(front: FrontMatter, scope: Scope) -> str:
    """Say that front matter cannot choose another scope than that of the ingest."""
    asked = front.fields.get("scope")
    if not asked or asked == str(scope):
        return ""
    return f"{front.places.get('scope', FRONT)}: scope is not read from files; stored as {scope} (see --scope)"


def _chunk_memories(
    document: ParsedText, whole: FileFields, path: str, scope: Scope, mtime: float, size: ChunkSize
) -> Iterator[Memory]:
    fields = document.front.fields
    place = stored_place(path)
    is_skill = place.name == SKILL_FILE
    named = _text(fields, *(("name", "title") if is_skill else ("title", "name")))[:MOST_OF_A_NAME].rstrip()
    name = named or _top_heading(document)
    summary = _text(fields, "description", "summary")
    slug = _text(fields, "slug")[:MOST_OF_A_NAME].rstrip() or (place.folders[-1] if is_skill and place.folders else "")
    dated = whole.values.get("date", date_in_name(path))
    evergreen = is_evergreen(path, dated is not None)
    chunks = chunk(document, size) or _summary_only(summary or name)
    numbered = occurrences(piece.text for piece in chunks)
    marks: tuple[Mark, ...] = ()
    marked = whole.values
    for number, (piece, (text, occurrence)) in enumerate(zip(chunks, numbered, strict=True)):
        draft = Draft(
            id=id_for(scope, path, text, occurrence),
            text=text,
            kind="chunk",
            name=name,
            title=name or place.stem,
            slug=slug,
            summary=summary if number == 0 and summary != text else "",
            headings=piece.headings,
            source=Source(path, piece.start_line, piece.end_line, content_hash(text)),
            scope=scope,
            created=mtime,
            date=dated if dated is not None else mtime,
            evergreen=evergreen,
            trust="ingested",
        )
        memory = finished(draft)
        if piece.marks is not marks:
            marks, marked = piece.marks, section_fields(piece.marks).over(whole.values)
        if marked:
            memory = replace(memory, **lasting(marked, mtime))
        yield memory


def _top_heading(document: ParsedText) -> str:
    """Return the heading a file opens with, if it is one of the first level: that is what its author calls it."""
    first = next(iter(document.blocks), None)
    return first.title if first is not None and first.level == 1 else ""


def _summary_only(summary: str) -> list[Chunk]:
    return [Chunk(summary, 1, 1, ())] if summary else []


def _text(fields: Mapping[str, Any], *keys: str) -> str:
    if not fields:  # as most files have none
        return ""
    return next((text for key in keys if (text := scalar(fields.get(key)))), "")


def _turns(text: str, path: str, scope: Scope, mtime: float) -> Read:
    turns: list[dict[str, Any]] = []
    bad: list[int] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            turn = _turn(line, number)
            turns.append(turn) if turn else bad.append(number)
    remarks = (
        [f"{counted(len(bad), 'line is no turn', 'lines are no turns')}, the first is line {bad[0]}"] if bad else []
    )
    if undated := [turn["line"] for turn in turns if turn["is_misdated"]]:
        lines = counted(len(undated), "line has a date that cannot be read", "lines have dates that cannot be read")
        remarks.append(f"{lines} and got that of the file, the first is line {undated[0]}")
    if any(turn["replaced"] for turn in turns):
        remarks.append("characters that cannot be stored were replaced")
    spoken = [f"{turn['speaker']}: {turn['text']}" if turn["speaker"] else turn["text"] for turn in turns]
    memories = tuple(
        _turn_memory(turn, position, text, occurrence, path, scope, mtime)
        for position, (turn, (text, occurrence)) in enumerate(zip(turns, occurrences(spoken), strict=True))
    )
    return Read(memories, tuple(remarks))


def _turn(line: str, number: int) -> dict[str, Any] | None:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    spoken = next((text for key in _TEXT_KEYS if (text := _spoken_text(fields.get(key)))), "")
    if not spoken:
        return None
    cleaned = clean(spoken)
    dates = [value for key in _DATE_KEYS if (value := fields.get(key)) not in (None, "")]
    moment = next((read for value in dates if (read := parse_date(value)) is not None), None)
    return {
        "text": cleaned.text,
        "replaced": cleaned.replaced,
        "line": number,
        "speaker": _text(fields, *_SPEAKER_KEYS),
        "date": moment,
        "is_misdated": bool(dates) and moment is None,
        "session": _text(fields, *_SESSION_KEYS),
    }


def _spoken_text(value: object) -> str:
    """Return the text of a turn; some logs write it as a list of parts, or one level down."""
    if isinstance(value, dict):
        value = value.get("content", value.get("text"))
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
        title=stored_place(path).stem,
        source=Source(path, turn["line"], turn["line"], content_hash(text)),
        scope=scope,
        created=mtime,
        date=moment if moment is not None else mtime,
        trust="ingested",
        session=turn["session"] or path,
        speaker=turn["speaker"],
        position=position,
    )
