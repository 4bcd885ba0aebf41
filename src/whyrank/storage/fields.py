"""What of a text is matched: its words, adjacent pairs of them, and in some languages runs of four letters inside them.

Pairs and letters are made from the tokens, so that a memory and a question make them alike; scripts written
without spaces are bigrams already and have neither.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from ..analysis.datewords import SIGN
from ..analysis.patterns import pattern
from ..analysis.speakers import BY
from ..analysis.text import UNSPACED
from ..caches import share
from ..expressions import as_word, is_several
from ..memo import MOST_WORDS, Memo
from ..ports import Entry
from .lexical import LENGTH_PRIOR

GRAM_LETTERS = 4
_UNSPACED = pattern(f"[{UNSPACED}]")


class Field(NamedTuple):
    """One way to match: its weight in the lexical score, and its length prior."""

    number: int
    name: str
    weight: float
    length_prior: float


# Weights measured over all visible sets; a text has about four times as many letter runs as words.
WORDS = Field(0, "words", 1.0, LENGTH_PRIOR)
PAIRS = Field(1, "pairs", 0.3, LENGTH_PRIOR)
GRAMS = Field(2, "grams", 0.15, 4 * LENGTH_PRIOR)
DATES = Field(3, "dates", 1.0, LENGTH_PRIOR)
FIELDS = (WORDS, PAIRS, GRAMS, DATES)


def fields_of(entry: Entry) -> tuple[Sequence[str], ...]:
    """Return the terms of each field of an entry, in the order of FIELDS."""
    tokens = entry.tokens
    return tokens, pairs_of(tokens), grams_of(tokens) if entry.letters else (), date_words_in(entry.marks)


def lengths_of(entry: Entry) -> tuple[int, int, int, int]:
    """Return how many terms each field of an entry has, without making them."""
    tokens, dates = entry.tokens, len(date_words_in(entry.marks)) if entry.marks else 0
    if not entry.letters and "".join(tokens).isascii():  # as most are: every token has letters, and a neighbour
        return len(tokens), max(0, len(tokens) - 1), 0, dates
    grams = [*map(_GRAM_COUNTS.__getitem__, tokens)]
    pairs = sum(1 for one, next_one in pairwise(grams) if one and next_one) if 0 in grams else max(0, len(grams) - 1)
    return len(grams), pairs, sum(grams) if entry.letters else 0, dates


def wanted_terms(terms: Sequence[str], fields: Collection[Field] = FIELDS) -> Iterator[tuple[Field, Sequence[str]]]:
    """Yield what a query asks of each of some fields; phrases and terms for several are asked of the words only.

    A word in several spellings is paired as it was asked for.
    """
    # A question has dozens of marks, of all whom its words could name: they are told from words without a call each.
    spoken = [term for term in terms if SIGN not in term]
    if WORDS in fields:
        yield WORDS, spoken
    words = [term for term in spoken if " " not in term and not is_several(term)]
    if len(words) < len(spoken):
        words = [word for term in spoken if (word := as_word(term))]
    if PAIRS in fields:
        yield PAIRS, pairs_of(words)
    if GRAMS in fields:
        yield GRAMS, [*dict.fromkeys(grams_of(words))]
    if DATES in fields:
        yield DATES, date_words_in(terms) if len(spoken) < len(terms) else ()


def date_words_in(terms: Iterable[str]) -> list[str]:
    """Return the date words among some terms."""
    return [term for term in terms if SIGN in term and not term.startswith(BY)]


def pairs_of(tokens: Sequence[str]) -> list[str]:
    """Return neighbouring tokens as pairs."""
    spaced = [gram_count(token) > 0 for token in tokens]
    return [f"{tokens[i]} {tokens[i + 1]}" for i in range(len(tokens) - 1) if spaced[i] and spaced[i + 1]]


def grams_of(tokens: Iterable[str]) -> list[str]:
    """Return the runs of four letters inside tokens; shorter tokens count whole."""
    return [token[i : i + GRAM_LETTERS] for token in tokens for i in range(gram_count(token))]


def gram_count(token: str) -> int:
    """Return how many runs of letters a token has: none in scripts without spaces."""
    return _GRAM_COUNTS[token]


def _gram_count(token: str) -> int:
    is_unspaced = not token.isascii() and _UNSPACED.search(token) is not None
    return 0 if is_unspaced else max(1, len(token) - GRAM_LETTERS + 1)


_GRAM_COUNTS = Memo(_gram_count)
share(_GRAM_COUNTS.__len__, MOST_WORDS)
