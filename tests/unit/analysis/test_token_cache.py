"""A text read piece by piece says what it says as a whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.analysis.dates import asked_dates, dated
from whyrank.analysis.document import _TokenCache, _TooLong, reading_of
from whyrank.analysis.normalize import compose
from whyrank.analysis.tokenizer import (
    VOTING_WORDS,
    content_of,
    function_words_in,
    language_of,
    leaning,
    standing_alone,
    tokens_of,
)

# What pieces differ in: function words of several languages, months sure and doubtful, signs around words, identifiers,
# scripts without spaces, spaces of all kinds, letters that are put together of several.
PIECES = (
    "the", "The", "and", "der", "die", "und", "il", "qu'il", "don't", "l’avion", "may", "May", "MAY", "march", "mars",
    "december", "Décembre", "мая", "декабря", "3rd", "5", "29", "2023", "2023-12-29", "1-10", "v1.2", "night-shift",
    "getHTTPUrl", "snake_case", "a.b/c", "c++", "tea,pot", "(tea", "pot)", "β2", "TGF-β", "ｆｕｌｌ", "②", "２０２３",
    "Müller", "cafe\u0301", "боюсь", "ночь", "東京都", "にほん", "ไทย", "한국어", "…", "—", "’", "\u00a8", "x" * 70,
    "2023" * 20,
    "(https://tea.example/" + "Pots/the-may-2023_cup" * 5 + ")", "a.b/" * 70, "tea-" * 20 + "茶",
    "Kettle.", "(kettles),", '"Boiling!"', "Decomposes", "Goethe", "Us.", "aws:", "A.", "...tea",
    "Tea;Pot", "let's", "Suzy's", "CD33's", "1990's", "mother-in-law's", "state-of-the-art", "can-not", "May-June",
    "IL-10", "DNA-based", "GPUs", "CDs33", "S100A9", "68.4%", "**Be", "[tea](pot)", "`kettle`", "---", "'", "','",
    "+/-", "wire/", "-0.39,", "and/or", "1,155", "x402", "may5", "Mar-2", "__", "##", "c#", "tea--pot", "e.g.",
    "SKILL.md", "@suzy", "$5", "Maybe", "(DECEMBER)", "(THE)", "It,", "tHE", "-" * 63 + "tea", "-" * 64 + "tea",
    "a-" + "tea" * 25, "5.1850", "1/1850", "1850-1", "x,tea.pot", "tea.pot", "tea-.", "in-to", "to-may",
    "HTMLs-a", "2019¹", "“tea", "pot”,", "tea—pot", "“Don't", "You're", "“May", "“Maybe—not”", "✅", "🧠tea", "→the",
    "❶tea", "✔\ufe0ftea", "it's-a", "o'the'o", "the'the", "rock'n'roll", "qu'elle", "'tis", "DON'T", "they'll++",
    "a-'b", "'the'", "“" * 22 + "tea", "2023—24", "l'the-s",
)  # fmt: skip
SPACES = (" ", "  ", "\n", "\t", "\u00a0", "\u2003", "\x1c", "")

texts = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(SPACES)), max_size=30).map(
    lambda pairs: "".join(piece + space for piece, space in pairs)
)


# Words, parts of words and the signs that may join them, begin them or stand around them.
made_up = st.lists(
    st.lists(
        st.sampled_from([*"aeTS19-./'\"()*[]_%@+#“—✅❶", "tea", "the", "may", "Mar", "2023", "'s", "'ll"]), max_size=8
    ).map("".join),
    max_size=12,
).map(" ".join)


@given(st.one_of(texts, made_up, st.text()), st.sampled_from(["en", "de"]))
def test_a_text_read_piece_by_piece_says_what_it_says_as_a_whole(text: str, default: str) -> None:
    read = reading_of(text, default)
    assert read.tokens == tokens_of(text, default)
    assert read.language == language_of(text, default)
    assert asked_dates(text, read.dated) == asked_dates(text)


@pytest.mark.parametrize("latin", ["en", "de", "fr"])
def test_a_new_piece_is_read_as_the_scanners_read_it(latin: str) -> None:
    signs = (f"the{chr(code)}Tea" for code in (*range(0x2000, 0x2C00), *range(0x1F000, 0x1FC00)))
    for piece in " ".join(map(compose, (*PIECES, *signs))).split():
        try:
            read = _TokenCache(latin).read(piece)
        except _TooLong:
            continue
        words = standing_alone(piece)
        voices = leaning(latin, function_words_in(words))
        assert read == (content_of(piece, latin), max(1, len(words)), voices, dated(piece)), piece


def test_what_is_known_is_read_from_the_cache() -> None:
    cache = _TokenCache("en")
    text = "the kettles, Kettles (KETTLES) of May 2023"
    assert cache.read(text) == cache.read(text)
    assert cache.read(text).tokens == ("kettl", "kettl", "kettl", "2023")


def test_pieces_take_the_room_of_their_letters_and_of_their_tokens() -> None:
    cache = _TokenCache("en")
    cache.read(f"{'tea/' * 30} {'茶' * 60} pot")
    assert cache.room == 120 // 24 + 59 // 8 + 1


@pytest.mark.parametrize(
    ("text", "may_hold_date"),
    [
        ("it may rain", False),
        ("it may rain 5 days", True),
        ("in May", True),
        ("in december", True),
        ("tea at 5", False),
        ("in 2023", True),
        ("Maybe Augusta decides", False),
        ("may I ask about March❶", True),
        ("a note of 2019¹", True),
        ("commit 1234567, port 8080", False),
        ("1.2.1850", True),
    ],
)
def test_only_what_may_be_a_date_is_looked_into(text: str, may_hold_date: bool) -> None:
    assert (reading_of(text, "en").dated > 0) is may_hold_date


@given(st.text(st.sampled_from("0123456789¹½②.-/ ２０٢٠年é"), max_size=14))
def test_years_are_found_however_their_digits_are_written(text: str) -> None:
    assert asked_dates(text, reading_of(text, "en").dated) == asked_dates(text)


def test_of_a_long_text_the_first_words_vote() -> None:
    text = " ".join(["und der hund"] * VOTING_WORDS + ["and the dog of all"] * VOTING_WORDS)
    assert reading_of(text, "en").language == language_of(text, "en") == "de"
