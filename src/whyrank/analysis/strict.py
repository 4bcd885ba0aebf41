"""The stricter rule of length: words of one or two letters, and words whose stems are that short, are not asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .languages import DEFAULT_LANGUAGE, latin_language, word_language
from .stems import is_stub
from .text import clean, compose
from .words import parts_of, runs_of, spoken_words, word_token


def long_terms(terms: Sequence[str], text: str, default_language: str = DEFAULT_LANGUAGE) -> tuple[str, ...]:
    """Return those terms of a query that are long enough before and after stemming; phrases stay whole.

    Bigrams of scripts without spaces are no words, and stay.
    """
    composed = compose(clean(text).text)
    short = frozenset(_short_tokens(composed, latin_language(composed, default_language)))
    return tuple(term for term in terms if term not in short)


def _short_tokens(composed: str, latin: str) -> Iterator[str]:
    for run in runs_of(composed):
        for word in (part for spoken in spoken_words(run) for part in parts_of(spoken)):
            if is_stub(word, word_language(word, latin)):
                yield word_token(word, latin).text
