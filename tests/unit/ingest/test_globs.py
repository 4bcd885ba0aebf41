"""Patterns name files of the workspace, and never one outside of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from whyrank.errors import ConfigError
from whyrank.ingest.walk import FileEntry, is_match, matching, parsed


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    for name in ("skills/a/SKILL.md", "skills/b.md", "skills/b.txt", "TOOLS.md", "docs/api.md", ".hidden/x.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("text", encoding="utf-8")
    return folder


def found(workspace: Path, *patterns: str) -> list[str]:
    items = matching(workspace, patterns)
    return [Path(item.path).relative_to(workspace).as_posix() for item in items if isinstance(item, FileEntry)]


def skipped(workspace: Path, *patterns: str) -> list[tuple[str, bool]]:
    return [(item.reason, item.failed) for item in matching(workspace, patterns) if not isinstance(item, FileEntry)]


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("skills/**/*.md", "skills/a/b/c.md", True),
        ("skills/**/*.md", "skills/a.md", True),
        ("skills/**/*.md", "skills/a.mdx", False),
        ("skills/**/*.md", "other/skills/a.md", False),
        ("skills/*.md", "skills/a/b.md", False),
        ("**/*.md", "a.md", True),
        ("skills/**", "skills/a/b.txt", True),
        ("a?.md", "ab.md", True),
        ("a?.md", "a/.md", False),
        ("[ab]*.md", "beta.md", True),
        ("[!ab]*.md", "beta.md", False),
        ("TOOLS.md", "TOOLSxmd", False),
    ],
)
def test_patterns_mean_what_shells_mean_by_them(pattern: str, path: str, expected: bool) -> None:
    assert is_match(path, pattern) is expected


def test_files_come_once_in_the_order_of_the_patterns(workspace: Path) -> None:
    assert found(workspace, "TOOLS.md", "skills/**/*.md", "**/*.md") == [
        "TOOLS.md", "skills/a/SKILL.md", "skills/b.md", "docs/api.md",
    ]  # fmt: skip


def test_a_pattern_may_name_other_kinds_of_text_and_a_hidden_folder(workspace: Path) -> None:
    assert found(workspace, "skills/*.txt", ".hidden/*.md") == ["skills/b.txt", ".hidden/x.md"]


def test_what_is_ignored_is_passed_over(workspace: Path) -> None:
    (workspace / ".git").mkdir()
    (workspace / ".gitignore").write_text("skills/a/\n", encoding="utf-8")
    assert found(workspace, "skills/**/*.md") == ["skills/b.md"]


def test_a_file_that_was_named_and_is_not_there_is_a_failure(workspace: Path) -> None:
    assert skipped(workspace, "NOTES.md") == [("does not exist", True)]
    assert skipped(workspace, "nowhere/*.md") == [("does not exist", False)]


def test_a_folder_is_no_file(workspace: Path) -> None:
    [(reason, failed)] = skipped(workspace, "skills")
    assert failed
    assert "`skills/**/*.md` means" in reason


def test_links_out_of_the_workspace_are_not_followed(workspace: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("secret", encoding="utf-8")
    os.symlink(outside, workspace / "linked")
    os.symlink(outside / "secret.md", workspace / "skills" / "secret.md")
    os.symlink(outside, workspace / "skills" / "deep")
    for patterns in (["linked/**/*.md"], ["linked/secret.md"], ["skills/**/*.md"], ["skills/secret.md"], ["**/*.md"]):
        assert not any("secret" in name for name in found(workspace, *patterns))
    assert skipped(workspace, "linked/secret.md") == [("a link that leads out of the workspace", False)]


def test_pipes_are_never_opened(workspace: Path) -> None:
    os.mkfifo(workspace / "skills" / "pipe.md")
    assert ("not a regular file", False) in skipped(workspace, "skills/**/*.md")


@pytest.mark.parametrize("pattern", ["/etc/passwd", "../other/*.md", "a/../../b.md", "a\0.md", "x" * 1_001, "[z-a].md"])
def test_patterns_that_lead_out_or_are_none_are_refused(pattern: str) -> None:
    with pytest.raises(ConfigError):
        parsed([pattern])


def test_patterns_are_separated_by_commas() -> None:
    assert parsed(" skills/**/*.md, TOOLS.md,,TOOLS.md") == ("skills/**/*.md", "TOOLS.md")
    with pytest.raises(ConfigError, match="there is no pattern"):
        parsed(" , ")
