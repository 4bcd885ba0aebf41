"""What the pieces of a text between two spaces say, each worked out once for all texts.

No word, no voice for a language and no name of a month goes on behind a space, so a text is read piece by piece, and
all that is asked of it in one look.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, repeat
from typing import NamedTuple

from ..kernel import COMPILED, Kernel, Told
from ..memo import LONGEST_WORD
from .compounds import compound_words
from .datewords import MONTH_OF, has_digit, is_dated
from .languages import (
    VOTERS,
    VOTING_WORDS,
    has_most,
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
_LONGEST_ADDRESS, _LETTERS_OF_A_PIECE = 256, 24  # an address takes the room of one word for so many letters


class Reading(NamedTuple):
    """The index tokens of a text, the language it is written in, and whether it may name a date."""

    tokens: tuple[str, ...]
    language: str
    may_hold_date: bool


class _TooLong(Exception):
    """A piece is longer than words and addresses are, and does not come again."""


class _Read(NamedTuple):
    """What the pieces of a text come to: their tokens, how many there are, how they lean, and whether one is odd."""

    tokens: tuple[str, ...]
    pieces: int
    leaning: int
    has_odd: bool


class _Known(dict[str, tuple[str, ...]]):
    """The tokens of pieces, as a language has them; and of the few pieces that say more, what they say.

    A piece leans to the language by as many of its voices as speak for it more than for others; one that is odd is
    looked at again. Where there is a kernel it keeps the tokens.
    """

    def __init__(self, latin: str, kernel: Kernel | None) -> None:
        super().__init__()
        self.latin = latin
        self.count = 0
        self._kernel = kernel
        self._pieces = None if kernel is None else kernel.pieces()
        self._leanings: dict[str, int] = {}
        self._odd: set[str] = set()
        self._voices: dict[str, tuple[str, ...]] = {}
        self._dated: set[str] = set()
        self._dated_beside_numbers: set[str] = set()
        self._more_words: dict[str, int] = {}
        self._stop_words = STOP_WORDS.get(latin, frozenset())
        self._telling = frozenset(VOTERS.keys() | MONTH_OF.keys() | self._stop_words)

    def read(self, composed: str) -> _Read:
        """Look the pieces of a composed text up, and work out those that are new."""
        if self._kernel is not None:
            return _Read(*self._kernel.read(self._pieces, composed, self._told))
        pieces = composed.split()
        tokens = tuple(chain.from_iterable([*map(self.__getitem__, pieces)]))
        leaning = sum(map(self._leanings.get, pieces, repeat(0)))
        return _Read(tokens, len(pieces), leaning, not self._odd.isdisjoint(pieces))

    def _told(self, plain: list[str], rest: list[str]) -> list[Told]:
        """Tell what new pieces say: plain words, stemmed together, say no more than their stems."""
        self.count += sum(map(_room_for, chain(plain, rest)))
        told: list[Told] = [*stems(plain, self.latin)]
        for piece in self._telling.intersection(plain):
            told[plain.index(piece)] = self._said(piece)
        return told + self._told_of_others(rest) if rest else told

    def _told_of_others(self, rest: list[str]) -> list[Told]:
        """Tell the same of other pieces, each once: of those that need no scanner by the stems of their words."""
        words = {piece: self._words(piece) for piece in rest}
        stemmed = self._stemmed(chain.from_iterable(filter(None, words.values())))
        said = {
            piece: self._said(piece) if found is None else _told_of(_tokens(found, stemmed))
            for piece, found in words.items()
        }
        return [*map(said.__getitem__, rest)]

    def _said(self, piece: str) -> Told:
        return self._content(piece), self._leanings.get(piece, 0), piece in self._odd

    def __missing__(self, piece: str) -> tuple[str, ...]:
        self.count += _room_for(piece)
        words = self._words(piece)
        content = self[piece] = self._content(piece) if words is None else _tokens(words, self._stemmed(words))
        return content

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

    def _content(self, piece: str) -> tuple[str, ...]:
        if not (piece.isalpha() and piece.isascii() and piece.islower()):
            self._look_at(piece, standing_alone(piece))
            return content_of(piece, self.latin)
        if piece in self._telling:
            self._look_at(piece, (piece,))
        return () if piece in self._stop_words else (stem(piece, self.latin),)

    def _look_at(self, piece: str, words: tuple[str, ...]) -> None:
        if voices := voices_in(words):
            self._voices[piece] = tuple(voices)
            self._leanings[piece] = leaning(self.latin, voices)
        if len(words) > 1:
            self._more_words[piece] = len(words) - 1
        dated = is_dated(piece)
        if dated is not False:
            (self._dated if dated else self._dated_beside_numbers).add(piece)
        if len(words) > 1 or dated is not False:
            self._odd.add(piece)

    def may_hold_date(self, composed: str) -> bool:
        """Tell whether a text with an odd piece may name a date."""
        pieces = composed.split()
        if not self._dated.isdisjoint(pieces):
            return True
        return not self._dated_beside_numbers.isdisjoint(pieces) and has_digit(composed)

    def is_plainly(self, composed: str, read: _Read) -> bool:
        """Tell whether a text is short, and nothing in it speaks more for another language than for the one at hand."""
        more = sum(map(self._more_words.get, composed.split(), repeat(0))) if read.has_odd else 0
        if read.pieces + more > VOTING_WORDS:
            return False
        # As nearly always more speak for it than for all others together, nobody need be counted.
        if read.leaning >= 0:
            return True
        return has_most(self.latin, [*chain.from_iterable(filter(None, map(self._voices.get, composed.split())))])


def _room_for(piece: str) -> int:
    """Return how many short pieces one takes the room of that is kept."""
    if len(piece) <= LONGEST_WORD:
        return 1
    if len(piece) > _LONGEST_ADDRESS or not piece.isascii() or piece.isalnum():
        raise _TooLong
    return len(piece) // _LETTERS_OF_A_PIECE


def _tokens(words: Sequence[str], stemmed: Mapping[str, str]) -> tuple[str, ...]:
    """Return the tokens of words: parts that are the whole again are none."""
    tokens = [stemmed.get(word, word) for word in words]
    return (*tokens[:1], *[token for token in tokens[1:] if token != tokens[0]])


def _told_of(tokens: tuple[str, ...]) -> Told:
    return tokens[0] if len(tokens) == 1 else (tokens, 0, False)


_by_language: dict[tuple[str, bool], _Known] = {}


def _known(latin: str, kernel: Kernel | None) -> _Known:
    """Return what is known as a language has it; a new one where that is too much, for others may read the old one."""
    known = _by_language.get((latin, kernel is None))
    if known is None or known.count >= _MOST_PIECES:
        known = _by_language[latin, kernel is None] = _Known(latin, kernel)
    return known


def reading_of(text: str, default_language: str, kernel: Kernel | None = COMPILED) -> Reading:
    """Read a text."""
    composed, known = compose(clean(text).text), _known(default_language, kernel)
    try:
        read = known.read(composed)
    except _TooLong:
        return _read_around(known, text, composed)
    latin = default_language if known.is_plainly(composed, read) else latin_language(composed, default_language)
    tokens = read.tokens if latin == default_language else ()
    language = script_language(text) or latin
    return Reading(tokens or content_in(composed, latin), language, read.has_odd and known.may_hold_date(composed))


def _read_around(known: _Known, text: str, composed: str) -> Reading:
    """Read a text with pieces that nobody would know again, as sums of files are: its words are looked up."""
    latin = latin_language(composed, known.latin)
    tokens = tuple(chain.from_iterable(_tokens_around(known, composed))) if latin == known.latin else ()
    return Reading(tokens or content_in(composed, latin), script_language(text) or latin, may_hold_date=True)


def _tokens_around(known: _Known, composed: str) -> Iterator[tuple[str, ...]]:
    for is_short, pieces in groupby(composed.split(), lambda piece: len(piece) <= LONGEST_WORD):
        between = " ".join(pieces)
        yield known.read(between).tokens if is_short else content_of(between, known.latin)
