"""What changes tokens but not meaning goes; all else stays to the letter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.providers.wordllama import plainly_spelled


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("The Invoice of Suzy's boat", "the invoice of suzy's boat"),
        ("Über Käse; Котёл", "über käse; котёл"),
        ("GitHub, (LinkedIn) and iPhone's IDs", "github, (linkedin) and iphone's ids"),
        (
            "I use the API, (NASA) and I/O in the US.",
            "I use the API, (NASA) and I O in the US.",
        ),  # nothing but capitals
        ("TGFb1, GPT4All and 4MyApp", "TGFb1, GPT4All and 4MyApp"),  # capitals beside digits
        ("使用GitHub和API", "使用github和API"),
        ("tea-pot, snake_case and a/b", "tea pot, snake case and a b"),
        ("Tea › Pots\n\n  holds one litre ", "tea pots holds one litre"),
        ("3.5 €, done? (yes!)", "3.5 €, done? (yes!)"),  # signs that join nothing
        ("日本語\n한국어", "日本語 한국어"),
        ("", ""),
        ("\n", ""),
        ("Tea", "tea"),
    ],
)
def test_capitals_and_joiners_go(text: str, plain: str) -> None:
    assert plainly_spelled(text) == plain


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Tea Pot\ntea-pot\nHolds one litre", "tea pot holds one litre"),
        ("Tea Pot\nTEA_POT", "tea pot"),
        ("Green Tea Pot\ntea-pot\nHolds one litre", "green tea pot holds one litre"),
        ("Tea Pot\nkettle-2\nHolds one litre", "tea pot kettle 2 holds one litre"),  # it says something else
        ("Tea Pot\nholds tea\ntea pot", "tea pot holds tea tea pot"),  # only the second line echoes a name
        ("Tea\n\nTea", "tea tea"),  # an empty line is no echo
    ],
)
def test_a_second_line_that_says_nothing_new_goes(text: str, plain: str) -> None:
    assert plainly_spelled(text) == plain


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=200))
def test_nothing_is_added_and_twice_is_once(text: str) -> None:
    plain = plainly_spelled(text)
    assert set(plain.casefold()) <= set(text.casefold()) | {" "}
    assert plainly_spelled(plain) == plain
