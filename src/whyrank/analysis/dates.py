"""Dates as words that do not depend on how they are written."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING

from .normalize import ASSUMED, BY, SHOWN, SIGN, compose, fold, pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MONTHS = 12

# Month names by language, in the forms people write; abbreviations only where they are no words of their own.
_MONTHS = (
    "january jan januar janvier enero gennaio janeiro januari январь января январе",
    "february feb februar février febrero febbraio fevereiro februari февраль февраля феврале",
    "march märz mars marzo março maart март марта марте",
    "april apr avril abril aprile апрель апреля апреле",
    "may mai mayo maggio maio mei май мая мае",
    "june juni juin junio giugno junho июнь июня июне",
    "july juli juillet julio luglio julho июль июля июле",
    "august aug août agosto augustus август августа августе",
    "september sept septembre septiembre settembre setembro сентябрь сентября сентябре",
    "october oct oktober octobre octubre ottobre outubro октябрь октября октябре",
    "november nov novembre noviembre novembro ноябрь ноября ноябре",
    "december dec dezember décembre diciembre dicembre dezembro декабрь декабря декабре",
)
MONTH_OF = {fold(name): number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
# Words that are months only beside a number: "may I", "mars", "mai".
AMBIGUOUS = frozenset({"may", "march", "mars", "mai", "mei", "marzo", "jan", "dec", "nov", "oct", "apr", "aug", "feb"})

# Date parts that a piece of a text may be, as bits: a month that is one only beside a number, any other, a year.
DOUBTFUL_MONTH, _MONTH, _YEAR_OR_MORE = 1, 2, 4
ANY_DATE = DOUBTFUL_MONTH | _MONTH | _YEAR_OR_MORE

# In every date with a year: four digits, no more and no less, of these centuries or beside other numbers.
_MAY_BE_YEAR = re.compile(r"(?<!\d)(?:(?:19|20)\d\d(?!\d)|\d{4}[-/.]\d)|\d[-/.]\d{4}(?!\d)")
_DIGIT = re.compile(r"\d")
# All characters that a numeric date may consist of, or must not be adjacent to.
_NUMBERS = re.compile(r"[\d.,/-]{4,}")
_ASCII_NUMBERS = re.compile(r"[0-9.,/-]{4,}")  # three times as fast
_YEAR_AND_MORE = re.compile(r"\d{4}[-/.]\d|\d[-/.]\d{4}")  # which all dates of digits alone have
# Dashes, quotes, arrows and pictures, which are part of no date, and stay what they are when a text is composed: with
# something of ASCII in their place most texts are all of it, and are read several times as fast.
_SIGNS = re.compile(
    "[\u2010\u2012-\u2016\u2018-\u2023\u2027\u2190-\u222b\u2231-\u22ff\u2500-\u2775\u2794-\u27bf\U0001f300-\U0001faff]"
)
_LETTERS = re.compile(r"[^\W\d_]+")
_ASCII_LETTERS = re.compile(r"[a-z]+")
_CAPITALISED = re.compile("|".join(f"{name[0].upper()}(?i:{name[1:]})" for name in sorted(AMBIGUOUS)))
_ISO = pattern(r"(?<!\d)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_ISO_MONTH = pattern(r"(?<![\d/.-])((?:19|20)\d{2})-(0[1-9]|1[0-2])(?![\d-])")
_SLASHED = pattern(r"(?<![\d/])(\d{1,2})/(\d{1,2})/(\d{4})(?![\d/])")
_DAY_FIRST = pattern(r"(?<![\d.])(\d{1,2})[.](\d{1,2})[.](\d{4})(?!\.?\d)")
_YEAR = pattern(r"(?<![\d.,-])((?:19|20)\d{2})(?![\d.,-]\d|\d)")
_WORD = pattern(r"\p{L}+|\d+(?:[.,:]\d+)*(?:st|nd|rd|th|er)?\.?")
_ASCII_WORD = re.compile(r"[A-Za-z]+|\d+(?:[.,:]\d+)*(?:st|nd|rd|th|er)?\.?", re.ASCII)
_DAY = pattern(r"(\d{1,2})(?:st|nd|rd|th|er)?\.?")
_BETWEEN = frozenset({"of", "de", "di", "the"})  # "the 3rd of May", "3 de mayo"
_GAP = rf"[^a-z0-9]*(?:(?:{'|'.join(_BETWEEN)})[^a-z0-9]*)*"
_IN_DOUBT = rf"(?:{'|'.join(sorted(AMBIGUOUS))})"
# ASCII lower-case forms of all months that count as months only next to a number.
_BESIDE_A_NUMBER = re.compile(rf"[0-9](?:st|nd|rd|th|er)?{_GAP}{_IN_DOUBT}|{_IN_DOUBT}{_GAP}[0-9]")


def date_words(moment: float) -> tuple[str, ...]:
    """Return the day, month and year of a moment as date words."""
    day = _day_of(moment)
    return day_words(day.day, day.month, day.year) if day is not None else ()


def _day_of(moment: float) -> date | None:
    try:
        return datetime.fromtimestamp(moment, UTC).date()
    except (ValueError, OverflowError, OSError):
        return None


def day_words(day: int, month: int, year: int) -> tuple[str, ...]:
    """Return the date words of a day."""
    return _day(day), *month_words(month, year)


def month_words(month: int, year: int) -> tuple[str, ...]:
    """Return the date words of a month."""
    return _month(month), year_word(year)


def year_word(year: int) -> str:
    """Return the date word of a year."""
    return f"year{SIGN}{year}"


def is_mark(term: str) -> bool:
    """Return whether a term is a mark that no text can hold: a date word, or the mark of a speaker."""
    return SIGN in term


def asked_dates(text: str, may_be: int = ANY_DATE) -> tuple[str, ...]:
    """Return the date words that a query names, limited to the kinds in `may_be`."""
    numbers = _numbers(text) if may_be & _YEAR_OR_MORE else ""
    years = (year_word(int(year)) for year in _YEAR.findall(numbers)) if numbers else ()
    months = _months_asked(text, may_be) if may_be & ~_YEAR_OR_MORE else ()
    return tuple(dict.fromkeys((*_numeric(numbers), *months, *years)))


def dated(piece: str) -> int:
    """Return the kinds of date parts that a piece of a text between two spaces may be."""
    year = _YEAR_OR_MORE if _MAY_BE_YEAR.search(piece) else 0
    months = _months_in(fold(piece))
    if not months:  # or, in other scripts, only by capitalisation: circled numerals are not detected there
        return year | (_MONTH if not piece.isascii() and _CAPITALISED.search(piece) else 0)
    return year | (_MONTH if not months <= AMBIGUOUS or _CAPITALISED.search(piece) else DOUBTFUL_MONTH)


def dated_as_written(text: str) -> int:
    """Return the same for a raw text, whose digits may be joined by others when it is composed (`2023²`)."""
    return _YEAR_OR_MORE if not text.isascii() and _MAY_BE_YEAR.search(text) else 0


def has_digit(text: str) -> bool:
    """Return whether a text holds a digit of any script."""
    return _DIGIT.search(text) is not None


def _numbers(text: str) -> str:
    """Return the numbers of a text with adjacent separators; an empty text if none may be a date."""
    numbers = " ".join((_ASCII_NUMBERS if text.isascii() else _NUMBERS).findall(text))
    return numbers if numbers and _MAY_BE_YEAR.search(numbers) else ""


def _numeric(numbers: str) -> Iterator[str]:
    if not _YEAR_AND_MORE.search(numbers):  # as most texts with a year, or another long number
        return
    for year, month, day in (match.groups() for match in _ISO.finditer(numbers)):
        yield from _checked(int(day), int(month), int(year))
    for day, month, year in (match.groups() for match in _DAY_FIRST.finditer(numbers)):
        yield from _checked(int(day), int(month), int(year))
    for one, other, year in (match.groups() for match in _SLASHED.finditer(numbers)):
        month, day = sorted((int(one), int(other)))
        # Americans write the month first, others the day; which is which shows only where one is above twelve.
        yield from _checked(day, month, int(year)) if day > MONTHS else ()
    for year, month in (match.groups() for match in _ISO_MONTH.finditer(numbers)):
        yield from month_words(int(month), int(year))


def _checked(day: int, month: int, year: int) -> Iterator[str]:
    if 1 <= month <= MONTHS and 1 <= day <= 31:
        yield from day_words(day, month, year)


def _months_asked(text: str, may_be: int) -> Iterator[str]:
    """Return the months of a text whose pieces may be some, or are ones only next to a number."""
    written = text if text.isascii() else _SIGNS.sub("?", text)
    is_counted = may_be & _MONTH or not written.isascii() or _BESIDE_A_NUMBER.search(written.lower())
    return _spoken(written) if is_counted else iter(())


def _spoken(text: str) -> Iterator[str]:
    """Yield months by name with the day beside them."""
    months = _months_in(fold(text))
    # Most texts name none, or only hold "may" without a number and not like a name: they are not parsed.
    if not months or (months <= AMBIGUOUS and not has_digit(text) and not _CAPITALISED.search(text)):
        return
    for place, (word, folded) in enumerate(spoken := _words_of(text)):
        number = MONTH_OF.get(folded)
        if number is None:
            continue
        beside = [spoken[i][0] for i in (place - 1, place + 1) if 0 <= i < len(spoken)]
        days = [int(match.group(1)) for other in beside if (match := _DAY.fullmatch(other))]
        is_dated = bool(days) or any(_YEAR.fullmatch(other) for other in beside)
        if folded in AMBIGUOUS and not is_dated and not (word[0].isupper() and place):
            continue
        yield _month(number)
        yield from (_day(day) for day in days if 1 <= day <= 31)


def _words_of(text: str) -> list[tuple[str, str]]:
    """Return the words and numbers of a text, written and folded, without those between day and month."""
    if text.isascii():
        found = _ASCII_WORD.findall(text)
        folded = map(str.lower, found)
    else:
        found = _WORD.findall(compose(text))
        folded = map(fold, found)
    return [pair for pair in zip(found, folded, strict=True) if pair[1] not in _BETWEEN]


def _months_in(folded: str) -> set[str]:
    """Return the words of a text that may be months."""
    return MONTH_OF.keys() & (_ASCII_LETTERS if folded.isascii() else _LETTERS).findall(folded)


def _day(number: int) -> str:
    return f"day{SIGN}{number}"


def _month(number: int) -> str:
    return f"month{SIGN}{number}"


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
_COUNTS = {"an": 1, "a couple of": 2, **{word: max(1, place) for place, word in enumerate(_SPELT)}}
_SIDES = {"last": -1, "previous": -1, "past": -1, "this": 0, "next": 1, "coming": 1}

_MOST = 400  # of any unit: larger counts are not meant as dates
_UNITS = ("day", "week", "month", "year")
_DAYS_PER_WEEK = 7
_TOLD_WORD = re.compile(r"[\w'-]+")
_TWO_AWAY = re.compile(r"\bday (?P<side>before yesterday|after tomorrow)\b")
_COUNTED = re.compile(
    rf"(?P<ahead>\bin )?\b(?P<number>\d{{1,3}}|{'|'.join(sorted(_COUNTS, key=len, reverse=True))}) "
    rf"(?P<unit>{'|'.join(_UNITS)})s?\b(?P<ago> ago\b)?"
)
_SIDED = re.compile(rf"\b(?P<side>{'|'.join(_SIDES)}) (?P<what>\w+)\b")
# Every plain text with a relative date holds one of these.
TELLING: frozenset[str] = frozenset().union(*_AWAY.values(), _SIDES, _UNITS, [f"{unit}s" for unit in _UNITS])
_PARTS_OF_TODAY = frozenset({"morning", "afternoon", "evening"})


def told_dates(text: str, moment: float, language: str = "en") -> tuple[str, ...]:
    """Return the date words of a text's relative dates, resolved against the moment of its writing."""
    today = _day_of(moment)
    if today is None:
        return ()
    said = fold(text).replace("’", "'")
    named = _named(said, today, _AWAY.get(language, {}))
    return tuple(dict.fromkeys((*named, *_counted(said, today), *_sided(said, today))))


def _named(said: str, today: date, away: dict[str, int]) -> Iterator[str]:
    """Yield the dates of single words, and of "the day before yesterday", which is not its last word's."""
    for match in dict.fromkeys(_TWO_AWAY.findall(said)) if "day " in said else ():
        yield from _relative_day(today, -2 if match.startswith("before") else 2)
        said = said.replace(f"day {match}", "")
    if _mentions(said, away):
        for word in _TOLD_WORD.findall(said):
            if word in away:
                yield from _relative_day(today, away[word])


def _counted(said: str, today: date) -> Iterator[str]:
    """Yield "three weeks ago" and "in two days"; a number of days alone is not a date."""
    for match in _COUNTED.finditer(said) if _mentions(said, _UNITS) else ():
        if bool(match["ahead"]) == bool(match["ago"]):
            continue
        number = _COUNTS.get(match["number"]) or int(match["number"])
        yield from _shifted(today, match["unit"], number if match["ahead"] else -number)


def _sided(said: str, today: date) -> Iterator[str]:
    """Yield "last month", "next year", "this morning", "last Friday" and "this May"."""
    for match in _SIDED.finditer(said) if _mentions(said, _SIDES) else ():
        side, what = _SIDES[match["side"]], match["what"]
        if what == "week":
            first = _DAYS_PER_WEEK * side - today.weekday()
            yield from chain.from_iterable(_relative_day(today, first + day) for day in range(_DAYS_PER_WEEK))
        elif what == "weekend":
            first = _DAYS_PER_WEEK * side - today.weekday() + _SATURDAY
            yield from chain(_relative_day(today, first), _relative_day(today, first + 1))
        elif what in ("month", "year"):
            yield from _shifted(today, what, side)
        elif what == "night":
            yield from _relative_day(today, min(side, 0))
        elif what in _PARTS_OF_TODAY and not side:
            yield from _relative_day(today, 0)
        elif what in _WEEKDAYS:
            ahead = (_WEEKDAYS.index(what) - today.weekday()) % _DAYS_PER_WEEK  # today is neither last nor next
            yield from _relative_day(today, ahead - _DAYS_PER_WEEK if side < 0 else ahead or _DAYS_PER_WEEK * side)
        elif what in MONTH_OF and (side or what not in AMBIGUOUS):  # "this may fail" is about no month
            month = MONTH_OF[what]  # "last May" ended before this month, "next May" is to come
            is_elsewhere = month >= today.month if side < 0 else month <= today.month
            yield from month_words(month, today.year + side * is_elsewhere)


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
        yield from _relative_day(today, number * (_DAYS_PER_WEEK if unit == "week" else 1))


def _relative_day(today: date, days: int) -> Iterator[str]:
    try:
        there = today + timedelta(days=days)
    except OverflowError:
        return
    yield from day_words(there.day, there.month, there.year)


_TOO_FAR = 1e15  # beyond this a number is not a time in any unit
_MILLISECONDS_FROM = 1e11  # a number beyond this is milliseconds: in seconds it would be the year 5138
# Numbers that are dates as they are written: as seconds they would be moments of 1970.
_YEARS, _DAYS_WRITTEN = range(1900, 2101), range(1900_01_01, 2101_01_01)

_FORMATS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d %B %Y", "%d %B, %Y", "%B %d, %Y", "%I:%M %p on %d %B, %Y")


def parse_date(value: object) -> float | None:
    """Return a moment as seconds since 1970, or None if it is not a date."""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _from_number(value)
    return _from_text(value.strip()) if isinstance(value, str) and value.strip() else None


def _from_number(value: float) -> float | None:
    # `in` with a float would search the range item by item.
    whole = value if isinstance(value, int) else int(value) if math.isfinite(value) and value == int(value) else -1
    if whole in _YEARS:
        return None  # a year alone has no day
    if whole in _DAYS_WRITTEN:
        return _from_text(str(whole))
    for seconds in (value, value / 1000 if abs(value) < _TOO_FAR else value):
        if abs(seconds) < _MILLISECONDS_FROM:
            return float(seconds)
    return None


def _from_text(text: str) -> float | None:
    try:
        return parse_date(datetime.fromisoformat(text))
    except ValueError:
        pass
    for form in _FORMATS:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    return None


_NO_DATES = (BY, SHOWN, ASSUMED)  # prefixes of marks that are no date words


def date_words_in(terms: Iterable[str]) -> list[str]:
    """Return the date words among some terms."""
    return [term for term in terms if SIGN in term and not term.startswith(_NO_DATES)]
