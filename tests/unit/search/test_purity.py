"""Ranking is pure at run time too: between retrieval and the one fetch nothing reaches the store."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank.ranking.recipes import RECIPES
from whyrank.types.memory import Document

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

PACKAGE = Path(whyrank.__file__).parent
STORAGE, RANKING = str(PACKAGE / "storage"), str(PACKAGE / "ranking")
TEXTS = ("green tea for the afternoon", "black tea for the morning", "coffee for the morning", "tea, and nothing else")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[whyrank.Engine]:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path) as memory:
        for text in TEXTS:  # the same text in two scopes, so that equal scores must be told apart
            memory.add(text)
            memory.add(text, scope="user:1")
        chunks = "\n".join(f"# {name} tea\n\n{'Who drinks tea in the morning? ' * 60}\n" for name in ("Green", "Black"))
        memory.add_documents([Document("tea.md", chunks), Document("other.md", chunks)])
        yield memory


def test_no_stage_of_any_recipe_reaches_the_store(engine: whyrank.Engine) -> None:
    reached: list[tuple[str, str]] = []
    ranked = 0

    def watch(frame: FrameType, event: str, _: object) -> None:
        nonlocal ranked
        if event != "call":
            return
        ranked += frame.f_code.co_filename.startswith(RANKING)
        if not frame.f_code.co_filename.startswith(STORAGE):
            return
        above = frame.f_back
        while above is not None:
            if above.f_code.co_filename.startswith(RANKING):
                reached.append((above.f_code.co_qualname, frame.f_code.co_qualname))
            above = above.f_back

    gc.collect()
    gc.disable()  # a collection would close the stores of earlier tests, wherever it happens
    for recipe in RECIPES:
        sys.setprofile(watch)
        try:
            results = engine.search("who drinks tea in the morning", recipe=recipe, limit=2, scope="user:1")
        finally:
            sys.setprofile(None)
        assert results.recipe == recipe
    gc.enable()
    assert ranked > 100
    assert reached == []


def test_one_fetch_reads_all_that_is_shown(engine: whyrank.Engine) -> None:
    fetched: list[str] = []

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_qualname == "IndexedStore.fetch":
            fetched.append(frame.f_code.co_name)

    sys.setprofile(watch)
    try:
        results = engine.search("who drinks tea in the morning", limit=3, scope="user:1")
        shown = [hit.memory.text for hit in results]
    finally:
        sys.setprofile(None)
    assert (len(shown), fetched) == (3, ["fetch"])
