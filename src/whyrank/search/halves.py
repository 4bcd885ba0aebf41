"""Questions made of the store's own sentences: half of one and half of another.

A whole sentence finds itself word for word, and no question is put so. Half of what such a question says stands in a
memory, the other half in another one: about as much as a real question shares with its answer.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

import regex

from ..analysis.languages import language_of
from ..analysis.text import UNSPACED
from ..analysis.words import all_tokens

WORDS_OF_EACH = 3  # a question has about six content words
_SEED = 1
_SENTENCES_LOOKED_AT = 20  # of one memory: a long one says no more about the store than a short one

_SENTENCE_END = regex.compile(r"(?<=[.!?…])\s+|\n+|(?<=[。！？])")
# Where words are not divided, two letters are about a word.
_WORD = regex.compile(rf"(?V1)[{UNSPACED}]{{1,2}}|[[\p{{L}}\p{{M}}\p{{N}}_]--[{UNSPACED}]]+")

Words = Sequence[str]


def halved_questions(texts: Iterable[str], count: int, language: str) -> list[str]:
    """Return questions of the texts' own words; the same texts in the same order give the same questions."""
    choice = random.Random(_SEED)
    said = [sentences for text in texts if (sentences := list(_sentences(text, language)))]
    if len(said) < 2:
        return []
    return [_question(said, number % len(said), choice) for number in range(count)]


def _question(said: Sequence[Sequence[Words]], number: int, choice: random.Random) -> str:
    other = (number + choice.randrange(1, len(said))) % len(said)
    halves = (choice.sample(choice.choice(said[place]), WORDS_OF_EACH) for place in (number, other))
    words = [word for half in halves for word in half]
    choice.shuffle(words)
    return " ".join(words)


def _sentences(text: str, language: str) -> Iterator[Words]:
    """Yield the content words of each sentence that has enough of them."""
    for sentence in _SENTENCE_END.split(text, maxsplit=_SENTENCES_LOOKED_AT)[:_SENTENCES_LOOKED_AT]:
        words = _content_words(sentence, language)
        if len(words) >= WORDS_OF_EACH:
            yield words


def _content_words(sentence: str, language: str) -> Words:
    spoken = language_of(sentence, language)
    words = dict.fromkeys(_WORD.findall(sentence))
    return [word for word in words if any(not token.is_stop_word for token in all_tokens(word, spoken))]
