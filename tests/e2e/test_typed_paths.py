"""A path means the file it leads to, from whichever folder it is typed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import whyrank

from .conftest import STORE, Run


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
        memory.forget_scope("global")
        memory.ingest(workspace / "notes", base=workspace.parent / "elsewhere")
    assert all(path.startswith("/") for path in paths_in(call))
    assert "6 renamed" in call("ingest", "notes").out
    assert not any(path.startswith("/") for path in paths_in(call))
