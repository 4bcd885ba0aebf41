"""Dates as words that do not depend on how they are written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from .normalize import compose, fold, pattern

SIGN = "="
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
    try:
        day = datetime.fromtimestamp(moment, UTC)
    except (ValueError, OverflowError, OSError):
        return ()
    return day_words(day.day, day.month, day.year)


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
