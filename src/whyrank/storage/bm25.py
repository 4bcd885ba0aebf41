"""The word score: BM25 over a scope's own statistics, with a length prior for very short texts.

B(text) = Σ idf · tf/(tf + K),  K = k1·(1 − b + b·(len + prior)/(avglen + prior))

After Robertson and Zaragoza 2009, without the constant factor (k1 + 1), so that Σ idf bounds it. It is summed over the
words of a text, adjacent pairs of them, and in some languages runs of four letters inside them; pairs and letters are
made from the tokens, so that a memory and a query make them alike. Context is added, never concatenated: neighbours
blurred into the unit make it worse.
"""

from __future__ import annotations

import heapq
from collections import Counter
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from ..analysis.dates import date_words_in
from ..analysis.normalize import MOST_WORDS, SIGN, UNSPACED, Memo, pattern, share
from ..types.query import ONCE, OTHERWISE_COUNTS, Repeats, Statistics, as_word, is_several, label_as, spellings
from ..types.results import Candidate
from ..types.trail import TermValue

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from ..types.memory import Entry, MemoryId

K1 = 1.2
B = 0.75
LENGTH_PRIOR = 20  # keeps a three-word turn from winning by shortness; fades out for long texts

TermScores = tuple[TermValue, ...]


def padded(tokens: Iterable[str]) -> str:
    """Join tokens so that ` token ` occurs exactly as often as the token does."""
    return "".join(f" {token} " for token in tokens)


def needle(term: str) -> str:
    """Return the search string of a term in padded tokens: a token, or the adjacent tokens of a phrase."""
    return padded(term.split())


def occurrences(tokens: str, term: str) -> float:
    """Count a term in padded tokens: all that it stands for together, other spellings by half."""
    asked, others = spellings(term)
    weight = OTHERWISE_COUNTS if asked else 1.0
    return _count(tokens, asked) + weight * _count(tokens, others)


def _count(tokens: str, terms: Iterable[str]) -> int:
    return sum(tokens.count(needle(one)) for one in terms)


def term_scores(
    tokens: str, length: int, terms: Sequence[str], statistics: Statistics, repeats: Repeats = ONCE
) -> TermScores:
    """Return the score of each matching term in padded tokens, times its count in the query."""
    average = statistics.average_length
    k = K1 * (1 - B + B * (length + LENGTH_PRIOR) / (average + LENGTH_PRIOR))
    scores = []
    for term in terms:
        frequency = occurrences(tokens, term)
        if frequency:
            often = repeats.get(term, 1)
            addend = often * statistics.idf(term) * frequency / (frequency + k)
            is_asked = _count(tokens, spellings(term)[0]) > 0
            scores.append(TermValue(repeated(label_as(term, is_asked), often), "words", "own", addend))
    return tuple(scores)


def repeated(term: str, often: int) -> str:
    """Return the label of a term in a trail, with its multiplicity if that is above one."""
    return term if often == 1 else f"{term} ×{often}"


def word_score(scores: TermScores) -> float:
    """Add the terms' scores from left to right."""
    value = 0.0
    for score in scores:
        value += score.value
    return value


WINDOW_TURNS = 2  # turns before and after a turn, in the same session
# Gain of a matching turn when the query names its speaker and no other: a share of the best score there is.
SPEAKER_SHARE = 0.1


class Unit(IntEnum):
    """Kind of a memory for context scoring: fact, chunk of a file, or turn of a session."""

    FACT = 0
    CHUNK = 1
    TURN = 2


# A chunk counts half beside its file, a turn as much as its window; a fact has no surroundings and counts for both.
OWN_WEIGHT = {Unit.FACT: 1.5, Unit.CHUNK: 0.5, Unit.TURN: 1.0}


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


def wanted_terms(terms: Sequence[str], fields: Collection[Field] = FIELDS) -> Iterator[tuple[Field, Sequence[str]]]:
    """Yield the query terms of each given field; phrases and multi-word terms go to the words only.

    A word in several spellings is paired as it was written in the query.
    """
    # A query has dozens of marks, for every entity its words could name: one `in` test each, without a call.
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


def pairs_of(tokens: Sequence[str]) -> list[str]:
    """Return neighbouring tokens as pairs."""
    spaced = [*map(gram_count, tokens)]  # none in scripts without spaces
    return [f"{tokens[i]} {tokens[i + 1]}" for i in range(len(tokens) - 1) if spaced[i] and spaced[i + 1]]


def grams_of(tokens: Iterable[str]) -> list[str]:
    """Return the runs of four letters inside tokens; shorter tokens count whole."""
    return [token[i : i + GRAM_LETTERS] for token in tokens for i in range(gram_count(token))]


def _count_grams(token: str) -> int:
    """Return the number of letter runs of a token: none in scripts without spaces."""
    is_unspaced = not token.isascii() and _UNSPACED.search(token) is not None
    return 0 if is_unspaced else max(1, len(token) - GRAM_LETTERS + 1)


_GRAM_COUNTS = Memo(_count_grams)
gram_count = _GRAM_COUNTS.__getitem__
share(_GRAM_COUNTS.__len__, MOST_WORDS)


def spread(ids: Iterable[MemoryId], count: int) -> list[MemoryId]:
    """Return up to `count` of these ids, as if drawn; the same ids in any order give the same choice."""
    return heapq.nsmallest(count, ids, key=lambda identity: (crc32(identity.encode("utf-8", "replace")), identity))


CHUNKS_PER_SOURCE = 5  # further chunks of a file cannot change which file is found


class Scored(NamedTuple):
    """A memory with its score, the source it counts for, and its place in the order of ties."""

    score: float
    tie: tuple[str, int, str, MemoryId]
    group: str

    @property
    def id(self) -> MemoryId:
        """Return the memory's id."""
        return self.tie[-1]


def best(rows: Iterable[Scored], limit: int | None) -> tuple[Candidate, ...]:
    """Order rows by score, then by content key, and cut them at `limit` distinct sources."""
    ordered = sorted(rows, key=lambda row: (-row.score, row.tie))
    return tuple(Candidate(row.id, row.score) for row in cut(ordered, limit))


def cut(ordered: Iterable[Scored], limit: int | None) -> Iterator[Scored]:
    """Yield rows until `limit` sources were seen, a few rows of each; None yields all."""
    seen: Counter[str] = Counter()
    for row in ordered:
        if limit is not None:
            if seen[row.group] >= CHUNKS_PER_SOURCE:
                continue
            if row.group not in seen and len(seen) >= limit:
                return
            seen[row.group] += 1
        yield row
