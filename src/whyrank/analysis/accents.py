"""Spellings with and without accents: `café` is typed `cafe`, `Müller` is typed `Mueller` or `Muller`.

`Göteborg` is typed `Goteborg`. Marks are removed from Latin letters, from Greek ones, and from the Russian ё, as in
typing. Elsewhere they are letters of their own: й is not и, and the signs of Indic, Thai, Hebrew and Arabic words are
their vowels.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache

from .caches import text_cache
from .stemming import stem

# Letters that Unicode does not take apart, as they are typed where there are none of them.
_TYPED = {
    "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "æ": "ae", "œ": "oe", "ħ": "h", "ŧ": "t", "ё": "е",
}  # fmt: skip
_GERMAN = {"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"}
_MARKED = ((0xC0, 0x250), (0x1E00, 0x1F00), (0x386, 0x3CF), (0x1F00, 0x2000))  # Latin and Greek letters with marks
_MARKS = range(0x300, 0x370)  # combining marks, for letters that have no precomposed form
# A letter that may have an accent; the letters of Greek that have none are many.
_ACCENT = re.compile("[\u00c0-\u024f\u0300-\u036f\u1e00-\u1fffάέήίόύώϊϋΐΰё]")
_TWO_LETTERS = re.compile("([aou])e|aa")  # typed forms of umlauts and å


@lru_cache(maxsize=1)
def _tables() -> tuple[dict[int, str], dict[int, str]]:
    """Return the typed form of each letter: without its marks, and with umlauts as two letters."""
    plain: dict[int, str] = dict.fromkeys(_MARKS, "")
    for first, end in _MARKED:
        for number in range(first, end):
            letters = unicodedata.normalize("NFD", chr(number))
            if len(letters) > 1 and all(ord(mark) in _MARKS for mark in letters[1:]):
                plain[number] = letters[0]
    plain |= {ord(letter): typed for letter, typed in _TYPED.items()}
    return plain, plain | {ord(letter): typed for letter, typed in _GERMAN.items()}


def plain_spellings(word: str) -> tuple[str, ...]:
    """Return the spellings of a folded word or token without accents: none, one or a few.

    An accent may keep an English stemmer from a suffix it removes otherwise: `résumé` is searched as `resume`, `Hélène`
    as `Helene`, and both are stemmed.
    """
    if word.isascii():
        return ()
    plain, apart = (word.translate(table) for table in _tables())
    is_stemmed = plain.isascii() and plain.isalpha()
    found = dict.fromkeys((plain, apart, *((stem(plain, "en"), stem(apart, "en")) if is_stemmed else ())))
    found.pop(word, None)
    return tuple(found)


def may_hold_umlauts(word: str) -> bool:
    """Return whether a folded word has two letters that may have been typed for an umlaut."""
    return _TWO_LETTERS.search(word) is not None


@text_cache(4_096)
def bare_spelling(word: str) -> str:
    """Return the common form of a folded word's spellings: no marks, and one letter where two may be one."""
    return _TWO_LETTERS.sub(lambda two: two[1] or "a", word.translate(_tables()[0]))


def are_spellings(one: str, other: str) -> bool:
    """Return whether two folded words differ only in accents: omitted, or typed as one letter or two.

    `Baeckerei Muller` is `Bäckerei Müller`; but `Moller` is not `Moeller`, for neither has an accent.
    """
    if bare_spelling(one) != bare_spelling(other):
        return False
    return any(
        _typed(a).fullmatch(b) for a, b in ((one, other), (other, one), *((one, b) for b in plain_spellings(other)))
    )


@text_cache(1_024)
def _typed(word: str) -> re.Pattern[str]:
    """Return a pattern that matches a word in every typed form of its accents."""
    plain, apart = _tables()
    ways = (dict.fromkeys((letter, letter.translate(plain), letter.translate(apart))) for letter in word)
    return re.compile("".join("|".join(map(re.escape, way)).join(("(?:", ")")) for way in ways))


def accented_in(text: str) -> list[str]:
    """Return the tokens of a space-separated text that may have accents."""
    if text.isascii() or not _ACCENT.search(text):
        return []  # as English is, and scripts without accents: one pass decides it for a thousand words
    return [token for token in text.split(" ") if not token.isascii() and _ACCENT.search(token)]


def by_plain_spelling(tokens: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the tokens with accents among some, by how they are typed without."""
    found: dict[str, tuple[str, ...]] = {}
    for token in tokens:
        for plain in plain_spellings(token):
            found[plain] = (*found.get(plain, ()), token)
    return found


def typed_beginning(known: Mapping[str, tuple[str, ...]], beginning: str) -> set[str]:
    """Return the accented tokens whose plain spelling has this prefix."""
    return {token for plain, tokens in known.items() if plain.startswith(beginning) for token in tokens}


def typed_as(token: str) -> tuple[str, ...]:
    """Return the plain spellings to look up for a query token: itself, and those of its letters."""
    return (token,) if token.isascii() else (token, *plain_spellings(token))
