"""The part of a text that shows why it was found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.analysis.query import analyse
from whyrank.analysis.snippets import _ASCII_RUN, _RUN, SNIPPET_CHARACTERS, Snippet, Span, snippet


def marked(text: str, query: str, width: int = SNIPPET_CHARACTERS) -> str:
    return snippet(text, analyse(query).terms, width).marked("[", "]")


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("The lanterns were lit.", "lantern", "The [lanterns] were lit."),
        ("Lantern and LANTERNS", "lantern", "[Lantern] and [LANTERNS]"),
        ("Nora's kettle sings", "nora", "[Nora's] kettle sings"),
        ("set retry_count now", "retry", "set [retry_count] now"),
        ("Мы гуляли в парке", "парк", "Мы гуляли в [парке]"),
        ("昨日は東京都へ", "東京都", "昨日は[東京都]へ"),
        ("猫。犬", "猫", "[猫]。犬"),
        ("no match here", "lantern", "no match here"),
        (
            "the (night-shift), nightShift and night_shift",
            "nightshift",
            "the ([night-shift]), [nightShift] and [night_shift]",
        ),
        ("the nightshift", "night-shift", "the [nightshift]"),
        ("a night-shift", "night", "a [night]-shift"),
        ("TGF-β and TGFβ", "tgfbeta", "[TGF-β] and [TGFβ]"),
        ("NF-κB, and κ", "kappa", "NF-[κB], and [κ]"),
        ("C++ and C", "c++", "[C++] and [C]"),
    ],
)
def test_matching_words_are_marked_as_they_are_written(text: str, query: str, expected: str) -> None:
    assert marked(text, query) == expected


def test_every_token_of_a_phrase_is_marked() -> None:
    assert marked("a red lantern burns", '"red lantern"') == "a [red] [lantern] burns"


def test_white_space_is_collapsed() -> None:
    assert snippet("one\n\n  two\tthree", ()).text == "one two three"


def test_a_short_text_is_shown_whole() -> None:
    assert snippet("x" * SNIPPET_CHARACTERS, ()).text == "x" * SNIPPET_CHARACTERS


def test_an_empty_text_has_an_empty_snippet() -> None:
    assert snippet("", ("lantern",)) == Snippet("", ())


def test_a_long_text_is_cut_around_the_most_matches() -> None:
    text = (
        "filler word " * 40
        + "one lantern alone "
        + "filler word " * 40
        + "lantern oil for the lantern "
        + "filler " * 40
    )

    found = snippet(text, ("lantern", "oil"), 120)

    assert [found.text[start:end] for start, end in found.spans] == ["lantern", "oil", "lantern"]
    assert found.text.startswith("…")
    assert found.text.endswith("…")


def test_a_cut_text_fits_the_width_and_its_ellipses() -> None:
    found = snippet("some words in a row " * 50, ("row",), 100)

    assert len(found.text) <= 100 + 2  # an ellipsis on each side


def test_a_text_is_cut_at_word_boundaries() -> None:
    words = [f"word{number}" for number in range(200)]

    found = snippet(" ".join(words), ("word100",), 90)

    assert set(found.text.strip("…").split()) <= set(words)
    assert "word100" in found.text


def test_the_beginning_is_shown_where_nothing_matches() -> None:
    found = snippet("first words then " + "more " * 100, ("lantern",), 60)

    assert found.text.startswith("first words then")
    assert found.spans == ()


def test_a_word_longer_than_the_snippet_is_cut_without_an_error() -> None:
    found = snippet("y" * 1000, ("lantern",), 50)

    assert found.text == "y" * 50 + "…"


def test_marks_stand_around_the_spans() -> None:
    assert Snippet("abcdef", (Span(1, 2), Span(3, 5))).marked("<b>", "</b>") == "a<b>b</b>c<b>de</b>f"


@given(st.text(st.characters(max_codepoint=127), max_size=30))
def test_in_ascii_words_are_found_as_everywhere(text: str) -> None:
    found = [match.span() for match in _ASCII_RUN.finditer(text)]
    assert found == [match.span() for match in _RUN.finditer(text)]
