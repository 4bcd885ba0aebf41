"""Which files are read, and what is passed over with a reason."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from whyrank.ingest.walk import HAS_DIR_FD, Content, FileEntry, Root, SkippedPath, open_below, read, walk

CAP = 1_000
RACES = 400


def put(root: Path, *names: str, text: str = "words\n") -> None:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def found(root: Path) -> list[str]:
    return [Path(item.path).relative_to(root).as_posix() for item in walk(root) if isinstance(item, FileEntry)]


def skipped(root: Path) -> dict[str, SkippedPath]:
    return {Path(item.path).name: item for item in walk(root) if isinstance(item, SkippedPath)}


def content(path: Path, data: bytes, cap: int = CAP) -> Content | SkippedPath:
    path.write_bytes(data)
    (item,) = walk(path)
    assert isinstance(item, FileEntry)
    return read(item, cap)


def test_markdown_text_and_logs_are_found_in_order(tmp_path: Path) -> None:
    put(tmp_path, "b.md", "a.txt", "c/d.jsonl", "c/B.MARKDOWN", "picture.png", "code.py", "plain")

    assert found(tmp_path) == ["a.txt", "b.md", "c/B.MARKDOWN", "c/d.jsonl"]


def test_a_found_file_carries_its_size_and_time(tmp_path: Path) -> None:
    put(tmp_path, "a.md", text="12345")
    os.utime(tmp_path / "a.md", ns=(7, 7))

    assert [item[:3] for item in walk(tmp_path)] == [(str(tmp_path / "a.md"), 5, 7)]


def test_a_single_file_is_found_whatever_it_is_called(tmp_path: Path) -> None:
    put(tmp_path, "notes")

    assert [item.path for item in walk(tmp_path / "notes")] == [str(tmp_path / "notes")]


def test_hidden_and_generated_folders_are_not_entered(tmp_path: Path) -> None:
    put(tmp_path, ".git/a.md", ".hidden.md", "node_modules/b.md", "x/__pycache__/c.md", "kept.md")

    assert found(tmp_path) == ["kept.md"]


@pytest.mark.parametrize("name", [".gitignore", ".whyrankignore"])
@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        ("a.md", ["b.md", "sub/b.md"]),
        ("/a.md", ["b.md", "sub/a.md", "sub/b.md"]),
        ("sub/", ["a.md", "b.md"]),
        ("*.md\n!b.md", ["b.md", "sub/b.md"]),
        ("# a.md\n\n", ["a.md", "b.md", "sub/a.md", "sub/b.md"]),
        ("**/a.md", ["b.md", "sub/b.md"]),
    ],
)
def test_ignore_rules_are_honoured(tmp_path: Path, name: str, rules: str, kept: list[str]) -> None:
    put(tmp_path, "a.md", "b.md", "sub/a.md", "sub/b.md")
    (tmp_path / name).write_text(rules, encoding="utf-8")

    assert found(tmp_path) == kept


def test_a_nested_ignore_file_rules_its_own_folder_only(tmp_path: Path) -> None:
    put(tmp_path, "a.md", "one/a.md", "one/deep/a.md", "two/a.md")
    (tmp_path / "one" / ".gitignore").write_text("a.md\n", encoding="utf-8")

    assert found(tmp_path) == ["a.md", "two/a.md"]


def test_rules_of_outer_folders_hold_in_inner_ones(tmp_path: Path) -> None:
    put(tmp_path, "one/a.md", "one/b.md", "one/c.md")
    (tmp_path / ".gitignore").write_text("a.md\n", encoding="utf-8")
    (tmp_path / "one" / ".whyrankignore").write_text("b.md\n", encoding="utf-8")

    assert found(tmp_path) == ["one/c.md"]


def test_an_ignore_file_that_is_no_utf_8_still_rules(tmp_path: Path) -> None:
    put(tmp_path, "a.md", "b.md")
    (tmp_path / ".gitignore").write_bytes(b"# caf\xe9\na.md\n")

    assert found(tmp_path) == ["b.md"]


def test_a_link_out_of_the_root_is_not_followed(tmp_path: Path) -> None:
    put(tmp_path, "outside/secret.md", "root/a.md")
    (tmp_path / "root" / "link.md").symlink_to(tmp_path / "outside" / "secret.md")

    assert found(tmp_path / "root") == ["a.md"]
    assert "leads out of the folder" in skipped(tmp_path / "root")["link.md"].reason


def test_a_link_to_a_folder_is_not_followed(tmp_path: Path) -> None:
    put(tmp_path, "outside/secret.md", "root/a.md")
    (tmp_path / "root" / "link").symlink_to(tmp_path / "outside")

    assert found(tmp_path / "root") == ["a.md"]
    assert "links are not followed" in skipped(tmp_path / "root")["link"].reason


def test_what_becomes_a_link_during_the_walk_is_not_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    put(root, "a/1.md", "b/2.md", "c.md")
    put(outside, "secret.md")
    items = walk(root)
    first = next(items)
    assert isinstance(first, FileEntry)
    (root / "b" / "2.md").unlink()
    (root / "b").rmdir()
    (root / "b").symlink_to(outside)
    (root / "c.md").unlink()
    (root / "c.md").symlink_to(outside / "secret.md")

    reasons = [(Path(item.path).name, item.reason) for item in items if isinstance(item, SkippedPath)]

    assert Path(first.path).name == "1.md"
    assert reasons == [
        ("b", "a link to a folder; links are not followed"),
        ("c.md", "a link that leads out of the folder"),
    ]


def test_a_link_inside_the_root_is_read(tmp_path: Path) -> None:
    put(tmp_path, "a.md")
    (tmp_path / "link.md").symlink_to("a.md")

    assert found(tmp_path) == ["a.md", "link.md"]


@pytest.mark.parametrize("target", ["loop.md", "missing.md"])
def test_a_link_that_leads_nowhere_is_a_failure(tmp_path: Path, target: str) -> None:
    (tmp_path / "loop.md").symlink_to(target)

    item = skipped(tmp_path)["loop.md"]

    assert item.failed
    assert item.reason.startswith("cannot be read")


def test_a_pipe_is_passed_over_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")

    assert skipped(tmp_path)["pipe.md"] == SkippedPath(str(tmp_path / "pipe.md"), "not a regular file")


def test_a_file_that_became_a_pipe_since_it_was_found_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")

    assert read(FileEntry(str(tmp_path / "pipe.md"), 5, 0), CAP) == SkippedPath(
        str(tmp_path / "pipe.md"), "not a regular file"
    )


def test_a_device_is_passed_over() -> None:
    (item,) = walk(Path("/dev/null"))

    assert item == SkippedPath("/dev/null", "not a regular file")


def test_a_file_that_is_gone_when_it_is_read_is_a_failure(tmp_path: Path) -> None:
    item = read(FileEntry(str(tmp_path / "gone.md"), 5, 0), CAP)

    assert isinstance(item, SkippedPath)
    assert item.failed


def test_a_file_over_the_cap_is_skipped_with_both_figures(tmp_path: Path) -> None:
    item = content(tmp_path / "big.md", b"x" * 1_001)

    assert item == SkippedPath(str(tmp_path / "big.md"), "1,001 bytes, over the limit of 1,000")


def test_a_file_of_exactly_the_cap_is_read(tmp_path: Path) -> None:
    item = content(tmp_path / "fits.md", b"x" * CAP)

    assert isinstance(item, Content)
    assert item.text == "x" * CAP


def test_a_file_that_grew_since_it_was_found_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"tea" * 300)
    item = read(FileEntry(str(path), 0, 0), CAP)
    assert isinstance(item, Content)
    assert item.data == b"tea" * 300


def test_a_file_that_grew_over_the_cap_since_it_was_found_is_passed_over(tmp_path: Path) -> None:
    put(tmp_path, "a.md", text="x" * 50)

    item = read(FileEntry(str(tmp_path / "a.md"), 5, 0), 10)

    assert item == SkippedPath(str(tmp_path / "a.md"), "grown over the limit of 10 bytes")


def test_a_binary_file_is_skipped(tmp_path: Path) -> None:
    assert content(tmp_path / "bin.md", b"PK\x03\x04\x00\x00") == SkippedPath(str(tmp_path / "bin.md"), "a binary file")


@pytest.mark.parametrize(
    ("data", "text", "replaced"),
    [
        (b"plain", "plain", False),
        ("héllo".encode(), "héllo", False),
        (b"\xef\xbb\xbfwith mark", "with mark", False),
        ("wide é".encode("utf-16"), "wide é", False),
        (b"caf\xe9", "caf\ufffd", True),
        (b"one\r\ntwo\rthree\n", "one\ntwo\nthree\n", False),
        (b"", "", False),
    ],
)
def test_bytes_become_text(tmp_path: Path, data: bytes, text: str, replaced: bool) -> None:
    assert content(tmp_path / "a.md", data) == Content(text, data, replaced)


SECRET = "the combination is 4711"


def swap(path: Path, target: Path) -> None:
    """Put a link where a file or folder is, at once, and what was there aside."""
    link = path.with_name(f"{path.name}.link")
    link.symlink_to(target)
    os.rename(path, path.with_name(f"{path.name}.before"))
    os.rename(link, path)


def read_all(items: list[FileEntry | SkippedPath]) -> dict[str, Content | SkippedPath]:
    return {Path(item.path).name: read(item, CAP) for item in items if isinstance(item, FileEntry)}


def test_a_file_that_became_a_link_out_since_it_was_found_is_not_read(tmp_path: Path) -> None:
    root = tmp_path / "root"
    put(root, "a.md", "b.md")
    put(tmp_path, "outside/a.md", text=SECRET)
    items = list(walk(root))
    swap(root / "a.md", tmp_path / "outside" / "a.md")

    contents = read_all(items)

    reason = "the file or one of its folders has become a link that leads out"
    assert contents["a.md"] == SkippedPath(str(root / "a.md"), reason)
    assert isinstance(contents["b.md"], Content)


@pytest.mark.parametrize("folder", ["sub", "sub/deep"])
def test_a_file_below_a_folder_that_became_a_link_out_since_it_was_found_is_not_read(
    tmp_path: Path, folder: str
) -> None:
    root = tmp_path / "root"
    put(root, "sub/deep/a.md")
    put(tmp_path, "outside/a.md", "outside/deep/a.md", text=SECRET)
    items = list(walk(root))
    swap(root / folder, tmp_path / "outside")

    item = read_all(items)["a.md"]

    assert isinstance(item, SkippedPath)
    assert "leads out" in item.reason


def test_a_root_that_became_a_link_since_it_was_walked_is_not_read(tmp_path: Path) -> None:
    root = tmp_path / "root"
    put(root, "a.md")
    put(tmp_path, "outside/a.md", text=SECRET)
    items = list(walk(root))
    swap(root, tmp_path / "outside")

    assert isinstance(read_all(items)["a.md"], SkippedPath)


def test_a_link_that_leads_elsewhere_since_it_was_found_is_not_read(tmp_path: Path) -> None:
    root = tmp_path / "root"
    put(root, "a.md")
    put(tmp_path, "outside.md", text=SECRET)
    (root / "link.md").symlink_to("a.md")
    items = list(walk(root))
    swap(root / "link.md", tmp_path / "outside.md")

    contents = read_all(items)

    assert isinstance(contents["link.md"], SkippedPath)
    assert isinstance(contents["a.md"], Content)


def test_a_link_inside_the_root_is_read_where_it_leads(tmp_path: Path) -> None:
    put(tmp_path, "sub/a.md", text="words")
    (tmp_path / "link.md").symlink_to("sub/a.md")

    item = read_all(list(walk(tmp_path)))["link.md"]

    assert isinstance(item, Content)
    assert item.text == "words"


def test_an_ignore_file_of_a_folder_that_became_a_link_does_not_rule(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    put(root, "a/1.md", "b/2.md")
    put(outside, "2.md", ".gitignore", text=SECRET)
    items = walk(root)
    next(items)
    swap(root / "b", outside)

    (item,) = items

    assert item == SkippedPath(str(root / "b"), "a link to a folder; links are not followed")


@pytest.mark.parametrize("has_dir_fd", [HAS_DIR_FD, False])
@pytest.mark.parametrize("path", ["a.md", "sub/a.md"])
def test_what_is_opened_lies_below_the_root_with_descriptors_of_folders_and_without(
    tmp_path: Path, has_dir_fd: bool, path: str
) -> None:
    root = tmp_path / "root"
    put(root, path)
    put(tmp_path, "outside/a.md", text=SECRET)
    os.close(open_below(Root(str(root)), str(root / path), has_dir_fd=has_dir_fd))
    outside = tmp_path / "outside"
    swap((root / path).parent if "/" in path else root / path, outside if "/" in path else outside / "a.md")

    with pytest.raises(OSError, match="leads out"):
        open_below(Root(str(root)), str(root / path), has_dir_fd=has_dir_fd)


SWAPS = """
import os, sys
root, outside = sys.argv[1:]
os.symlink(outside, root + "/.folder")
os.symlink(outside + "/0.md", root + "/.file")
print("ready", flush=True)
while True:
    for path, link in ((root + "/sub", root + "/.folder"), (root + "/sub2/0.md", root + "/.file")):
        os.rename(path, path + ".aside")
        os.rename(link, path)
        os.rename(path, link)
        os.rename(path + ".aside", path)
"""


def test_whoever_swaps_files_and_folders_for_links_meanwhile_gets_nothing_from_outside_read(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    put(root, *(f"{folder}/{number}.md" for folder in ("sub", "sub2") for number in range(4)))
    put(outside, *(f"{number}.md" for number in range(4)), text=SECRET)
    process = subprocess.Popen([sys.executable, "-c", SWAPS, str(root), str(outside)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        process.stdout.readline()
        texts, met = set[str](), 0
        for _ in range(RACES):
            contents = read_all(list(walk(root)))
            texts |= {item.text for item in contents.values() if isinstance(item, Content)}
            met += any(isinstance(item, SkippedPath) for item in contents.values())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()

    assert texts == {"words\n"}
    assert met, "no swap fell between a look and a read"


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
@pytest.mark.parametrize(
    ("data", "text", "replaced"),
    [
        (b"The boats are red.", "The boats are red.", False),
        (b"The boats are red", "The boats are red", False),
        ("Die Boote sind grün.".encode(), "Die Boote sind grün.", False),
        ("Лодки красные.".encode(), "Лодки красные.", False),
        ("Die Boote sind grün".encode("latin-1"), "Die Boote sind gr\ufffdn", True),
    ],
)
def test_a_mark_of_utf_16_before_something_else_is_named_and_not_believed(
    tmp_path: Path, mark: bytes, data: bytes, text: str, replaced: bool
) -> None:
    item = content(tmp_path / "a.md", mark + data)

    assert isinstance(item, Content)
    said = f"begins with the mark of UTF-16 ({mark.hex(' ').upper()}) but is not UTF-16: read as UTF-8"
    assert (item.text, item.replaced, item.remark) == (text, replaced, said)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", ["The boats are red.\n", "漢字文章のテキスト。", "Лодки красные", "", "中文"])
def test_utf_16_is_read_as_such(tmp_path: Path, encoding: str, text: str) -> None:
    item = content(tmp_path / "a.md", f"\ufeff{text}".encode(encoding))

    assert isinstance(item, Content)
    assert (item.text, item.replaced, item.remark) == (text, False, "")


def test_utf_16_that_was_cut_in_the_middle_of_a_letter_is_read_to_there(tmp_path: Path) -> None:
    item = content(tmp_path / "a.md", "red boats".encode("utf-16")[:-1])

    assert isinstance(item, Content)
    assert (item.text, item.replaced) == ("red boat\ufffd", True)


def test_random_bytes_behind_a_mark_of_utf_16_are_a_binary_file(tmp_path: Path) -> None:
    data = b"\xff\xfe" + random.Random(1).randbytes(998)

    assert content(tmp_path / "a.md", data) == SkippedPath(str(tmp_path / "a.md"), "a binary file")


def test_an_ignore_rule_that_would_take_long_to_match_is_named_and_passed_over(tmp_path: Path) -> None:
    put(tmp_path, f"{'a' * 200}.md", "b.md")
    (tmp_path / ".gitignore").write_text("a*a*a*a*a*a*a*a*a*c\nb.md\n", encoding="utf-8")

    assert found(tmp_path) == [f"{'a' * 200}.md"]
    assert "more than 3 stars" in skipped(tmp_path)[".gitignore:1"].reason


def test_an_ignore_file_over_a_megabyte_is_named(tmp_path: Path) -> None:
    put(tmp_path, "a.md")
    (tmp_path / ".gitignore").write_text("a.md\n" * 250_000, encoding="utf-8")

    assert found(tmp_path) == ["a.md"]
    assert "over the limit" in skipped(tmp_path)[".gitignore"].reason
