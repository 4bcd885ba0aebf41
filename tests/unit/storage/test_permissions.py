"""Files of a store are for their owner alone, and a link does not lead a workspace's store elsewhere."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank.errors import ConfigError
from whyrank.storage.sqlite.copies import copy_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="permissions are those of POSIX")


@pytest.fixture(autouse=True)
def _common_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


def test_all_files_of_a_store_are_for_their_owner_alone(tmp_path: Path) -> None:
    with whyrank.open(workspace=tmp_path, embedding="none") as engine:
        engine.add("tea")
        engine.export(tmp_path / ".whyrank" / "all.jsonl")
        copy_store(tmp_path / ".whyrank" / "memory.db", tmp_path / ".whyrank" / "copy.db")
        found = modes(tmp_path / ".whyrank")
    assert {*found} >= {"memory.db", "memory.db-wal", "memory.db-shm", "memory.db.lock", "all.jsonl", "copy.db"}
    assert {name: oct(mode) for name, mode in found.items() if mode != 0o600} == {}
    assert stat.S_IMODE((tmp_path / ".whyrank").stat().st_mode) == 0o700


def test_what_an_earlier_whyrank_made_for_everybody_is_taken_back(tmp_path: Path) -> None:
    folder = tmp_path / ".whyrank"
    with whyrank.open(workspace=tmp_path, embedding="none") as engine:
        engine.add("tea")
    (folder / "memory.db.schema2.bak").write_bytes(b"old")
    folder.chmod(0o755)
    for name in ("memory.db", "memory.db.lock", "memory.db.schema2.bak"):
        (folder / name).chmod(0o644)
    with whyrank.open(workspace=tmp_path, embedding="none") as engine:
        engine.add("milk")
        assert {*modes(folder).values()} == {0o600}
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_store_that_was_shared_with_a_group_stays_shared(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with whyrank.open(path, workspace=tmp_path, embedding="none") as engine:
        engine.add("tea")
    path.chmod(0o660)
    with whyrank.open(path, workspace=tmp_path, embedding="none") as engine:
        engine.add("milk")
        assert modes(tmp_path)["memory.db"] == 0o660
        assert modes(tmp_path)["memory.db-wal"] == 0o660


@pytest.mark.parametrize("linked", ["memory.db", "folder"])
def test_a_store_that_is_a_link_out_of_the_workspace_is_refused(tmp_path: Path, linked: str) -> None:
    workspace, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    workspace.mkdir()
    elsewhere.mkdir()
    if linked == "folder":
        (workspace / ".whyrank").symlink_to(elsewhere)
    else:
        (workspace / ".whyrank").mkdir()
        (workspace / ".whyrank" / "memory.db").symlink_to(elsewhere / "memory.db")
    with pytest.raises(ConfigError, match="leads out of the workspace"):
        whyrank.open(workspace=workspace, embedding="none")
    assert [*elsewhere.iterdir()] == []
    # Who names it means it.
    with whyrank.open(workspace / ".whyrank" / "memory.db", workspace=workspace, embedding="none") as engine:
        engine.add("tea")
    assert (elsewhere / "memory.db").is_file()


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    (tmp_path / "memory.db.lock").symlink_to(precious)
    with pytest.raises(whyrank.WhyrankError, match="cannot be locked"):
        whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none")
    assert not precious.exists()
