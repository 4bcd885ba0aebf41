"""Entities by rule: capitalised spans and identifiers; the search adds the names the store knows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .names import name_key
from .patterns import pattern
from .stopwords import STOP_WORDS
from .text import compose, fold

_CAPITALISED = pattern(r"(?<![\p{L}\p{M}\p{N}_])\p{Lu}[\p{L}\p{M}\p{N}'-]*(?:\s+\p{Lu}[\p{L}\p{M}\p{N}'-]*)*")
_IDENTIFIER = pattern(
    r"\b(?:[\p{L}\p{N}]+(?:[_./:\\-][\p{L}\p{N}]+)+|[\p{Ll}\p{N}]+\p{Lu}[\p{L}\p{N}]*|\p{Lu}\p{Ll}+\p{Lu}[\p{L}\p{N}]*)"
)
# The same two where no other letters stand.
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
    """Return the same of a text of plain words: none without a capital, but for a function word that begins it."""
    first, *others = words
    is_named = not "".join(others).islower() if others else False
    if is_named or not (first.islower() or fold(first) in _FUNCTION_WORDS):
        return entities_in(text)
    return ()


def is_identifier(text: str) -> bool:
    """Tell whether a text is one identifier: a path, an address, a version, a name in code."""
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
