"""Fields that a file carries itself: in its front matter for all of it, in a marker for one section.

A marker is a comment on one line, `<!-- whyrank: importance=5 tags=a,b expires=2026-12-01 -->`, which is no part of the
text. It speaks of its section: from the heading above it to the next one. Whose memory it is no file can say, nor that
it may be trusted more than what was ingested.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, NamedTuple

from ..analysis.text import clean
from ..lifetimes import LIFETIMES, expiry
from ..types import CATEGORIES
from .dates import parse_date

_OPENING = re.compile(r"(?<!\\)<!--\s*whyrank:")
_CLOSING = "-->"
_BACKTICKS = re.compile("`+")
_MOST_IN_A_MARKER = 4_000  # characters; `shlex` takes four times as long for twice as many
_MOST_NAMES = 100  # of a list: every chunk of the file has them all
_LARGEST_NUMBER = 10**18
_LONGEST = 200  # characters of a tag or an entity
_ALIKE = 0.8  # of difflib: what looks so much like one of our keys in front matter is a slip, other keys are others'
FRONT = "front matter"
_TRUSTS = ("ingested", "untrusted")
_OTHER_SPELLINGS = {"tag": "tags", "entity": "entities", "alias": "aliases"}


class Mark(NamedTuple):
    """What the markers on one line say; lines count from 0."""

    line: int
    said: Mapping[str, Any]
    problems: tuple[str, ...] = ()


class FileFields(NamedTuple):
    """Fields of a memory as a file gives them, and what was wrong with others."""

    values: Mapping[str, Any] = {}
    problems: tuple[str, ...] = ()

    def over(self, below: Mapping[str, Any]) -> dict[str, Any]:
        """Return these fields over those of the whole file; tags, entities and aliases are added to them."""
        lists = {key: (*below.get(key, ()), *value) for key, value in self.values.items() if isinstance(value, tuple)}
        return {**below, **self.values, **{key: tuple(dict.fromkeys(value)) for key, value in lists.items()}}


def taken_out(line: str, number: int) -> tuple[str, Mark | None]:
    """Return a line without its markers, and what they say."""
    found, is_closed = _markers_in(line)
    if is_closed and not found:
        return line, None
    said: dict[str, Any] = {}
    problems = [] if is_closed else [f"line {number + 1}: a marker must end on its line"]
    for marker in found:
        fields, wrong = _assignments(line[marker.inside], number + 1)
        said |= fields
        problems += wrong
    return _without(line, found), Mark(number, said, tuple(problems))


def without_markers(text: str) -> str:
    """Return a text, for instance a heading, without its markers."""
    return _without(text, _markers_in(text)[0]).strip()


class _Marker(NamedTuple):
    """Where a marker stands in a line, with the spaces before it, and what it holds."""

    start: int
    end: int
    inside: slice


def _markers_in(line: str) -> tuple[list[_Marker], bool]:
    """Find markers, but not those that somebody writes of, and tell whether all of them end on the line."""
    read, markers, place = _without_code(line), list[_Marker](), 0
    while (opening := _OPENING.search(read, place)) is not None:
        closing = read.find(_CLOSING, opening.end())
        if closing < 0:
            return markers, False
        start = place + len(read[place : opening.start()].rstrip(" \t"))
        place = closing + len(_CLOSING)
        markers.append(_Marker(start, place, slice(opening.end(), closing)))
    return markers, True


def _without_code(line: str) -> str:
    """Return a line with something else, as long, for what stands between as many backticks before as behind it."""
    runs = [found.span() for found in _BACKTICKS.finditer(line)]
    if not runs:
        return line
    following: dict[int, int] = {}
    closed_by: list[int | None] = []
    for number in reversed(range(len(runs))):
        length = runs[number][1] - runs[number][0]
        closed_by.append(following.get(length))
        following[length] = number
    closed_by.reverse()
    parts, place, number = list[str](), 0, 0
    while number < len(runs):
        start, closing = runs[number][0], closed_by[number]
        if closing is not None and not line.startswith("\\", start - 1 if start else 0):
            end = runs[closing][1]
            parts += (line[place:start], "`" * (end - start))
            place, number = end, closing
        number += 1
    return "".join([*parts, line[place:]])


def _without(line: str, markers: Sequence[_Marker]) -> str:
    ends = [0, *(marker.end for marker in markers)]
    starts = [*(marker.start for marker in markers), len(line)]
    return "".join(line[end:start] for end, start in zip(ends, starts, strict=True))


def _assignments(marker: str, line: int) -> tuple[dict[str, Any], list[str]]:
    if len(marker) > _MOST_IN_A_MARKER:
        return {}, [f"line {line}: a marker of {len(marker):,} characters, over the limit of {_MOST_IN_A_MARKER:,}"]
    try:
        words = shlex.split(marker)
    except ValueError as error:
        return {}, [f"line {line}: a marker cannot be read: {error}"]
    pairs = [word.partition("=") for word in words]
    fields = {_key(key): value for key, sign, value in pairs if sign}
    return fields, [f"line {line}: {key!r} in a marker is not key=value" for key, sign, _ in pairs if not sign]


def file_fields(said: Mapping[str, Any], places: Mapping[str, str], whole: str = FRONT) -> FileFields:
    """Read fields; what is unknown or makes no sense is a problem that is named with its place, and no more."""
    values: dict[str, Any] = {}
    problems: list[str] = []
    for given, value in said.items():
        key, place = _key(given), places.get(given, whole)
        if key not in READERS:
            problems += _unknown(given, place)
        elif value not in (None, "", []):
            try:
                values[key] = READERS[key](value)
                if isinstance(values[key], tuple) and len(values[key]) > _MOST_NAMES:
                    problems.append(f"{place}: {len(values[key]):,} {key}, the first {_MOST_NAMES} are kept")
                    values[key] = values[key][:_MOST_NAMES]
            except ValueError as error:
                problems.append(f"{place}: {given[:60]} = {scalar(value)[:60]!r}: {error}")
    if values.get("valid_from", 0.0) >= values.get("valid_until", float("inf")):
        problems.append(f"{whole}: valid_from is not before valid_until")
        del values["valid_until"]
    return FileFields(values, tuple(problems))


def section_fields(marks: Iterable[Mark]) -> FileFields:
    """Read what the markers of one section say, the later over the earlier."""
    values: dict[str, Any] = {}
    problems: list[str] = []
    for mark in marks:
        read = file_fields(mark.said, {}, f"line {mark.line + 1}")
        values = read.over(values)
        problems += (*mark.problems, *read.problems)
        for key, names in values.items():
            if isinstance(names, tuple) and len(names) > _MOST_NAMES:
                values[key] = names[:_MOST_NAMES]
                problems.append(f"line {mark.line + 1}: over the limit of {_MOST_NAMES} {key} for a section")
    return FileFields(values, tuple(problems))


def lasting(values: Mapping[str, Any], written: float) -> dict[str, Any]:
    """Return fields with the expiry that follows from the decay class, unless it is given."""
    if "expires" in values:
        return {**values, "expires_given": True}
    return {**values, "expires": expiry(values.get("decay", ""), written)}


def scalar(value: object) -> str:
    """Return a single value as text; lists, tables and numbers nobody would write are nothing."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | date):
        return ""
    if isinstance(value, int) and abs(value) > _LARGEST_NUMBER:
        return ""
    return " ".join(clean(str(value)).text.split())


def _key(given: str) -> str:
    key = given.lower().replace("-", "_")
    return _OTHER_SPELLINGS.get(key, key)


def _unknown(key: str, place: str) -> list[str]:
    """Complain of a key in a marker; in front matter, which many programs share, of one that looks like a slip."""
    close = _close_to(_key(key)) if len(key) <= _LONGEST else None
    if close is not None:
        return [f"{place}: there is no {key!r}; did you mean {close!r}?"]
    return [] if place.startswith(FRONT) else [f"{place}: there is no {key!r}"]


@lru_cache(maxsize=1024)  # files of one kind share their keys
def _close_to(key: str) -> str | None:
    return next(iter(get_close_matches(key, READERS, n=1, cutoff=_ALIKE)), None)


def _one_of(*names: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        name = scalar(value).lower()
        if name not in names:
            raise ValueError(f"must be one of {', '.join(names)}")
        return name

    return read


def _importance(value: Any) -> int:
    if scalar(value) not in ("1", "2", "3", "4", "5"):
        raise ValueError("must be a whole number from 1 to 5")
    return int(scalar(value))


def _moment(value: Any) -> float:
    seconds = parse_date(value)
    if seconds is None:
        raise ValueError("is no date")
    return seconds


def _names(value: Any) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list):
        raise ValueError("must be a list, or names with commas between them")
    return tuple(dict.fromkeys(name for item in items if (name := scalar(item)[:_LONGEST])))


READERS: dict[str, Callable[[Any], Any]] = {
    "category": _one_of(*CATEGORIES),
    "tags": _names,
    "entities": _names,
    "aliases": _names,
    "importance": _importance,
    "decay": _one_of(*LIFETIMES),
    "date": _moment,
    "valid_from": _moment,
    "valid_until": _moment,
    "expires": _moment,
    "trust": _one_of(*_TRUSTS),
}
