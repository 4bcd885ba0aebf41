"""Files that were made to break readers: each is read as far as it makes sense, or passed over with a reason."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from whyrank.errors import IngestError
from whyrank.ingest.documents import ChunkSize, Read, chunk, memories_in
from whyrank.ingest.markdown import Block, blocks_of, parse_markdown
from whyrank.ingest.pipeline import Ingestor, Settings
from whyrank.ingest.walk import FileEntry, SkippedPath, walk
from whyrank.testing.memory_store import MemoryStore
from whyrank.types.memory import GLOBAL

SIZE = ChunkSize()


def read(text: str, path: str = "a.md") -> Read:
    return memories_in(text, path, GLOBAL, 0.0, SIZE)


def ingestor(folder: Path) -> Ingestor:
    return Ingestor(MemoryStore(), None, Settings(folder, "en", SIZE, 100_000))


@pytest.mark.parametrize(
    "value", ["!!bool maybe", "!!int ''", "!!float ''", "!!timestamp foo", "[unclosed", "&a *a", "!!python/object:x {}"]
)
def test_front_matter_that_cannot_be_read_is_a_remark_and_stays_searchable_text(value: str) -> None:
    found = read(f"---\ntitle: {value}\n---\nThe body.")
    assert value in found.memories[0].text
    assert found.memories[-1].text.endswith("The body.")
    assert found.remarks[0].startswith("front matter could not be read")


@pytest.mark.parametrize("date", ["1" + "0" * 400, "0x" + "f" * 400, "99999-99-99", "[2026, 1]"])
def test_a_date_that_is_none_leaves_the_files_own(date: str) -> None:
    [memory] = read(f"---\ndate: {date}\n---\nThe body.").memories
    assert memory.date == 0.0


def test_the_first_of_january_1970_is_a_date() -> None:
    [memory] = memories_in("---\ndate: 1970-01-01\n---\nThe body.", "2026-05-05.md", GLOBAL, 7.0, SIZE).memories
    assert memory.date == 0.0


def test_a_number_too_long_to_write_is_no_title() -> None:
    [memory] = read("---\ntitle: 0x" + "f" * 5_000 + "\n---\nThe body.").memories
    assert memory.title == "a"


def test_a_bomb_of_aliases_gives_no_tags() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 10)]
    [memory] = read("---\n" + "\n".join(levels) + "\ntags: [*a9, real]\n---\nThe body.").memories
    assert memory.tags == ("real",)


def test_a_moment_too_large_for_a_log_is_none() -> None:
    [turn] = read('{"text": "hello", "ts": 1' + "0" * 400 + "}", "c.jsonl").memories
    assert turn.date == 0.0


def test_replaced_characters_are_a_remark() -> None:
    remarks = ("characters that cannot be stored were replaced",)
    assert read("a" * 9_000 + "\x00 end").remarks == remarks
    assert read(r'{"text": "a\u0000b \ud800"}', "c.jsonl").remarks == remarks


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('{"text": "", "content": "hello"}', "hello"),
        ('{"message": {"content": "hello"}}', "hello"),
        ('{"content": [{"type": "text", "text": "hello"}, {"type": "image"}]}', "hello"),
    ],
)
def test_turns_are_found_where_logs_put_them(line: str, text: str) -> None:
    assert [turn.text for turn in read(line, "c.jsonl").memories] == [text]


def test_link_definitions_are_not_lost() -> None:
    pieces = chunk(parse_markdown("Some text [a].\n\n[a]: https://example.org/page\n"), SIZE)
    assert "https://example.org/page" in pieces[-1].text
    assert pieces[-1].end_line == 3


def test_no_chunk_is_longer_than_asked_for() -> None:
    text = "\n".join(f"word{i} and a few more words to fill the line" for i in range(300))
    from whyrank.analysis.normalize import estimated_tokens

    assert max(estimated_tokens(piece.text) for piece in chunk(parse_markdown(text), SIZE)) <= SIZE.tokens


def test_overlap_never_tears_a_code_block() -> None:
    code = "```python\nfirst = 1\n\nsecond = 2\n\nthird = 3\n```"
    pieces = chunk(parse_markdown(f"one two three\n\n{code}\n\n" + "word " * 24), ChunkSize(40, 8))
    for piece in pieces:
        assert piece.text.count("```") in (0, 2)


def test_a_long_line_of_chinese_overlaps_by_its_share() -> None:
    pieces = chunk(parse_markdown("漢字文章。" * 300), SIZE)
    repeated = sum(len(piece.text) for piece in pieces) - 1_500
    # five seams of at most 80 letters, each letter of this script being about a token
    assert repeated <= 5 * 80 * 1.25


def test_a_heading_before_a_long_line_is_no_chunk_of_its_own() -> None:
    pieces = chunk(parse_markdown("# Heading\n\n" + "word " * 900), SIZE)
    assert all(piece.headings == ("Heading",) for piece in pieces)
    assert all("word" in piece.text for piece in pieces)


def test_a_line_that_is_no_pattern_is_named_and_the_others_hold(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("!\n\\\nsecret.md\n")
    (tmp_path / "secret.md").write_text("x")
    (tmp_path / "open.md").write_text("x")
    found = list(walk(tmp_path))
    assert [Path(item.path).name for item in found if isinstance(item, FileEntry)] == ["open.md"]
    assert [Path(item.path).name for item in found if isinstance(item, SkippedPath)] == [".gitignore:1", ".gitignore:2"]


def test_a_deeper_rule_may_take_back_what_is_ignored_above(tmp_path: Path) -> None:
    (tmp_path / "n").mkdir()
    (tmp_path / ".gitignore").write_text("*.md\n")
    (tmp_path / "n/.gitignore").write_text("!a.md\n")
    for name in ("a.md", "b.md"):
        (tmp_path / "n" / name).write_text("x")
    assert [Path(item.path).name for item in walk(tmp_path) if isinstance(item, FileEntry)] == ["a.md"]


def test_rules_above_the_given_folder_hold_inside_a_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "n").mkdir()
    (tmp_path / ".gitignore").write_text("n/a.md\n")
    for name in ("a.md", "b.md"):
        (tmp_path / "n" / name).write_text("x")
    assert [Path(item.path).name for item in walk(tmp_path / "n") if isinstance(item, FileEntry)] == ["b.md"]


def test_what_cannot_be_read_now_keeps_what_was_read_before(tmp_path: Path) -> None:
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text(f"text of {name}")
    subject = ingestor(tmp_path)
    subject.ingest([tmp_path], GLOBAL)
    (tmp_path / "a.md").unlink()
    (tmp_path / "a.md").symlink_to("a.md")
    report = subject.ingest([tmp_path], GLOBAL)
    assert report.files == {}
    assert [Path(item.path).name for item in report.failed] == ["a.md"]
    assert set(subject.store.manifest(GLOBAL)) == {"a.md", "b.md"}


def test_nothing_readable_at_all_is_an_error_and_deletes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("text")
    subject = ingestor(tmp_path)
    subject.ingest([tmp_path], GLOBAL)
    (tmp_path / "a.md").unlink()
    (tmp_path / "a.md").symlink_to("a.md")
    with pytest.raises(IngestError):
        subject.ingest([tmp_path], GLOBAL)
    assert set(subject.store.manifest(GLOBAL)) == {"a.md"}


def test_a_file_that_became_something_we_do_not_read_is_taken_out(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("text")
    (tmp_path / "b.md").write_text("text")
    subject = ingestor(tmp_path)
    subject.ingest([tmp_path], GLOBAL)
    (tmp_path / "a.md").write_bytes(b"\x00\x01binary")
    report = subject.ingest([tmp_path], GLOBAL)
    assert report.files == {"deleted": 1}
    assert [item.reason for item in report.skipped] == ["a binary file"]


def test_a_detour_in_a_path_gives_no_second_name(tmp_path: Path) -> None:
    (tmp_path / "n").mkdir()
    (tmp_path / "x").mkdir()
    (tmp_path / "n/a.md").write_text("text")
    subject = ingestor(tmp_path)
    subject.ingest([tmp_path / "n"], GLOBAL)
    assert subject.ingest([tmp_path / "x" / ".." / "n"], GLOBAL).unchanged == 1


def test_a_name_that_is_no_unicode_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text("text")
    (tmp_path / "bad\udcff.md").write_text("text")
    report = ingestor(tmp_path).ingest([tmp_path], GLOBAL)
    assert report.files == {"new": 1}
    assert [item.reason for item in report.skipped] == ["its name is not valid Unicode"]


def test_front_matter_over_the_limit_is_named_and_stays_text() -> None:
    lines = [f"title: Boats\nnote{number}: {'x' * 1_000}" for number in range(70)]  # some 71,000 characters
    found = read("---\n" + "\n".join(lines) + "\n---\nThe body.")
    assert found.remarks[0].startswith("front matter could not be read: it has 71,")
    assert found.remarks[0].endswith("over the limit of 65,536")
    assert "note69: xxx" in "".join(memory.text for memory in found.memories)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("a: &a b\n" + "\n".join(f"k{n}: *a" for n in range(101)), "more than 100 aliases"),
        ("a: " + "[" * 101 + "]" * 101, "nested deeper than 100 levels"),
        ("\n".join(f"k{n}: b" for n in range(4_000)), "more than 10,000 tokens"),  # three of them a line
    ],
)
def test_front_matter_that_costs_too_much_is_named_and_its_fields_are_read_one_by_one(lines: str, said: str) -> None:
    found = read(f"---\ntitle: Boats\n{lines}\n---\nThe body.")
    assert f"front matter could not be read: {said} in line" in found.remarks[0]
    assert {memory.title for memory in found.memories} == {"Boats"}
    assert found.memories[-1].text.endswith("The body.")


def test_a_hundred_aliases_and_merge_keys_are_read() -> None:
    aliases = "\n".join(f"k{number}: *a" for number in range(99))
    found = read(f"---\na: &a {{title: Boats}}\n{aliases}\n<<: *a\n---\nThe body.")
    assert [memory.title for memory in found.memories] == ["Boats"]
    assert found.remarks == ()


@pytest.mark.parametrize(
    "lines",
    [
        "a: &a [*a, *a, tea]",
        "a: &a {x: *a, y: *a, z: tea}",
        "a: &a [tea]\n" + "\n".join(f"{new}: &{new} [*{old}, *{old}, *{old}]" for old, new in pairwise("abcdefghijk")),
        "a: [" + "tea, " * 1_500 + "]",
    ],
)
def test_properties_without_an_end_are_cut_and_it_is_said(lines: str) -> None:
    found = read(f"---\n{lines}\n---\n")
    assert found.remarks == ("front matter: more than 1,000 values, the first 1,000 are kept",)
    assert 0 < sum(memory.text.count("tea") for memory in found.memories) <= 1_250  # chunks overlap by a fifth


def test_a_number_with_many_colons_is_text() -> None:
    [memory] = read("---\ntitle: " + "59:" * 20 + "59\n---\nThe body.").memories
    assert memory.title == "59:" * 20 + "59"


def test_a_long_name_is_cut_and_named_as_every_chunk_has_it() -> None:
    found = read(f"---\ntitle: {'a' * 600}\n---\nThe body.")
    assert found.memories[0].title == "a" * 500
    assert found.remarks == ("front matter, line 2: title has 600 characters, the first 500 are kept",)


def test_a_long_heading_is_cut_above_its_chunks_and_whole_in_its_own() -> None:
    heading = "word " * 200
    found = read(f"# {heading}\n\n" + "The boats are red. " * 200)
    assert heading.strip() in found.memories[0].text
    assert all(memory.headings == (heading[:500],) for memory in found.memories)


def test_names_over_the_limit_are_left_out_and_named() -> None:
    found = read(f"---\ntags: [{', '.join(f't{number}' for number in range(150))}]\n---\nThe body.")
    assert found.memories[0].tags == tuple(f"t{number}" for number in range(100))
    assert found.remarks == ("front matter, line 2: 150 tags, the first 100 are kept",)


def test_tags_of_the_markers_of_one_section_have_the_same_limit() -> None:
    found = read("The body.\n\n" + "\n\n".join(f"<!-- whyrank: tags=t{number} -->" for number in range(101)))
    assert len(found.memories[0].tags) == 100
    assert found.remarks == ("line 203: over the limit of 100 tags for a section",)


def test_a_marker_over_the_limit_is_named() -> None:
    found = read(f"The body. <!-- whyrank: tags={'a' * 4_000} -->")
    assert found.memories[0].tags == ()
    assert found.remarks == ("line 1: a marker of 4,007 characters, over the limit of 4,000",)


def test_remarks_over_fifty_are_counted() -> None:
    found = read("\n\n".join(f"Text. <!-- whyrank: bad{number} -->" for number in range(60)))
    assert len(found.remarks) == 51
    assert found.remarks[-1] == "and 10 more of this kind"


def test_what_is_too_much_for_the_parser_is_read_as_paragraphs() -> None:
    lines = [*["- a", "b"] * 500, "", "The end."]  # 500 items, whose second lines only the parser can tell of
    blocks, plain_from = blocks_of(lines, 0, room=20_000)
    assert plain_from == 0
    assert blocks == (Block(0, 1_000), Block(1_001, 1_002))


def test_a_file_too_much_for_the_parser_is_named() -> None:
    found = read("# Boats\n\nTea.\n\n<x\n" + "tea " * 1_000_001 + "\n\nThe end.")  # a tag that does not end in its line
    assert found.remarks == ("from line 3 on it is read as plain paragraphs: over the limit of the parser",)
    assert found.memories[-1].headings == ("Boats",)
    assert found.memories[-1].text.endswith("The end.")


def test_the_ends_of_lines_of_other_systems_are_ends_of_lines() -> None:
    document = parse_markdown("# Boats\r\rred\r\nblue")
    assert document.lines == ("# Boats", "", "red", "blue")
    assert [block.title for block in document.blocks] == ["Boats", ""]


def test_a_mark_of_utf_16_that_is_none_is_a_remark_of_the_report(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"\xff\xfeThe boats are red.")
    report = ingestor(tmp_path).ingest([tmp_path], GLOBAL)
    said = "begins with the mark of UTF-16 (FF FE) but is not UTF-16: read as UTF-8"
    assert report.remarks == [("a.md", said)]
