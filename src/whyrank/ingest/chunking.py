"""Blocks to chunks: about 400 tokens each, along headings, code and tables kept whole where they fit."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, filterfalse, pairwise
from typing import NamedTuple

from ..analysis.normalize import CHARACTERS_PER_TOKEN, estimated_tokens, tokens_in_letters, unspaced_letters
from ..errors import ConfigError
from .frontmatter import Mark
from .markdown import MOST_OF_A_HEADING, ParsedText
from .markdown_blocks import Block

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

    def __init__(self, lines: Sequence[str], is_spaced: bool) -> None:
        self._letters = [0, *accumulate(map(len, lines))]
        self._unspaced = None if is_spaced else [0, *accumulate(map(unspaced_letters, lines))]

    def written(self, start: int, end: int) -> tuple[int, int]:
        """Return lines without the empty ones before and behind them; the last of lines that are all empty."""
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


def _are_spaced(lines: Sequence[str]) -> bool:
    """Return whether all letters are of scripts that put spaces between words."""
    return not any(map(unspaced_letters, filterfalse(str.isascii, lines)))


def packed(document: ParsedText, size: ChunkSize) -> list[Chunk]:
    """Do the same block by block, whatever the document is like."""
    sizes = _Sizes(document.lines, _are_spaced(document.lines))
    packer = _Packer(document.lines, sizes, size)
    for piece in _pieces(document, sizes, size):
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
            if all(self._is_told_by(waiting, piece.headings) for waiting in self._pieces):
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

    def _is_told_by(self, waiting: _Piece, headings: tuple[str, ...]) -> bool:
        """Return whether headings hold all of a piece; of a long one they have only the beginning."""
        is_short = waiting.tokens * CHARACTERS_PER_TOKEN <= MOST_OF_A_HEADING
        return waiting.is_heading and waiting.headings == headings and is_short

    def flush(self) -> None:
        """Close the chunk."""
        if self._pieces:
            start, end = self._pieces[0].start, self._pieces[-1].end
            text = _text(self.lines, start, end)
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


def _pieces(document: ParsedText, sizes: _Sizes, size: ChunkSize) -> Iterator[_Piece]:
    """Return the pieces of a document, each with the markers of its section: from one heading to the next."""
    pieces = _unmarked_pieces(document, sizes, size)
    return _marked(document, pieces) if document.marks else pieces


def _marked(document: ParsedText, pieces: Iterable[_Piece]) -> Iterator[_Piece]:
    heads = [block.start for block in document.blocks if block.level]
    lines = [mark.line for mark in document.marks]
    borders = [bisect_left(lines, line) for line in (0, *heads, len(document.lines))]
    sections = [document.marks[start:end] for start, end in pairwise(borders)]
    for piece in pieces:
        yield piece._replace(marks=sections[bisect_right(heads, piece.start)])


def _unmarked_pieces(document: ParsedText, sizes: _Sizes, size: ChunkSize) -> Iterator[_Piece]:
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
        start = _word_start(line, max(start + 1, end - overlap), end)


def _word_start(line: str, low: int, high: int) -> int:
    """Return the first word start from `low` to before `high`, else `low`."""
    space = line.find(" ", low, high)
    return space + 1 if space >= 0 else low


def _sentence_end(line: str, low: int, high: int) -> int:
    for mark in _SENTENCE_ENDS:
        place = line.rfind(mark, low, high)
        if place >= 0:
            return place + len(mark)
    return high


def _text(lines: Sequence[str], start: int, end: int) -> str:
    return "\n".join(lines[start:end]).strip("\n")


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
