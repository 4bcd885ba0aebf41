"""Snowball stems by language, and the rule that keeps stubs out of the index."""

from __future__ import annotations

from itertools import chain
from typing import Any

import snowballstemmer

from ..caches import text_cache

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
# Stemmers that nobody is using, by algorithm. Making one takes longer than a word does.
_IDLE: dict[str, list[Any]] = {algorithm: [] for algorithm in _ALGORITHMS.values()}


@text_cache(16_384)
def is_stub(word: str, language: str) -> bool:
    """Tell whether a folded word, or its stem, is so short that it stands for too many words."""
    algorithm = _ALGORITHMS.get(language)
    stemmed = _stemmed([word], algorithm)[0] if algorithm else word
    return min(len(word), len(stemmed)) <= STUB_LETTERS


def stem(word: str, language: str) -> str:
    """Return the stem of a folded word; where that would be a stub, the word without its last letter, or the word."""
    return stems([word], language)[0]


def stems(words: list[str], language: str) -> list[str]:
    """Return the stems of folded words."""
    algorithm = _ALGORITHMS.get(language)
    if algorithm is None:
        return words
    stemmed = _stemmed(words, algorithm)
    if min(map(len, chain(words, stemmed)), default=0) > STUB_LETTERS:  # as nearly always
        return stemmed
    pairs = zip(words, stemmed, strict=True)
    return [found if min(len(word), len(found)) > STUB_LETTERS else _unstemmed(word) for word, found in pairs]


def _unstemmed(word: str) -> str:
    # "aws" and "ads" are asked for as they are: a word that nobody could find would be worse than one that finds less.
    return word[:-1] if len(word) - 1 > STUB_LETTERS else word


def _stemmed(words: list[str], algorithm: str) -> list[str]:
    """Return the stems as they come, by a stemmer of one's own: it keeps its state while it works."""
    idle = _IDLE[algorithm]
    try:
        stemmer = idle.pop()
    except IndexError:  # the first word, or one more thread at a time than ever before
        stemmer = snowballstemmer.stemmer(algorithm)
        stemmer.maxCacheSize = 0  # words are remembered further up
    stemmed: list[str] = stemmer.stemWords(words)
    idle.append(stemmer)
    return stemmed
