"""Entries: ids, tokens, names, date words and content hashes of memories; near-equality of texts.

`reading_of` analyses a text for the index, piece by piece between its spaces, with a token cache.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache, reduce
from itertools import chain, groupby, repeat
from operator import attrgetter, or_
from typing import TYPE_CHECKING, NamedTuple

from ..types.memory import GLOBAL, Entry, Scope
from .dates import (
    ANY_DATE,
    DOUBTFUL_MONTH,
    MONTH_OF,
    asked_dates,
    date_words,
    dated,
    dated_as_written,
    has_digit,
    told_dates,
)
from .names import names_of, speaker_mark
from .normalize import LONGEST_WORD, compose, same_bytes, share
from .tokenizer import (
    MAX_TOKEN_LETTERS,
    STOP_WORDS,
    VOTERS,
    VOTING_WORDS,
    content_in,
    content_of,
    function_words_in,
    is_camel,
    language_mark,
    latin_language,
    leaning,
    run_tokens,
    script_language,
    shown_language,
    standing_alone,
    stem,
    tokens_of,
    vote_language,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..types.memory import Memory, MemoryId
    from ..types.trail import Name


def searchable_text(memory: Memory) -> str:
    """Return the indexed text of a memory: name or title, slug, heading trail, summary and text."""
    return _joined(memory, _called(memory), " ".join(memory.headings), memory.summary)


def embedded_text(memory: Memory) -> str:
    """Return the text to embed: name or title, slug and headings in front, to give a chunk its subject.

    The folders of a path stay out, so that a moved file keeps its vectors.
    """
    if not (memory.name or memory.title or memory.slug or memory.headings):  # as most facts
        return memory.text
    called = _called(memory)
    # A file named by its date or a number has no subject to embed; dates are matched as date words.
    if not memory.name and not any(map(str.isalpha, called)):
        called = ""
    return _joined(memory, called, " › ".join(memory.headings))


def _called(memory: Memory) -> str:
    """Return the name of a memory, else its title; a turn is not called after its log."""
    return memory.name or ("" if memory.is_turn else memory.title)


def _joined(memory: Memory, called: str, *context: str) -> str:
    # A name that equals a heading is not repeated.
    name = "" if called in memory.headings else called
    return "\n".join(line for line in (name, memory.slug, *context, memory.text) if line)


# Letter runs help where words are long and change their shape: +0.01 nDCG in German and Russian, nothing in English,
# where they are most of an index.
WORDS_SUFFICE = frozenset({"en"})

# Raised whenever the same text would give other words, names or date words, or be embedded otherwise, or the same file
# other fields: files are then read anew when they are ingested, and all other memories a few at a time.
READER_VERSION = 5

# All fields of a memory that words, names, date words, vectors and places derive from; others are read on demand.
_read = attrgetter(
    "id", "text", "kind", "name", "title", "slug", "owner", "aliases", "summary", "headings", "source", "scope",
    "created", "date", "evergreen", "session", "speaker", "position",
)  # fmt: skip


def entry_for(memory: Memory, language: str) -> Entry:
    """Analyse a memory."""
    return entries_for([memory], language)[0]


def entries_for(memories: Sequence[Memory], language: str) -> list[Entry]:
    """Analyse memories in a batch, step by step: each step's code and tables stay in the CPU caches."""
    texts = [*map(embedded_text, memories)]
    reads = [reading_of(searched, language) for searched in map(searchable_text, memories)]
    names = [*map(names_of, memories)]
    return [*map(_entry, memories, repeat(language), reads, names, texts, map(content_hash, texts))]


def _entry(
    memory: Memory, language: str, read: Reading, names: tuple[Name, ...], embed_text: str, embed_hash: str
) -> Entry:
    return Entry(
        memory=memory,
        tokens=read.tokens,
        names=names,
        embed_text=embed_text,
        embed_hash=embed_hash,
        letters=read.language not in WORDS_SUFFICE,
        marks=(
            *_date_words(memory, read),
            *(speaker_mark(memory.speaker) if memory.is_turn else ()),
            language_mark(read.shown, language),
        ),
        language=language,
        reader=READER_VERSION,
    )


def reads_alike(one: Memory, other: Memory) -> bool:
    """Return whether two memories give the same entry, so that one can replace the other in the index."""
    return bool(_read(one) == _read(other))


def _date_words(memory: Memory, read: Reading) -> tuple[str, ...]:
    """Return the date words of a memory: its own date, dates it names, and dates relative to its own."""
    named = asked_dates(memory.text, read.dated) if read.dated else ()
    # The time of storage is not a date of the content.
    if memory.date is None or memory.date == memory.created:
        return named
    return tuple(
        dict.fromkeys((*date_words(memory.date), *named, *told_dates(memory.text, memory.date, read.language)))
    )


def content_hash(text: str) -> str:
    """Return the fingerprint of a text."""
    return hashlib.blake2b(text.encode("utf-8", errors="replace"), digest_size=16).hexdigest()


_ID_BYTES = 10  # 80 bits: two of a million memories share an id once in a million stores
_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"  # of base 32 (RFC 4648), two at a time below
_PAIRS = [first + second for first in _LETTERS for second in _LETTERS]


def fingerprints(scope: Scope, text: str) -> tuple[MemoryId, str, str]:
    """Return the id, the `text_key` and the `content_hash` of a new fact, encoding its text once."""
    said = same_bytes(text)
    key = hashlib.blake2b(said, digest_size=16).hexdigest()
    letters = text.encode("utf-8", errors="replace")
    exact = key if said == letters else hashlib.blake2b(letters, digest_size=16).hexdigest()
    return _id(_EVERYBODYS if scope is GLOBAL else _place(scope, ""), said, _FIRST), key, exact


def id_for(scope: Scope, path: str, text: str, occurrence: int = 0) -> MemoryId:
    """Return the id of a memory: the same content at the same place has the same id in every store."""
    return _id(_place(scope, path), text.encode("utf-8", errors="replace"), _number(occurrence))


def _id(place: bytes, said: bytes, number: bytes) -> MemoryId:
    told = b"".join((place, len(said).to_bytes(8, "little"), said, number))
    bits = int.from_bytes(hashlib.blake2b(told, digest_size=_ID_BYTES).digest(), "big")
    pairs = _PAIRS
    return (
        f"m_{pairs[bits >> 70]}{pairs[bits >> 60 & 1023]}{pairs[bits >> 50 & 1023]}{pairs[bits >> 40 & 1023]}"
        f"{pairs[bits >> 30 & 1023]}{pairs[bits >> 20 & 1023]}{pairs[bits >> 10 & 1023]}{pairs[bits & 1023]}"
    )


@lru_cache(maxsize=64)  # many memories come from one place
def _place(scope: Scope, path: str) -> bytes:
    return _measured(str(scope)) + _measured(path)


@lru_cache(maxsize=8)  # a text seldom occurs at one place more than once
def _number(occurrence: int) -> bytes:
    return _measured(str(occurrence))


def _measured(text: str) -> bytes:
    """Return a text with its length in front: no two lists of texts give the same bytes."""
    data = text.encode("utf-8", errors="replace")
    return len(data).to_bytes(8, "little") + data


_EVERYBODYS, _FIRST = _place(GLOBAL, ""), _number(0)  # as nearly all facts have them


def occurrences(texts: Iterable[str]) -> Iterable[tuple[str, int]]:
    """Number equal texts, so that each gets an id of its own."""
    seen: dict[str, int] = {}
    for text in texts:
        number = seen.get(text, 0)
        yield text, number
        seen[text] = number + 1


_NUMBER = re.compile(r"\d+")
# Words that turn a sentence round, in the languages whose stop words are known here; all of them are short and common.
_NEGATING = """
no not never none nothing nobody neither nor without cannot nicht kein keine keinen nie niemals ohne ne
pas jamais sans non mai senza nunca sin nem não sem niet geen nooit zonder inte ingen aldrig utan не ни нет никогда без
"""
_NEGATIONS = frozenset(_NEGATING.split())
_SPOKEN_WORD = re.compile(r"[^\W\d_]+(?:'t\b)?")


def may_be_one(text: str, other: str) -> bool:
    """Return whether two texts with near vectors may mean the same.

    Ports, versions and dates, a "not", or who pays whom make a difference: numbers and negations must agree, and the
    words that both have must come in the same order.
    """
    return (
        numbers_in(text) == numbers_in(other)
        and _negations(text) == _negations(other)
        and _shared(text, other) == _shared(other, text)
    )


def numbers_in(text: str) -> list[str]:
    """Return the numbers of a text, in no order: ports, versions and dates hardly change a vector."""
    return sorted(_NUMBER.findall(text))


def _negations(text: str) -> int:
    words = _SPOKEN_WORD.findall(text.casefold().replace("\u2019", "'"))
    return sum(word in _NEGATIONS or word.endswith("n't") for word in words)


def _shared(text: str, other: str) -> list[str]:
    """Return the words of a text that the other also has, in the order of their first occurrence."""
    known = set(tokens_of(other))
    return [token for token in dict.fromkeys(tokens_of(text)) if token in known]


# Signs that are part of no word they precede or follow; of `c++`, `c#` and `_x` they are.
_AROUND = '.,;:!?()"*[]{}<>=~$&|^%`/@\\-'


# Pieces of text kept for a language, about 25 MB; a full cache starts anew.
_MOST_PIECES = 131_072
_LONGEST_ADDRESS = 256
# Cost of one word in the cache: so many letters of an address, so many tokens of a script without spaces.
_LETTERS_OF_A_PIECE, _TOKENS_OF_A_PIECE = 24, 8


class Reading(NamedTuple):
    """Index tokens of a text, its language, its kinds of dates, and the language if its words show it."""

    tokens: tuple[str, ...]
    language: str
    dated: int
    shown: str = ""


def reading_of(text: str, default_language: str) -> Reading:
    """Analyse a text for the index: its tokens, its language and whether it may name a date."""
    composed, cache = compose(text), _cache_for(default_language)
    try:
        read = cache.read(composed)
    except _TooLong:
        return _read_around(cache, text, composed)
    # All words have a vote, and the default has as many as all others together: it has won.
    is_default = read.words <= VOTING_WORDS and read.leaning >= 0
    latin = default_language if is_default else latin_language(composed, default_language)
    tokens = read.tokens if latin == default_language else ()
    # Digits may be joined by others when a text is composed (`2023²`), but not by its ellipses and apostrophes.
    is_written_so = composed == text or composed == text.replace("…", "...").replace("’", "'")
    dates = read.dated if is_written_so else read.dated | dated_as_written(text)
    if dates == DOUBTFUL_MONTH and not has_digit(composed):  # "may" is a month only beside a number
        dates = 0
    shown = script_language(text)
    if shown is None:  # a language with a positive leaning has more votes than any other
        shown = latin if read.leaning > 0 else vote_language(standing_alone(composed), default_language)[1]
    return Reading(tokens or content_in(composed, latin), shown or latin, dates, shown)


def _read_around(cache: _TokenCache, text: str, composed: str) -> Reading:
    """Read a text with pieces too long to cache, such as checksums: its words are read from the cache."""
    latin = latin_language(composed, cache.latin)
    tokens = tuple(chain.from_iterable(_tokens_around(cache, composed))) if latin == cache.latin else ()
    shown = shown_language(text, cache.latin)
    return Reading(tokens or content_in(composed, latin), shown or latin, ANY_DATE, shown)


def _tokens_around(cache: _TokenCache, composed: str) -> Iterator[tuple[str, ...]]:
    for is_short, pieces in groupby(composed.split(), lambda piece: len(piece) <= LONGEST_WORD):
        between = " ".join(pieces)
        yield cache.read(between).tokens if is_short else content_of(between, cache.latin)


class _TooLong(Exception):
    """A piece is longer than words and addresses are, and does not come again."""


class _Read(NamedTuple):
    """Sums over the pieces of a text: tokens, words, leaning to the language, kinds of dates."""

    tokens: tuple[str, ...]
    words: int
    leaning: int
    dated: int


class _TokenCache(dict[str, tuple[str, ...]]):
    """Cache of the tokens of pieces between spaces, in one language; no word or month spans a space."""

    def __init__(self, latin: str) -> None:
        super().__init__()
        self.latin = latin
        self.room = 0  # cached size, in words
        # The few pieces that vote, may be dates, or are several words: leaning, words more than one, dates.
        self._more: dict[str, tuple[int, int, int]] = {}
        self._telling = frozenset(VOTERS.keys() | MONTH_OF.keys() | STOP_WORDS.get(latin, frozenset()))

    def read(self, composed: str) -> _Read:
        """Read the pieces of a composed text from the cache."""
        pieces = composed.split()
        tokens = tuple(chain.from_iterable([*map(self.__getitem__, pieces)]))
        more = [*filter(None, map(self._more.get, pieces))]
        leanings, words, dates = zip(*more, strict=True) if more else ((), (), ())
        return _Read(tokens, len(pieces) + sum(words), sum(leanings), reduce(or_, {*dates}, 0))

    def __missing__(self, piece: str) -> tuple[str, ...]:
        """Analyse a new piece and keep its tokens."""
        if len(piece) > LONGEST_WORD and (len(piece) > _LONGEST_ADDRESS or not piece.isascii() or piece.isalnum()):
            raise _TooLong
        tokens = self._plain_tokens(piece)
        if tokens is None:
            tokens = content_of(piece, self.latin)
            words = standing_alone(piece)
            more = leaning(self.latin, function_words_in(words)), max(0, len(words) - 1), dated(piece)
            if any(more):
                self._more[piece] = more
        self[piece] = tokens
        by_letters = 1 if len(piece) <= LONGEST_WORD else len(piece) // _LETTERS_OF_A_PIECE
        self.room += max(by_letters, len(tokens) // _TOKENS_OF_A_PIECE)
        return tokens

    def _plain_tokens(self, piece: str) -> tuple[str, ...] | None:
        """Return the tokens of an ASCII word with signs around it; None if it votes or names a month."""
        word = piece.strip(_AROUND)
        folded = word.lower()
        if not (word.isalpha() and word.isascii()) or folded in self._telling or len(word) > MAX_TOKEN_LETTERS:
            return None
        if folded == piece:
            return (stem(piece, self.latin),)
        if is_camel(word):
            return tuple([token.text for token in run_tokens(word, self.latin) if not token.is_stop_word])
        return self[folded]


_caches: dict[str, _TokenCache] = {}
share(lambda: sum(cache.room for cache in [*_caches.values()]), _MOST_PIECES)


def _cache_for(latin: str) -> _TokenCache:
    """Return the token cache of a language: a new one if it is full, as other threads may read the old."""
    cache = _caches.get(latin)
    if cache is None or cache.room >= _MOST_PIECES:
        cache = _caches[latin] = _TokenCache(latin)
    return cache
