"""Stems by language, and the rule that keeps stubs out of the index."""

from __future__ import annotations

import pytest

from whyrank.analysis.tokenizer import STUB_LETTERS, stem, tokens_of


@pytest.mark.parametrize(
    ("word", "language", "stemmed"),
    [
        ("running", "en", "run"),
        ("ponies", "en", "poni"),
        ("häuser", "de", "haus"),
        ("chansons", "fr", "chanson"),
        ("гуляли", "ru", "гуля"),
        ("книгами", "ru", "книг"),
        ("bibliotecas", "es", "bibliotec"),
        ("fietsen", "nl", "fiets"),
    ],
)
def test_a_word_is_stemmed_in_its_language(word: str, language: str, stemmed: str) -> None:
    assert stem(word, language) == stemmed


def test_a_word_of_a_language_without_stemmer_stays_whole() -> None:
    assert stem("running", "xx") == "running"


def test_a_word_whose_stem_would_be_a_stub_loses_one_letter_only() -> None:
    assert stem("боюсь", "ru") == "боюс"  # Snowball would say "бо"


@pytest.mark.parametrize(("word", "language"), [("ешь", "ru"), ("aws", "en"), ("ads", "en")])
def test_a_word_that_would_still_be_a_stub_after_losing_one_letter_stays_whole(word: str, language: str) -> None:
    assert len(word) - 1 <= STUB_LETTERS
    assert stem(word, language) == word


@pytest.mark.parametrize("word", ["go", "ui", "c", "яд", "x1"])
def test_a_word_of_one_or_two_letters_to_begin_with_stays(word: str) -> None:
    assert stem(word, "en") == word


def test_a_stem_of_two_letters_never_enters_the_index() -> None:
    tokens = tokens_of("Боюсь, ешь кашу")

    assert tokens == ("боюс", "ешь", "каш")
    assert all(len(token) > STUB_LETTERS for token in tokens)


def test_short_words_enter_the_index() -> None:
    assert tokens_of("Go UI and C") == ("go", "ui", "c")
