"""Stores written by every schema so far are opened, brought forward, and answer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import whyrank
from whyrank.storage.sqlite import schema
from whyrank.storage.sqlite.schema import MIGRATIONS

STORES = Path(__file__).parent / "stores"


def test_there_is_a_store_for_every_schema() -> None:
    assert {file.stem for file in STORES.glob("*.db")} == {f"schema{migration.version}" for migration in MIGRATIONS}


@pytest.mark.parametrize("file", sorted(STORES.glob("*.db")), ids=lambda file: file.stem)
def test_an_old_store_answers(file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "memory.db"
    shutil.copy(file, copy)
    with whyrank.open(copy, workspace=tmp_path) as engine:
        assert engine.search("Tea Pot")[0].memory.text.endswith("one litre.")
        drinks = engine.search("what does Suzy drink", scope="user:42", kind="fact")
        assert drinks[0].memory.text == "Suzy prefers tea"
        assert engine.search("котлы", kind="fact")[0].memory.text == "Котёл чистят в октябре"
        assert engine.status().schema == MIGRATIONS[-1].version
        assert engine.status().without_vector == 0


def test_whoever_opens_an_old_store_hears_where_it_is_kept_as_it_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    copy = Path(shutil.copy(STORES / "schema4.db", tmp_path / "memory.db"))
    for _ in range(2):
        whyrank.open(copy, workspace=tmp_path).close()
    newest = MIGRATIONS[-1].version
    assert [record.getMessage() for record in caplog.records if record.name == schema.__name__] == [
        f"{copy} was migrated from schema 4 to {newest}; the old file is kept in {copy}.schema4.bak"
    ]


def test_a_store_that_could_not_be_brought_forward_is_told_of_by_no_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Path(shutil.copy(STORES / "schema4.db", tmp_path / "memory.db"))
    monkeypatch.setattr(schema, "APPLICATION_ID", "no number")  # so that the last step fails
    with pytest.raises(whyrank.WhyrankError):
        whyrank.open(copy, workspace=tmp_path)
    assert not [*tmp_path.glob("*.bak")]
    assert not [record for record in caplog.records if record.name == schema.__name__]
