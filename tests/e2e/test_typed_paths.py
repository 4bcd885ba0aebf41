"""A path means the file it leads to, from whichever folder it is typed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import whyrank

from .conftest import STORE, Run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def paths_in(call: Run, *more: str) -> list[str]:
    """Return the paths of the files the store knows, each as often as it has memories."""
    memories = call("list", "--limit", "100", "--json", *more).data["memories"]
    return [memory["path"] for memory in memories if memory["path"]]


@pytest.mark.parametrize(
    "place", [["--workspace", ".."], ["--store", f"../{STORE}"], ["--store", f".././notes/../{STORE}"]]
)
def test_a_file_is_stored_once_from_wherever_it_is_ingested(
    workspace: Path, call: Run, monkeypatch: pytest.MonkeyPatch, place: Sequence[str]
) -> None:
    before = paths_in(call)
    monkeypatch.chdir(workspace / "notes")
    again = call("ingest", ".", *place)
    assert "6 unchanged" in again.out
    assert paths_in(call, *place) == before


def test_a_folder_reached_by_a_link_is_stored_once(workspace: Path, call: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (workspace.parent / "link").symlink_to(workspace)
    monkeypatch.chdir(workspace / "notes")  # where a shell that went by the link stands, too
    assert "6 unchanged" in call("ingest", ".", "--workspace", str(workspace.parent / "link")).out


def test_a_file_that_was_stored_under_its_whole_path_is_renamed(workspace: Path, call: Run) -> None:
    with whyrank.open(workspace / STORE, workspace=workspace) as memory:
        memory.memories.forget_scope("global")
        memory.ingest(workspace / "notes", base=workspace.parent / "elsewhere")
    assert all(path.startswith("/") for path in paths_in(call))
    assert "6 renamed" in call("ingest", "notes").out
    assert not any(path.startswith("/") for path in paths_in(call))


TEA = ["tea.md", "./tea.md", "../notes/tea.md", "notes/tea.md", "{workspace}/notes/tea.md", "tea.md:7-9"]


@pytest.mark.parametrize("typed", TEA)
def test_why_finds_the_file_that_is_meant_from_here(
    workspace: Path, call: Run, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    monkeypatch.chdir(workspace / "notes")
    path = typed.format(workspace=workspace)
    told = call("why", "green tea", path, "--workspace", "..", "--json")
    assert (told.status, told.data["rank"]) == (0, 1)
    compared = call("why", "green tea", "boat.md", "--over", path, "--workspace", "..", "--json")
    assert compared.status == 0, compared.err


def test_what_is_in_this_folder_goes_before_what_is_stored_under_that_name(
    workspace: Path, call: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "tea.md").write_text("# Other\n\nAnother note about green tea\n", encoding="utf-8")
    call("ingest", "tea.md")
    monkeypatch.chdir(workspace / "notes")
    assert "notes/tea.md" in call("why", "green tea", "tea.md", "--workspace", "..").out.splitlines()[0]


@pytest.mark.parametrize("verb", ["show", "forget", "recalled"])
def test_verbs_for_ids_name_the_file_that_was_typed(
    workspace: Path, call: Run, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.chdir(workspace / "notes")
    said = call(verb, str(workspace / "notes/tea.md"), "--workspace", "..")
    assert said.status != 0
    assert "`whyrank list --path notes/tea.md` shows the ids" in said.err


@pytest.mark.parametrize("pattern", ["./tea*", "../notes/tea.md", "{workspace}/notes/tea.*", "notes/tea.md"])
def test_patterns_from_here_find_what_is_stored(
    workspace: Path, call: Run, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    monkeypatch.chdir(workspace / "notes")
    asked = ["--workspace", "..", "--path", pattern.format(workspace=workspace)]
    assert set(paths_in(call, *asked)) == {"notes/tea.md"}
    found = call("search", "green tea", "--json", *asked).data["hits"]
    assert {hit["path"] for hit in found} == {"notes/tea.md"}


@pytest.mark.parametrize("typed", ["a\0b", "x" * 5_000, "../" * 2_000, "~", "/", "."])
def test_what_is_no_path_of_a_memory_is_refused_in_words(call: Run, typed: str) -> None:
    said = call("why", "green tea", typed)
    assert said.status != 0
    assert "there is no memory" in said.err


def test_a_store_in_a_folder_that_is_not_there_is_refused(workspace: Path, call: Run) -> None:
    refused = call("add", "hello", "--store", "no/such/x.db")
    assert refused.status != 0
    assert f"there is no folder {workspace / 'no/such'} for the store\n  create it, or" in refused.err
    assert not (workspace / "no").exists()
