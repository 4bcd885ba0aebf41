"""Dates meet however they are written, and words that only look like months stay words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.analysis.dates import _SIGNS, DOUBTFUL_MONTH, _months_asked, _spoken, asked_dates, date_words, is_mark
from whyrank.analysis.normalize import compose
from whyrank.analysis.tokenizer import tokens_of

CHRISTMAS_2023 = 1_703_462_400.0  # 2023-12-25 00:00 UTC
THE_DAY = {"day=25", "month=12", "year=2023"}


def test_a_moment_is_its_day_month_and_year() -> None:
    assert set(date_words(CHRISTMAS_2023)) == THE_DAY


@pytest.mark.parametrize(
    "written",
    [
        "2023-12-25",
        "25.12.2023",
        "12/25/2023",
        "25/12/2023",
        "25 December 2023",
        "December 25th, 2023",
        "the 25th of December 2023",
        "25. Dezember 2023",
        "le 25 décembre 2023",
        "25 de diciembre de 2023",
        "25 декабря 2023",
        "２０２３-１２-２５",
    ],
)
def test_a_day_is_the_same_however_it_is_written(written: str) -> None:
    assert set(asked_dates(f"what did Mel do on {written}?")) == THE_DAY


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("who moved in May?", ["month=5"]),
        ("may I ask who moved?", []),
        ("May I ask?", []),
        ("who marched in march 2022", ["month=3", "year=2022"]),
        ("room 25 on floor 3", []),
        ("03/04/2023", ["year=2023"]),  # nobody knows which is the month
        ("notes of 2026-07", ["month=7", "year=2026"]),
        ("version 20.23.1 of 2024.1", []),
        ("chapter 2023", ["year=2023"]),
        ("45.13.2023", []),
        ("invoice 10023 may be late", []),
        ("at 10:30 may we move", []),
        ("3.5 march", []),
        ("version 10.12.2023.5", []),
        ("“5 may” — 1999 → ✅", ["month=5", "day=5", "year=1999"]),
        ("may—5", ["month=5", "day=5"]),
        ("may — be 5", []),
        ("1…2023", ["year=2023"]),
        ("", []),
    ],
)
def test_what_is_no_date_asks_for_none(question: str, asked: list[str]) -> None:
    assert list(asked_dates(question)) == asked


def test_a_moment_nobody_can_date_has_no_words() -> None:
    assert date_words(1e30) == ()


def test_no_token_of_a_text_is_a_date_word() -> None:
    assert not any(is_mark(token) for token in tokens_of("day=25 month=12 x=y a==b c++ #=1"))


# Months in small letters, which may be such only beside numbers, and what may stand between the two.
BESIDE = (
    "may",
    "march",
    "jan",
    "5",
    "3rd",
    "2023",
    "12.",
    " ",
    " ",
    "of ",
    "the ",
    "de",
    "—",
    "“",
    "…",
    ", ",
    "x",
    "é",
)


@given(st.lists(st.sampled_from(BESIDE), max_size=9).map("".join))
def test_doubtful_months_are_found_wherever_a_number_stands_beside_them(text: str) -> None:
    assert [*_months_asked(text, DOUBTFUL_MONTH)] == [*_spoken(text)]


def test_signs_that_are_part_of_no_date_are_none_of_any_word() -> None:
    signs = [*filter(_SIGNS.match, map(chr, range(0x20000)))]
    assert len(signs) > 3_000
    assert not any(sign.isalnum() or sign.isspace() for sign in signs)
    assert [sign for sign in signs if compose(sign) != sign] == ["’"]  # which is an apostrophe
