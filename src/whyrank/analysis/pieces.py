"""What the pieces of a text between two spaces say, each worked out once for all texts.

No word, no voice for a language and no name of a month goes on behind a space, so a text is read piece by piece, and
all that is asked of it in one look.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from ..memo import LONGEST_WORD, MOST_WORDS
from .datewords import MONTH_OF, has_digit, is_dated
from .languages import VOTERS, VOTING_WORDS, has_most, latin_language, script_language, standing_alone, voices_in
from .stems import stem
from .stopwords import STOP_WORDS
from .text import clean, compose
from .words import content_in, content_of


class Reading(NamedTuple):
    """The index tokens of a text, the language it is written in, and whether it may name a date."""

    tokens: tuple[str, ...]
    language: str
    may_hold_date: bool


class _Known(dict[str, tuple[str, ...]]):
    """The tokens of pieces, as a language has them; and of the few pieces that say more, what they say."""

    def __init__(self, latin: str) -> None:
        super().__init__()
        self.latin = latin
        self.voices: dict[str, tuple[str, ...]] = {}
        self.dated: set[str] = set()
        self.dated_beside_numbers: set[str] = set()
        self.of_several_words: set[str] = set()
        self._stop_words = STOP_WORDS.get(latin, frozenset())

    def __missing__(self, piece: str) -> tuple[str, ...]:
        if piece.isascii() and piece.isalpha() and piece.islower():
            content: tuple[str, ...] = () if piece in self._stop_words else (stem(piece, self.latin),)
            if piece in VOTERS or piece in MONTH_OF:
                self._look_at(piece, (piece,))
        else:
            content = content_of(piece, self.latin)
            self._look_at(piece, standing_alone(piece))
        self[piece] = content
        return content

    def _look_at(self, piece: str, words: tuple[str, ...]) -> None:
        if voices := voices_in(words):
            self.voices[piece] = tuple(voices)
        if len(words) > 1:
            self.of_several_words.add(piece)
        dated = is_dated(piece)
        if dated is not False:
            (self.dated if dated else self.dated_beside_numbers).add(piece)

    def may_hold_date(self, pieces: Sequence[str]) -> bool:
        """Tell whether a text of these pieces may name a date."""
        if not self.dated.isdisjoint(pieces):
            return True
        return not self.dated_beside_numbers.isdisjoint(pieces) and has_digit(" ".join(pieces))


_by_language: dict[str, _Known] = {}


def _known(latin: str) -> _Known:
    """Return what is known as a language has it; a new one where that is too much, for others may read the old one."""
    known = _by_language.get(latin)
    if known is None or len(known) + len(known.dated) >= MOST_WORDS:
        known = _by_language[latin] = _Known(latin)
    return known


def reading_of(text: str, default_language: str) -> Reading:
    """Read a text."""
    composed = compose(clean(text).text)
    pieces, known = composed.split(), _known(default_language)
    if len(composed) > LONGEST_WORD and max(map(len, pieces), default=0) > LONGEST_WORD:
        return _read_at_once(text, composed, default_language)  # nothing of it comes again
    contents = [*map(known.__getitem__, pieces)]
    latin = default_language if _is_plainly(known, pieces) else latin_language(composed, default_language)
    tokens = tuple(chain.from_iterable(contents)) if latin == default_language else ()
    language = script_language(text) or latin
    return Reading(tokens or content_in(composed, latin), language, known.may_hold_date(pieces))


def _read_at_once(text: str, composed: str, default_language: str) -> Reading:
    latin = latin_language(composed, default_language)
    return Reading(content_in(composed, latin), script_language(text) or latin, may_hold_date=True)


def _is_plainly(known: _Known, pieces: Sequence[str]) -> bool:
    """Tell whether a text is short, and nothing in it speaks more for another language than for the one at hand."""
    if len(pieces) > VOTING_WORDS or not known.of_several_words.isdisjoint(pieces):
        return False
    voices = chain.from_iterable(filter(None, map(known.voices.get, pieces)))
    return has_most(known.latin, [*voices])
