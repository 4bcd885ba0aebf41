"""Embedding ahead: while one batch is analysed or written, a thread embeds the texts of the next.

The thread asks the embedder and nobody else. What it was given is looked at, and what it failed with is looked into,
when the batch is about to be written, as if it had been asked for just then: so batches are stored in their order, and
an embedder that fails is asked once and then left to those who know how long.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from threading import Thread
from typing import NamedTuple, TypeVar

from ..ports import Changes, Embedder
from .filling import Desk, Given

Item = TypeVar("Item")
_LOOK_SECONDS = 0.2  # a signal that comes at the moment a wait begins is seen when it ends
# What callers put into a batch, and so into a transaction, when there are more to come. Ids and hashes fall anywhere in
# their indexes, whose pages every transaction writes anew; one of so many takes less than a tenth of a second.
MEMORIES_PER_BATCH = 512


class _Begun(NamedTuple):
    changes: Changes
    texts: Mapping[str, str]
    given: Future[Given]

    def answer(self) -> Given:
        """Wait for what was given; whoever is interrupted does not."""
        while True:
            with suppress(TimeoutError):
                return self.given.result(_LOOK_SECONDS)


class _Ahead:
    """A desk, for which one thread at a time embeds."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._last: _Begun | None = None
        self._is_over = False  # it has failed once

    def begin(self, changes: Changes) -> _Begun:
        """Let the texts be embedded that have no vector, unless those before them have the same."""
        under_way: Mapping[str, str] = {}
        if self._last is not None:
            under_way = self._last.texts
            self._is_over = self._is_over or self._last.answer().error is not None
        lack = self._desk.lack(changes)
        asked = {} if self._is_over or self._desk.put_off(lack.failures) else lack.texts
        texts = {text_hash: text for text_hash, text in asked.items() if text_hash not in under_way}
        self._last = _Begun(changes, texts, _asked(self._desk.embedder, texts))
        return self._last

    def settled(self, begun: _Begun) -> Changes:
        """Return changes with what was embedded for them."""
        done = self._desk.looked_into(begun.texts, begun.answer())
        return replace(begun.changes, space=self._desk.space, vectors=done.vectors, failures=done.failures)


def _asked(embedder: Embedder, texts: Mapping[str, str]) -> Future[Given]:
    """Ask for vectors in a thread, which nobody waits for who is interrupted: a provider may take its time."""
    given: Future[Given] = Future()

    def ask() -> None:
        try:
            parts = [([*texts], embedder.documents([*texts.values()]))] if texts else []
        except Exception as error:  # it is looked into before the batch is written
            given.set_result(Given((), error))
        except BaseException as error:
            given.set_exception(error)
        else:
            given.set_result(Given(parts))

    Thread(target=ask, name="whyrank-embedding", daemon=True).start()
    return given


def embedded_ahead(desk: Desk | None, batches: Iterable[Changes]) -> Generator[Changes, None, None]:
    """Yield batches in their order, with the vectors of their texts; a small one alone is left to whoever stores it.

    Where no further batch can be made, those that were made come first, and then the error.
    """
    failures: list[Exception] = []
    waiting = to_the_first_failure(batches, failures)
    begun = [*islice(waiting, 1)]
    if desk is not None and not _is_large(begun):  # as one that will be alone
        begun += islice(waiting, 1)
    if desk is not None and (_is_large(begun) or len(begun) > 1):
        yield from _with_vectors(_Ahead(desk), chain(begun, waiting))
    else:
        yield from chain(begun, waiting)
    for error in failures:
        raise error


def _is_large(batches: Sequence[Changes]) -> bool:
    return len(batches) > 0 and len(batches[0].put) >= MEMORIES_PER_BATCH


def to_the_first_failure(items: Iterable[Item], failures: list[Exception]) -> Iterator[Item]:
    """Yield items until one cannot be made; who has made use of those before it raises what is then in the list."""
    try:
        yield from items
    except Exception as error:
        failures.append(error)


def _with_vectors(ahead: _Ahead, batches: Iterable[Changes]) -> Iterator[Changes]:
    before: _Begun | None = None
    for changes in batches:
        begun = ahead.begin(changes)  # when those before are embedded: one batch at a time
        if before is not None:
            yield ahead.settled(before)
        before = begun
    assert before is not None
    yield ahead.settled(before)
