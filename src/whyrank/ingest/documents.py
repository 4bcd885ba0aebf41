"""Files and documents to memories."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ..analysis.normalize import clean, is_clean
from ..formatting import counted
from ..types.memory import Document, Memory, Scope, Source
from .chunking import Chunk, ChunkSize, chunk
from .dates import date_in_name, is_evergreen, parse_date
from .entries import content_hash, id_for, occurrences
from .frontmatter import (
    FRONT,
    MOST_PROPERTIES,
    FileFields,
    FrontMatter,
    Mark,
    file_fields,
    lasting,
    properties,
    scalar,
    section_fields,
)
from .markdown import ParsedText, parse_markdown, parse_plain
from .paths import file_title, stored_place
from .walk import LOGS, MARKDOWN

SKILL_FILE = "SKILL.md"
MOST_OF_A_NAME = 500  # characters: every chunk of a file is embedded and found by its name
MOST_REMARKS = 50  # of one file that are listed one by one

_TEXT_KEYS = ("text", "content", "message")
_SPEAKER_KEYS = ("speaker", "role", "author", "from", "name")
_DATE_KEYS = ("date", "timestamp", "time", "ts", "created_at")
_SESSION_KEYS = ("session", "session_id", "conversation", "thread")


class Read(NamedTuple):
    """Result of reading a file: its memories, and remarks about it."""

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
        _cut_properties(document),
        _unparsed(document),
    )
    told = [*dict.fromkeys(filter(None, (*said, *section_fields(document.marks).problems)))]
    if len(told) > MOST_REMARKS:
        told[MOST_REMARKS:] = [f"and {len(told) - MOST_REMARKS:,} more of the kind"]
    return Read(memories, (*remarks, *told))


def _unparsed(document: ParsedText) -> str:
    """Return the remark from which line on a file exceeded the parser's limit, or an empty text."""
    if document.plain_from is None:
        return ""
    return f"from line {document.plain_from + 1:,} on it is read as paragraphs: more than the parser is given"


def _cut_names(front: FrontMatter) -> Iterator[str]:
    """Yield remarks about names in front matter that are too long to be stored with every chunk."""
    for key in ("title", "name", "slug"):
        if (length := len(scalar(front.fields.get(key)))) > MOST_OF_A_NAME:
            place = front.places.get(key, FRONT)
            yield f"{place}: {key} has {length:,} characters, the first {MOST_OF_A_NAME} are kept"


def _cut_properties(document: ParsedText) -> str:
    """Return the remark that a file of properties alone has too many of them, or an empty text."""
    if not _is_without_text(document) or not properties(document.front.fields).is_cut:
        return ""
    return f"{FRONT}: more than {MOST_PROPERTIES:,} values, the first {MOST_PROPERTIES:,} are kept"


def _scope_said(front: FrontMatter, scope: Scope) -> str:
    """Return the remark that front matter cannot choose another scope than that of the ingest."""
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
    chunks = chunk(document, size)
    if _is_without_text(document):
        lines = properties(fields, (name, slug, summary)).lines
        if lines or not chunks:
            said = "\n".join([*filter(None, [summary]), *lines]) or name
            chunks, summary = [*_property_chunks(said, document.front, size), *chunks], ""
    numbered = occurrences(piece.text for piece in chunks)
    marks: tuple[Mark, ...] = ()
    marked = whole.values
    for number, (piece, (text, occurrence)) in enumerate(zip(chunks, numbered, strict=True)):
        memory = Memory(
            id=id_for(scope, path, text, occurrence),
            text=text,
            kind="chunk",
            name=name,
            title=name or file_title(path),
            slug=slug,
            summary=summary if number == 0 else "",
            headings=piece.headings,
            source=Source(path, piece.start_line, piece.end_line, content_hash(text)),
            scope=scope,
            created=mtime,
            date=dated if dated is not None else mtime,
            evergreen=evergreen,
            trust="ingested",
        )
        if piece.marks is not marks:
            marks, marked = piece.marks, section_fields(piece.marks).over(whole.values)
        if marked:
            memory = replace(memory, **lasting(marked, mtime))
        yield memory


def _top_heading(document: ParsedText) -> str:
    """Return the heading of level 1 that a file opens with, as its title, or an empty text."""
    first = next(iter(document.blocks), None)
    return first.title if first is not None and first.level == 1 else ""


def _is_without_text(document: ParsedText) -> bool:
    """Return whether a file holds headings at most."""
    return all(block.level for block in document.blocks)


def _property_chunks(text: str, front: FrontMatter, size: ChunkSize) -> list[Chunk]:
    """Split the properties of a file that holds little else; all get the lines of its front matter."""
    return [piece._replace(start_line=1, end_line=front.body_start) for piece in chunk(parse_plain(text), size)]


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
        title=file_title(path),
        source=Source(path, turn["line"], turn["line"], content_hash(text)),
        scope=scope,
        created=mtime,
        date=moment if moment is not None else mtime,
        trust="ingested",
        session=turn["session"] or path,
        speaker=turn["speaker"],
        position=position,
    )


def memories_of(document: Document, size: ChunkSize, now: float, position: int) -> Iterator[Memory]:
    """Return the memories of a document; turns of one session are ordered by their positions."""
    if not (is_clean(document.id) and is_clean(document.title)):
        document = replace(document, id=clean(document.id).text, title=clean(document.title).text)
    if document.session and document.speaker:
        yield _turn_of_document(document, position, now)
    else:
        yield from _chunks(document, size, now)


def _turn_of_document(document: Document, position: int, now: float) -> Memory:
    text = clean(document.text).text
    return Memory(
        id=id_for(document.scope, document.id, text),
        text=text,
        kind="chunk",
        title=document.title,
        source=Source(document.id, content_hash=content_hash(text)),
        scope=document.scope,
        created=now,
        date=parse_date(document.date),
        trust="ingested",
        session=document.session,
        speaker=document.speaker,
        position=position,
    )


def _chunks(document: Document, size: ChunkSize, now: float) -> Iterator[Memory]:
    pieces = chunk(parse_plain(clean(document.text).text), size) or _title_only(document.title)
    numbered = occurrences(piece.text for piece in pieces)
    for piece, (text, occurrence) in zip(pieces, numbered, strict=True):
        yield Memory(
            id=id_for(document.scope, document.id, text, occurrence),
            text=text,
            kind="chunk",
            name=document.title,
            title=document.title,
            slug=document.slug,
            owner=document.owner,
            source=Source(document.id, piece.start_line, piece.end_line, content_hash(text)),
            scope=document.scope,
            created=now,
            date=parse_date(document.date),
            trust="ingested",
        )


def _title_only(title: str) -> list[Chunk]:
    """Return the title as the chunk of a document without text: it is found by its name."""
    return [Chunk(title, 1, 1, ())] if title.strip() else []
