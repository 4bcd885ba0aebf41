"""Slips that were found by looking hard: each stays mended."""

from __future__ import annotations

import pytest

from whyrank.analysis.names import entities_in, name_words, names_of, probe_for
from whyrank.analysis.query import analyse, kind_of
from whyrank.analysis.snippets import snippet
from whyrank.analysis.tokenizer import all_tokens, latin_language, tokens_of
from whyrank.types.memory import Memory


def test_the_long_vowel_mark_stands_inside_japanese_words() -> None:
    assert tokens_of("コーヒー") == ("コー", "ーヒ", "ヒー")


def test_a_typographic_apostrophe_is_an_apostrophe() -> None:
    assert all_tokens("they don’t know") == all_tokens("they don't know")
    assert name_words("Suzy’s Tea") == name_words("Suzy's Tea") == ("suzy", "tea")


@pytest.mark.parametrize(("name", "words"), [("O'Brien", ("o", "brien")), ("L'Avion Rouge", ("l", "avion", "rouge"))])
def test_what_follows_an_apostrophe_belongs_to_the_name(name: str, words: tuple[str, ...]) -> None:
    assert name_words(name) == words


@pytest.mark.parametrize(
    "text",
    [
        "/etc/nginx/nginx.conf",
        "./src/app/main.py",
        "~/notes/a/b.md",
        r"C:\a\b\c.txt",
        "https://example.com/a",
        "a.b.c()",
    ],
)
def test_paths_addresses_and_calls_are_names(text: str) -> None:
    assert kind_of(text, "en") == "name"


def test_entities_are_whole_words() -> None:
    assert entities_in("my iPhone is old") == ("iPhone",)


def test_a_lone_letter_at_the_end_is_marked() -> None:
    assert snippet("犬と猫", ("猫",)).marked("[", "]") == "犬と[猫]"


@pytest.mark.parametrize("text", ["die hard", "war stories", "op amp", "user@example.com"])
def test_one_foreign_function_word_does_not_decide_a_short_query(text: str) -> None:
    assert latin_language(text) == "en"


def test_a_phrase_of_function_words_is_no_term() -> None:
    assert analyse('"the of" cat').terms == ("cat",)


def test_a_lone_underscore_is_no_word() -> None:
    assert tokens_of("_ __") == ()


def test_equal_words_in_any_order_and_any_apostrophe_meet() -> None:
    [name, *_] = names_of(Memory("m", "x", name="Suzy’s Tea"))
    assert sorted(probe_for("tea suzy's").words) == sorted(name.words)
