"""Failure 5: AND-joined words find nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.regressions.conftest import OpenEngine

NOTE = "Write the smallest experiment first; ask which constraint can move."


def test_one_shared_word_of_a_question_is_enough(open_engine: OpenEngine) -> None:
    engine = open_engine(NOTE, "lunch is at noon", embedding="none")
    assert engine.search("which experiment should I try when I am completely stuck?")[0].memory.text == NOTE


def test_the_and_join_loses_it(open_engine: OpenEngine) -> None:
    engine = open_engine(NOTE, "lunch is at noon", embedding="none")
    assert len(engine.search("which experiment should I try when stuck?", recipe="openclaw-2026-02")) == 0


def test_a_phrase_is_honoured(open_engine: OpenEngine) -> None:
    engine = open_engine("the tea is green", "a cup of green tea", embedding="none")
    found = engine.search('"green tea"')
    assert [hit.memory.text for hit in found] == ["a cup of green tea"]
