"""Blocks told by how lines begin: those that the parser finds, or nothing."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it.common import html_blocks

from whyrank.ingest import markdown
from whyrank.ingest.markdown import Block, blocks_by_lines, blocks_of, parsed_blocks

if TYPE_CHECKING:
    from markdown_it.token import Token

# How lines begin and end that make a block, go on with one, or do so only nearly.
LINES = (
    "", " ", "tea", "Tea | pot", "ча́й", "(tea)", "— tea", "✅ tea", "茶", "@tea", ": tea", "= tea", "{tea}", "\\# tea",
    "# Tea", "## C# tea", "## Tea  pot\t", "# tea #", "#", "# ", "#tea", "#\ttea\u00a0pot", "###### tea", "####### tea",
    "- tea", "* tea", "+ tea", "-  tea", "-    tea", "-     tea", "-\ttea", "-", "- ", "-tea", "- [ ] tea", "- - tea",
    "- # tea", "- > tea", "- ```", "- | a | b |", "- ---", "- ***", "**tea** pot", "*tea*", "+tea", "--tea",
    "1. tea", "2. tea", "1) tea", "10. tea", "1.  tea", "1.     tea", "1.", "1.tea", "1.5 tea", "12", "1234567890. tea",
    "  - tea", "    - tea", "\t- tea", " tea", "  tea", "   tea", "    tea", "     tea", "\ttea",
    "---", "--- ", "***", "___", "- - -", "* * *", "_ _ _", "===", "==tea", "_tea_", ":---", "-|-",
    "```", "```sh", "``` a`b", "````", "  ```", "    ```", "~~~", "~~~ tea", "`tea`", "~tea",
    "| a | b |", "|---|---|", "| - | :-: |", "| a |", "| a \\| b |", "| `a|b` | c |", "a | b", "--- | ---",
    "> tea", ">", ">tea", "> ```", "> # tea", "<!-- tea -->", "<!-- tea", "-->", "<!-- a --> b", "<!---->", "<!-->",
    "[tea", "pot]: tin", "[te\\]a", "- a | b", "  --- | ---", "# Tea |", "> >", "- - - - - - - - - - - tea", " > tea",
    "<b>", "<B-c1> ", "<div>", "</div>", "</b>", "<pre>", "</PRE>", "<pret>", "<b", "<b c>", "<b> tea", "<1>",
    "<?tea ?>", '<a id="tea"></a>', '<a id="tea">', "<https://tea>", "<b>\u00a0", "--", "=", " ===",
    "tea -->", "a |", "a\\|", "<b> |", "[a\\", "]: x", "<textarea>", "<kbd>tea", "<http://tea", '<img a-b="c"/>tea',
    "[Tea]: https://tea.example/pot?a=b#c", "[`tea()`]: #tea-pot ", "[tea]: file:pot", "[ ]: pot", "[tea|pot]: tin",
    "[tea]: tin 'pot'", "[tea]:tin", "[tea]: <tin>", "[^1]: tea", '  "pot"', "(pot)", "[te[a]]: tin", "[a]: b(c",
    "[a]: data&#58;x",
    "> - <!-- tea", "[tea]: pot", "'pot", "[tea](pot)", "[tea]", "![tea](pot)",
    "\u00a0", "\u00a0tea", "\x0b", "\x0c", "tea\x0bpot", "# tea\u2028pot", "tea\x85pot", "&tea;", "$ tea", "% tea",
)  # fmt: skip

few_kinds = st.lists(st.sampled_from(LINES), min_size=1, max_size=6).flatmap(
    lambda kinds: st.lists(st.sampled_from(["", *kinds]), max_size=10)
)


def differs(lines: list[str], parsed: int) -> bool:
    return blocks_of(lines, 0, parsed)[0] != parsed_blocks(lines, 0)


def told(text: str) -> tuple[Block, ...] | None:
    """Return what is told of a text that needs no parser."""
    lines = text.split("\n")
    blocks, place = blocks_by_lines(lines, 0)
    return tuple(blocks) if place == len(lines) else None


@given(few_kinds, st.integers(1, 4))
def test_what_is_told_is_what_the_parser_finds(lines: list[str], parsed: int) -> None:
    assert not differs(lines, parsed)


def test_what_is_told_of_many_files_is_what_the_parser_finds() -> None:
    chance = random.Random(7)
    for _ in range(20_000):
        kinds = chance.sample(LINES, chance.randint(1, 8))
        lines = chance.choices(["", *kinds], k=chance.randint(1, 10))
        assert not differs(lines, chance.randint(1, 4)), lines


def test_what_comes_before_the_first_line_is_not_looked_at() -> None:
    lines = ["---", "title: Tea", "---", "", "- tea", "", "pot", ""]
    assert blocks_of(lines, 3)[0] == parsed_blocks(lines, 3) == (Block(4, 6), Block(6, 7))


@pytest.mark.parametrize("text", ["`" * 1_000_000, "- " * 100_000, "# " + "a " * 100_000 + "#", "|" + " |" * 100_000])
def test_long_lines_are_looked_at_once(text: str) -> None:
    assert told(text) is None


class Counted(tuple[str, ...]):
    """Lines that know how many of them were asked for."""

    asked = 0

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        Counted.asked += len(found) if isinstance(place, slice) else 1
        return found


@pytest.mark.parametrize(
    "block", ["```\ntea\n```\n", "- tea\n\n", "tea\n\n", "# Tea\n", "| a |\n|---|\n| b |\n\n", "> tea\n\n"]
)
def test_lines_are_looked_at_a_few_times_however_many_there_are(block: str) -> None:
    lines, Counted.asked = Counted((block * 500).split("\n")), 0
    assert blocks_by_lines(lines, 0)[1] == len(lines)
    assert Counted.asked < 20 * len(lines)


def test_a_table_of_more_cells_than_the_parser_makes_is_left_to_it() -> None:
    assert told("\n".join(["|" + "a|" * 1000, "|" + "-|" * 1000, *["|a|"] * 100])) is None


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("tea\npot\n\n# Tea #1 pot\ntea\n", (Block(0, 2), Block(3, 4, 1, "Tea #1 pot"), Block(4, 5))),
        ("tea:\n- green\n  - cold\n\n  more\n- black\n\npot\n", (Block(0, 1), Block(1, 7), Block(7, 8))),
        ("1. tea\n   pot\n2. tin\n# Tea", (Block(0, 3), Block(3, 4, 1, "Tea"))),
        ("- tea\n* pot\n1. tin\n1) tin", (Block(0, 1), Block(1, 2), Block(2, 3), Block(3, 4))),
        ("tea\n```sh\n# pot\n\n```\ntin", (Block(0, 1), Block(1, 5, is_whole=True), Block(5, 6))),
        ("~~~\n```\n~~~~\n", (Block(0, 3, is_whole=True),)),
        ("tea\n| a | b |\n|---|:-:|\n| 1 | 2 |\n\npot", (Block(0, 1), Block(1, 4, is_whole=True), Block(5, 6))),
        ("> tea\n> pot\n\n---\n\n<!-- tin -->\n**tea**", (Block(0, 2), Block(3, 4), Block(5, 6), Block(6, 7))),
        ("> tea\n>\n> - pot\n\n<Good>\n```\ntea\n\npot", (Block(0, 3), Block(4, 7), Block(8, 9))),
        ("    tea\n\n\tpot\n\ntin", (Block(0, 3, is_whole=True), Block(4, 5))),
        ("Tea\npot\n===\ntin\n--", (Block(0, 3, 1, "Tea pot"), Block(3, 5, 2, "tin"))),
        ("<!-- tea\n\n# pot -->\ntea\n<!-- tin\n-->", (Block(0, 3), Block(3, 4), Block(4, 6))),
        ('<a id="tea"></a>\n<https://tea.example>\n<img src="tea">pot', (Block(0, 3),)),
        ("  tea\n      # pot\n</Bad>\n tin", (Block(0, 4),)),
        ("Tea | pot\n\n- tea | pot", (Block(0, 1), Block(2, 3))),
        ("| `a` | b |\n|---|---|\n| 1 | 2 |", (Block(0, 3, is_whole=True),)),
    ],
)
def test_the_usual_needs_no_parser(text: str, blocks: tuple[Block, ...]) -> None:
    assert told(text) == blocks


@pytest.mark.parametrize(
    "text",
    [
        "tea\n-\n", "tea\n ===\n", "- tea\npot\n", "1. tea\n  pot\n", "tea\n2. pot\n", "```\ntea\n",
        "<pre>\ntea\n\n</pre>\n", "tea\n<div>\n", "tea\n - pot\n", "> tea\n>\n", "<!-- tea\n",
        '<a id="tea">\n', "<https:tea>\n", "<b>\u00a0\n", "[tea]: <pot>\n", "> tea\npot\n", "a | b\n--- | ---\n",
        "- \n  tea\n", "| a | b |\n|---|\n", "| a |\n|---|\ntea\n", "#tea\n", "* * *\n",
    ],
)  # fmt: skip
def test_what_is_not_certain_is_left_to_the_parser(text: str) -> None:
    assert told(text) is None


@pytest.mark.parametrize("name", html_blocks.block_names)
def test_a_tag_that_ends_a_paragraph_is_left_to_the_parser(name: str) -> None:
    assert told(f"tea\n<{name.upper()}>\n") is None


def test_the_parser_is_asked_only_of_what_is_not_certain_and_what_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    sure, unsure = ["# Tea", "", "tea", ""], ["- tea", "pot", ""]
    lines = [*sure * 100, *unsure * 10, *sure * 100, *unsure * 2]
    parsed, parse = list[str](), markdown._parser().parse

    def heard(text: str) -> list[Token]:
        parsed.append(text)
        return parse(text)

    monkeypatch.setattr(markdown._parser(), "parse", heard)
    blocks = blocks_of(lines, 0)[0]
    monkeypatch.undo()
    assert blocks == parsed_blocks(lines, 0)
    assert sum(text.count("\n") for text in parsed) < 64 * len(parsed) < len(lines) / 2


@pytest.mark.parametrize(
    ("text", "certain"),
    [
        ("[tea]: https://tea.example/pot\n[`pot()`]: #pot\n\n# Tea", True),
        ("[tea]: pot.md\ntea", True),
        ('[tea]: pot.md\n"A title"', False),
        ("[tea]: javascript:pot", False),
        ("[tea]: javascript&colon;pot", False),
        ("[tea]: pot (tin)", False),
    ],
)
def test_links_that_certainly_are_defined_need_no_parser(text: str, certain: bool) -> None:
    assert (told(text) is not None) is certain


def test_definitions_of_links_are_a_block_of_what_stands_between_others() -> None:
    lines = ["tea", "", "[tea]: pot.md", "", "[pot]: https://pot.example", "# Tea", "[tin]: tin.md"]
    assert (
        blocks_of(lines, 0)[0]
        == parsed_blocks(lines, 0)
        == (Block(0, 1), Block(2, 5), Block(5, 6, 1, "Tea"), Block(6, 7))
    )


def test_a_block_may_be_longer_than_what_is_parsed_at_once() -> None:
    lines = ["[a]: b", "", *["- tea", "pot", ""] * 40, "# Pot", "", "[", *["pot"] * 300, "===", "", "[c]: d"]
    blocks = blocks_of(lines, 0)[0]
    assert blocks == parsed_blocks(lines, 0)
    assert [block.level for block in blocks] == [0, 0, 1, 1, 0]


def test_a_quote_that_goes_on_behind_what_is_parsed_at_once_is_read() -> None:
    lines = ["#", "", "> - <!-- tea", *[">"] * 80, "", "end", ""]
    assert blocks_of(lines, 0)[0] == parsed_blocks(lines, 0)


def test_what_the_parser_stumbles_over_at_the_end_of_a_file_is_read() -> None:
    assert blocks_of(["> - <!-- tea", ">"], 0)[0] == (Block(0, 2),)
