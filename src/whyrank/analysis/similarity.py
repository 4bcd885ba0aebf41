"""Check that two near texts agree in numbers, names and negations."""

from __future__ import annotations

import re

from .tokenizer import tokens_of

_NUMBER = re.compile(r"\d+")
# Words that turn a sentence round, in the languages whose stop words are known here; all of them are short and common.
_NEGATIONS = frozenset(
    [
        "no",
        "not",
        "never",
        "none",
        "nothing",
        "nobody",
        "neither",
        "nor",
        "without",
        "cannot",
        "nicht",
        "kein",
        "keine",
        "keinen",
        "nie",
        "niemals",
        "ohne",
        "ne",
        "pas",
        "jamais",
        "sans",
        "non",
        "mai",
        "senza",
        "nunca",
        "sin",
        "nem",
        "não",
        "sem",
        "niet",
        "geen",
        "nooit",
        "zonder",
        "inte",
        "ingen",
        "aldrig",
        "utan",
        "не",
        "ни",
        "нет",
        "никогда",
        "без",
    ]
)
_WORD = re.compile(r"[^\W\d_]+(?:'t\b)?")


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
    words = _WORD.findall(text.casefold().replace("\u2019", "'"))
    return sum(word in _NEGATIONS or word.endswith("n't") for word in words)


def _shared(text: str, other: str) -> list[str]:
    """Return the words of a text that the other also has, in the order of their first occurrence."""
    known = set(tokens_of(other))
    return [token for token in dict.fromkeys(tokens_of(text)) if token in known]
