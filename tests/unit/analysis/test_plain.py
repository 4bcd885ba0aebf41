"""Plain words: which texts are such, and that reading them word by word says what the scanners say."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.analysis.query import analyse, scanned, terms_of
from whyrank.analysis.tokenizer import plain_words, tokens_of

NOW = 1_700_000_000.0
# Function words of several languages, what dates are told with, names, and words that stem to little.
_TEXT = """
the what did Suzy say about that SUZY I a in two weeks ago last May may march Jan december days day yesterday before
tomorrow morgen gestern die der hat man den el la les est que qui NASA running aws us The next this morning year
any Some still already EVER many
"""
words = st.one_of(
    st.sampled_from(_TEXT.split()), st.from_regex(r"[a-z]{1,9}|[A-Z][a-z]{0,8}|[A-Z]{2,5}", fullmatch=True)
)
signs = st.sampled_from([" ", "  ", "\t", "\n", ", ", ". ", "? ", "! ", "; ", "... ", " ? "])
plain_texts = st.lists(st.tuples(words, signs), min_size=1, max_size=12).map(
    lambda pairs: "".join(word + sign for word, sign in pairs)
)


@settings(max_examples=400)
@given(plain_texts, st.sampled_from(["en", "de", "ru"]))
def test_plain_words_say_what_the_scanners_say(text: str, language: str) -> None:
    found = plain_words(text)
    assert found is not None
    whole = scanned(text, language, NOW)
    assert analyse(text, language, NOW) == whole
    assert terms_of(text, language) == tuple(dict.fromkeys(tokens_of(text, language)))


@given(st.text(alphabet=st.characters(max_codepoint=0x7F), max_size=12))
def test_any_text_that_counts_as_plain_is_read_alike(text: str) -> None:
    found = plain_words(text)
    if found is not None:
        assert analyse(text, "en", NOW) == scanned(text, "en", NOW)


@pytest.mark.parametrize("text", ["Where is the key?", "boat", "NASA, Suzy and I.", " a\tb\nc "])
def test_letters_between_spaces_and_signs_are_plain(text: str) -> None:
    assert plain_words(text) == [word.strip(",.?") for word in text.split()]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "?",
        "iPhone",
        "PDFs",
        "don't",
        "night-owl",
        "a.b",
        "v2",
        "2023",
        "a_b",
        "Suzy: yes",
        '"a b"',
        "clé",
        "(a)",
        "a\0",
    ],
)
def test_everything_else_is_not(text: str) -> None:
    assert plain_words(text) is None


def test_a_quoted_phrase_is_one_term() -> None:
    assert terms_of('the "blue boat" sails') == ("blue boat", "sail")
