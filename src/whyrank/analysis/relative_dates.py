"""Relative dates ("yesterday", "last May") as date words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta

from .dates import AMBIGUOUS, MONTH_OF, day_words, month_words, year_word
from .language import DEFAULT_LANGUAGE
from .normalize import fold

# Days from today that one word names, in its own language only: French "hier" is German for "here".
_NAMED = {
    "en": {"today": 0, "tonight": 0, "yesterday": -1, "tomorrow": 1},
    "de": {"heute": 0, "gestern": -1, "vorgestern": -2, "übermorgen": 2},
    "fr": {"aujourd'hui": 0, "hier": -1, "avant-hier": -2, "demain": 1, "après-demain": 2},
    "es": {"hoy": 0, "ayer": -1, "anteayer": -2},
    "it": {"oggi": 0, "ieri": -1, "domani": 1, "dopodomani": 2},
    "pt": {"hoje": 0, "ontem": -1, "anteontem": -2, "amanhã": 1},
    "nl": {"vandaag": 0, "gisteren": -1, "eergisteren": -2, "overmorgen": 2},
    "ru": {"сегодня": 0, "вчера": -1, "позавчера": -2, "завтра": 1, "послезавтра": 2},
}
_AWAY = {language: {fold(word): days for word, days in words.items()} for language, words in _NAMED.items()}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SATURDAY = _WEEKDAYS.index("saturday")
_SPELT = ("a", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS = {"an": 1, "a couple of": 2, **{word: max(1, place) for place, word in enumerate(_SPELT)}}
_SIDES = {"last": -1, "previous": -1, "past": -1, "this": 0, "next": 1, "coming": 1}

_MOST = 400  # of any unit: larger counts are not meant as dates
_UNITS = ("day", "week", "month", "year")
_DAYS_PER_WEEK = 7
_WORD = re.compile(r"[\w'-]+")
_TWO_AWAY = re.compile(r"\bday (?P<side>before yesterday|after tomorrow)\b")
_COUNTED = re.compile(
    rf"(?P<ahead>\bin )?\b(?P<number>\d{{1,3}}|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))}) "
    rf"(?P<unit>{'|'.join(_UNITS)})s?\b(?P<ago> ago\b)?"
)
_SIDED = re.compile(rf"\b(?P<side>{'|'.join(_SIDES)}) (?P<what>\w+)\b")
# Every plain text with a relative date holds one of these.
TELLING: frozenset[str] = frozenset().union(*_AWAY.values(), _SIDES, _UNITS, [f"{unit}s" for unit in _UNITS])
_PARTS_OF_TODAY = frozenset({"morning", "afternoon", "evening"})


def told_dates(text: str, moment: float, language: str = DEFAULT_LANGUAGE) -> tuple[str, ...]:
    """Return the date words of a text's relative dates, resolved against the moment of its writing."""
    try:
        today = datetime.fromtimestamp(moment, UTC).date()
    except (ValueError, OverflowError, OSError):
        return ()
    said = fold(text).replace("’", "'")
    named = _named(said, today, _AWAY.get(language, {}))
    return tuple(dict.fromkeys((*named, *_counted(said, today), *_sided(said, today))))


def _named(said: str, today: date, away: dict[str, int]) -> Iterator[str]:
    """Yield the dates of single words, and of "the day before yesterday", which is not its last word's."""
    for match in dict.fromkeys(_TWO_AWAY.findall(said)) if "day " in said else ():
        yield from _day(today, -2 if match.startswith("before") else 2)
        said = said.replace(f"day {match}", "")
    if _mentions(said, away):
        for word in _WORD.findall(said):
            if word in away:
                yield from _day(today, away[word])


def _counted(said: str, today: date) -> Iterator[str]:
    """Yield "three weeks ago" and "in two days"; a number of days alone is no date."""
    for match in _COUNTED.finditer(said) if _mentions(said, _UNITS) else ():
        if bool(match["ahead"]) == bool(match["ago"]):
            continue
        number = _NUMBERS.get(match["number"]) or int(match["number"])
        yield from _shifted(today, match["unit"], number if match["ahead"] else -number)


def _sided(said: str, today: date) -> Iterator[str]:
    """Yield "last month", "next year", "this morning", "last Friday" and "this May"."""
    for match in _SIDED.finditer(said) if _mentions(said, _SIDES) else ():
        side, what = _SIDES[match["side"]], match["what"]
        if what == "week":
            yield from _days(today, _DAYS_PER_WEEK * side - today.weekday(), _DAYS_PER_WEEK)
        elif what == "weekend":
            yield from _days(today, _DAYS_PER_WEEK * side - today.weekday() + _SATURDAY, 2)
        elif what in ("month", "year"):
            yield from _shifted(today, what, side)
        elif what == "night":
            yield from _day(today, min(side, 0))
        elif what in _PARTS_OF_TODAY and not side:
            yield from _day(today, 0)
        elif what in _WEEKDAYS:
            yield from _day(today, _days_to(_WEEKDAYS.index(what), today, side))
        elif what in MONTH_OF and (side or what not in AMBIGUOUS):  # "this may fail" is about no month
            yield from _month(today, MONTH_OF[what], side)


def _mentions(said: str, words: Iterable[str]) -> bool:
    """Return whether a text holds one of some words: a quick test that most texts fail."""
    return any(word in said for word in words)


def _shifted(today: date, unit: str, number: int) -> Iterator[str]:
    """Yield the date words of a moment so many units away, in the precision of the unit."""
    if abs(number) > _MOST:
        return
    if unit == "month":
        years, month = divmod(today.year * 12 + today.month - 1 + number, 12)
        yield from month_words(month + 1, years)
    elif unit == "year":
        yield year_word(today.year + number)
    else:
        yield from _day(today, number * (_DAYS_PER_WEEK if unit == "week" else 1))


def _days(today: date, first: int, count: int) -> Iterator[str]:
    for days in range(first, first + count):
        yield from _day(today, days)


def _day(today: date, days: int) -> Iterator[str]:
    try:
        there = today + timedelta(days=days)
    except OverflowError:
        return
    yield from day_words(there.day, there.month, there.year)


def _days_to(weekday: int, today: date, side: int) -> int:
    """Return the days to the last, this or the next such weekday; today is neither the last nor the next."""
    ahead = (weekday - today.weekday()) % _DAYS_PER_WEEK
    return ahead - _DAYS_PER_WEEK if side < 0 else ahead or (_DAYS_PER_WEEK if side else 0)


def _month(today: date, month: int, side: int) -> Iterator[str]:
    """Yield the month of that name: "last May" ended before this month, "next May" is to come."""
    year = today.year
    if side < 0 and month >= today.month:
        year -= 1
    if side > 0 and month <= today.month:
        year += 1
    yield from month_words(month, year)
