"""A file has one name in a store, however its path was typed."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from whyrank.ingest.walk import file_title, name_in, seen_from, settled, stored_name, stored_pattern, stored_place


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work[1]"
    (folder / "notes").mkdir(parents=True)
    (folder / "notes/tea.md").write_text("tea", encoding="utf-8")
    monkeypatch.chdir(folder / "notes")
    return folder


@pytest.mark.parametrize("typed", ["tea.md", "./tea.md", "../notes/tea.md", "../notes/./tea.md"])
def test_one_file_has_one_name(base: Path, typed: str) -> None:
    assert stored_name(base, typed) == stored_name(base, str(base / "notes" / typed)) == "notes/tea.md"


def test_what_is_outside_keeps_its_whole_path(base: Path) -> None:
    assert stored_name(base, "../../milk.md") == (base.parent / "milk.md").as_posix()


@given(st.lists(st.sampled_from(["/", "//", ".", "..", "desk", "tea", " "]), max_size=8).map("".join))
@example("/desk")
@example("/desk//tea")
def test_what_is_outside_is_called_as_its_path_says(typed: str) -> None:
    base, place = Path("/desk/tea"), Path(typed)
    if not typed.startswith("/desk/tea/"):
        assert name_in(base, typed) == (place.relative_to(base) if place.is_relative_to(base) else place).as_posix()


def test_a_folder_that_is_reached_by_a_link_is_the_same_folder(base: Path) -> None:
    (base.parent / "link").symlink_to(base)
    assert name_in(base, seen_from(base, base.parent / "link/notes/tea.md")) == "notes/tea.md"
    by_link = base.parent / "link"
    assert name_in(by_link, seen_from(by_link, base / "notes/tea.md")) == "notes/tea.md"


def test_a_link_to_a_file_is_known_by_its_own_name(base: Path) -> None:
    (base.parent / "elsewhere.md").symlink_to(base / "notes/tea.md")
    (base / "link.md").symlink_to(base / "notes/tea.md")
    assert stored_name(base, "../link.md") == "link.md"
    assert stored_name(base, "../../elsewhere.md") == (base.parent / "elsewhere.md").as_posix()


def test_up_from_a_link_is_up_from_where_it_leads(base: Path) -> None:
    far = base.parent / "far"
    far.mkdir()
    (far / "link").symlink_to(base / "notes")
    assert settled(far / "link" / "..") == base.resolve()
    assert settled(far / "link") == far / "link"


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("*.md", "*.md"),
        ("notes/*", "notes/*"),
        ("./*.md", "notes/*.md"),
        ("../notes/t*", "notes/t*"),
        ("../*", "*"),
        ("./", "notes"),
    ],
)
def test_a_pattern_from_here_is_one_of_the_store(base: Path, typed: str, stored: str) -> None:
    assert stored_pattern(base, typed) == stored


def test_the_base_itself_is_all_that_is_in_it_and_nothing_outside(base: Path) -> None:
    pattern = stored_pattern(base, "../")
    assert fnmatchcase("notes/tea.md", pattern)
    assert not fnmatchcase("/outside/tea.md", pattern)


def test_a_whole_pattern_is_of_the_store_too_and_elsewhere_the_folder_is_meant_literally(base: Path) -> None:
    assert stored_pattern(base, f"{base}/notes/*.md") == "notes/*.md"
    outside = stored_pattern(base / "notes" / "deep", "./*.md")
    assert fnmatchcase(str(base / "notes" / "tea.md"), outside)


@given(st.lists(st.sampled_from(["/", ".", "..", "a", "memory", "tea.md", ".x", "SKILL.md", " "])).map("".join))
@example("/")
@example("/SKILL.md")
@example("//memory/tea.tar.gz")
def test_the_parts_of_a_name_are_those_of_a_path(name: str) -> None:
    place, path = stored_place(name), PurePosixPath(name)
    assert place[1:] == (path.name, path.stem, path.suffix)
    assert ("memory" in place.folders) == ("memory" in path.parts[:-1])
    assert (place.folders[-1] if place.folders else "") == path.parent.name


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("winter-tyres.md", "winter tyres"),
        ("cars/winter_tyres__summer.md", "winter tyres summer"),
        ("People/Anna Berg.md", "Anna Berg"),
        ("Work - CI-CD basics.md", "Work - CI-CD basics"),  # written for readers: hyphens are no separators
        ("memory/2026-03-17.md", "2026-03-17"),
        ("memory/2026-03-17-stand-up.md", "2026-03-17 stand up"),
        ("ADR-0016-bulk-ingest.md", "ADR 0016 bulk ingest"),
        ("notes.v2.txt", "notes.v2"),
        ("_draft.md", "draft"),
        ("---.md", "---"),
        ("MEMORY.md", "MEMORY"),
        ("payments-api/README.md", "payments api"),
        ("docs/index.md", "docs"),
        ("content/tea/_index.md", "tea"),
        ("skills/tide-table/SKILL.md", "tide table"),
        ("README.md", "README"),  # no folder is known
        ("logs/2026-06-02-call.jsonl", "2026-06-02 call"),
    ],
)
def test_a_file_is_called_by_its_name_or_by_its_folder_where_that_is_generic(path: str, title: str) -> None:
    assert file_title(path) == title
