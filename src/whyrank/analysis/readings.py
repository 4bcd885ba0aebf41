"""In which ways a text may write what a word or a phrase asks for, read as texts are.

An identifier stands in a text as one word or as its parts side by side: `night-shift` as `nightshift` or `night shift`.
Where a text writes it joined, both stand in the index, the whole before its parts; so inside a phrase all are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, product

import regex

from ..expressions import several
from .text import clean, compose
from .words import bigrams, is_unspaced, run_tokens, runs_in, singular_of, spelled, spoken_words, word_token

MAX_READINGS = 64  # of a phrase; beyond three identifiers they are all read alike

Reading = tuple[str, ...]
_NUMBERED = regex.compile(r"(\p{L}+)(\p{N}+)")
_NUMBER = regex.compile(r"\p{N}+")
_NAME = regex.compile(r"\p{L}+")


def term_for(text: str, latin: str) -> str:
    """Return the term that a word or phrase is looked for by; nothing if it holds function words alone."""
    words = [readings for readings in _words(compose(clean(text).text), latin) if readings]
    label = " ".join(token for readings in words for token in readings[0])
    found = list(dict.fromkeys(" ".join(chain.from_iterable(reading)) for reading in _combined(words)))
    return label if len(found) < 2 else several(label, found)


def _combined(words: Sequence[Sequence[Reading]]) -> Iterator[Sequence[Reading]]:
    """Yield the readings of several words side by side; of too many, those that read all words alike."""
    count = 1
    for readings in words:
        count *= len(readings)
    if count <= MAX_READINGS:
        yield from product(*words)
        return
    for number in range(max(map(len, words))):
        yield [readings[min(number, len(readings) - 1)] for readings in words]


def _words(composed: str, latin: str) -> Iterator[Sequence[Reading]]:
    """Yield the readings of each word, what it is called by first."""
    runs = [run for run in runs_in(composed) if not _is_stop_word(run, latin)]
    words = [word for run in runs for word in ([run] if is_unspaced(run) else spoken_words(spelled(run)))]
    for word in words:
        if is_unspaced(word):
            yield [tuple(token.text for token in bigrams(word))]
        else:
            yield _readings(word, latin, is_alone=len(words) == 1)


def _is_stop_word(run: str, latin: str) -> bool:
    """Tell whether a run is a function word as a whole: `don't` is one, though it is spoken as two."""
    return all(token.is_stop_word for token in run_tokens(run, latin)) and not is_unspaced(run)


def _readings(word: str, latin: str, is_alone: bool) -> list[Reading]:
    """Return how one word may stand in an index."""
    tokens = run_tokens(word, latin)
    content = tuple(token.text for token in tokens if not token.is_stop_word)
    if len(tokens) < 2 or not content:
        return [content] if content else []
    whole = () if tokens[0].is_stop_word else content[:1]
    parts = content[len(whole) :]
    singular = singular_of(word, latin)
    if singular is not None:
        apart = _readings(singular, latin, is_alone=True)
    else:
        apart = [some for some in _with_numbers(parts, latin) if len(some) > 1]
    # What stands alone is found by its whole wherever that stands before its parts.
    together = [] if is_alone or not whole else [whole + some for some in (parts, *apart)]
    return list(dict.fromkeys([*([whole] if whole else []), *apart, *together])) or [content]


def _with_numbers(parts: Reading, latin: str) -> Iterator[Reading]:
    """Yield parts as they are, and with numbers apart from the names before them, and joined to these."""
    yield parts
    apart: list[str] = []
    for part in parts:
        numbered = _NUMBERED.fullmatch(part)
        apart += [word_token(numbered[1], latin).text, numbered[2]] if numbered else [part]
    yield tuple(apart)
    joined: list[str] = []
    for part in parts:
        if joined and _NUMBER.fullmatch(part) and _NAME.fullmatch(joined[-1]):
            joined[-1] += part
        else:
            joined.append(part)
    yield tuple(joined)
