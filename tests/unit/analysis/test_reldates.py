"""What is told from where one stands means a day, a month or a year; what cannot be resolved means nothing."""

from __future__ import annotations

import pytest

from whyrank.analysis.dates import told_dates
from whyrank.analysis.query import analyse

MONDAY = 1_703_462_400.0  # 25 December 2023


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        ("we met yesterday", {"day=24", "month=12", "year=2023"}),
        ("the day before yesterday", {"day=23", "month=12", "year=2023"}),
        ("what did I do today", {"day=25", "month=12", "year=2023"}),
        ("I ran this morning", {"day=25", "month=12", "year=2023"}),
        ("a week ago", {"day=18", "month=12", "year=2023"}),
        ("last weekend", {"day=23", "day=24", "month=12", "year=2023"}),
        ("last week", {*(f"day={day}" for day in range(18, 25)), "month=12", "year=2023"}),
        ("it arrives tomorrow", {"day=26", "month=12", "year=2023"}),
        ("I saw it last night", {"day=24", "month=12", "year=2023"}),
        ("three days ago", {"day=22", "month=12", "year=2023"}),
        ("30 days ago", {"day=25", "month=11", "year=2023"}),
        ("in 7 days", {"day=1", "month=1", "year=2024"}),
        ("a month ago", {"month=11", "year=2023"}),
        ("four weeks ago", {"day=27", "month=11", "year=2023"}),
        ("a couple of years ago", {"year=2021"}),
        ("next month", {"month=1", "year=2024"}),
        ("last year", {"year=2022"}),
        ("last Friday", {"day=22", "month=12", "year=2023"}),
        ("next Monday", {"day=1", "month=1", "year=2024"}),
        ("this Sunday", {"day=31", "month=12", "year=2023"}),
        ("last May", {"month=5", "year=2023"}),
        ("last December", {"month=12", "year=2022"}),
        ("next May", {"month=5", "year=2024"}),
        ("next December", {"month=12", "year=2024"}),  # it is December: the next is a year away
    ],
)
def test_a_date_told_from_here_is_resolved(told: str, meant: set[str]) -> None:
    assert set(told_dates(told, MONDAY)) == meant


@pytest.mark.parametrize(
    "told",
    [
        "some time ago",
        "a week before the move",
        "it took three days",
        "last but not least",
        "the last day of school",
        "",
    ],
)
def test_what_cannot_be_resolved_means_no_date(told: str) -> None:
    assert told_dates(told, MONDAY) == ()


@pytest.mark.parametrize("moment", [1e30, -1e30, float("nan")])
def test_a_moment_nobody_can_date_resolves_nothing(moment: float) -> None:
    assert told_dates("yesterday", moment) == ()


def test_the_first_day_there_is_has_no_yesterday() -> None:
    assert told_dates("yesterday", -62_135_596_800.0) == ()


def test_a_word_names_a_day_in_its_own_language_only() -> None:
    yesterday = {"day=24", "month=12", "year=2023"}
    assert set(told_dates("wir trafen uns gestern", MONDAY, "de")) == yesterday
    assert set(told_dates("on s'est vu hier", MONDAY, "fr")) == yesterday
    assert told_dates("was steht hier im Keller?", MONDAY, "de") == ()


def test_a_question_is_asked_from_now() -> None:
    assert set(analyse("what did I eat yesterday?", "en", MONDAY).dates) == {"day=24", "month=12", "year=2023"}
    assert analyse("what did I eat yesterday?", "en").dates == ()
