"""From texts to postings: which term stands in which memory, how often, and what follows it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....caches import share
from ....kernel import COMPILED, Kernel
from ....memo import MOST_WORDS, Memo
from ...fields import DATES, GRAMS, WORDS, Field, grams_of

MAX_FREQUENCY = 255  # what a byte holds; more of the same word changes no score by a thousandth
INDEXED = (WORDS, GRAMS, DATES)  # pairs are read off the words' followers


class Text(NamedTuple):
    """A text to be inverted: its number, its tokens, whether the letters inside them count, and its marks."""

    number: int
    tokens: Sequence[str]
    letters: bool = False
    marks: Sequence[str] = ()


class Inverted(NamedTuple):
    """Postings by ascending key, then number: how often, and for words the follower of every occurrence."""

    keys: NDArray[np.int64]
    numbers: NDArray[np.int64]
    frequencies: NDArray[np.uint8]
    followers: NDArray[np.uint32]

    @property
    def ends(self) -> NDArray[np.int64]:
        """Return where the followers of each posting end."""
        return np.cumsum(self.frequencies, dtype=np.int64)


def key_of(term: str) -> int:
    """Return the key of a term: 64 bits of a hash, so that a million terms meet by chance once in a million stores."""
    return _KEYS[term]


def _key(term: str) -> int:
    digest = hashlib.blake2b(term.encode("utf-8", errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _run_keys(token: str) -> tuple[int, ...]:
    return tuple(map(key_of, grams_of((token,))))


_KEYS, _RUN_KEYS = Memo(_key), Memo(_run_keys)
share(lambda: len(_KEYS) + len(_RUN_KEYS), 2 * MOST_WORDS)


def follower_of(term: str) -> int:
    """Return how a term is remembered behind another: the lower half of its key; 0 stands for the end of a text."""
    return key_of(term) & 0xFFFFFFFF


def invert(texts: Sequence[Text], kernel: Kernel | None = COMPILED) -> dict[Field, Inverted]:
    """Invert texts given by ascending number."""
    return inverted(texts, kernel)[0]


def inverted(texts: Sequence[Text], kernel: Kernel | None = COMPILED) -> tuple[dict[Field, Inverted], Collection[str]]:
    """Do the same, and return all their words too."""
    postings, words = _words_by(kernel, texts) if kernel is not None else (_words(texts), words_in(texts))
    marks = [(key_of(mark), text.number) for text in texts for mark in text.marks]
    return {
        WORDS: postings,
        GRAMS: _gathered(*_letters([text for text in texts if text.letters])),
        DATES: _gathered(*np.array(marks, np.int64).reshape(-1, 2).T),
    }, words


def words_in(texts: Iterable[Text]) -> set[str]:
    """Return the words of some texts."""
    return set().union(*(text.tokens for text in texts))


def _words_by(kernel: Kernel, texts: Sequence[Text]) -> tuple[Inverted, Collection[str]]:
    numbers = np.array([text.number for text in texts], np.int64)
    try:
        *parts, words = kernel.inverted([text.tokens for text in texts], numbers)
    except UnicodeEncodeError:  # half a character, which no gate lets through
        return _words(texts), words_in(texts)
    keys, holders, frequencies, followers = parts
    postings = Inverted(
        np.frombuffer(keys, np.int64),
        np.frombuffer(holders, np.int64),
        np.frombuffer(frequencies, np.uint8),
        np.frombuffer(followers, np.uint32),
    )
    return postings, words.decode().split(" ") if words else ()


def _words(texts: Sequence[Text]) -> Inverted:
    lengths = [len(text.tokens) for text in texts]
    tokens = chain.from_iterable([text.tokens for text in texts])
    keys = np.fromiter(map(_KEYS.__getitem__, tokens), np.int64, sum(lengths))
    holders = np.repeat(np.array([text.number for text in texts], np.int64), lengths)
    return _gathered(keys, holders, _followers(keys, lengths))


def _followers(keys: NDArray[np.int64], lengths: Sequence[int]) -> NDArray[np.uint32]:
    """Return what follows each occurrence in its text."""
    followers = np.zeros(len(keys), np.uint32)
    followers[:-1] = (keys[1:] & 0xFFFFFFFF).astype(np.uint32)
    counts = np.array(lengths, np.int64)
    last = np.cumsum(counts) - 1
    followers[last[counts > 0]] = 0
    return followers


def _letters(texts: Sequence[Text]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the keys of the letter runs of every token, and who holds it."""
    runs = [[*chain.from_iterable(map(_RUN_KEYS.__getitem__, text.tokens))] for text in texts]
    keys = np.fromiter(chain.from_iterable(runs), np.int64, sum(map(len, runs)))
    return keys, np.repeat(np.array([text.number for text in texts], np.int64), [len(run) for run in runs])


def spread(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return start, start + 1, … for each start, as many as it counts."""
    ends = np.cumsum(counts)
    return np.repeat(starts - ends + counts, counts) + np.arange(ends[-1] if len(ends) else 0)


def _gathered(
    keys: NDArray[np.int64], numbers: NDArray[np.int64], followers: NDArray[np.uint32] | None = None
) -> Inverted:
    """Bring occurrences that come in the order of their texts into postings."""
    order = np.argsort(keys, kind="stable")
    keys, numbers = keys[order], numbers[order]
    followers = np.zeros(0, np.uint32) if followers is None else followers[order]
    begins = np.ones(len(keys), np.bool_)
    begins[1:] = (keys[1:] != keys[:-1]) | (numbers[1:] != numbers[:-1])
    starts = np.flatnonzero(begins)
    frequencies = np.diff(np.append(starts, len(keys)))
    if len(followers) and len(frequencies) and frequencies.max() > MAX_FREQUENCY:
        followers = followers[np.arange(len(keys)) - np.repeat(starts, frequencies) < MAX_FREQUENCY]
    limited = np.minimum(frequencies, MAX_FREQUENCY).astype(np.uint8)
    return Inverted(keys[starts], numbers[starts], limited, followers)


def merged(parts: Sequence[Inverted]) -> Inverted:
    """Merge postings whose numbers ascend from part to part."""
    keys = np.concatenate([part.keys for part in parts])
    numbers = np.concatenate([part.numbers for part in parts])
    frequencies = np.concatenate([part.frequencies for part in parts])
    followers = np.concatenate([part.followers for part in parts])
    order = np.argsort(keys, kind="stable")
    if len(followers):
        counts = frequencies.astype(np.int64)
        starts = np.cumsum(counts) - counts
        followers = followers[spread(starts[order], counts[order])]
    return Inverted(keys[order], numbers[order], frequencies[order], followers)


def only(postings: Inverted, kept: NDArray[np.bool_]) -> Inverted:
    """Return the postings that are kept."""
    followers = postings.followers
    if len(followers):
        followers = followers[np.repeat(kept, postings.frequencies)]
    return Inverted(postings.keys[kept], postings.numbers[kept], postings.frequencies[kept], followers)
