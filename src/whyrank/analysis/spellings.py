"""Words with accents and without: `café` is typed `cafe`, `Müller` `Mueller` or `Muller`, `Göteborg` `Goteborg`.

Marks are left away of Latin letters, of Greek ones, and of the Russian ё, as those who type do. Elsewhere they are
letters of their own: й is not и, and the signs of Indic, Thai, Hebrew and Arabic words are their vowels.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache

from .stems import stem

# Letters that Unicode does not take apart, as they are typed where there are none of them.
_TYPED = {
    "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "æ": "ae", "œ": "oe", "ħ": "h", "ŧ": "t", "ё": "е",
}  # fmt: skip
_GERMAN = {"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"}
_MARKED = ((0xC0, 0x250), (0x1E00, 0x1F00), (0x386, 0x3CF), (0x1F00, 0x2000))  # Latin and Greek letters with marks
_MARKS = range(0x300, 0x370)  # that stand behind their letters where there is no letter with the mark
# A letter that may have an accent; the letters of Greek that have none are many.
_ACCENT = re.compile("[\u00c0-\u024f\u0300-\u036f\u1e00-\u1fffάέήίόύώϊϋΐΰё]")


@lru_cache(maxsize=1)
def _tables() -> tuple[dict[int, str], dict[int, str]]:
    """Return what is typed for each letter: without its marks, and umlauts as two letters."""
    plain: dict[int, str] = dict.fromkeys(_MARKS, "")
    for first, end in _MARKED:
        for number in range(first, end):
            letters = unicodedata.normalize("NFD", chr(number))
            if len(letters) > 1 and all(ord(mark) in _MARKS for mark in letters[1:]):
                plain[number] = letters[0]
    plain |= {ord(letter): typed for letter, typed in _TYPED.items()}
    return plain, plain | {ord(letter): typed for letter, typed in _GERMAN.items()}


def plain_spellings(word: str) -> tuple[str, ...]:
    """Return how a folded word or token is typed without accents: not at all otherwise, or in one way or a few.

    An accent may keep an English stemmer from what it takes off without: `résumé` is asked for as `resume`, `Hélène` as
    `Helene`, and both are stemmed.
    """
    if word.isascii():
        return ()
    plain, apart = (word.translate(table) for table in _tables())
    is_stemmed = plain.isascii() and plain.isalpha()
    found = dict.fromkeys((plain, apart, *((stem(plain, "en"), stem(apart, "en")) if is_stemmed else ())))
    found.pop(word, None)
    return tuple(found)


def accented_in(text: str) -> list[str]:
    """Return the tokens of a text, with spaces between them, that are typed otherwise without accents, or nearly so."""
    if text.isascii() or not _ACCENT.search(text):
        return []  # as English is, and scripts without accents: one pass tells it of a thousand words
    return [token for token in text.split(" ") if not token.isascii() and _ACCENT.search(token)]


def by_plain_spelling(tokens: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the tokens with accents among some, by how they are typed without."""
    found: dict[str, tuple[str, ...]] = {}
    for token in tokens:
        for plain in plain_spellings(token):
            found[plain] = (*found.get(plain, ()), token)
    return found


def typed_as(token: str) -> tuple[str, ...]:
    """Return the plain spellings that a token of a question may be one of: itself, or those of its letters."""
    return (token,) if token.isascii() else (token, *plain_spellings(token))
