"""A file is wholly old or wholly new to every reader: 100 killed ingests."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from whyrank.types.memory import Memory, Source

from .ingests import kill_ingests, opened, reader, whole_versions

if TYPE_CHECKING:
    from pathlib import Path

KILLS = 50  # with nobody else, and as many with a reader that looks all the time


def test_a_killed_ingest_leaves_every_file_wholly_old_or_wholly_new(tmp_path: Path) -> None:
    counted = kill_ingests(tmp_path, 1, KILLS)
    assert counted["kills"] == KILLS
    assert counted["acknowledged"] < KILLS


def test_a_reader_never_sees_a_file_half_old_and_half_new(tmp_path: Path) -> None:
    counted = Counter[str]()
    with opened(tmp_path):
        pass  # makes the store
    with reader(tmp_path, counted):
        counted += kill_ingests(tmp_path, 2, KILLS)
    assert counted["kills"] == KILLS
    assert counted["reads"]


def memory(text: str) -> Memory:
    return Memory("m", text, source=Source("notes/n3.md", 1, 2, ""))


@pytest.mark.parametrize(
    "texts",
    [
        ["f3v1p0of2", "f3v2p1of2"],  # two versions
        ["f3v1p0of2"],  # a part is missing
        ["f3v1p0of2", "f3v1p1of2", "f3v1p1of2"],  # a part twice
    ],
)
def test_a_mixture_is_told_from_a_whole_file(texts: list[str]) -> None:
    with pytest.raises(AssertionError):
        whole_versions(map(memory, texts))


def test_a_whole_file_is_one_version() -> None:
    assert whole_versions(map(memory, ["f3v1p0of2", "f3v1p1of2"])) == {3: 1}
