"""Documents without files to memories: long ones as chunks, turns of a session one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..analysis.text import clean, is_clean
from ..making import Draft, finished
from ..types import Document, Memory, Source
from .chunks import Chunk, ChunkSize, chunk
from .dates import parse_date
from .entries import content_hash, id_for, occurrences
from .markdown import parse_plain


def memories_of(document: Document, size: ChunkSize, now: float, position: int) -> Iterator[Memory]:
    """Return the memories of a document; turns of one session are ordered by their positions."""
    if not (is_clean(document.id) and is_clean(document.title)):
        document = replace(document, id=clean(document.id).text, title=clean(document.title).text)
    if document.session and document.speaker:
        yield _turn(document, position, now)
    else:
        yield from _chunks(document, size, now)


def _turn(document: Document, position: int, now: float) -> Memory:
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
        draft = Draft(
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
        yield finished(draft)


def _title_only(title: str) -> list[Chunk]:
    """Return what there is of a document that says nothing: it is found by its name."""
    return [Chunk(title, 1, 1, ())] if title.strip() else []
