"""Dates told from where one stands: "yesterday", "two weeks ago", "last May", as the date words of what they mean.

What cannot be resolved ("some time ago", "a week before the move") stays what it is: words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta

from .datewords import MONTH_OF, day_words, month_words, year_word
from .text import fold

# Days from today that one word names; the rest of the grammar is English.
_DAYS_AWAY = {
    -2: "vorgestern avant-hier anteayer anteontem eergisteren позавчера",
    -1: "yesterday gestern hier ayer ieri ontem gisteren вчера",
    1: "tomorrow demain mañana domani amanhã завтра",
    2: "übermorgen après-demain overmorgen послезавтра",
}
_AWAY = {fold(word): days for days, words in _DAYS_AWAY.items() for word in words.split()}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SPELT = ("a", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS = {"an": 1, "a couple of": 2, **{word: max(1, place) for place, word in enumerate(_SPELT)}}
_SIDES = {"last": -1, "previous": -1, "past": -1, "this": 0, "next": 1, "coming": 1}

_MOST = 400  # of any unit: what is farther away was not counted by anybody
_UNITS = ("day", "week", "month", "year")
_WORD = re.compile(r"[\w-]+")
_COUNTED = re.compile(
    rf"(?P<ahead>\bin )?\b(?P<number>\d{{1,3}}|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))}) "
    rf"(?P<unit>{'|'.join(_UNITS)})s?\b(?P<ago> ago\b)?"
)
_SIDED = re.compile(rf"\b(?P<side>{'|'.join(_SIDES)}) (?P<what>\w+)\b")


def told_dates(text: str, moment: float) -> tuple[str, ...]:
    """Return the date words of what a text tells relative to the moment it was said."""
    try:
        today = datetime.fromtimestamp(moment, UTC).date()
    except (ValueError, OverflowError, OSError):
        return ()
    said = fold(text)
    return tuple(dict.fromkeys((*_named(said, today), *_counted(said, today), *_sided(said, today))))


def _named(said: str, today: date) -> Iterator[str]:
    if _mentions(said, _AWAY):
        for word in _WORD.findall(said):
            if word in _AWAY:
                yield from _away(today, _AWAY[word])


def _counted(said: str, today: date) -> Iterator[str]:
    """Yield "three weeks ago" and "in two days"; a number of days alone is no date."""
    for match in _COUNTED.finditer(said) if _mentions(said, _UNITS) else ():
        if bool(match["ahead"]) == bool(match["ago"]):
            continue
        number = _NUMBERS.get(match["number"]) or int(match["number"])
        yield from _shifted(today, match["unit"], number if match["ahead"] else -number)


def _sided(said: str, today: date) -> Iterator[str]:
    """Yield "last month", "next year", "last Friday" and "this May"."""
    for match in _SIDED.finditer(said) if _mentions(said, _SIDES) else ():
        side, what = _SIDES[match["side"]], match["what"]
        if what in _UNITS:
            yield from _shifted(today, what, side)
        elif what == "night":
            yield from _away(today, min(side, 0))
        elif what in _WEEKDAYS:
            yield from _away(today, _days_to(_WEEKDAYS.index(what), today, side))
        elif what in MONTH_OF:
            yield from _month(today, MONTH_OF[what], side)


def _mentions(said: str, words: Iterable[str]) -> bool:
    """Tell quickly that a text holds none of some words, as most texts do."""
    return any(word in said for word in words)


def _shifted(today: date, unit: str, number: int) -> Iterator[str]:
    """Yield what is so many units away, as exactly as people mean it: a week is told by its month."""
    if abs(number) > _MOST:
        return
    if unit == "day":
        yield from _away(today, number)
    elif unit == "week":
        there = _plus(today, 7 * number)
        yield from month_words(there.month, there.year) if there else ()
    elif unit == "month":
        years, month = divmod(today.year * 12 + today.month - 1 + number, 12)
        yield from month_words(month + 1, years)
    else:
        yield year_word(today.year + number)


def _away(today: date, days: int) -> Iterator[str]:
    there = _plus(today, days)
    if there:
        yield from day_words(there.day, there.month, there.year)


def _plus(today: date, days: int) -> date | None:
    try:
        return today + timedelta(days=days)
    except OverflowError:
        return None


def _days_to(weekday: int, today: date, side: int) -> int:
    """Return how far the last, this or the next day of that name is; today is neither the last nor the next."""
    ahead = (weekday - today.weekday()) % 7
    return ahead - 7 if side < 0 else ahead or (7 if side else 0)


def _month(today: date, month: int, side: int) -> Iterator[str]:
    """Yield the month of that name: "last May" is the one that was over before this month, "next May" is to come."""
    year = today.year
    if side < 0 and month >= today.month:
        year -= 1
    if side > 0 and month <= today.month:
        year += 1
    yield from month_words(month, year)
