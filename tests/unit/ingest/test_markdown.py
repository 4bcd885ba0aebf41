"""Markdown as blocks with lines, headings and front matter."""

from __future__ import annotations

from datetime import date

import pytest

from whyrank.ingest.markdown import Block, ParsedText, parse_markdown, parse_plain


def texts(document: ParsedText) -> list[str]:
    return ["\n".join(document.lines[block.start : block.end]).rstrip("\n") for block in document.blocks]


def test_blocks_point_at_their_lines() -> None:
    document = parse_markdown("# Boats\n\nA red one.\nAnd more.\n\n- oar\n- sail\n")

    assert texts(document) == ["# Boats", "A red one.\nAnd more.", "- oar\n- sail"]


def test_headings_have_level_and_title() -> None:
    document = parse_markdown("# One\n\n### Three `code` ###\n\nTwo\n---\n")

    assert [(block.level, block.title) for block in document.blocks] == [(1, "One"), (3, "Three `code`"), (2, "Two")]


def test_a_heading_inside_a_code_block_is_code() -> None:
    document = parse_markdown("```sh\n# not a heading\n\nls\n```\n")

    assert [block.level for block in document.blocks] == [0]
    assert texts(document) == ["```sh\n# not a heading\n\nls\n```"]


def test_a_table_is_one_block() -> None:
    table = "| boat | colour |\n|------|--------|\n| Ida | red |\n| Ulf | blue |"

    assert texts(parse_markdown(f"before\n\n{table}\n\nafter\n")) == ["before", table, "after"]


def test_a_table_right_under_a_line_of_text_is_a_block_of_its_own() -> None:
    table = "| boat | colour |\n|------|--------|\n| Ida | red |"

    assert texts(parse_markdown(f"the boats:\n{table}\n")) == ["the boats:", table]


def test_front_matter_becomes_fields_with_lower_case_keys() -> None:
    document = parse_markdown("---\nTitle: Boats\ntags: [a, b]\n---\nbody\n")

    assert document.front.fields == {"title": "Boats", "tags": ["a", "b"]}
    assert document.front.problem == ""


def test_blocks_behind_front_matter_keep_the_lines_of_the_file() -> None:
    document = parse_markdown("---\ntitle: Boats\n---\n\n# One\n")

    assert document.blocks == (Block(4, 5, 1, "One"),)
    assert document.lines[4] == "# One"


def test_front_matter_may_end_in_dots() -> None:
    document = parse_markdown("---\ntitle: Boats\n...\nbody\n")

    assert document.front.fields == {"title": "Boats"}
    assert texts(document) == ["body"]


@pytest.mark.parametrize("broken", ["a: [unclosed", "a: b: c", "\tx: 1", "x: !!python/name:os.system"])
def test_broken_front_matter_is_said_and_the_body_read(broken: str) -> None:
    document = parse_markdown(f"---\n{broken}\n---\nbody\n")

    assert document.front.problem.startswith("front matter could not be read")
    assert document.front.fields == {}
    assert broken.strip() in "\n".join(texts(document))
    assert texts(document)[-1] == "body"


def test_what_is_wrong_with_front_matter_is_said_with_its_line_of_the_file() -> None:
    problem = parse_markdown("---\ntitle: Tea\ntags: [kitchen, drinks\ndate: today\n---\nbody\n").front.problem
    slip = "expected ',' or ']', but got ':' in line 4"
    assert problem == f"front matter could not be read: {slip}; its fields were read one by one"


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("Error: refused", "Error: refused"),
        ("'Tea' time", "'Tea' time"),
        ("*tea* and pot", "*tea* and pot"),
        ("{{ tea }}", "{{ tea }}"),
        ("[Tea\n  pot", "[Tea pot"),
    ],
)
def test_a_field_that_is_no_yaml_costs_no_other(written: str, title: str) -> None:
    document = parse_markdown(f"---\n# of pots\nTitle: {written}\ndate: 2026-03-03\ntags:\n- a\n- b\n---\nbody\n")
    assert document.front.fields == {"title": title, "date": date(2026, 3, 3), "tags": ["a", "b"]}
    assert document.front.places["tags"] == f"front matter, line {5 + written.count(chr(10))}"
    assert "tags:" in "\n".join(texts(document))


def test_prose_between_fields_is_part_of_none() -> None:
    document = parse_markdown("---\ntitle: Tea\nSome prose: of pots: and more.\ntags: [a]\n---\nbody\n")
    assert document.front.fields == {"title": "Tea", "tags": ["a"]}


def test_empty_front_matter_is_no_problem() -> None:
    document = parse_markdown("---\n---\nbody\n")

    assert (document.front.fields, document.front.problem, texts(document)) == ({}, "", ["body"])


def test_front_matter_that_is_never_closed_is_text() -> None:
    document = parse_markdown("---\ntitle: Boats\n")

    assert document.front.fields == {}
    assert any("title: Boats" in text for text in texts(document))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("---\ntitle: Boats\n\nbody\n", "front matter is never closed by ---: read as text"),
        ("---\nlayout: post\n- Tags: [red]\n\nbody", "front matter is never closed by ---: read as text"),
        (
            "---\n- title: Boats\n- tags: red\n---\nbody\n",
            "front matter is a list, not fields (key: value): read as text",
        ),
        ("---\n- red\n---\nbody\n", "front matter is a list, not fields (key: value): read as text"),
    ],
)
def test_fields_that_are_no_front_matter_are_said_to_be_text(text: str, problem: str) -> None:
    document = parse_markdown(text)
    assert document.front.problem.endswith(problem)
    assert document.front.fields == {}
    assert "".join(texts(document)).startswith("---")
    assert "body" in "".join(texts(document))


@pytest.mark.parametrize(
    "text",
    [
        "---\n\nbody\n",
        "---\nWe met at ten: all of us.\n\nbody\n",
        "---\n\n- milk\n- bread\n\n---\n\nbody\n",
        "---\n\nWe met: at ten: all of us.\n\n---\n\nbody\n",
        "---\nbody\n---\n",
        "---",
    ],
)
def test_a_file_may_begin_with_a_rule(text: str) -> None:
    document = parse_markdown(text)
    assert (document.front.problem, document.front.body_start) == ("", 0)


@pytest.mark.parametrize("value", ["0", "false", '""'])
def test_a_value_alone_between_fences_is_text(value: str) -> None:
    assert value in "\n".join(texts(parse_markdown(f"---\n{value}\n---\nbody\n")))


def test_a_rule_in_the_middle_of_a_file_starts_no_front_matter() -> None:
    assert parse_markdown("intro\n\n---\ntitle: Boats\n---\n").front.fields == {}


def test_front_matter_that_holds_no_fields_stays_text() -> None:
    document = parse_markdown("---\njust a sentence\n---\nbody\n")

    assert document.front.fields == {}
    assert any("just a sentence" in text for text in texts(document))


def test_paragraphs_of_a_plain_text_are_its_blocks() -> None:
    assert parse_plain("one\ntwo\n\n \nthree").blocks == (Block(0, 2), Block(4, 5))


def test_marks_of_markdown_mean_nothing_in_a_plain_text() -> None:
    assert parse_plain("# no heading\n").blocks == (Block(0, 1),)


@pytest.mark.parametrize("text", ["", "\n\n\n", "   \n\t\n"])
def test_an_empty_text_has_no_blocks(text: str) -> None:
    assert parse_markdown(text).blocks == ()
    assert parse_plain(text).blocks == ()
