"""A text to windows of a few hundred characters, as a language model reads them: each repeats the end of the last."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ..errors import ConfigError

MIN_CHARACTERS = 100  # less holds no fact with its evidence


@dataclass(frozen=True)
class WindowSize:
    """How many characters a window has at most, and how many of them stood in the one before."""

    characters: int = 800
    overlap: int = 100

    def __post_init__(self) -> None:
        # A window ends in its second half, so with less overlap than that every window gets further.
        if self.characters < MIN_CHARACTERS or not 0 <= self.overlap < self.characters // 2:
            raise ConfigError(
                f"windows of {self.characters} characters with an overlap of {self.overlap}",
                f"give at least {MIN_CHARACTERS} characters, and an overlap of less than half of them",
            )


class Window(NamedTuple):
    """A part of a text, and the lines it stands on, counted from 1."""

    text: str
    start_line: int
    end_line: int


def windows(text: str, size: WindowSize) -> Iterator[Window]:
    """Cut a text into windows; parts that are blank are left out."""
    line_starts = [0, *(place + 1 for place, letter in enumerate(text) if letter == "\n")]
    start = 0
    while start < len(text):
        end = _end(text, start, size.characters)
        part = text[start:end]
        if part.strip():
            first = start + len(part) - len(part.lstrip())
            last = start + len(part.rstrip()) - 1
            lines = (bisect_right(line_starts, first), bisect_right(line_starts, last))
            yield Window(part.strip(), *lines)
        if end == len(text):
            return
        start = _start(text, end, size.overlap)


def _end(text: str, start: int, characters: int) -> int:
    """Return where a window ends: before a heading, else after a line, else after a word, else where it is full.

    Headings come first because a change above one then leaves the windows below it as they were.
    """
    full = start + characters
    if full >= len(text):
        return len(text)
    half = start + characters // 2
    for mark, kept in (("\n#", 1), ("\n", 1), (" ", 1)):
        place = text.rfind(mark, half, full)
        if place >= half:
            return place + kept
    return full


def _start(text: str, end: int, overlap: int) -> int:
    """Return where the next window starts: `overlap` characters back, at the beginning of a word if there is one."""
    start = end - overlap
    if overlap and not text[start - 1].isspace():
        blank = next((place for place in range(start, end) if text[place].isspace()), None)
        return start if blank is None else blank + 1
    return start
