"""Markdown blocks by the first letters of lines; the parser decides where that is not enough."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

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
    if not _DEFINITION.match(lines[start]):
        return False
    return start + 1 == end or not lines[start + 1].lstrip(_SPACES).startswith(_TITLE_MARKS)


def _block(lines: Sequence[str], start: int, end: int) -> Block:
    """Return the block that begins at a line, which is not blank."""
    line = lines[start]
    first = line[0]
    if "|" in line and first != "|" and start + 1 < end and lines[start + 1] and _is_drawn(lines[start + 1]):
        raise _Uncertain  # whatever else it may be, a table comes first
    if first == "#":
        return _heading(line, start)
    if first.isalpha():
        return _paragraph(lines, start, end)
    if first in _BULLETS and not _RULE.match(line) and _ITEM.match(line):
        return _list(lines, start, end)
    block = _fence(lines, start, end) or _table(lines, start, end)
    if block is not None:
        return block
    if line.startswith(_COMMENT):
        return _comment(lines, start, end)
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


def _heading(line: str, number: int) -> Block:
    heading = _HEADING.match(line)
    if heading is None:
        raise _Uncertain
    return Block(number, number + 1, len(heading[1]), " ".join(heading[2].split()))


def _comment(lines: Sequence[str], start: int, end: int) -> Block:
    last = next((number for number in range(start, end) if _COMMENT_END in lines[number]), None)
    if last is None:
        raise _Uncertain
    return Block(start, last + 1)


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
    """Return a list: it goes on with items of its kind and with whatever is indented below them."""
    kind, inside = _item(lines[start])
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
        elif is_behind_blank or _ends_a_list(line):
            return Block(start, number)
        else:  # it may continue the text of the item
            raise _Uncertain
        is_behind_blank = False
    return Block(start, end)


def _item(line: str) -> tuple[str, int]:
    """Return the kind of item a line begins, and the column of its content."""
    item = _ITEM.match(line)
    if item is None:
        raise _Uncertain
    return _kind_of(item)


def _kind_of(item: re.Match[str]) -> tuple[str, int]:
    if _is_drawn(item.string):
        raise _Uncertain
    return item[1] or item[3], item.end()


def _indent(line: str) -> int:
    """Return the indentation of a line in columns."""
    return _columns(line[: len(line) - len(line.lstrip(_SPACES))])


def _columns(text: str) -> int:
    return len(text.expandtabs(_TAB_COLUMNS))


def _ends_a_list(line: str) -> bool:
    """Return whether a line begins another block at any position: a heading or a fence."""
    return _HEADING.match(line) is not None or _FENCE.match(line) is not None


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
    if markers is not None and _columns(markers[0]) >= _DEEP_COLUMNS:
        raise _Uncertain


def _is_drawn(line: str) -> bool:
    """Return whether a line consists of drawing characters, not of text."""
    return _DRAWN.issuperset(line) and not line.isspace()
