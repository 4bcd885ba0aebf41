"""Codes in a text: what stands for one thing alone, as `ERR-4011`, `E47` or `INV-2024-0017` do.

Half of a code is another code, or none. So it is told narrowly: letters and at least two digits, in capitals or
letters first, no measure (`10GB`), no span (`5-year`), no compound (`IL-10-producing`), no address.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .entities import is_identifier
from .languages import DEFAULT_LANGUAGE, latin_language
from .patterns import pattern
from .readings import term_for
from .text import clean, compose
from .words import content_of, runs_in, tokens_of

_AROUND = "\"'“”„«»‹›()[]{}<>.,;:!?#`"  # signs that stand around a code and are none of it
_DIGIT = re.compile(r"\d")
_YEAR = r"(?:19|20)\d\d\b"

# Letters in capitals in front of digits, or one letter, or a few small ones in front of three digits that are no year,
# but may have one before them (`po-2024-0018`, and not `log-2024-05-18`).
_LETTERS_FIRST = pattern(
    r"(?:\p{Lu}{1,6}|\p{L})(?:[-_.]?[\p{Lu}\p{N}]+)+"
    rf"|\p{{Ll}}{{2,5}}(?:[-_.]?{_YEAR}(?=[-_.]))?(?:[-_.]?(?!{_YEAR})\d{{3,}})+"
)
# Digits first: a part number, in groups with signs between them.
_DIGITS_FIRST = pattern(r"\p{N}+[-_][\p{Lu}\p{N}]*\p{Lu}[\p{Lu}\p{N}]*(?:[-_][\p{Lu}\p{N}]+)+")
# `ERR 4011`, `ISO 9001`: an abbreviation and a number that is no year.
_APART = pattern(rf"(?<![\p{{L}}\p{{N}}_-])\p{{Lu}}{{2,6}} (?!{_YEAR})\p{{N}}{{2,}}(?![\p{{L}}\p{{N}}_.-])")
_BORDER = pattern(r"(?<=\p{L})(?=\p{N})|(?<=\p{N})(?=\p{L})|[ _]")
_PIECE = re.compile(r"[^\W\d_]+|\d+")
_JOINT = r"[\s._/‐–-]?"  # what may stand between two pieces of a code
_FEWEST_DIGITS = 2
_MANY_DIGITS = 3
_MOST_LETTERS = 32  # of a code; what is longer is a hash or a number of the universe, and told by its letters


class Code(NamedTuple):
    """A code as it was asked for, by what texts that hold it are found, and what the question asks of it word by word.

    It `stands_alone` where nothing but itself can be meant: not what is written apart, nor names that have a number
    (`COVID-19`, `GPT-3.5`), which others may leave away.
    """

    text: str
    term: str
    ways: tuple[tuple[str, ...], ...]  # terms that a text holds together if it holds the code
    tokens: frozenset[str]
    stands_alone: bool
    is_told_whole: bool  # by its words: none of its pieces is a word that texts are not asked for (`SO-2024`)

    def is_written_in(self, text: str) -> bool:
        """Tell whether a text says the code: its letters and numbers side by side, or a sign apart; one, or several."""
        pieces = _JOINT.join(re.escape(piece) for piece in _PIECE.findall(compose(self.text)))
        return re.search(rf"(?<![^\W_]){pieces}s?(?![^\W_])", compose(text), re.IGNORECASE) is not None


def codes_in(text: str, default_language: str = DEFAULT_LANGUAGE) -> tuple[Code, ...]:
    """Return the codes of a text, each once."""
    if not _DIGIT.search(text):
        return ()  # as in most questions
    composed = compose(clean(text).text)
    latin = latin_language(composed, default_language)
    apart = _APART.findall(composed)
    written = [*apart, *filter(_is_one_code, runs_in(_APART.sub(" ", composed)))]
    codes: dict[frozenset[str], Code] = {}
    for code in written:
        tokens = frozenset(tokens_of(code, latin))
        codes.setdefault(tokens, _code(code, tokens, latin))
    return tuple(codes.values())


def _code(code: str, tokens: frozenset[str], latin: str) -> Code:
    pieces = _PIECE.findall(code)
    term, plural = (term_for(_BORDER.sub("-", word), latin) for word in (code, f"{code}s"))
    parts = {tuple(dict.fromkeys(tokens_of(" ".join(cut), latin))) for cut in (pieces, re.split(r"[\W_]+", code))}
    digits = sum(map(len, filter(str.isdigit, pieces)))
    is_bare = digits >= _MANY_DIGITS or len("".join(pieces)) == digits + 1
    is_told_whole = all(content_of(piece, latin) for piece in pieces)
    return Code(code, term, ((term,), (plural,), *sorted(parts)), tokens, is_bare and " " not in code, is_told_whole)


def _is_one_code(run: str) -> bool:
    is_code = _LETTERS_FIRST.fullmatch(run) or _DIGITS_FIRST.fullmatch(run)
    return is_code is not None and len(_DIGIT.findall(run)) >= _FEWEST_DIGITS and len(run) <= _MOST_LETTERS


def is_code(text: str) -> bool:
    """Tell whether a text is nothing but codes in the widest sense: identifiers, and words that hold a digit."""
    words = [word.strip(_AROUND) for word in compose(text).split()]
    return bool(words) and all(is_identifier(word) or any(map(str.isdigit, word)) for word in words)
