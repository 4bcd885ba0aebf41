"""Markdown as blocks with their lines and headings, behind its front matter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from .blocks import Block, blocks_by_lines
from .frontmatter import FrontMatter, front_matter
from .markers import Mark, taken_out, without_markers

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_CODE = frozenset({"fence", "code_block"})
_WHOLE = _CODE | {"table_open"}
LINES_PARSED = 64  # at a time, where it is not certain what lines are; four times as many if they are all one block


class ParsedText(NamedTuple):
    """A parsed file: its lines, its blocks, its front matter and its markers."""

    lines: tuple[str, ...]
    blocks: tuple[Block, ...]
    front: FrontMatter
    marks: tuple[Mark, ...] = ()


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # most notes need none, and it takes longer to load than they take to read

    # What stands inside a line is nobody's block; headings are taken as they are written.
    return MarkdownIt("commonmark").enable("table").disable(["inline", "text_join"])


def parse_markdown(text: str) -> ParsedText:
    """Read a markdown file."""
    lines = tuple(text.split("\n"))
    front = front_matter(lines)
    # What the parser takes for the end of a line, or puts something else for, is left to it.
    is_usual = "\r" not in text and "\0" not in text
    blocks = blocks_of(lines, front.body_start) if is_usual else parsed_blocks(lines, front.body_start)
    document = ParsedText(lines, blocks, front)
    return _unmarked(document) if "whyrank:" in text else document


def parsed_blocks(lines: Sequence[str], body_start: int) -> tuple[Block, ...]:
    """Return the blocks of a file as the parser finds them, whatever it holds."""
    return tuple(_without_gaps(lines, body_start, _blocks(lines, body_start, len(lines))))


def blocks_of(lines: Sequence[str], body_start: int, parsed: int = LINES_PARSED) -> tuple[Block, ...]:
    """Return the same blocks, and ask the parser only where it is not certain what lines are."""
    blocks, place = blocks_by_lines(lines, body_start)
    while place < len(lines) and (found := _next_blocks(lines, place, parsed)):
        told, place = blocks_by_lines(lines, found[-1].end)
        blocks += found + told
    return tuple(_without_gaps(lines, body_start, blocks))


def _next_blocks(lines: Sequence[str], start: int, size: int) -> list[Block]:
    """Return the blocks of the next lines, without those that may go on behind them; none at the end of the file."""
    while start + size < len(lines):
        # A block that another one follows has ended, and what it is depends on nothing behind a blank line.
        blank = max((number for number in range(start, start + size) if not lines[number].strip(" \t")), default=start)
        ended = [block for block in [*_blocks(lines, start, start + size)][:-1] if block.end <= blank]
        if ended:
            return ended
        size *= 4
    return [*_blocks(lines, start, len(lines))]


def _unmarked(document: ParsedText) -> ParsedText:
    """Take the markers out of what is neither code nor table."""
    lines, marks, code = list(document.lines), list[Mark](), _code_in(document)
    for block in document.blocks:
        for number in range(block.start, 0 if block.is_whole else block.end):
            if number not in code:
                lines[number], mark = taken_out(lines[number], number)
                marks += [mark] if mark is not None else []
    blocks = tuple(block._replace(title=without_markers(block.title)) for block in document.blocks)
    return document._replace(lines=tuple(lines), blocks=blocks, marks=tuple(marks))


def _tokens(text: str) -> list[Token]:
    try:
        return _parser().parse(text)
    except IndexError:  # the parser's own, where a text ends within nested blocks, and without a line feed
        return _parser().parse(f"{text}\n")


def _code_in(document: ParsedText) -> set[int]:
    """Return the lines of code, in lists and quotes as well."""
    first = document.front.body_start
    tokens = _tokens("\n".join(document.lines[first:]))
    spans = [token.map for token in tokens if token.type in _CODE and token.map is not None]
    return {first + number for start, end in spans for number in range(start, end)}


def parse_plain(text: str) -> ParsedText:
    """Read a plain text file: paragraphs are its blocks."""
    lines = tuple(text.split("\n"))
    blocks: list[Block] = []
    start: int | None = None
    for number, line in enumerate((*lines, "")):
        if line.strip() and start is None:
            start = number
        elif not line.strip() and start is not None:
            blocks.append(Block(start, number))
            start = None
    return ParsedText(lines, tuple(blocks), FrontMatter())


def _blocks(lines: Sequence[str], first: int, stop: int) -> Iterator[Block]:
    tokens = _tokens("\n".join(lines[first:stop]) + ("\n" if stop < len(lines) else ""))
    for place, token in enumerate(tokens):
        if token.level or token.map is None or token.nesting < 0:
            continue
        start, end = (first + number for number in token.map)
        if token.type == "heading_open":
            yield Block(start, end, int(token.tag[1:]), " ".join(tokens[place + 1].content.split()))
        else:
            yield Block(start, end, is_whole=token.type in _WHOLE)


def _without_gaps(lines: Sequence[str], start: int, blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield the blocks, and whatever text stands between them that the parser makes no block of (link definitions)."""
    for block in blocks:
        first, end = block[0], block[1]
        if start < first:
            yield from _text_between(lines, start, first)
        yield block
        if start < end:
            start = end
    yield from _text_between(lines, start, len(lines))


def _text_between(lines: Sequence[str], start: int, end: int) -> Sequence[Block]:
    if not any(lines[start:end]):
        return ()
    written = [number for number in range(start, end) if lines[number].strip()]
    return (Block(written[0], written[-1] + 1),) if written else ()
