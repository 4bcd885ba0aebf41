"""Which files are read, and what is passed over with a reason."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from whyrank.ingest.walk import Content, Found, Skipped, read, walk

CAP = 1_000


def put(root: Path, *names: str, text: str = "words\n") -> None:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def found(root: Path) -> list[str]:
    return [Path(item.path).relative_to(root).as_posix() for item in walk(root) if isinstance(item, Found)]


def skipped(root: Path) -> dict[str, Skipped]:
    return {Path(item.path).name: item for item in walk(root) if isinstance(item, Skipped)}


def content(path: Path, data: bytes, cap: int = CAP) -> Content | Skipped:
    path.write_bytes(data)
    (item,) = walk(path)
    assert isinstance(item, Found)
    return read(item, cap)


def test_markdown_text_and_logs_are_found_in_order(tmp_path: Path) -> None:
    put(tmp_path, "b.md", "a.txt", "c/d.jsonl", "c/B.MARKDOWN", "picture.png", "code.py", "plain")

    assert found(tmp_path) == ["a.txt", "b.md", "c/B.MARKDOWN", "c/d.jsonl"]


def test_a_found_file_carries_its_size_and_time(tmp_path: Path) -> None:
    put(tmp_path, "a.md", text="12345")
    os.utime(tmp_path / "a.md", ns=(7, 7))

    assert list(walk(tmp_path)) == [Found(str(tmp_path / "a.md"), 5, 7)]


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
    assert isinstance(first, Found)
    (root / "b" / "2.md").unlink()
    (root / "b").rmdir()
    (root / "b").symlink_to(outside)
    (root / "c.md").unlink()
    (root / "c.md").symlink_to(outside / "secret.md")

    reasons = [(Path(item.path).name, item.reason) for item in items if isinstance(item, Skipped)]

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

    assert skipped(tmp_path)["pipe.md"] == Skipped(str(tmp_path / "pipe.md"), "not a regular file")


def test_a_file_that_became_a_pipe_since_it_was_found_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")

    assert read(Found(str(tmp_path / "pipe.md"), 5, 0), CAP) == Skipped(str(tmp_path / "pipe.md"), "not a regular file")


def test_a_device_is_passed_over() -> None:
    (item,) = walk(Path("/dev/null"))

    assert item == Skipped("/dev/null", "not a regular file")


def test_a_file_that_is_gone_when_it_is_read_is_a_failure(tmp_path: Path) -> None:
    item = read(Found(str(tmp_path / "gone.md"), 5, 0), CAP)

    assert isinstance(item, Skipped)
    assert item.failed


def test_a_file_over_the_cap_is_skipped_with_both_figures(tmp_path: Path) -> None:
    item = content(tmp_path / "big.md", b"x" * 1_001)

    assert item == Skipped(str(tmp_path / "big.md"), "1,001 bytes, over the cap of 1,000")


def test_a_file_of_exactly_the_cap_is_read(tmp_path: Path) -> None:
    item = content(tmp_path / "fits.md", b"x" * CAP)

    assert isinstance(item, Content)
    assert item.text == "x" * CAP


def test_a_file_that_grew_since_it_was_found_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"tea" * 300)
    item = read(Found(str(path), 0, 0), CAP)
    assert isinstance(item, Content)
    assert item.data == b"tea" * 300


def test_a_file_that_grew_over_the_cap_since_it_was_found_is_passed_over(tmp_path: Path) -> None:
    put(tmp_path, "a.md", text="x" * 50)

    item = read(Found(str(tmp_path / "a.md"), 5, 0), 10)

    assert item == Skipped(str(tmp_path / "a.md"), "grown over the cap of 10 bytes")


def test_a_binary_file_is_skipped(tmp_path: Path) -> None:
    assert content(tmp_path / "bin.md", b"PK\x03\x04\x00\x00") == Skipped(str(tmp_path / "bin.md"), "a binary file")


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
