"""How counts are said: one query, two queries; and how a text is said that must stay on its line."""

from __future__ import annotations

# What ends or moves a line on a terminal, or reorders what stands in it.
_UNSEEN = (*range(0x20), *range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_ESCAPED = {code: chr(code).encode("unicode_escape").decode("ascii") for code in _UNSEEN}


def counted(count: int, one: str, several: str = "") -> str:
    """Return a count with its noun; the plural is made with an s unless it is given."""
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


def which(count: int, one: str, several: str) -> str:
    """Return the form of a word that goes with a count."""
    return one if count == 1 else several


def on_one_line(text: str) -> str:
    """Write control characters as escapes: whatever a file is called, its name ends no line and drives no terminal."""
    return text.translate(_ESCAPED)
