"""Snowball stems by language, and the rule that keeps stubs out of the index."""

from __future__ import annotations

from functools import cache
from typing import Protocol

import snowballstemmer

_ALGORITHMS = {
    "ar": "arabic",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fr": "french",
    "hi": "hindi",
    "hy": "armenian",
    "it": "italian",
    "nl": "dutch",
    "pt": "portuguese",
    "ru": "russian",
    "sv": "swedish",
    "ta": "tamil",
}
STUB_LETTERS = 2  # a stem this short stands for too many words ("боюсь" becomes "бо")


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...  # noqa: N802 (the library's name)


@cache
def _stemmer(language: str) -> _Stemmer | None:
    algorithm = _ALGORITHMS.get(language)
    stemmer: _Stemmer | None = snowballstemmer.stemmer(algorithm) if algorithm else None
    return stemmer


def stem(word: str, language: str) -> str | None:
    """Return the stem of a folded word, or None if it would be a stub; words that short themselves stay."""
    if len(word) <= STUB_LETTERS:
        return word
    stemmer = _stemmer(language)
    if stemmer is None:
        return word
    stemmed = stemmer.stemWord(word)
    if len(stemmed) > STUB_LETTERS:
        return stemmed
    shortened = word[:-1]
    return shortened if len(shortened) > STUB_LETTERS else None
