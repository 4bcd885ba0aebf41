"""Embedding ahead: while one batch is analysed or written, a thread embeds the texts of the next.

The thread asks the embedder and nobody else. What it was given is looked at, and what it failed with is looked into,
when the batch is about to be written, as if it had been asked for just then: so batches are stored in their order, and
an embedder that fails is asked once and then left to those who know how long.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from ..ports import Changes
from .filling import Desk, Given

# Whoever interrupts waits for the piece at hand. A piece is as large as the embedder is fast.
FIRST_PIECE, LARGEST_PIECE = 8, 256
PIECE_SECONDS = 0.2


class _Begun(NamedTuple):
    changes: Changes
    texts: Mapping[str, str]
    given: Future[Given]


class _Ahead:
    """A desk with a thread that embeds for it."""

    def __init__(self, desk: Desk, thread: ThreadPoolExecutor) -> None:
        self._desk = desk
        self._thread = thread
        self._size = FIRST_PIECE
        self._under_way: frozenset[str] = frozenset()
        self.is_over = False

    def begin(self, changes: Changes) -> _Begun:
        """Let the texts be embedded that have no vector, unless those before them have the same."""
        lack = self._desk.lack(changes)
        asked = {} if self._desk.put_off(lack.failures) else lack.texts
        texts = {text_hash: text for text_hash, text in asked.items() if text_hash not in self._under_way}
        self._under_way = frozenset(texts)
        return _Begun(changes, texts, self._thread.submit(self._given, texts))

    def _given(self, texts: Mapping[str, str]) -> Given:
        """Ask for vectors, piece by piece; in the thread."""
        left, parts = [*texts], list[tuple[Sequence[str], object]]()
        while left and not self.is_over:
            piece, left = left[: self._size], left[self._size :]
            start = time.perf_counter()
            try:
                parts.append((piece, self._desk.embedder.documents([texts[text_hash] for text_hash in piece])))
            except Exception as error:  # it is looked into before the batch is written
                self.is_over = True
                return Given(parts, error)
            is_quick = time.perf_counter() - start < PIECE_SECONDS
            self._size = min(LARGEST_PIECE, 2 * self._size) if is_quick else max(1, self._size // 2)
        return Given(parts)

    def settled(self, begun: _Begun) -> Changes:
        """Return changes with what was embedded for them."""
        done = self._desk.looked_into(begun.texts, begun.given.result())
        return replace(begun.changes, space=self._desk.space, vectors=done.vectors, failures=done.failures)


def embedded_ahead(desk: Desk | None, batches: Iterable[Changes]) -> Generator[Changes, None, None]:
    """Yield batches in their order, with the vectors of their texts where there is more than one batch.

    A generator that holds a thread: whoever may leave it early closes it.
    """
    waiting = iter(batches)
    first, second = next(waiting, None), next(waiting, None)
    if desk is None or second is None:  # nothing to be done meanwhile
        yield from (one for one in (first, second) if one is not None)
        yield from waiting
        return
    with _thread(desk) as ahead:
        before: _Begun | None = None
        for changes in chain((first, second), waiting):
            assert changes is not None
            begun = ahead.begin(changes)
            if before is not None:
                yield ahead.settled(before)
            before = begun
        assert before is not None
        yield ahead.settled(before)


@contextmanager
def _thread(desk: Desk) -> Iterator[_Ahead]:
    """Hold a thread that ends with the block, after the piece at hand."""
    with ThreadPoolExecutor(1, "whyrank-embedding") as thread:
        ahead = _Ahead(desk, thread)
        try:
            yield ahead
        finally:
            ahead.is_over = True
