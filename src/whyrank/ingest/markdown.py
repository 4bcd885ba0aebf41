"""Markdown as blocks with their lines and headings, behind its front matter."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, NamedTuple

from .frontmatter import FrontMatter, Mark, front_matter, taken_out, without_markers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_SPACES = " \t"
_TAB_COLUMNS = 4
_HEADING = re.compile(r"(#{1,6})[ \t]+([^ \t#](?:.*[^ \t#])?)[ \t]*\Z")
_FENCE = re.compile(r"(`{3,})[^`]*\Z|(~{3,})")
_ITEM = re.compile(r"(?:([-+*])|([0-9]{1,9})([.)]))( {1,4})(?=[^ \t])")
_ITEM_LIKE = re.compile(r"(?:[-+*]|[0-9]{1,9}[.)])(?:[ \t]|\Z)")
_BULLETS = "-*+"
_FIRST = "1"  # a list that begins with another number does not end a paragraph
# Of such letters alone are rules, the lines under headings, and those under the heads of tables.
_DRAWN = frozenset("-:|=_* \t")
_RULE = re.compile(r"(?:-{3,}|\*{3,}|_{3,})[ \t]*\Z")
_TABLE_HEAD = re.compile(r"\|[^\\]*\|[ \t]*\Z")
_TABLE_RULE = re.compile(r"\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*\Z")
_MOST_CELLS = 0x10000  # the parser adds no more of them to rows of one table that have too few
_DEFINED = re.compile(r"\[(?:.*\]:|(?:[^\]\\]|\\.)*\\?\Z)")  # a link with a label that may continue in the next line
# The same where it is certain: a label that is seen, an address without escapes or entities, by no other protocol than
# that of pages.
_DEFINITION = re.compile(
    r"\[(?=[^]]*[!-Z^-~])[^][\\|]+\]:[ \t]+(?:https?://|(?![^ \t]*:))[A-Za-z0-9_./#?&=%+~,@!$*:-]+[ \t]*\Z"
)
_TITLE_MARKS = ('"', "'", "(")  # a title may follow in the next line
_DEEP_COLUMNS = 20  # of markers and indents, below which nothing is nested too deep for the parser
# As many of them as reach so deep if all are tabs.
_MARKERS = re.compile(rf"[-+*>0-9.) \t]{{{_DEEP_COLUMNS // _TAB_COLUMNS},}}")
_COMMENT, _COMMENT_END = "<!--", "-->"
_UNDERLINE = re.compile(r"(=+|-{2,})[ \t]*\Z")
_TAG = re.compile(r"</?(?!(?i:pre|script|style|textarea)>)([A-Za-z][A-Za-z0-9-]*)>[ \t]*\Z")  # those end otherwise
# Tags that end a paragraph, by one edition of CommonMark or another; all others are part of it.
_ENDING_TAGS = frozenset({
    "address", "article", "aside", "base", "basefont", "blockquote", "body", "caption", "center", "col", "colgroup",
    "dd", "details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "frame",
    "frameset", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hr", "html", "iframe", "legend", "li", "link",
    "main", "menu", "menuitem", "meta", "nav", "noframes", "ol", "optgroup", "option", "p", "param", "search",
    "section", "source", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "title", "tr", "track", "ul",
})  # fmt: skip
# Tags with more behind them, and addresses, begin text; nothing of a line that begins so makes it anything else.
_TEXT_TAG = re.compile(r'<(?:https?://|(?:a|b|code|em|i|img|kbd|span|strong)(?: +[a-z-]+="[^"]*")* */?>.*[!-~])')
_MARKS = frozenset("<>#|`~[=-+*_:")
_LEFT_TO_THE_PARSER = frozenset("<") | frozenset(map(chr, range(32))) | {"\x7f"}


class Block(NamedTuple):
    """Lines of a file (from 0, end excluded); headings have level and title, code and tables stay whole."""

    start: int
    end: int
    level: int = 0
    title: str = ""
    is_whole: bool = False


class _Uncertain(Exception):
    """Construct that only the parser can decide."""


def blocks_by_lines(lines: Sequence[str], start: int) -> tuple[list[Block], int]:
    """Return the blocks of a file from a line on, and the line from which it takes the parser, or the end.

    Blank lines and the definitions of links are of no block.
    """
    is_open = len(lines) > start and not lines[-1].strip(_SPACES)  # behind the last line feed there is no line
    end = len(lines) - is_open
    blocks: list[Block] = []
    try:
        while start < end:
            line = lines[start]
            is_blank = line[:1] in _SPACES and not line.strip(_SPACES)  # nothing is in everything
            if is_blank or (line[0] == "[" and _is_definition(lines, start, end)):
                start += 1
            else:
                blocks.append(_block(lines, start, end))
                start = blocks[-1].end
    except _Uncertain:
        # The block before may continue into it: a list, for instance, with an item that only the parser recognizes.
        return blocks[:-1], blocks[-1].start if blocks else start
    return blocks, len(lines)


def _is_definition(lines: Sequence[str], start: int, end: int) -> bool:
    """Return whether a line where a block may begin certainly defines a link, and nothing more."""
    has_title = start + 1 < end and lines[start + 1].lstrip(_SPACES).startswith(_TITLE_MARKS)
    return not has_title and _DEFINITION.match(lines[start]) is not None


def _block(lines: Sequence[str], start: int, end: int) -> Block:
    """Return the block that begins at a line, which is not blank."""
    line = lines[start]
    first = line[0]
    if "|" in line and first != "|" and start + 1 < end and lines[start + 1] and _is_drawn(lines[start + 1]):
        raise _Uncertain  # whatever else it may be, a table comes first
    if first == "#":
        heading = _HEADING.match(line)
        if heading is None:
            raise _Uncertain
        return Block(start, start + 1, len(heading[1]), " ".join(heading[2].split()))
    if first.isalpha():
        return _paragraph(lines, start, end)
    if first in _BULLETS and not _RULE.match(line) and _ITEM.match(line):
        return _list(lines, start, end)
    block = _fence(lines, start, end) or _table(lines, start, end)
    if block is not None:
        return block
    if line.startswith(_COMMENT):
        last = next((number for number in range(start, end) if _COMMENT_END in lines[number]), None)
        if last is None:
            raise _Uncertain
        return Block(start, last + 1)
    if first in _SPACES and _indent(line) >= _TAB_COLUMNS:
        return _code(lines, start, end)
    if _TAG.match(line):
        return Block(start, next((number for number in range(start, end) if not lines[number].strip(_SPACES)), end))
    if _RULE.match(line):
        return Block(start, start + 1)
    if first == ">":
        return _quote(lines, start, end)
    if _ITEM.match(line):
        return _list(lines, start, end)
    return _paragraph(lines, start, end)


def _fence(lines: Sequence[str], start: int, end: int) -> Block | None:
    """Return code between fences."""
    opened = _FENCE.match(lines[start])
    if opened is None:
        return None
    fence = opened[1] or opened[2]
    inside = range(start + 1, end)
    last = next((number for number in inside if fence in lines[number] and _closes(lines[number], fence)), None)
    if last is None:
        raise _Uncertain
    return Block(start, last + 1, is_whole=True)


def _closes(line: str, fence: str) -> bool:
    """Return whether a line is a fence at least as long as the opening one, indented by at most 3 spaces."""
    bare = line.lstrip(" ")
    return len(line) - len(bare) < _TAB_COLUMNS and bare.startswith(fence) and not bare.rstrip(_SPACES).strip(fence[0])


def _code(lines: Sequence[str], start: int, end: int) -> Block:
    """Return indented code: it ends with the last line that is."""
    last = start + 1
    for number in range(start + 1, end):
        if lines[number].strip(_SPACES):
            if _indent(lines[number]) < _TAB_COLUMNS:
                break
            last = number + 1
    return Block(start, last, is_whole=True)


def _table(lines: Sequence[str], start: int, end: int) -> Block | None:
    """Return a table in which all lines begin with a bar."""
    if lines[start][0] != "|":
        return None
    head, rule = lines[start], lines[start + 1] if start + 1 < end else ""
    is_table = _TABLE_HEAD.match(head) and _TABLE_RULE.match(rule) and head.count("|") == rule.count("|")
    if not is_table or _is_drawn(head):
        raise _Uncertain
    last = start + 2
    while last < end and lines[last].startswith("|"):
        last += 1
    _check_blank(lines, last, end)
    bars = rule.count("|")
    if bars * (last - start) > _MOST_CELLS:
        fewest = (line.count("|") - line.count("\\|") for line in lines[start + 2 : last])
        if sum(max(0, bars - own) for own in fewest) > _MOST_CELLS:
            raise _Uncertain
    return Block(start, last, is_whole=True)


def _quote(lines: Sequence[str], start: int, end: int) -> Block:
    last = start
    while last < end and lines[last].startswith(">"):
        _check_depth(lines[last])
        last += 1
    if lines[last - 1].rstrip(_SPACES).endswith(">"):
        raise _Uncertain
    _check_blank(lines, last, end)
    return Block(start, last)


def _check_blank(lines: Sequence[str], number: int, end: int) -> None:
    """Raise _Uncertain if a block continues without a blank line."""
    if number < end and lines[number].strip(_SPACES):
        raise _Uncertain


def _list(lines: Sequence[str], start: int, end: int) -> Block:
    """Return a list: items of its kind and everything indented below them."""
    first = _ITEM.match(lines[start])
    if first is None:
        raise _Uncertain
    kind, inside = _kind_of(first)
    _check_depth(lines[start])
    is_behind_blank = False
    for number in range(start + 1, end):
        line = lines[number]
        if line[:1] in _SPACES and not line.strip(_SPACES):
            is_behind_blank = True
            continue
        _check_depth(line)
        if line[0] in _SPACES:
            if _indent(line) < inside:
                raise _Uncertain
        elif item := _ITEM.match(line):
            other, inside = _kind_of(item)
            if other != kind:
                return Block(start, number)
        elif is_behind_blank or _HEADING.match(line) or _FENCE.match(line):
            return Block(start, number)
        else:  # it may continue the text of the item
            raise _Uncertain
        is_behind_blank = False
    return Block(start, end)


def _kind_of(item: re.Match[str]) -> tuple[str, int]:
    """Return the kind of a list item, and the column of its content."""
    if _is_drawn(item.string):
        raise _Uncertain
    return item[1] or item[3], item.end()


def _indent(line: str) -> int:
    """Return the indentation of a line in columns."""
    return len(line[: len(line) - len(line.lstrip(_SPACES))].expandtabs(_TAB_COLUMNS))


def _paragraph(lines: Sequence[str], start: int, end: int) -> Block:
    """Return a paragraph: it ends at a blank line, or at a block that needs none before it.

    Or a heading, if it is underlined.
    """
    if not lines[start][0].isalpha():
        _check_text(lines[start])
        if _DEFINED.match(lines[start]):  # which is no block
            raise _Uncertain
    for number in range(start + 1, end):
        line = lines[number]
        if line[:1] in _SPACES and not line.strip(_SPACES):
            return Block(start, number)
        if line[0].isalpha() or (line[0] in _SPACES and _indent(line) >= _TAB_COLUMNS):
            continue  # whatever it is: code needs a blank line before it, and nothing else begins with a letter
        if _UNDERLINE.match(line):
            if "|" in lines[number - 1] and number - 1 > start:
                raise _Uncertain  # the head of a table
            return Block(start, number + 1, 1 if line[0] == "=" else 2, " ".join(" ".join(lines[start:number]).split()))
        if _HEADING.match(line) or _FENCE.match(line) or line[0] == ">" or line.startswith(_COMMENT):
            return Block(start, number)
        if line[0] == "|":
            _table(lines, number, end)  # or it is uncertain
            return Block(start, number)
        if item := _ITEM.match(line):
            _kind_of(item)
            if item[2] not in (None, _FIRST):
                raise _Uncertain
            return Block(start, number)
        tag = _TAG.match(line)
        if tag is None or tag[1].lower() in _ENDING_TAGS:
            _check_text(line)
    return Block(start, end)


def _check_text(line: str) -> None:
    """Refuse a line of which it is not certain that it begins nothing but text."""
    if line[0] in _SPACES:
        line = line.lstrip(_SPACES)
        if line[0] in _MARKS:
            raise _Uncertain
    is_marked = line[0] in _LEFT_TO_THE_PARSER or line.startswith(("#", "```", "~~~", "|"))
    if (is_marked and not _TEXT_TAG.match(line)) or _ITEM_LIKE.match(line) or _is_drawn(line):
        raise _Uncertain


def _check_depth(line: str) -> None:
    """Raise _Uncertain if a line may be nested too deep."""
    markers = _MARKERS.match(line)
    if markers is not None and len(markers[0].expandtabs(_TAB_COLUMNS)) >= _DEEP_COLUMNS:
        raise _Uncertain


def _is_drawn(line: str) -> bool:
    """Return whether a line consists of drawing characters, not of text."""
    return _DRAWN.issuperset(line) and not line.isspace()


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
    is_left = "\0" in text
    blocks, plain_from = (
        (parsed_blocks(lines, front.body_start), None) if is_left else blocks_of(lines, front.body_start)
    )
    if any(len(block.title) > MOST_OF_A_HEADING for block in blocks):
        blocks = tuple(block._replace(title=block.title[:MOST_OF_A_HEADING]) for block in blocks)
    document = ParsedText(lines, blocks, front, plain_from=plain_from)
    return _unmarked(document) if "whyrank:" in text else document


def parsed_blocks(lines: Sequence[str], body_start: int) -> tuple[Block, ...]:
    """Return the blocks of a file as the parser finds them, whatever it holds."""
    return tuple(_without_gaps(lines, body_start, _blocks(lines, body_start, len(lines))))


def blocks_of(
    lines: Sequence[str], body_start: int, parsed: int = LINES_PARSED, room: int = MOST_PARSED
) -> tuple[tuple[Block, ...], int | None]:
    """Return the same blocks, and the line from which they are paragraphs, by the parser's limit, or None.

    The parser is called only where the kind of a line is uncertain.
    """
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
        said = f"line {stop + 1}: markers from here on are left as text: over the limit of the parser"
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
