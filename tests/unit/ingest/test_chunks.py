"""Blocks to chunks."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.analysis.normalize import estimated_tokens
from whyrank.errors import ConfigError
from whyrank.ingest.documents import Chunk, ChunkSize, chunk, packed
from whyrank.ingest.markdown import parse_markdown, parse_plain

SMALL = ChunkSize(tokens=40, overlap=8)


def markdown_chunks(text: str, size: ChunkSize = SMALL) -> list[Chunk]:
    return chunk(parse_markdown(text), size)


def plain_chunks(text: str, size: ChunkSize = SMALL) -> list[Chunk]:
    return chunk(parse_plain(text), size)


def at(text: str, piece: Chunk) -> str:
    """Return what stands in the file at the lines a chunk names."""
    return "\n".join(text.split("\n")[piece.start_line - 1 : piece.end_line])


def paragraphs(count: int, lines: int = 3) -> str:
    """Return numbered paragraphs of short lines, no two lines alike."""
    return (
        "\n\n".join("\n".join(f"boat {number} line {line}" for line in range(lines)) for number in range(count)) + "\n"
    )


def test_the_defaults_are_400_tokens_with_80_overlap() -> None:
    assert ChunkSize() == ChunkSize(tokens=400, overlap=80)


@pytest.mark.parametrize(("tokens", "overlap"), [(15, 0), (100, 100), (100, 200), (100, -1), (0, 0)])
def test_a_size_that_cannot_work_is_refused(tokens: int, overlap: int) -> None:
    with pytest.raises(ConfigError) as caught:
        ChunkSize(tokens, overlap)

    assert caught.value.hint


def test_a_short_file_is_one_chunk_with_its_lines() -> None:
    assert markdown_chunks("\n\nA red boat.\n\nA blue boat.\n") == [Chunk("A red boat.\n\nA blue boat.", 3, 5, ())]


@pytest.mark.parametrize(
    "text",
    [
        paragraphs(20),
        "# Boats\n\n" + paragraphs(6) + "\n## Red\n\n" + paragraphs(6) + "\n```\ncode\n\ncode\n```\n",
        "---\ntitle: Boats\n---\n\n# Boats\n\n" + paragraphs(12),
        "- oar\n- sail\n\n\n\n> quoted\n> text\n\n" + paragraphs(8),
        "\n\n".join(f"## {part}\n\n- oar and a long word\n- sail and a long word\n" for part in range(9)),
        "\n".join(f"row {number} of one long paragraph" for number in range(60)),
        "東京の港\n\n" * 30,
    ],
    ids=["paragraphs", "sections", "front matter", "lists", "sections of lists", "one paragraph", "japanese"],
)
def test_line_spans_point_at_the_very_text_in_the_file(text: str) -> None:
    chunks = markdown_chunks(text)

    assert len(chunks) > 1
    for piece in chunks:
        assert piece.text == at(text, piece)
        assert 1 <= piece.start_line <= piece.end_line


@given(
    st.lists(st.sampled_from(["- oar", "  more", "", "", "# Boats", "a red boat", "> quoted", "1. sail"]), min_size=1)
)
def test_no_line_span_counts_the_empty_lines_around_a_text(lines: list[str]) -> None:
    text = "\n".join(lines)

    for size in (ChunkSize(16, 4), ChunkSize()):
        for piece in markdown_chunks(text, size):
            assert piece.text == at(text, piece)
            assert not piece.text.startswith("\n")
            assert not piece.text.endswith("\n")


def test_a_chunk_that_begins_within_a_section_names_it_though_it_goes_on_into_the_next() -> None:
    body = "word " * 24  # 30 tokens of 40, so that the tail has no room in the chunk before
    text = f"# Harbour\n\n## Boats\n\n{body}\n\nlast tail of the boats\n\n## Oars\n\nUlf\n"

    first, second = markdown_chunks(text, ChunkSize(40, 0))

    assert first.headings == ("Harbour",)  # and says the other itself
    assert (second.text.split("\n")[0], second.headings) == ("last tail of the boats", ("Harbour", "Boats"))
    assert "## Oars" in second.text


def test_every_line_with_words_is_in_some_chunk() -> None:
    text = "# Boats\n\n" + paragraphs(30) + "\n## End\n\nlast words\n"

    covered = {line for piece in markdown_chunks(text) for line in range(piece.start_line, piece.end_line + 1)}

    assert {number for number, line in enumerate(text.split("\n"), 1) if line.strip()} <= covered


def test_a_heading_trail_names_the_headings_above() -> None:
    body = "word " * 24  # 30 tokens: every section is a chunk of its own
    text = f"# Harbour\n\n{body}\n\n## Boats\n\n{body}\n\n### Red\n\n{body}\n\n## Oars\n\n{body}\n"

    assert [piece.headings for piece in markdown_chunks(text)] == [
        ("Harbour",),
        ("Harbour", "Boats"),
        ("Harbour", "Boats", "Red"),
        ("Harbour", "Oars"),
    ]


def test_tiny_sections_stay_together_under_the_headings_they_share() -> None:
    chunks = markdown_chunks("# Harbour\n\n## Boats\n\nIda\n\n## Oars\n\nUlf\n", ChunkSize())

    assert [(piece.start_line, piece.end_line, piece.headings) for piece in chunks] == [(1, 9, ("Harbour",))]


def test_a_heading_is_not_left_behind_at_the_end_of_a_chunk() -> None:
    text = "short\n\n# Boats\n\n" + "word " * 30 + "\n"  # ceil(14/4) = 4 tokens, below a quarter of 40, then 38

    chunks = markdown_chunks(text)

    assert [piece.text.split() for piece in chunks] == [["short"], ["#", "Boats", *["word"] * 30]]


def test_a_code_block_that_fits_is_kept_whole() -> None:
    code = "```python\nfirst = 1\n\n\nsecond = 2\n\nthird = 3\n```"
    text = paragraphs(2) + f"\n{code}\n\n" + paragraphs(2)

    assert sum(code in piece.text for piece in markdown_chunks(text)) == 1


def test_a_table_that_fits_is_kept_whole() -> None:
    table = "| boat | colour |\n|------|--------|\n| Ida | red |\n| Ulf | blue |\n| Eva | white |"
    text = paragraphs(2) + f"\n{table}\n\n" + paragraphs(2)

    assert sum(table in piece.text for piece in markdown_chunks(text)) == 1


def test_a_code_block_that_does_not_fit_is_cut_at_its_lines() -> None:
    lines = [f"value_{number} = {number}" for number in range(60)]
    text = "```python\n" + "\n".join(lines) + "\n```\n"

    chunks = markdown_chunks(text)

    assert len(chunks) > 1
    assert {line for piece in chunks for line in piece.text.split("\n")} == {"```python", *lines, "```"}


def test_the_end_of_a_chunk_is_repeated_by_the_next() -> None:
    chunks = markdown_chunks("\n".join(f"row {number:02}" for number in range(60)))

    assert len(chunks) > 1
    for before, after in pairwise(chunks):
        # A row has 6 characters and a line break: 4 rows are ceil(27/4) = 7 tokens, 5 rows ceil(34/4) = 9 > 8.
        assert before.end_line + 1 - after.start_line == 4


def test_without_overlap_no_line_stands_in_two_chunks() -> None:
    chunks = markdown_chunks(paragraphs(20), ChunkSize(40, 0))

    lines = [line for piece in chunks for line in range(piece.start_line, piece.end_line + 1)]
    assert len(lines) == len(set(lines))


def test_a_new_section_repeats_nothing_of_the_last_one() -> None:
    body = "word " * 24
    first, second = markdown_chunks(f"# One\n\n{body}\n\n# Two\n\n{body}\n")

    assert first.end_line < second.start_line


def test_a_very_long_line_is_cut_and_every_part_names_that_line() -> None:
    line = " ".join(f"word{number}" for number in range(200))
    text = f"before\n\n{line}\n\nafter\n"

    chunks = plain_chunks(text)
    parts = [piece for piece in chunks if piece.start_line == 3]

    assert chunks[0] == Chunk("before", 1, 1, ())
    assert chunks[-1] == Chunk("after", 5, 5, ())
    assert len(parts) > 1
    assert all(piece.end_line == 3 and piece.text in line for piece in parts)
    assert all(estimated_tokens(piece.text) <= SMALL.tokens for piece in parts)


def test_the_parts_of_a_long_line_overlap_and_lose_nothing() -> None:
    line = "".join(f"{number:05}" for number in range(400))  # no space anywhere, every five digits once

    parts = [piece.text for piece in plain_chunks(line)]

    end = 0
    for part in parts:
        start = line.index(part)
        assert start <= end
        end = start + len(part)
    assert end == len(line)


def test_a_long_line_is_cut_at_the_end_of_a_sentence() -> None:
    line = "The red boat left the harbour at noon. " * 20

    assert all(piece.text.endswith(". ") for piece in plain_chunks(line.rstrip())[:-1])


def test_a_long_line_of_an_unspaced_script_is_cut_by_its_letters() -> None:
    chunks = plain_chunks("港に赤い船が着いた。" * 30)

    assert len(chunks) > 1
    assert all(estimated_tokens(piece.text) <= SMALL.tokens for piece in chunks)


def test_long_lines_inside_a_block_leave_the_short_ones_whole() -> None:
    text = "first\n" + "x" * 400 + "\nlast"

    chunks = plain_chunks(text)

    assert (chunks[0].text, chunks[0].start_line) == ("first", 1)
    assert (chunks[-1].text, chunks[-1].start_line) == ("last", 3)
    assert {piece.start_line for piece in chunks} == {1, 2, 3}


@pytest.mark.parametrize("text", ["", "\n\n", "---\ntitle: x\n---\n"])
def test_a_file_without_text_has_no_chunks(text: str) -> None:
    assert markdown_chunks(text) == []


def test_chunks_of_the_same_file_are_the_same_every_time() -> None:
    assert markdown_chunks(paragraphs(20)) == markdown_chunks(paragraphs(20))


@given(
    st.lists(st.sampled_from(["", "# Tea", "## Pot", "a", "bc", "def ghi", "東京", "```", " ", "x" * 20]), max_size=9),
    st.sampled_from([16, 17, 24]),
    st.booleans(),
)
def test_a_document_that_is_one_chunk_is_the_same_chunk_block_by_block(
    lines: list[str], tokens: int, is_plain: bool
) -> None:
    document = (parse_plain if is_plain else parse_markdown)("\n".join(lines))
    size = ChunkSize(tokens, 4)
    assert chunk(document, size) == packed(document, size)
