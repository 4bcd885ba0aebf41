"""Entities, identifiers and speakers in texts and questions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ..types.names import NameProbe
from .dates import SIGN
from .language import DEFAULT_LANGUAGE, latin_language
from .names import name_key, windows_by_key
from .normalize import clean, compose, fold, pattern
from .query_terms import term_for
from .stopwords import STOP_WORDS
from .tokenizer import content_of, runs_in, tokens_of

_CAPITALISED = pattern(r"(?<![\p{L}\p{M}\p{N}_])\p{Lu}[\p{L}\p{M}\p{N}'-]*(?:\s+\p{Lu}[\p{L}\p{M}\p{N}'-]*)*")
_IDENTIFIER = pattern(
    r"\b(?:[\p{L}\p{N}]+(?:[_./:\\-][\p{L}\p{N}]+)+|[\p{Ll}\p{N}]+\p{Lu}[\p{L}\p{N}]*|\p{Lu}\p{Ll}+\p{Lu}[\p{L}\p{N}]*)"
)
# The same two for pure ASCII.
_ASCII_CAPITALISED = re.compile(r"(?<![A-Za-z0-9_])[A-Z][A-Za-z0-9'-]*(?:\s+[A-Z][A-Za-z0-9'-]*)*", re.ASCII)
_ASCII_IDENTIFIER = re.compile(
    r"\b(?:[A-Za-z0-9]+(?:[_./:\\-][A-Za-z0-9]+)+|[a-z0-9]+[A-Z][A-Za-z0-9]*|[A-Z][a-z]+[A-Z][A-Za-z0-9]*)", re.ASCII
)
# No space, and a sign that prose does not put inside words, or a capital in the middle.
_WHOLE_IDENTIFIER = pattern(
    r"(?=\S*[\p{L}\p{N}])\S*(?:[\p{L}\p{N}][_./:\\-]+[\p{L}\p{N}]|[~/\\][\p{L}\p{N}]|\p{Ll}\p{Lu}|\p{L}_|_\p{L}|\(\))\S*"
)
_FUNCTION_WORDS = frozenset().union(*STOP_WORDS.values())


def entities_in(text: str) -> tuple[str, ...]:
    """Return the entities a text names, in order of appearance, each once."""
    composed = compose(text)
    is_ascii = composed.isascii()
    identifiers = (_ASCII_IDENTIFIER if is_ascii else _IDENTIFIER).finditer(composed)
    spans = [(match.start(), match.group()) for match in identifiers]
    names = (_ASCII_CAPITALISED if is_ascii else _CAPITALISED).finditer(composed)
    capitalised = ((match.start(), _without_stops(match.group())) for match in names)
    spans += [(start, span) for start, span in capitalised if span]
    found: dict[str, str] = {}
    for _, span in sorted(spans):
        found.setdefault(name_key(span), span)
    return tuple(found.values())


def plain_entities(text: str, words: Sequence[str]) -> tuple[str, ...]:
    """Return the same for a text of plain words: none without capitals, a first function word aside."""
    first, *others = words
    is_named = not "".join(others).islower() if others else False
    if is_named or not (first.islower() or fold(first) in _FUNCTION_WORDS):
        return entities_in(text)
    return ()


def is_identifier(text: str) -> bool:
    """Return whether a text is one identifier: a path, an address, a version, a name in code."""
    whole = compose(text.strip())
    if " " in whole or (whole.isascii() and whole.isalnum() and whole[1:] == whole[1:].lower()):
        return False  # as most are: two words, or one without a sign or a capital in it
    return bool(_WHOLE_IDENTIFIER.fullmatch(whole))


def _without_stops(span: str) -> str:
    """Drop function words at the beginning, which are capitalised only because a sentence starts there."""
    words = span.split()
    while words and fold(words[0]) in _FUNCTION_WORDS:
        words = words[1:]
    return " ".join(words)


_AROUND = "\"'“”„«»‹›()[]{}<>.,;:!?#`"  # characters around a code that are not part of it
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
_JOINT = r"[\s._/‐–-]?"  # the separator allowed between two pieces of a code
_FEWEST_DIGITS = 2
_MANY_DIGITS = 3
_MOST_LETTERS = 32  # of a code; a longer one is a hash or a number of the universe, and identified by its letters


class Code(NamedTuple):
    """Code of a query: its text, the terms that find texts that hold it, and its tokens in the query.

    It `stands_alone` if nothing but the code itself can be meant: not a code written apart, nor a name with a number
    (`COVID-19`, `GPT-3.5`), which other texts may omit.
    """

    text: str
    term: str
    ways: tuple[tuple[str, ...], ...]  # terms that a text holds together if it holds the code
    tokens: frozenset[str]
    stands_alone: bool
    is_told_whole: bool  # by its words: none of its pieces is a word left out of queries (`SO-2024`)

    def is_written_in(self, text: str) -> bool:
        """Return whether a text holds the code: pieces adjacent or one sign apart, also in the plural."""
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
    """Return whether a text is nothing but codes in the widest sense: identifiers, words with a digit."""
    words = [word.strip(_AROUND) for word in compose(text).split()]
    return bool(words) and all(is_identifier(word) or any(map(str.isdigit, word)) for word in words)


BY = f"by{SIGN}"  # how the mark of a speaker begins
MAX_NAME_WORDS = 3  # people are called by one to three words


def speaker_mark(name: str) -> tuple[str, ...]:
    """Return the mark of a speaker; nothing for a name without letters."""
    key = name_key(name)
    return (f"{BY}{key}",) if key else ()


def asked_speakers(probe: NameProbe) -> tuple[str, ...]:
    """Return the marks of all speakers that the words of a query could name."""
    keys = [key for key, window in windows_by_key(probe).items() if key and len(window) <= MAX_NAME_WORDS]
    # One word alone has no windows.
    return tuple([BY + key for key in keys or [probe.key] if key])


def is_speaker_mark(term: str) -> bool:
    """Return whether a mark is a speaker's, not a date word."""
    return term.startswith(BY)


def speaker_of(mark: str) -> str:
    """Return the speaker key of a mark."""
    return mark.removeprefix(BY)
