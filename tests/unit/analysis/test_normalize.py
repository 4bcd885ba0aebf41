"""The gate for all text: what is replaced, what is folded, how long it counts."""

from __future__ import annotations

import unicodedata

import pytest

from whyrank.analysis.normalize import (
    _UNSPACED_LETTER,
    clean,
    compose,
    estimated_tokens,
    fold,
    is_clean,
    same_text,
    text_key,
    unspaced_letters,
)
from whyrank.analysis.tokenizer import tokens_of


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a\x00b", "a\ufffdb"),
        ("\x00\x00", "\ufffd\ufffd"),
        ("high \ud83d alone", "high \ufffd alone"),
        ("low \udc00 alone", "low \ufffd alone"),
    ],
)
def test_nul_and_lone_surrogates_are_replaced_and_the_replacement_is_said(given: str, kept: str) -> None:
    assert clean(given) == (kept, True)
    assert not is_clean(given)
    assert is_clean(kept)


def test_good_text_passes_the_gate_untouched() -> None:
    text = "Café 東京 😀\ttab\nline"

    assert clean(text) == (text, False)


def test_cleaned_text_can_always_be_encoded() -> None:
    assert clean("x\ud800y\x00z\udfff").text.encode("utf-8") == "x\ufffdy\ufffdz\ufffd".encode()


@pytest.mark.parametrize(
    ("given", "folded"),
    [
        ("ＡＢＣ", "abc"),
        ("ﬁsh", "fish"),
        ("Straße", "strasse"),
        ("ΣΊΣΥΦΟΣ", "σίσυφοσ"),
        ("ｶﾞ", "ガ"),
        ("e\u0301", "é"),
        ("H₂O", "h2o"),
    ],
)
def test_text_is_matched_in_nfkc_and_case_folded(given: str, folded: str) -> None:
    assert fold(given) == folded


@pytest.mark.parametrize("text", ["ΐ", "ﬃ", "Ǆ", "ẞ", "İ", "ᾳ\u0345", "Ⓐ", "㎏"])
def test_folding_twice_changes_nothing_more(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert unicodedata.is_normalized("NFKC", fold(text))


def test_composing_keeps_the_case_for_display_and_for_camel_case() -> None:
    assert compose("ＣamelＣase") == "CamelCase"


@pytest.mark.parametrize(("text", "letters"), [("東京 Tokyo", 2), ("カナ", 2), ("한글!", 2), ("ไทย", 3), ("plain", 0)])
def test_letters_of_unspaced_scripts_are_counted(text: str, letters: int) -> None:
    assert unspaced_letters(text) == letters


def test_no_letter_of_an_unspaced_script_is_overlooked() -> None:
    letters = [chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000]
    assert all(map(unspaced_letters, filter(_UNSPACED_LETTER.match, letters)))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),  # ceil(1 / 4)
        ("abcd", 1),  # ceil(4 / 4)
        ("abcde", 2),  # ceil(5 / 4)
        ("東京", 2),  # 2 + ceil(0 / 4)
        ("東京 tower", 2 + 2),  # 2 + ceil(6 / 4)
    ],
)
def test_four_latin_characters_or_one_unspaced_letter_count_as_a_token(text: str, tokens: int) -> None:
    assert estimated_tokens(text) == tokens


@pytest.mark.parametrize(
    "space", ["\t", "\n", "\v", "\f", "\r", "\x1c", "\x1d", "\x1e", "\x1f", "  ", "\x85", "\u2003"]
)
def test_texts_that_differ_in_spaces_and_case_alone_say_the_same(space: str) -> None:
    assert same_text(f" Green{space}TEA ") == same_text("green tea") == "green tea"
    assert text_key(f"Green{space}TEA") == text_key("green tea") != text_key("greentea")


def test_letters_put_together_of_several_say_the_same() -> None:
    apart = unicodedata.normalize("NFD", "Frau Müller pays")
    assert apart != "Frau Müller pays"
    assert same_text(apart) == same_text("Frau Müller pays") == "frau müller pays"
    assert text_key(apart) == text_key("Frau Müller pays")


@pytest.mark.parametrize("sign", ["\u00ad", "\u200b", "\u200c", "\u200d", "\u2060", "\ufeff"])
def test_what_nobody_sees_inside_a_word_does_not_part_it(sign: str) -> None:
    assert compose(f"gate{sign}way") == "gateway"
    assert tokens_of(f"the to{sign}ken of the gate{sign}way") == tokens_of("the token of the gateway")
