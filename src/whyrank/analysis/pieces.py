"""What the pieces of a text between two spaces say, each worked out once for all texts.

No word, no voice for a language and no name of a month goes on behind a space, so a text is read piece by piece, and
all that is asked of it in one look.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from typing import NamedTuple

from ..memo import LONGEST_WORD, MOST_WORDS
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
from .stems import stemming
from .stopwords import STOP_WORDS
from .text import clean, compose
from .words import content_in, content_of


class Reading(NamedTuple):
    """The index tokens of a text, the language it is written in, and whether it may name a date."""

    tokens: tuple[str, ...]
    language: str
    may_hold_date: bool


class _TooLong(Exception):
    """A piece is longer than words are: nothing of its text comes again."""


class _Known(dict[str, tuple[str, ...]]):
    """The tokens of pieces, as a language has them; and of the few pieces that say more, what they say.

    `leanings` has how many more voices of a piece speak for the language than for others, `odd` what is looked at again.
    """

    def __init__(self, latin: str) -> None:
        super().__init__()
        self.latin = latin
        self.leanings: dict[str, int] = {}
        self.odd: set[str] = set()
        self._voices: dict[str, tuple[str, ...]] = {}
        self._dated: set[str] = set()
        self._dated_beside_numbers: set[str] = set()
        self._of_several_words: set[str] = set()
        self._stop_words = STOP_WORDS.get(latin, frozenset())
        self._stem = stemming(latin)

    def __missing__(self, piece: str) -> tuple[str, ...]:
        if len(piece) > LONGEST_WORD:
            raise _TooLong
        if piece.isalpha() and piece.isascii() and piece.islower():
            content: tuple[str, ...] = () if piece in self._stop_words else (self._stem(piece),)
            if piece in _TELLING:
                self._look_at(piece, (piece,))
        else:
            content = content_of(piece, self.latin)
            self._look_at(piece, standing_alone(piece))
        self[piece] = content
        return content

    def _look_at(self, piece: str, words: tuple[str, ...]) -> None:
        if voices := voices_in(words):
            self._voices[piece] = tuple(voices)
            self.leanings[piece] = leaning(self.latin, voices)
        if len(words) > 1:
            self._of_several_words.add(piece)
        dated = is_dated(piece)
        if dated is not False:
            (self._dated if dated else self._dated_beside_numbers).add(piece)
        if len(words) > 1 or dated is not False:
            self.odd.add(piece)

    def may_hold_date(self, pieces: Sequence[str]) -> bool:
        """Tell whether a text of these pieces, some of them odd, may name a date."""
        if not self._dated.isdisjoint(pieces):
            return True
        return not self._dated_beside_numbers.isdisjoint(pieces) and has_digit(" ".join(pieces))

    def is_plainly(self, pieces: Sequence[str], has_odd: bool) -> bool:
        """Tell whether a text is short, and nothing in it speaks more for another language than for the one at hand."""
        if len(pieces) > VOTING_WORDS or (has_odd and not self._of_several_words.isdisjoint(pieces)):
            return False
        # As nearly always more speak for it than for all others together, nobody need be counted.
        if sum(map(self.leanings.get, pieces, repeat(0))) >= 0:
            return True
        return has_most(self.latin, [*chain.from_iterable(filter(None, map(self._voices.get, pieces)))])


_TELLING = VOTERS.keys() | MONTH_OF.keys()
_by_language: dict[str, _Known] = {}


def _known(latin: str) -> _Known:
    """Return what is known as a language has it; a new one where that is too much, for others may read the old one."""
    known = _by_language.get(latin)
    if known is None or len(known) + len(known.odd) >= MOST_WORDS:
        known = _by_language[latin] = _Known(latin)
    return known


def reading_of(text: str, default_language: str) -> Reading:
    """Read a text."""
    composed = compose(clean(text).text)
    pieces, known = composed.split(), _known(default_language)
    try:
        contents = [*map(known.__getitem__, pieces)]
    except _TooLong:
        return _read_at_once(text, composed, default_language)
    has_odd = not known.odd.isdisjoint(pieces)
    latin = default_language if known.is_plainly(pieces, has_odd) else latin_language(composed, default_language)
    tokens = tuple(chain.from_iterable(contents)) if latin == default_language else ()
    language = script_language(text) or latin
    return Reading(tokens or content_in(composed, latin), language, has_odd and known.may_hold_date(pieces))


def _read_at_once(text: str, composed: str, default_language: str) -> Reading:
    latin = latin_language(composed, default_language)
    return Reading(content_in(composed, latin), script_language(text) or latin, may_hold_date=True)
