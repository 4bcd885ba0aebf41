"""Format counts and one-line texts for messages."""

from __future__ import annotations

# Characters that end or move a line on a terminal, or reorder its text.
_UNSEEN = (*range(0x20), *range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_ESCAPED = {code: chr(code).encode("unicode_escape").decode("ascii") for code in _UNSEEN}


def counted(count: int, one: str, several: str = "") -> str:
    """Return a count with its noun; the plural is made with an s unless it is given."""
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


def which(count: int, one: str, several: str) -> str:
    """Return the singular or plural form for a count."""
    return one if count == 1 else several


def on_one_line(text: str) -> str:
    """Write control characters as escapes, so that a file name cannot end a line or drive a terminal."""
    return text.translate(_ESCAPED)
