"""How a text is spelled for a table of static vectors, which knows tokens by their letters alone."""

from __future__ import annotations

from collections.abc import Iterator

from ..analysis.patterns import pattern
from ..kernel import COMPILED, Kernel

# Signs that only join words, and ends of lines: what stands on both sides are words of their own.
_JOINERS = str.maketrans(dict.fromkeys("-_/›\n", " "))
# A word with small letters and capitals; not beside a digit, where capitals are part of a sign (`TGFb1`).
_MIXED = pattern(r"(?<![\p{Lu}\p{Ll}\p{N}])(?>(?:\p{Lu}+\p{Ll}|\p{Ll}+\p{Lu})[\p{Lu}\p{Ll}]*)(?!\p{N})")


def plainly_spelled(text: str) -> str:
    """Return a text without what changes its tokens but not what it says: capitals, joiners, an echo.

    `Invoice` and `invoice` are two tokens, `GitHub` is two and `github` is one, and `tea-pot` has one for its hyphen;
    only what has nothing but capitals (`API`, `US`) keeps them. What is called `Tea Pot`, and on the next line
    `tea-pot`, is called so once: in a mean of tokens twice would weigh twice.
    """
    first, _, rest = text.partition("\n")
    second, _, others = rest.partition("\n")
    return spelled(f"{first}\n{others}" if second and _is_echo(second, first) else text)


def _is_echo(line: str, before: str) -> bool:
    """Tell whether a line has no word but some of the line before; most have another word to begin with."""
    first = next(_words(line), "")
    return first in before.casefold() and frozenset(_words(before)).issuperset(_words(line))


def _words(line: str) -> Iterator[str]:
    return (word for piece in line.translate(_JOINERS).split() for word in _small(piece).casefold().split())


def spelled(text: str, kernel: Kernel | None = COMPILED) -> str:
    """Return a text without capitals and joiners, where they say nothing."""
    if kernel is not None and (found := kernel.spelled(text)) is not None:
        return found
    # Most words are small already.
    return " ".join([word if word.islower() else _small(word) for word in text.translate(_JOINERS).split()])


def _small(word: str) -> str:
    if word.islower() or word.isupper():  # as most words are, and acronyms with the signs around them
        return word
    return word.lower() if word.isascii() and word.isalpha() else _MIXED.sub(lambda found: found.group().lower(), word)
