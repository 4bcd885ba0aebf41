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

_WHOLE = frozenset({"fence", "code_block", "table_open"})


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
    blocks = None if "\r" in text or "\0" in text else blocks_by_lines(lines, front.body_start)
    if blocks is None:
        blocks = tuple(parsed_blocks(lines, front.body_start))
    document = ParsedText(lines, blocks, front)
    return _unmarked(document) if "whyrank:" in text else document


def parsed_blocks(lines: Sequence[str], body_start: int) -> Iterator[Block]:
    """Yield the blocks of a file as the parser finds them, whatever it holds."""
    body = "\n".join(lines[body_start:])
    blocks = (block._replace(start=block.start + body_start, end=block.end + body_start) for block in _blocks(body))
    return _without_gaps(lines, body_start, blocks)


def _unmarked(document: ParsedText) -> ParsedText:
    """Take the markers out of what is neither code nor table."""
    lines, marks = list(document.lines), list[Mark]()
    for block in document.blocks:
        for number in range(block.start, 0 if block.is_whole else block.end):
            lines[number], mark = taken_out(lines[number], number)
            marks += [mark] if mark is not None else []
    blocks = tuple(block._replace(title=without_markers(block.title)) for block in document.blocks)
    return document._replace(lines=tuple(lines), blocks=blocks, marks=tuple(marks))


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


def _blocks(body: str) -> Iterator[Block]:
    tokens = _parser().parse(body)
    for place, token in enumerate(tokens):
        if token.level or token.map is None or token.nesting < 0:
            continue
        start, end = token.map
        if token.type == "heading_open":
            yield Block(start, end, int(token.tag[1:]), " ".join(tokens[place + 1].content.split()))
        else:
            yield Block(start, end, is_whole=token.type in _WHOLE)


def _without_gaps(lines: Sequence[str], start: int, blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield the blocks, and whatever text stands between them that the parser makes no block of (link definitions)."""
    for block in (*blocks, Block(len(lines), len(lines))):
        written = [number for number in range(start, block.start) if lines[number].strip()]
        if written:
            yield Block(written[0], written[-1] + 1)
        if block.start < len(lines):
            yield block
        start = max(start, block.end)
