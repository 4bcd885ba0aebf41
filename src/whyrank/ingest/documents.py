"""Files and documents to memories."""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, filterfalse, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from ..analysis.dates import parse_date
from ..analysis.document import content_hash, id_for, occurrences
from ..analysis.normalize import (
    CHARACTERS_PER_TOKEN,
    clean,
    estimated_tokens,
    is_clean,
    tokens_in_letters,
    unspaced_letters,
)
from ..errors import ConfigError
from ..formatting import counted
from ..types.memory import Document, Memory, Scope, Source
from .frontmatter import (
    FRONT,
    MOST_PROPERTIES,
    FileFields,
    Mark,
    file_fields,
    lasting,
    properties,
    scalar,
    section_fields,
)
from .markdown import MOST_OF_A_HEADING, ParsedText, parse_markdown, parse_plain
from .walk import LOGS, MARKDOWN, file_title, stored_place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .frontmatter import Mark
    from .markdown import Block

# Raised whenever the same file would give other chunks of the same words, or another date: files are then read anew,
# and nothing else.
CUT_VERSION = 3

# A new heading starts a new chunk once the last one has this share of a full one; tiny sections stay together.
_SECTION_SHARE = 4

_SENTENCE_ENDS = (". ", "! ", "? ", "。", "！", "？", "; ", ", ", " ")


@dataclass(frozen=True)
class ChunkSize:
    """Maximum length of a chunk, and the overlap with the next one, in estimated tokens."""

    tokens: int = 400
    overlap: int = 80

    def __post_init__(self) -> None:
        if self.tokens < 16 or not 0 <= self.overlap < self.tokens:
            raise ConfigError(
                f"chunks of {self.tokens} tokens with an overlap of {self.overlap}",
                "give at least 16 tokens and a smaller overlap",
            )


class Chunk(NamedTuple):
    """Piece of a file: its text, its lines counted from 1, the headings above it, its section's markers."""

    text: str
    start_line: int
    end_line: int
    headings: tuple[str, ...]
    marks: tuple[Mark, ...] = ()


class _Piece(NamedTuple):
    """A block, or some lines of one that was too long, or a part of one line, with the headings above it."""

    start: int
    end: int
    tokens: int
    headings: tuple[str, ...]
    is_heading: bool = False
    is_whole: bool = False
    part_of_line: str = ""
    marks: tuple[Mark, ...] = ()


class _Sizes:
    """Estimated token counts of a document's line ranges, computed without joining the lines."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._letters = [0, *accumulate(map(len, lines))]
        is_spaced = not any(map(unspaced_letters, filterfalse(str.isascii, lines)))
        self._unspaced = None if is_spaced else [0, *accumulate(map(unspaced_letters, lines))]

    def written(self, start: int, end: int) -> tuple[int, int]:
        """Return lines without leading and trailing empty ones; the last line if all are empty."""
        low, high = bisect_left(self._written, start), bisect_left(self._written, end)
        return (end - 1, end) if low == high else (self._written[low], self._written[high - 1] + 1)

    @cached_property
    def _written(self) -> list[int]:
        return [number for number, (before, after) in enumerate(pairwise(self._letters)) if before < after]

    def tokens(self, start: int, end: int) -> int:
        """Estimate the tokens of at least one line, from `start` to before `end`."""
        letters = self._letters[end] - self._letters[start] + end - start - 1  # with the ends of lines between them
        return tokens_in_letters(letters, 0 if self._unspaced is None else self._unspaced[end] - self._unspaced[start])


def chunk(document: ParsedText, size: ChunkSize) -> list[Chunk]:
    """Cut a document into chunks."""
    whole = _whole(document, size)
    return packed(document, size) if whole is None else [whole]


def _whole(document: ParsedText, size: ChunkSize) -> Chunk | None:
    """Return the only chunk of a short document; None if it has marks, or headings after its first block."""
    blocks = document.blocks
    if not blocks or document.marks or any(block.level for block in blocks[1:]):
        return None
    start, end = blocks[0].start, blocks[-1].end
    text = "\n".join(document.lines[start:end])
    # Less than full by one: two parts of it, each rounded up, are estimated at one more than both together.
    if estimated_tokens(text) >= size.tokens or not text.strip():
        return None
    headings = (blocks[0].title,) if blocks[0].title else ()
    return Chunk(text.strip("\n"), *_lines_of(document.lines, start, end), headings)


def packed(document: ParsedText, size: ChunkSize) -> list[Chunk]:
    """Do the same block by block, whatever the document is like."""
    sizes = _Sizes(document.lines)
    packer = _Packer(document.lines, sizes, size)
    pieces = _pieces(document, sizes, size)
    for piece in _marked(document, pieces) if document.marks else pieces:
        packer.add(piece)
    packer.flush()
    return packer.chunks


@dataclass
class _Packer:
    """Fills one chunk after another."""

    lines: Sequence[str]
    sizes: _Sizes
    size: ChunkSize
    chunks: list[Chunk] = field(default_factory=list)
    _pieces: list[_Piece] = field(default_factory=list)

    def add(self, piece: _Piece) -> None:
        """Add a piece; pieces with different markers do not share a chunk."""
        if self._pieces and self._pieces[-1].marks is not piece.marks:  # one tuple for all pieces of a section
            self.flush()
        if piece.part_of_line:
            if all(_is_told_by(waiting, piece.headings) for waiting in self._pieces):
                self._pieces = []  # the heading is in the trail; a chunk of it alone has no content
            self.flush()
            self.chunks.append(Chunk(piece.part_of_line, piece.start + 1, piece.end, piece.headings, piece.marks))
            return
        tokens = self._tokens()
        if piece.is_heading and tokens >= self.size.tokens // _SECTION_SHARE:
            self.flush()
        elif self._pieces and tokens + piece.tokens > self.size.tokens:
            self._overflow(self.size.tokens - piece.tokens)
        self._pieces.append(piece)

    def flush(self) -> None:
        """Close the chunk."""
        if self._pieces:
            start, end = self._pieces[0].start, self._pieces[-1].end
            text = "\n".join(self.lines[start:end]).strip("\n")
            if text.strip():
                first, last = _lines_of(self.lines, start, end)
                self.chunks.append(Chunk(text, first, last, _above(self._pieces), self._pieces[0].marks))
        self._pieces = []

    def _overflow(self, room: int) -> None:
        """Close the chunk, and begin the next with its trailing headings, or with the overlap that fits."""
        dangling: list[_Piece] = []
        while self._pieces and self._pieces[-1].is_heading:
            dangling.insert(0, self._pieces.pop())
        last = self._pieces[-1] if self._pieces else None
        self.flush()
        if dangling:
            self._pieces = dangling
        elif last is not None and (tail := self._tail(last, min(room, self.size.overlap))) is not None:
            self._pieces = [tail]

    def _tail(self, last: _Piece, room: int) -> _Piece | None:
        """Return the last lines of a piece, as many as fit; code and tables wholly or not at all."""
        start = last.end
        while start > last.start and self.sizes.tokens(start - 1, last.end) <= room:
            start -= 1
        if start == last.end or (last.is_whole and start > last.start):
            return None
        return last._replace(start=start, tokens=self.sizes.tokens(start, last.end), is_whole=False)

    def _tokens(self) -> int:
        if not self._pieces:
            return 0
        start, end = self._pieces[0].start, self._pieces[-1].end
        if not (self.lines[start] and self.lines[end - 1]):
            start, end = self.sizes.written(start, end)
        return self.sizes.tokens(start, end)


def _is_told_by(waiting: _Piece, headings: tuple[str, ...]) -> bool:
    """Return whether headings hold all of a piece; of a long one they have only the beginning."""
    is_short = waiting.tokens * CHARACTERS_PER_TOKEN <= MOST_OF_A_HEADING
    return waiting.is_heading and waiting.headings == headings and is_short


def _marked(document: ParsedText, pieces: Iterable[_Piece]) -> Iterator[_Piece]:
    """Yield pieces with the markers of their section: from one heading to the next."""
    heads = [block.start for block in document.blocks if block.level]
    lines = [mark.line for mark in document.marks]
    borders = [bisect_left(lines, line) for line in (0, *heads, len(document.lines))]
    sections = [document.marks[start:end] for start, end in pairwise(borders)]
    for piece in pieces:
        yield piece._replace(marks=sections[bisect_right(heads, piece.start)])


def _pieces(document: ParsedText, sizes: _Sizes, size: ChunkSize) -> Iterator[_Piece]:
    trail: list[tuple[int, str]] = []
    headings: tuple[str, ...] = ()
    for block in document.blocks:
        if block.level:
            trail = [(level, title) for level, title in trail if level < block.level]
            trail.append((block.level, block.title))
            headings = tuple(title for _, title in trail if title)
        tokens = sizes.tokens(block.start, block.end)
        if tokens <= size.tokens:
            yield _Piece(block.start, block.end, tokens, headings, block.level > 0, block.is_whole)
        else:
            yield from _split(document.lines, sizes, block, headings, size)


def _split(
    lines: Sequence[str], sizes: _Sizes, block: Block, headings: tuple[str, ...], size: ChunkSize
) -> Iterator[_Piece]:
    """Cut a block that is too long at its lines, and a line that is too long at its sentences."""
    start = block.start
    length = 0
    room = size.tokens - size.overlap  # a cut piece begins with the end of the one before
    for number in range(block.start, block.end):
        tokens = estimated_tokens(lines[number])
        if tokens > size.tokens:
            if start < number:
                yield _Piece(start, number, sizes.tokens(start, number), headings)
            for part in _split_line(lines[number], size):
                yield _Piece(number, number + 1, tokens, headings, part_of_line=part)
            start, length = number + 1, 0
        elif length + tokens > room and start < number:
            yield _Piece(start, number, sizes.tokens(start, number), headings)
            start, length = number, tokens
        else:
            length += tokens
    if start < block.end:
        yield _Piece(start, block.end, sizes.tokens(start, block.end), headings)


def _split_line(line: str, size: ChunkSize) -> Iterator[str]:
    # A line may be without spaces or in a script where a letter is a token, so the share of tokens sets the length.
    characters = max(1, len(line) * size.tokens // estimated_tokens(line))
    overlap = characters * size.overlap // size.tokens
    start = 0
    while start < len(line):
        end = min(len(line), start + characters)
        if end < len(line):
            end = _sentence_end(line, start + characters // 2, end)
        yield line[start:end]
        if end >= len(line):
            return
        low = max(start + 1, end - overlap)
        start = line.find(" ", low, end) + 1 or low  # at a word, if one begins there


def _sentence_end(line: str, low: int, high: int) -> int:
    for mark in _SENTENCE_ENDS:
        place = line.rfind(mark, low, high)
        if place >= 0:
            return place + len(mark)
    return high


def _lines_of(lines: Sequence[str], start: int, end: int) -> tuple[int, int]:
    """Return the first and the last line of the text between two places, counted from 1."""
    while start < end - 1 and not lines[start]:
        start += 1
    while start < end - 1 and not lines[end - 1]:
        end -= 1
    return start + 1, max(end, start + 1)


def _above(pieces: Sequence[_Piece]) -> tuple[str, ...]:
    """Return the headings above pieces that begin inside a section, else the headings common to all."""
    first = pieces[0].headings
    if not pieces[0].is_heading:
        return first  # they are not in its text, as those further down are
    shared = len(first)
    for piece in pieces[1:]:
        while piece.headings[:shared] != first[:shared]:
            shared -= 1
    return first[:shared]


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
    problem = document.front.problem or ("" if memories else "it contains no text")
    said = (problem, *whole.problems, *_remarks(document, scope), *section_fields(document.marks).problems)
    told = [*dict.fromkeys(filter(None, said))]
    if len(told) > MOST_REMARKS:
        told[MOST_REMARKS:] = [f"and {len(told) - MOST_REMARKS:,} more of this kind"]
    return Read(memories, (*remarks, *told))


def _remarks(document: ParsedText, scope: Scope) -> Iterator[str]:
    """Yield remarks about a foreign scope, and about names, properties and text beyond a limit."""
    fields, places, *_ = document.front
    if fields.get("scope") and fields["scope"] != str(scope):
        yield f"{places.get('scope', FRONT)}: scope is not read from files; stored as {scope} (see --scope)"
    for key in ("title", "name", "slug"):
        if (length := len(scalar(fields.get(key)))) > MOST_OF_A_NAME:
            yield f"{places.get(key, FRONT)}: {key} has {length:,} characters, the first {MOST_OF_A_NAME} are kept"
    if _is_without_text(document) and properties(fields).is_cut:
        yield f"{FRONT}: more than {MOST_PROPERTIES:,} values, the first {MOST_PROPERTIES:,} are kept"
    if document.plain_from is not None:
        yield f"from line {document.plain_from + 1:,} on it is read as plain paragraphs: over the limit of the parser"


def _chunk_memories(
    document: ParsedText, whole: FileFields, path: str, scope: Scope, mtime: float, size: ChunkSize
) -> Iterator[Memory]:
    fields = document.front.fields
    place = stored_place(path)
    is_skill = place.name == SKILL_FILE
    named = _text(fields, *(("name", "title") if is_skill else ("title", "name")))[:MOST_OF_A_NAME].rstrip()
    # A heading of level 1 that a file opens with is its title.
    name = named or next((block.title for block in document.blocks[:1] if block.level == 1), "")
    summary = _text(fields, "description", "summary")
    slug = _text(fields, "slug")[:MOST_OF_A_NAME].rstrip() or (place.folders[-1] if is_skill and place.folders else "")
    dated = whole.values.get("date", date_in_name(path))
    evergreen = is_evergreen(path, dated is not None)
    chunks = chunk(document, size)
    if _is_without_text(document):
        lines = properties(fields, (name, slug, summary)).lines
        if lines or not chunks:
            said = "\n".join([*filter(None, [summary]), *lines]) or name
            written = chunk(parse_plain(said), size)  # which all have the lines of the front matter
            chunks = [*(piece._replace(start_line=1, end_line=document.front.body_start) for piece in written), *chunks]
            summary = ""
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


def _is_without_text(document: ParsedText) -> bool:
    """Return whether a file holds headings at most."""
    return all(block.level for block in document.blocks)


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
        [f"{counted(len(bad), 'line is not a turn', 'lines are not turns')}, the first is line {bad[0]}"] if bad else []
    )
    if undated := [turn["line"] for turn in turns if turn["is_misdated"]]:
        lines = counted(len(undated), "line has a date that cannot be read", "lines have dates that cannot be read")
        remarks.append(f"{lines} and got the date of the file; the first is line {undated[0]}")
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
    text, title = clean(document.text).text, document.title
    whole = Memory(
        id=id_for(document.scope, document.id, text),
        text=text,
        kind="chunk",
        title=title,
        source=Source(document.id, content_hash=content_hash(text)),
        scope=document.scope,
        created=now,
        date=parse_date(document.date),
        trust="ingested",
        tags=document.tags,
        metadata=document.metadata,
    )
    if document.session and document.speaker:
        yield replace(whole, session=document.session, speaker=document.speaker, position=position)
        return
    # A document without text is found by its name.
    pieces = chunk(parse_plain(text), size) or ([Chunk(title, 1, 1, ())] if title.strip() else [])
    for piece, (said, occurrence) in zip(pieces, occurrences(piece.text for piece in pieces), strict=True):
        source = Source(document.id, piece.start_line, piece.end_line, content_hash(said))
        identity = id_for(document.scope, document.id, said, occurrence)
        yield replace(
            whole, id=identity, text=said, name=title, slug=document.slug, owner=document.owner, source=source
        )


_IN_NAME = re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)")
_EVERGREEN_NAMES = frozenset({"MEMORY.md", "USER.md"})


def date_in_name(path: str) -> float | None:
    """Return the date a file's name carries, if it carries one."""
    match = _IN_NAME.search(stored_place(path).name)
    return parse_date("-".join(match.groups())) if match else None


def is_evergreen(path: str, dated: bool) -> bool:
    """Return whether a file does not age: the long-lived notes, and undated files under `memory/`."""
    place = stored_place(path)
    return place.name in _EVERGREEN_NAMES or (not dated and "memory" in place.folders)
