"""No query raises, and none takes more than two seconds: 2,000 hostile ones over 10,000 memories."""

from __future__ import annotations

import random
import string
import sys
from typing import TYPE_CHECKING

import pytest

from ..hostile import MEMORIES, ask_all, fill, open_store

if TYPE_CHECKING:
    from pathlib import Path
    from types import FrameType

    from whyrank import Engine

QUERIES = 2_000


@pytest.fixture(scope="session")
def hostile_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("hostile")
    fill(place)
    return place


def test_no_query_raises_or_takes_more_than_two_seconds(hostile_store: Path) -> None:
    with open_store(hostile_store) as engine:
        assert engine.status().memories == MEMORIES
        assert ask_all(engine, range(QUERIES)) > 0


def test_a_question_of_900_words_costs_little_more_than_one_of_the_64_that_are_asked_for(
    hostile_store: Path,
) -> None:
    """In calls of Python functions 900 words cost 1.06 times as much as 64, and 3.7 times if all are stemmed."""
    with open_store(hostile_store) as engine:
        engine.search("warm up")
        short = _calls(engine, _fresh_words(1, 64))
        assert _calls(engine, _fresh_words(2, 900)) < 2 * short


def _fresh_words(seed: int, count: int) -> str:
    chance = random.Random(seed)
    return " ".join("".join(chance.choices(string.ascii_lowercase, k=8)) for _ in range(count))


def _calls(engine: Engine, text: str) -> int:
    calls = 0

    def count(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        engine.search(text)
    finally:
        sys.setprofile(None)
    return calls
