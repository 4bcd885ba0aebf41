"""Beginnings that reach beyond the stem."""

from __future__ import annotations

import pytest

from whyrank.analysis.query import foreign_spellings, foreign_stems_beginning, spellings, stems_beginning
from whyrank.analysis.tokenizer import stem


@pytest.mark.parametrize(
    ("word", "language"),
    [
        ("operational", "en"),
        ("configuration", "en"),
        ("running", "en"),
        ("happiness", "en"),
        ("authorizations", "en"),
        ("regierungen", "de"),
        ("häuslichkeit", "de"),
        ("développement", "fr"),
        ("administraciones", "es"),
        ("развёртывание", "ru"),
        ("организациями", "ru"),
    ],
)
def test_every_beginning_of_a_word_finds_its_stem(word: str, language: str) -> None:
    stemmed = stem(word, language)
    assert stemmed is not None
    for letters in range(4, len(word) + 1):
        start = word[:letters]
        assert stemmed.startswith(spellings(start, language)) or stemmed in stems_beginning(start, language), start


def test_a_stem_that_begins_so_anyway_is_not_named() -> None:
    assert stems_beginning("deploy", "en") == ()


def test_what_is_no_word_has_no_endings() -> None:
    assert stems_beginning("api-k", "en") == stems_beginning("v1", "en") == stems_beginning("go", "en") == ()


def test_other_languages_are_known_by_their_own_endings_and_letters() -> None:
    assert "regier" in foreign_stems_beginning("regierun", "en")
    assert "haus" in foreign_spellings("häus", "en")
    assert foreign_spellings("красив", "en") == ()
