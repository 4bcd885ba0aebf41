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
from .words import runs_in, tokens_of

_AROUND = "\"'“”„«»‹›()[]{}<>.,;:!?#`"  # signs that stand around a code and are none of it
_DIGIT = re.compile(r"\d")
_YEAR = r"(?:19|20)\d\d\b"

# Letters in capitals in front of digits, or one letter, or a few small ones in front of three digits that are no year.
_LETTERS_FIRST = pattern(
    rf"(?:\p{{Lu}}{{1,6}}|\p{{L}})(?:[-_.]?[\p{{Lu}}\p{{N}}]+)+|\p{{Ll}}{{2,5}}(?:[-_.]?(?!{_YEAR})\d{{3,}})+"
)
# Digits first: a part number, in groups with signs between them.
_DIGITS_FIRST = pattern(r"\p{N}+[-_][\p{Lu}\p{N}]*\p{Lu}[\p{Lu}\p{N}]*(?:[-_][\p{Lu}\p{N}]+)+")
# `ERR 4011`, `ISO 9001`: an abbreviation and a number that is no year.
_APART = pattern(rf"(?<![\p{{L}}\p{{N}}_-])\p{{Lu}}{{2,6}} (?!{_YEAR})\p{{N}}{{2,}}(?![\p{{L}}\p{{N}}_.-])")
_BORDER = pattern(r"(?<=\p{L})(?=\p{N})|(?<=\p{N})(?=\p{L})|[ _]")
_FEWEST_DIGITS = 2


class Code(NamedTuple):
    """A code as it was asked for, the terms a text may hold it by, and what the question asks of it word by word."""

    text: str
    term: str
    tokens: frozenset[str]


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
        codes.setdefault(tokens, Code(code, term_for(_BORDER.sub("-", code), latin), tokens))
    return tuple(codes.values())


def _is_one_code(run: str) -> bool:
    is_code = _LETTERS_FIRST.fullmatch(run) or _DIGITS_FIRST.fullmatch(run)
    return is_code is not None and len(_DIGIT.findall(run)) >= _FEWEST_DIGITS


def is_code(text: str) -> bool:
    """Tell whether a text is nothing but codes in the widest sense: identifiers, and words that hold a digit."""
    words = [word.strip(_AROUND) for word in compose(text).split()]
    return bool(words) and all(is_identifier(word) or any(map(str.isdigit, word)) for word in words)
