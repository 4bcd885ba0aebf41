"""What the pieces of a text between two spaces say, each worked out once for all texts.

No word, no voice for a language and no name of a month goes on behind a space, so a text is read piece by piece, and
all that is asked of it in one look.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain, groupby
from operator import or_
from typing import NamedTuple

from ..caches import share
from ..kernel import COMPILED, Kernel, Told
from ..memo import LONGEST_WORD
from .compounds import compound_words
from .datewords import ANY_DATE, DOUBTFUL_MONTH, MONTH_OF, dated, dated_as_written, has_digit
from .languages import (
    VOTERS,
    VOTING_WORDS,
    latin_language,
    leaning,
    script_language,
    standing_alone,
    voices_in,
)
from .stems import stem, stems
from .stopwords import STOP_WORDS
from .text import clean, compose
from .words import content_in, content_of

_CONTRACTED = re.compile("[a-z]+'s")
# Kept; some twenty-five megabytes, as words go. Whoever has more starts anew, and learns the words of every text again.
_MOST_PIECES = 131_072
_LONGEST_ADDRESS = 256
# What takes the room of one word: so many letters of an address, so many tokens of a script without spaces.
_LETTERS_OF_A_PIECE, _TOKENS_OF_A_PIECE = 24, 8


class Reading(NamedTuple):
    """The index tokens of a text, the language it is written in, and what of a date it may name."""

    tokens: tuple[str, ...]
    language: str
    dated: int


class _TooLong(Exception):
    """A piece is longer than words and addresses are, and does not come again."""


class _Read(NamedTuple):
    """What the pieces of a text come to: their tokens, how many words they are, how they lean, what of a date they are.

    And how much room is taken by all that is known.
    """

    tokens: tuple[str, ...]
    words: int
    leaning: int
    dated: int
    room: int

    @property
    def is_plain(self) -> bool:
        """Tell whether all words have a vote, and as many speak for the language at hand as for all others together.

        It has won then; where others have more, as seldom happens, votes are counted.
        """
        return self.words <= VOTING_WORDS and self.leaning >= 0


class _More(NamedTuple):
    """What a piece says besides its tokens.

    It leans to a language by as many of its voices as speak for it more than for others; it is as many words as stand
    alone in it, and counts as one if there is none.
    """

    leaning: int = 0
    words: int = 1
    dated: int = 0


_NO_MORE = _More()


class _Known(dict[str, tuple[str, ...]]):
    """The tokens of pieces, as a language has them; and of the few pieces that say more, what they say.

    Where there is a kernel it keeps them, and takes most pieces apart itself.
    """

    def __init__(self, latin: str, kernel: Kernel | None) -> None:
        super().__init__()
        self.latin = latin
        self.room = 0
        self._kernel = kernel
        self._more: dict[str, _More] = {}
        self._stop_words = STOP_WORDS.get(latin, frozenset())
        self._telling = frozenset(VOTERS.keys() | MONTH_OF.keys() | self._stop_words)
        self._pieces = None if kernel is None else kernel.pieces(self._stop_words, _leanings(latin), MONTH_OF)

    def read(self, composed: str) -> _Read:
        """Look the pieces of a composed text up, and work out those that are new."""
        if self._kernel is not None:
            read = _Read(*self._kernel.read(self._pieces, composed, self._told))
            self.room = read.room
            return read
        pieces = composed.split()
        tokens = tuple(chain.from_iterable([*map(self.__getitem__, pieces)]))
        more = [*filter(None, map(self._more.get, pieces))]
        words = len(pieces) + sum(each.words - 1 for each in more)
        dates = reduce(or_, [each.dated for each in more], 0)
        return _Read(tokens, words, sum(each.leaning for each in more), dates, self.room)

    def _told(self, plain: list[str], words: list[str], rest: list[str]) -> list[Told]:
        """Tell what new pieces say: plain words, and words of others, no more than their stems, made all at once."""
        for piece in rest:
            _check_length(piece)
        return [*stems([*plain, *words], self.latin), *map(self._said, rest)]

    def _said(self, piece: str) -> Told:
        tokens, more = self._worked_out(piece)
        return (tokens, *more)

    def __missing__(self, piece: str) -> tuple[str, ...]:
        _check_length(piece)
        tokens, more = self._worked_out(piece)
        if more != _NO_MORE:
            self._more[piece] = more
        self[piece] = tokens
        self.room += _room_for(piece, tokens)
        return tokens

    def _worked_out(self, piece: str) -> tuple[tuple[str, ...], _More]:
        """Return the tokens of a piece and what it says besides: of most by their words, of others by scanners."""
        if piece.isalpha() and piece.isascii() and piece.islower():
            tokens = () if piece in self._stop_words else (stem(piece, self.latin),)
            return tokens, self._looked_at(piece, (piece,)) if piece in self._telling else _NO_MORE
        if (words := self._words(piece)) is not None:
            return _tokens(words, self._stemmed(words)), _NO_MORE
        return content_of(piece, self.latin), self._looked_at(piece, standing_alone(piece))

    def _words(self, piece: str) -> tuple[str, ...] | None:
        """Return the words of a piece that no scanner need look at, the whole before its parts; None for others."""
        words = compound_words(piece) if len(piece) <= LONGEST_WORD else None
        if words is None or words == ():
            return words
        if len(words) == 1:
            return None if words[0] in self._telling or self._is_stopped(piece) else words
        whole, *parts = words
        return None if whole in self._stop_words else (whole, *(part for part in parts if part not in self._stop_words))

    def _is_stopped(self, piece: str) -> bool:
        """Tell whether a piece may be a function word with an apostrophe, as `let's`."""
        return "'" in piece and not self._telling.isdisjoint(_CONTRACTED.findall(piece.lower()))

    def _stemmed(self, words: Iterable[str]) -> dict[str, str]:
        """Return the stems of words, and all others as they are."""
        spoken = [*filter(str.isalpha, words)]
        return dict(zip(spoken, stems(spoken, self.latin), strict=True))

    def _looked_at(self, piece: str, words: tuple[str, ...]) -> _More:
        return _More(leaning(self.latin, voices_in(words)), max(1, len(words)), dated(piece))


def _check_length(piece: str) -> None:
    if len(piece) > LONGEST_WORD and (len(piece) > _LONGEST_ADDRESS or not piece.isascii() or piece.isalnum()):
        raise _TooLong


def _room_for(piece: str, tokens: Sequence[str]) -> int:
    """Return how many words a piece takes the room of that is kept."""
    by_letters = 1 if len(piece) <= LONGEST_WORD else len(piece) // _LETTERS_OF_A_PIECE
    return max(by_letters, len(tokens) // _TOKENS_OF_A_PIECE)


def _tokens(words: Sequence[str], stemmed: Mapping[str, str]) -> tuple[str, ...]:
    """Return the tokens of words: parts that are the whole again are none."""
    tokens = [stemmed.get(word, word) for word in words]
    return (*tokens[:1], *[token for token in tokens[1:] if token != tokens[0]])


_by_language: dict[tuple[str, bool], _Known] = {}
share(lambda: sum(known.room for known in [*_by_language.values()]), _MOST_PIECES)


def _leanings(latin: str) -> dict[str, int]:
    """Return by how much each word that votes speaks for a language more than for others."""
    return {voice: leaning(latin, (voice,)) for voice in VOTERS}


def _known(latin: str, kernel: Kernel | None) -> _Known:
    """Return what is known as a language has it; a new one where that is too much, for others may read the old one."""
    known = _by_language.get((latin, kernel is None))
    if known is None or known.room >= _MOST_PIECES:
        known = _by_language[latin, kernel is None] = _Known(latin, kernel)
    return known


def reading_of(text: str, default_language: str, kernel: Kernel | None = COMPILED) -> Reading:
    """Read a text."""
    composed, known = compose(clean(text).text), _known(default_language, kernel)
    try:
        read = known.read(composed)
    except _TooLong:
        return _read_around(known, text, composed)
    latin = default_language if read.is_plain else latin_language(composed, default_language)
    tokens = read.tokens if latin == default_language else ()
    dates = read.dated if _is_written_so(composed, text) else read.dated | dated_as_written(text)
    if dates == DOUBTFUL_MONTH and not has_digit(composed):  # "may" is a month only beside a number
        dates = 0
    return Reading(tokens or content_in(composed, latin), script_language(text) or latin, dates)


def _is_written_so(composed: str, text: str) -> bool:
    """Tell whether a composed text differs in no more than its dots and apostrophes from what is written."""
    return composed == text or composed == text.replace("…", "...").replace("’", "'")


def _read_around(known: _Known, text: str, composed: str) -> Reading:
    """Read a text with pieces that nobody would know again, as sums of files are: its words are looked up."""
    latin = latin_language(composed, known.latin)
    tokens = tuple(chain.from_iterable(_tokens_around(known, composed))) if latin == known.latin else ()
    return Reading(tokens or content_in(composed, latin), script_language(text) or latin, ANY_DATE)


def _tokens_around(known: _Known, composed: str) -> Iterator[tuple[str, ...]]:
    for is_short, pieces in groupby(composed.split(), lambda piece: len(piece) <= LONGEST_WORD):
        between = " ".join(pieces)
        yield known.read(between).tokens if is_short else content_of(between, known.latin)
