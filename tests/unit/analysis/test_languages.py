"""Language by script, then by a vote of the stop words, else by setting."""

from __future__ import annotations

import pytest

from whyrank.analysis.document import entry_for
from whyrank.analysis.tokenizer import (
    _ANY_SCRIPT,
    _SCRIPTLESS,
    language_of,
    latin_language,
    marks_of_language,
    script_language,
    shown_language,
    word_language,
)
from whyrank.types.memory import Memory


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Кошка спит на окне", "ru"),
        ("昨日は海へ行きました", "ja"),
        ("我们明天去公园", "zh"),
        ("고양이가 잡니다", "ko"),
        ("แมวนอนหลับ", "th"),
        ("η γάτα κοιμάται", "el"),
        ("החתול ישן", "he"),
        ("القطة نائمة", "ar"),
        ("बिल्ली सो रही है", "hi"),
        ("பூனை தூங்குகிறது", "ta"),
        ("կատուն քնած է", "hy"),
    ],
)
def test_a_script_of_its_own_tells_the_language(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("the cat is asleep on the chair", "en"),
        ("die Katze schläft auf dem Stuhl und träumt", "de"),
        ("wozu brauchen Katzen Stühle", "de"),
        ("le chat dort sur la chaise avec une souris", "fr"),
        ("el gato duerme en la silla con un ratón", "es"),
        ("il gatto dorme sulla sedia con gli occhi chiusi", "it"),
        ("o gato dorme na cadeira e não acorda", "pt"),
        ("de kat slaapt op een stoel en droomt", "nl"),
        ("katten sover på stolen och drömmer om en mus", "sv"),
    ],
)
def test_latin_languages_are_told_by_their_stop_words(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize("text", ["", "   ", "12345", "!!!", "kubectl rollout", "x = y"])
def test_where_nothing_tells_the_setting_decides(text: str) -> None:
    assert language_of(text, "sv") == "sv"


def test_a_tie_of_votes_goes_to_the_setting() -> None:
    # "in" and "was" are one stop word each in English, German and Dutch: 2 votes each.
    assert latin_language("in was", "de") == "de"
    assert latin_language("in was", "en") == "en"


@pytest.mark.parametrize(
    "text", ["draw an AI portrait", "AI portraits drawn AI AI", "walk the dog twice per week", "boil eggs 9 min longer"]
)
def test_a_word_that_english_has_too_shows_no_other_language_alone(text: str) -> None:
    assert latin_language(text) == "en"


def test_such_a_word_votes_beside_another_and_where_english_is_not_the_setting() -> None:
    assert latin_language("min syster och hund") == "sv"  # min and och; English has none
    assert latin_language("kaffe hos min syster", "sv") == latin_language("kaffe med min syster", "de") == "sv"


def test_single_letters_have_no_vote() -> None:
    assert latin_language("o = e + y", "en") == "en"  # all three are words of Portuguese, Spanish or Italian


def test_a_contraction_votes_for_its_language() -> None:
    assert latin_language("don't touch anything", "de") == "en"


def test_a_few_foreign_characters_do_not_turn_a_latin_text() -> None:
    assert script_language("We saw 東京 from the train window") is None  # 2 · 3 = 6 < 26 Latin letters


def test_letters_with_accents_are_latin_letters_too() -> None:
    assert script_language("éé да") == "ru"  # two against two
    assert script_language("ééé да") is None  # two against three


def test_one_chinese_character_weighs_three_letters() -> None:
    assert script_language("abcdef東京") == "zh"  # 2 · 3 = 6 ≥ 6
    assert script_language("abcdefg東京") is None  # 2 · 3 = 6 < 7


def test_a_fifth_of_kana_tells_japanese_from_chinese() -> None:
    assert script_language("漢漢漢漢の") == "ja"  # 1 of 5 = 0.2
    assert script_language("漢漢漢漢漢の") == "zh"  # 1 of 6 < 0.2


@pytest.mark.parametrize(("word", "language"), [("кошка", "ru"), ("chat", "fr"), ("γάτα", "el")])
def test_a_word_is_stemmed_in_its_own_script_or_in_the_text_s_latin_language(word: str, language: str) -> None:
    assert word_language(word, "fr") == language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Die Rechnungen hat man den Kunden geschickt", "de"),  # die, hat, man, den
        ("Die Verträge hat Robin", "de"),  # die, hat, and an umlaut
        ("Café per week", "en"),
        ("45 min per week", "en"),
        ("the con man and his hat", "en"),
    ],
)
def test_words_that_english_has_too_show_another_language_where_there_are_several_of_them(
    text: str, language: str
) -> None:
    assert latin_language(text) == language


def test_what_is_told_to_be_of_no_script_at_a_glance_is_of_none() -> None:
    scriptless = [letter for letter in map(chr, range(0x80, 0x20000)) if _SCRIPTLESS.fullmatch(letter)]
    assert len(scriptless) > 5_000
    assert not any(map(_ANY_SCRIPT.search, scriptless))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("How do we restore the backup?", "en"),  # how, do, we and the for English, do for Portuguese, we for Dutch
        ("How many requests per minute do partners get?", "en"),  # how and do, against per and do
        ("Wie stellen wir das Backup wieder her?", "de"),
        ("Где хранится токен?", "ru"),
        ("docker compose restart bot", ""),
        ("Postgres backup in Docker", ""),  # in: English, German, Dutch and Italian alike
        ("", ""),
    ],
)
def test_a_language_is_shown_by_a_script_or_by_more_function_words_than_speak_for_any_other(
    text: str, shown: str
) -> None:
    assert shown_language(text) == shown
    assert shown_language(text, "de") == shown


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("The backup runs every night", "in=en"),
        ("Das Backup läuft jede Nacht auf dem Server", "in=de"),
        ("備份在夜間運行", "in=zh"),
        ("docker compose restart", "as=en"),
    ],
)
def test_a_memory_is_marked_with_the_language_it_shows_or_with_that_of_the_setting(text: str, mark: str) -> None:
    marks = entry_for(Memory("m_1", text), "en").marks
    assert marks == (mark,)
    assert mark in marks_of_language(mark[3:])


def test_a_long_piece_without_spaces_does_not_hide_the_language() -> None:
    assert entry_for(Memory("m_1", f"The sum of the file is {'0f' * 200}"), "en").marks == ("in=en",)
