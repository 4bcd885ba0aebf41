"""Which memories have the same text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.unit.ranking.builders import memory
from whyrank.ranking.stages import same_texts, text_key

if TYPE_CHECKING:
    from whyrank.types.memory import Memory

BEGINNING = "one two three four five six seven eight"


def memories(texts: dict[str, str]) -> list[Memory]:
    return [replace(memory(key), text=text) for key, text in texts.items()]


def test_capitals_and_white_space_do_not_count() -> None:
    texts = {"a": "Green  tea", "b": "green TEA\n", "c": "green teas", "d": ""}
    assert same_texts(memories(texts)) == [["a", "b"]]
    assert text_key(texts["a"]) == text_key(texts["b"]) == "green tea"


def test_texts_that_begin_alike_are_the_same_only_if_they_end_alike() -> None:
    texts = {"a": f"{BEGINNING} nine", "b": f"{BEGINNING} ten", "c": f" {BEGINNING.upper()}\tNine", "d": BEGINNING}
    assert same_texts(memories(texts)) == [["a", "c"]]


def test_several_may_say_the_same() -> None:
    texts = {"a": "tea", "b": "oil", "c": "Tea", "d": "Oil", "e": "TEA"}
    assert same_texts(memories(texts)) == [["a", "c", "e"], ["b", "d"]]
