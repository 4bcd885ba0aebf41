"""Foreign questions, in the languages of a store."""

from __future__ import annotations

import pytest

from whyrank.analysis.tokenizer import language_of
from whyrank.search.calibrator import QUESTIONS, off_topic


@pytest.mark.parametrize("language", QUESTIONS)
def test_every_question_is_written_once_and_in_its_language(language: str) -> None:
    questions = QUESTIONS[language]
    assert len(set(questions)) == len(questions) >= 20
    told = [language_of(question, language) for question in questions]
    assert told.count(language) == len(questions)


def test_languages_are_dealt_out_as_often_as_they_are_named() -> None:
    asked = off_topic(["en"] * 3 + ["de"], 40)
    german = [question for question in asked if question in QUESTIONS["de"]]
    assert (len(asked), len(german)) == (40, 10)


def test_a_language_that_is_not_here_is_asked_in_english() -> None:
    assert off_topic(["th"], 5) == list(QUESTIONS["en"][:5])
    assert off_topic([], 5) == list(QUESTIONS["en"][:5])


def test_there_are_no_more_than_there_are() -> None:
    assert sorted(off_topic(["de"], 500)) == sorted(QUESTIONS["de"])
