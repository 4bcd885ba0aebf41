"""Who said it: a mark on every turn, and the marks a question may mean.

Like a date word, a mark has a sign no token of a text can have, so the two are never taken for each other.
"""

from __future__ import annotations

from ..matches import NameProbe
from .datewords import SIGN
from .names import name_key, windows_by_key

BY = f"by{SIGN}"  # how the mark of a speaker begins
MAX_NAME_WORDS = 3  # people are called by one to three words


def speaker_mark(name: str) -> tuple[str, ...]:
    """Return the mark of a speaker; nothing for a name without letters."""
    key = name_key(name)
    return (f"{BY}{key}",) if key else ()


def asked_speakers(probe: NameProbe) -> tuple[str, ...]:
    """Return the marks of everybody the words of a question could name."""
    keys = [key for key, window in windows_by_key(probe).items() if key and len(window) <= MAX_NAME_WORDS]
    # One word alone has no windows.
    return tuple([BY + key for key in keys or [probe.key] if key])


def is_speaker_mark(term: str) -> bool:
    """Tell a speaker's mark from a date word."""
    return term.startswith(BY)


def speaker_of(mark: str) -> str:
    """Return the key a speaker's mark stands for."""
    return mark.removeprefix(BY)
