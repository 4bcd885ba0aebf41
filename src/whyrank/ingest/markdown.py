"""Markdown as blocks with their lines and headings, behind its front matter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, NamedTuple

from .frontmatter import FrontMatter, Mark, front_matter, taken_out, without_markers
from .markdown_blocks import Block, blocks_by_lines

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_CODE = frozenset({"fence", "code_block"})
_WHOLE = _CODE | {"table_open"}
# At a time, where the kind of lines is uncertain; twice as much if they are all one block.
LINES_PARSED = 64
# Parser budget for one file, over all its calls, in microseconds of parsing time on a usual
# machine: one for a character, and some more for a line.
MOST_PARSED = 4_000_000
_OF_A_LINE = 50
# Characters of a heading that are kept in the trail of every chunk; its own chunk has all of them.
MOST_OF_A_HEADING = 500


class ParsedText(NamedTuple):
    """Parsed file: its lines, blocks, front matter and markers, and the line from which it was not parsed."""

    lines: tuple[str, ...]
    blocks: tuple[Block, ...]
    front: FrontMatter
    marks: tuple[Mark, ...] = ()
    plain_from: int | None = None


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # most notes need none, and it takes longer to load than they take to read

    # Inline syntax forms no block; headings are taken as they are written.
    return MarkdownIt("commonmark").enable("table").disable(["inline", "text_join"])


def parse_markdown(text: str) -> ParsedText:
    """Read a markdown file."""
    if "\r" in text:  # which the parser takes for the end of a line
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = tuple(text.split("\n"))
    front = front_matter(lines)
    # NUL is replaced by the parser, so such a text is left to it.
    if "\0" in text:
        blocks, plain_from = parsed_blocks(lines, front.body_start), None
    else:
        blocks, plain_from = bounded_blocks(lines, front.body_start)
    if any(len(block.title) > MOST_OF_A_HEADING for block in blocks):
        blocks = tuple(block._replace(title=block.title[:MOST_OF_A_HEADING]) for block in blocks)
    document = ParsedText(lines, blocks, front, plain_from=plain_from)
    return _unmarked(document) if "whyrank:" in text else document


def parsed_blocks(lines: Sequence[str], body_start: int) -> tuple[Block, ...]:
    """Return the blocks of a file as the parser finds them, whatever it holds."""
    return tuple(_without_gaps(lines, body_start, _blocks(lines, body_start, len(lines))))


def blocks_of(lines: Sequence[str], body_start: int, parsed: int = LINES_PARSED) -> tuple[Block, ...]:
    """Return the same blocks, and call the parser only where the kind of a line is uncertain."""
    return bounded_blocks(lines, body_start, parsed)[0]


def bounded_blocks(
    lines: Sequence[str], body_start: int, parsed: int = LINES_PARSED, room: int = MOST_PARSED
) -> tuple[tuple[Block, ...], int | None]:
    """Return the blocks, and the line from which they are paragraphs, by the parser's limit, or None."""
    blocks, place = blocks_by_lines(lines, body_start)
    while place < len(lines):
        found, room = _next_blocks(lines, place, parsed, room)
        if room < 0:
            blocks += _paragraphs(lines, place)
            return tuple(_without_gaps(lines, body_start, blocks)), place
        if not found:
            break
        told, place = blocks_by_lines(lines, found[-1].end)
        blocks += found + told
    return tuple(_without_gaps(lines, body_start, blocks)), None


def _next_blocks(lines: Sequence[str], start: int, size: int, room: int) -> tuple[list[Block], int]:
    """Return the blocks of the next lines, without those that may continue; none at the end of the file.

    And the remaining budget of the parser: below 0 these were not parsed.
    """
    stop = min(start + size, len(lines))
    cost = sum(map(_cost, lines[start:stop]))
    while True:
        room -= cost
        if room < 0:
            return [], room
        found = [*_blocks(lines, start, stop)]
        if stop == len(lines):
            return found, room
        # A block that another one follows has ended, and its kind depends on nothing behind a blank line.
        blank = max((number for number in range(start, stop) if not lines[number].strip(" \t")), default=start)
        ended = [block for block in found[:-1] if block.end <= blank]
        if ended:
            return ended, room
        wanted = 2 * cost
        while cost < wanted and stop < len(lines):
            cost += _cost(lines[stop])
            stop += 1


def _cost(line: str) -> int:
    return len(line) + _OF_A_LINE


def _unmarked(document: ParsedText) -> ParsedText:
    """Remove the markers from text that is neither code nor table."""
    lines, marks, code = list(document.lines), list[Mark](), _code_in(document)
    stop = _parsed_to(document)
    for block in document.blocks:
        for number in range(block.start, 0 if block.is_whole else min(block.end, stop)):
            if number not in code:
                lines[number], mark = taken_out(lines[number], number)
                marks += [mark] if mark is not None else []
    if any("whyrank:" in line for line in lines[stop:]):
        said = f"line {stop + 1}: markers from here on are left as text: more than the parser is given"
        marks.append(Mark(stop, {}, (said,)))
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
    tokens = _tokens("\n".join(document.lines[first : _parsed_to(document)]))
    spans = [token.map for token in tokens if token.type in _CODE and token.map is not None]
    return {first + number for start, end in spans for number in range(start, end)}


def _parsed_to(document: ParsedText) -> int:
    """Return the line behind the last one parsed to distinguish code from text: markers behind it stay."""
    costs = accumulate(map(_cost, document.lines[document.front.body_start :]))
    return document.front.body_start + sum(1 for _ in takewhile(lambda cost: cost <= MOST_PARSED, costs))


def parse_plain(text: str) -> ParsedText:
    """Read a plain text file: paragraphs are its blocks."""
    lines = tuple(text.split("\n"))
    return ParsedText(lines, tuple(_paragraphs(lines, 0)), FrontMatter())


def _paragraphs(lines: Sequence[str], first: int) -> Iterator[Block]:
    """Yield the paragraphs from a line on."""
    start: int | None = None
    for number in range(first, len(lines)):
        if lines[number].strip():
            start = number if start is None else start
        elif start is not None:
            yield Block(start, number)
            start = None
    if start is not None:
        yield Block(start, len(lines))


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
    """Yield the blocks, and the text between them that the parser makes no block of (link definitions)."""
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
