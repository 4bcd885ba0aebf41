"""Words of ASCII that need no scanner, though they are not plain: with signs around them, hyphens, points or digits.

A new piece of a text costs eight passes of patterns, and most are told by their parts alone. Where there is a kernel it
does so (`kernel/parting.c`), and little is left for this: plurals of acronyms, and what may name a month.
"""

from __future__ import annotations

import re

from .datewords import MONTH_OF, dated
from .plain import is_camel

# Signs that are part of no word they stand before or behind; of `c++`, `c#` and `_x` they are.
_AROUND = '.,;:!?()"*[]{}<>=~$&|^%`/@\\-'
_COMPOUND = re.compile(r"[A-Za-z0-9]+(?:[-./][A-Za-z0-9]+)*")
_JOINERS = re.compile("[-./]")
_LETTER_OR_DIGIT = re.compile("[A-Za-z0-9]")
# What joins a compound to one word; digits stay apart, and so does what has a point or a stroke.
_BETWEEN_WORDS = re.compile("(?<![0-9])-|-(?![0-9])")
_OWN = "'s"


def compound_words(piece: str) -> tuple[str, ...] | None:
    """Return the words of a piece of a text between two spaces, folded: the whole, and its parts if it has several.

    None for whatever may be read otherwise: other letters, humps, apostrophes, dates.
    """
    if not piece.isascii():
        return None
    word = piece.strip(_AROUND)
    if word.endswith(_OWN):
        word = word[: -len(_OWN)]
    if _LETTER_OR_DIGIT.search(word) is None:
        return None if "'" in piece or "_" in piece else ()
    if word.isalpha():
        return (word.lower(),) if not is_camel(word) and (word.islower() or not dated(word)) else None
    return _whole_and_parts(word) if _COMPOUND.fullmatch(word) else None


def _whole_and_parts(word: str) -> tuple[str, ...] | None:
    folded = word.lower()
    if word != folded and any(map(is_camel, _JOINERS.split(word))):
        return None
    parts = _JOINERS.split(folded)
    is_plain = word == folded and "".join(parts).isalpha() and MONTH_OF.keys().isdisjoint(parts)
    if not is_plain and dated(word):
        return None
    return (_BETWEEN_WORDS.sub("", folded), *parts) if len(parts) > 1 else (folded,)
