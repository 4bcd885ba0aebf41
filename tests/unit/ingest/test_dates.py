"""Dates as people write them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from whyrank.analysis.dates import parse_date
from whyrank.ingest.documents import date_in_name, is_evergreen

NOON = datetime(2031, 2, 3, 12, 0, tzinfo=UTC).timestamp()
MIDNIGHT = NOON - 12 * 3600


@pytest.mark.parametrize(
    "value",
    [
        "2031-02-03",
        "2031/02/03",
        "03.02.2031",
        "3 February 2031",
        "3 February, 2031",
        "February 3, 2031",
        "2031-02-03T00:00:00Z",
        "2031-02-03T02:00:00+02:00",
        "  2031-02-03  ",
        "12:00 AM on 3 February, 2031",
        date(2031, 2, 3),
        datetime(2031, 2, 3),  # UTC where nothing else is said
        datetime(2031, 2, 3, 2, tzinfo=timezone(timedelta(hours=2))),
        MIDNIGHT,
        MIDNIGHT * 1000,
        "20310203",
        20310203,
        20310203.0,
    ],
)
def test_a_date_is_read_however_it_is_written(value: object) -> None:
    assert parse_date(value) == MIDNIGHT


@pytest.mark.parametrize(
    "value",
    ["", "soon", "2031-13-01", "2031-02-30", None, True, [], {}, float("nan"), float("inf"), -1e20, 2031, 20311399],
)
def test_what_is_no_date_is_none(value: object) -> None:
    assert parse_date(value) is None


def test_a_moment_with_fractions_is_compared_a_few_times() -> None:
    class Counted(float):
        compared = 0

        def __eq__(self, other: object) -> bool:
            Counted.compared += 1
            return super().__eq__(other)

        __hash__ = float.__hash__

    assert parse_date(Counted(NOON + 0.5)) == NOON + 0.5
    assert Counted.compared < 10


def test_a_number_is_seconds_until_it_would_be_absurd_and_milliseconds_beyond() -> None:
    assert parse_date(1e10) == 1e10
    assert parse_date(1.5e12) == 1.5e12 / 1000


@pytest.mark.parametrize(
    "path", ["2031-02-03.md", "log-2031-02-03-walk.md", "deep/down/2031-02-03.md", "memory/x/notes_2031-02-03.txt"]
)
def test_a_date_is_read_from_the_file_name_at_any_depth(path: str) -> None:
    assert date_in_name(path) == MIDNIGHT


@pytest.mark.parametrize(
    "path", ["notes.md", "2031-02-03/notes.md", "12031-02-03.md", "2031-02-034.md", "2031-13-03.md", "20310203.md", ""]
)
def test_a_name_without_a_date_gives_none(path: str) -> None:
    assert date_in_name(path) is None


@pytest.mark.parametrize(
    ("path", "dated", "evergreen"),
    [
        ("MEMORY.md", False, True),
        ("MEMORY.md", True, True),
        ("deep/USER.md", False, True),
        ("memory/habits.md", False, True),
        ("work/memory/deep/habits.md", False, True),
        ("memory/2031-02-03.md", True, False),
        ("notes/habits.md", False, False),
        ("memory.md", False, False),
    ],
)
def test_long_lived_notes_do_not_age(path: str, dated: bool, evergreen: bool) -> None:
    assert is_evergreen(path, dated) is evergreen
