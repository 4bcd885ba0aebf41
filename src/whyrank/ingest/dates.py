"""Dates as people write them in front matter, file names and logs; UTC where no zone is given."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime

from .paths import stored_place

_IN_NAME = re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)")
_TOO_FAR = 1e15  # beyond this a number is no moment in any unit
_MILLISECONDS_FROM = 1e11  # a number beyond this is milliseconds: in seconds it would be the year 5138
# Numbers that are dates as they are written: as seconds they would be moments of 1970.
_YEARS, _DAYS_WRITTEN = range(1900, 2101), range(1900_01_01, 2101_01_01)
_EVERGREEN_NAMES = frozenset({"MEMORY.md", "USER.md"})

_FORMATS = (
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%d.%m.%Y",
    "%d %B %Y",
    "%d %B, %Y",
    "%B %d, %Y",
    "%I:%M %p on %d %B, %Y",
)


def parse_date(value: object) -> float | None:
    """Return a moment as seconds since 1970, or None if it is no date."""
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
    for pattern in _FORMATS:
        try:
            return datetime.strptime(text, pattern).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    return None


def date_in_name(path: str) -> float | None:
    """Return the date a file's name carries, if it carries one."""
    match = _IN_NAME.search(stored_place(path).name)
    return parse_date("-".join(match.groups())) if match else None


def is_evergreen(path: str, dated: bool) -> bool:
    """Return whether a file does not age: the long-lived notes, and undated files under `memory/`."""
    place = stored_place(path)
    return place.name in _EVERGREEN_NAMES or (not dated and "memory" in place.folders)
