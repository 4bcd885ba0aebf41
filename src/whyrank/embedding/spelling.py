"""How a text is spelled for a table of static vectors, which knows tokens by their letters alone."""

from __future__ import annotations

import regex

# Signs that only join words, and ends of lines: what stands on both sides are words of their own.
_JOINERS = str.maketrans(dict.fromkeys("-_/›\n", " "))
# A word with nothing but a first capital. `GitHub`, `API` and `I` mean something by theirs.
_CAPITALISED = regex.compile(r"\b\p{Lu}\p{Ll}+\b")


def plainly_spelled(text: str) -> str:
    """Return a text without what changes its tokens but not what it says: first capitals, joiners, an echo.

    `Invoice` and `invoice` are two tokens, and `tea-pot` has a third for its hyphen. What is called `Tea Pot`, and on
    the next line `tea-pot`, is called so once: in a mean of tokens twice would weigh twice.
    """
    first, _, rest = text.partition("\n")
    second, _, others = rest.partition("\n")
    is_echo = second != "" and _words(second) <= _words(first)
    return _spelled(f"{first}\n{others if is_echo else rest}")


def _words(line: str) -> frozenset[str]:
    return frozenset(_spelled(line).casefold().split())


def _spelled(text: str) -> str:
    apart = " ".join(text.translate(_JOINERS).split())
    return _CAPITALISED.sub(lambda word: word.group().lower(), apart)
