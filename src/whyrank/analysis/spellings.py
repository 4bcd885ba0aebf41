"""Words with accents and without: `café` is typed `cafe`, `Müller` `Mueller` or `Muller`, `Göteborg` `Goteborg`.

Marks are left away of Latin letters, of Greek ones, and of the Russian ё, as those who type do. Elsewhere they are
letters of their own: й is not и, and the signs of Indic, Thai, Hebrew and Arabic words are their vowels.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache

from ..caches import text_cache
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
_TWO_LETTERS = re.compile("([aou])e|aa")  # what umlauts and å are typed as


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


def may_hold_umlauts(word: str) -> bool:
    """Tell whether a folded word has two letters that may have been typed for one."""
    return _TWO_LETTERS.search(word) is not None


@text_cache(4_096)
def bare_spelling(word: str) -> str:
    """Return what a folded word has in common with all its spellings: no marks, and one letter where two may be one."""
    return _TWO_LETTERS.sub(lambda two: two[1] or "a", word.translate(_tables()[0]))


def are_spellings(one: str, other: str) -> bool:
    """Tell whether two folded words are one, each of their accents left away, or typed as one letter or as two.

    `Baeckerei Muller` is `Bäckerei Müller`; but `Moller` is not `Moeller`, for neither has an accent.
    """
    if bare_spelling(one) != bare_spelling(other):
        return False
    return any(
        _typed(a).fullmatch(b) for a, b in ((one, other), (other, one), *((one, b) for b in plain_spellings(other)))
    )


@text_cache(1_024)
def _typed(word: str) -> re.Pattern[str]:
    """Return what matches a word however each of its accents is typed."""
    plain, apart = _tables()
    ways = (dict.fromkeys((letter, letter.translate(plain), letter.translate(apart))) for letter in word)
    return re.compile("".join("|".join(map(re.escape, way)).join(("(?:", ")")) for way in ways))


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


def typed_beginning(known: Mapping[str, tuple[str, ...]], beginning: str) -> set[str]:
    """Return the tokens with accents, known by how they are typed without, that begin so when they are typed."""
    return {token for plain, tokens in known.items() if plain.startswith(beginning) for token in tokens}


def typed_as(token: str) -> tuple[str, ...]:
    """Return the plain spellings that a token of a question may be one of: itself, or those of its letters."""
    return (token,) if token.isascii() else (token, *plain_spellings(token))
