"""Ranking is pure at run time too, and a search crosses few functions and the store three times."""

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
EXAMPLES = Path(__file__).parents[3] / "examples" / "memory"
MOST_FUNCTIONS, MOST_FILES = 190, 32  # that a warm search crosses; a reader of the code follows them all
HELD_OPEN = ("reading", "reader")  # hold the snapshot in which the store is called
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


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[whyrank.Engine]:
    folder = tmp_path_factory.mktemp("examples")
    with whyrank.open(folder / "memory.db", workspace=folder) as memory:
        memory.ingest(EXAMPLES)
        yield memory


@pytest.mark.parametrize(
    "question", ["Remind Me", "what to do when a task seems impossible", "deploy rollback", "what does Suzy drink?"]
)
def test_a_warm_search_crosses_few_functions_and_the_store_three_times(examples: whyrank.Engine, question: str) -> None:
    crossed: set[tuple[str, str]] = set()
    calls: list[str] = []

    def watch(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)):
            crossed.add((code.co_filename, code.co_qualname))
            if code.co_qualname.startswith("IndexedStore.") and code.co_name not in HELD_OPEN:
                calls.append(code.co_name)

    for _ in range(2):
        examples.search(question)
    gc.collect()
    gc.disable()  # a collection would close the stores of earlier tests, wherever it happens
    sys.setprofile(watch)
    try:
        examples.search(question)
    finally:
        sys.setprofile(None)
        gc.enable()
    named = [name for _, name in crossed if "<" not in name.rpartition(".")[2]]
    files = {file for file, _ in crossed}
    assert calls == ["resolve", "retrieve", "fetch"]
    assert len(named) <= MOST_FUNCTIONS, sorted(named)
    assert len(files) <= MOST_FILES, sorted(files)
