"""Who speaks in a conversation, and a question about one person asked about another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import regex

from ..types import Document, Scope

Renaming = Callable[[str], str]

# A session written down as one text has its speakers at the beginning of its lines.
_SPEAKER = regex.compile(r"^(\p{Lu}[\p{L}'’-]{1,30}): ", regex.MULTILINE)
_MIN_LINES = 5  # what begins fewer lines of a scope is a heading


def speakers_of(documents: Iterable[Document]) -> dict[Scope, list[str]]:
    """Return the speakers of each scope, the one who says most first."""
    counts: dict[Scope, Counter[str]] = {}
    for document in documents:
        said = [document.speaker] if document.speaker else _SPEAKER.findall(document.text)
        counts.setdefault(document.scope, Counter()).update(said)
    return {scope: _most_heard(found) for scope, found in counts.items()}


def _most_heard(found: Counter[str]) -> list[str]:
    ordered = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
    return [name for name, lines in ordered if lines >= _MIN_LINES]


def renaming_between(theirs: Sequence[str], ours: Sequence[str]) -> Renaming:
    """Return what puts our names in the place of theirs, all at once; without names on both sides, nothing changes."""
    if not theirs or not ours:
        return lambda text: text
    places = {name: ours[number % len(ours)] for number, name in enumerate(theirs)}
    names = "|".join(regex.escape(name) for name in sorted(places, key=len, reverse=True))
    pattern = regex.compile(rf"\b(?:{names})\b")
    return lambda text: str(pattern.sub(lambda found: places[found.group()], text))
