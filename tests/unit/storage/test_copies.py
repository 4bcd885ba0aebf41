"""A copy holds what the store held at that moment, and nothing of what is done to it comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank.errors import StoreDamaged
from whyrank.storage.sqlite.copies import copy_store

if TYPE_CHECKING:
    from pathlib import Path


def test_a_copy_answers_like_the_store_and_leads_its_own_life(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path) as engine:
        engine.add("Robin prefers tea")
        copy_store(tmp_path / "memory.db", tmp_path / "copy.db")  # while the store is open
        with whyrank.open(tmp_path / "copy.db", workspace=tmp_path) as copy:
            assert [hit.score for hit in copy.search("tea")] == [hit.score for hit in engine.search("tea")]
            copy.add("Robin hates tea")
        assert [memory.text for memory in engine.list()] == ["Robin prefers tea"]


def test_what_is_no_store_is_named(tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(StoreDamaged):
        copy_store(tmp_path / "memory.db", tmp_path / "copy.db")
