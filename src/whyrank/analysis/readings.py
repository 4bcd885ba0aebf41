"""In which ways a text may write what a word or a phrase asks for, read as texts are.

An identifier stands in a text as one word or as its parts side by side: `night-shift` as `nightshift` or `night shift`.
Where a text writes it joined, both stand in the index, the whole before its parts; so inside a phrase all are tried,
and so is plain words' being joined where a phrase goes on to them: `late night shift` is found in `late night-shift`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations, product
from typing import NamedTuple

from ..expressions import several
from .patterns import pattern
from .text import clean, compose
from .words import bigrams, is_unspaced, run_tokens, runs_in, singular_of, spelled, spoken_words, word_token

MAX_READINGS = 64  # of a phrase; beyond three identifiers they are all read alike
MOST_JOINED = 3  # words that signs join to one: `up-to-date`; more are rare, and each reading is looked for
MOST_WORDS_WITH_JOINTS = 6  # of a phrase: seven readings more, and a millisecond; longer ones are quotations

Reading = tuple[str, ...]
_NUMBERED = pattern(r"(\p{L}+)(\p{N}+)")
_NUMBER = pattern(r"\p{N}+")
_NAME = pattern(r"\p{L}+")


def term_for(text: str, latin: str) -> str:
    """Return the term that a word or phrase is looked for by; nothing if it holds function words alone."""
    read = [word for word in _words(compose(clean(text).text), latin) if word.readings]
    words = [word.readings for word in read]
    label = " ".join(token for readings in words for token in readings[0])
    readings = chain(_combined(words), _with_joints(read, latin))
    found = list(dict.fromkeys(" ".join(chain.from_iterable(reading)) for reading in readings))
    return label if len(found) < 2 else several(label, found[:MAX_READINGS])


def _with_joints(words: Sequence[Word], latin: str) -> Iterator[Sequence[Reading]]:
    """Yield plain words as a text holds them that joins some: `late night shift` where `late night-shift` stands.

    What is joined from the first word on needs no reading of its own: its parts stand side by side behind the whole.
    """
    if len(words) <= MOST_WORDS_WITH_JOINTS and all(word.is_plain for word in words):
        said = [word.readings[0] for word in words]
        for start, end in combinations(range(1, len(words) + 1), 2):
            if 1 < end - start <= MOST_JOINED:
                whole = run_tokens("-".join(word.text for word in words[start:end]), latin)[0].text
                yield [*said[:start], (whole,), *said[start:]]


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


class Word(NamedTuple):
    """One word of a phrase, and how it may stand in an index, what it is called by first."""

    text: str
    readings: Sequence[Reading]

    @property
    def is_plain(self) -> bool:
        """Tell whether it can be written in one way alone."""
        return len(self.readings) == 1 and len(self.readings[0]) == 1 and not is_unspaced(self.text)


def _words(composed: str, latin: str) -> Iterator[Word]:
    """Yield each word with its readings."""
    runs = [run for run in runs_in(composed) if not _is_stop_word(run, latin)]
    words = [word for run in runs for word in ([run] if is_unspaced(run) else spoken_words(spelled(run)))]
    for word in words:
        if is_unspaced(word):
            yield Word(word, [tuple(token.text for token in bigrams(word))])
        else:
            yield Word(word, _readings(word, latin, is_alone=len(words) == 1))


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
