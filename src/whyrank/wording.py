"""How counts are said: one query, two queries."""

from __future__ import annotations


def counted(count: int, one: str, several: str = "") -> str:
    """Return a count with its noun; the plural is made with an s unless it is given."""
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


def which(count: int, one: str, several: str) -> str:
    """Return the form of a word that goes with a count."""
    return one if count == 1 else several
