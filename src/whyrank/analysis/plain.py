"""Plain words, as most questions are: letters of ASCII between spaces and the signs of a sentence.

Scripts, identifiers, quotes and digits need scanners, each with a pass of its own. Plain words need one look, and
whoever knows them need not scan: a search that others' work has cooled pays for every piece of code it comes through.
"""

from __future__ import annotations

_SIGNS = ",.?!;"  # what may stand behind a word without changing how any scanner reads it


def plain_words(text: str) -> list[str] | None:
    """Return the words of a text as they are written; None if it holds anything but plain words."""
    words = [word for piece in text.split() if (word := piece.rstrip(_SIGNS))]
    letters = "".join(words)
    if not (letters.isascii() and letters.isalpha()):
        return None
    return words if letters.islower() or not any(map(is_camel, words)) else None


def is_camel(word: str) -> bool:
    """Tell whether a word has humps: `getHTTPUrl`, `iPhone`, but neither `Suzy` nor `NASA`."""
    return not (word.islower() or word.isupper()) and any(letter.isupper() for letter in word[1:])
