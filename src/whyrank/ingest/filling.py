"""Vectors for what has none in a space: what could not be embedded waits, is tried again later, and says why.

What waits is never listed anywhere: it is every memory without a vector. Only what went wrong is written down, for one
text that a provider will not take, or (under an empty hash) for a provider that gives nothing to anybody.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..analysis.entries import content_hash
from ..errors import ProviderGarbage, ProviderRefused, SpaceMismatch
from ..lifetimes import NEVER
from ..ports import Changes, Embedder, Failure, Store, Vector
from ..unitvectors import lone_row, squares_of, unit_rows

Progress = Callable[[int, int, str], None]
Clock = Callable[[], float]

PROVIDER = ""  # the hash under which a provider's own failure stands

# A slow model takes some seconds for so many: as much as may be lost when it is stopped.
TEXTS_PER_TRANSACTION = 64
# So many texts refused one after the other, and none taken: it is not the texts.
REFUSALS_IN_A_ROW = 4
# A provider that was away for a moment should be asked soon, one that is away for long not all the time.
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 300.0
# A text that was refused is seldom taken soon after.
FIRST_WAIT_FOR_A_TEXT_S, LONGEST_WAIT_FOR_A_TEXT_S = 60.0, 86_400.0
REFUSALS_OF_EVERYBODY = frozenset({401, 402, 403, 404})  # the key, the account, the model
_ERROR_LETTERS = 500
NO_DIRECTION = "the embedder knows no part of the text"  # which is no failure, and no reason to ask again


class Embedded(NamedTuple):
    """What was embedded: how many texts got a vector, how many none; what the provider failed with, if it did."""

    space: str
    embedded: int
    without_vector: int
    error: str = ""


class Attempt(NamedTuple):
    """What came of embedding some texts: vectors, what went wrong, and what stopped it all."""

    vectors: Mapping[str, Vector] = {}
    failures: Mapping[str, Failure | None] = {}
    error: str = ""

    @property
    def wrong(self) -> str:
        """Say what went wrong first, if something did; that a text has no direction is nothing wrong."""
        failures = (failure for failure in self.failures.values() if failure and failure.next_try < NEVER)
        return self.error or next((failure.error for failure in failures), "")


class Given(NamedTuple):
    """What an embedder gave for texts, some at a time, and what it failed with in the end."""

    parts: Sequence[tuple[Sequence[str], object]]
    error: Exception | None = None


class Lack(NamedTuple):
    """Texts that have no vector, by their hashes, and what has failed before, the provider's own failure first."""

    texts: Mapping[str, str]
    failures: Sequence[Failure]


@dataclass(frozen=True)
class Desk:
    """Where texts are embedded: a store, the embedder of one of its spaces, a clock, the dimension if it is known."""

    store: Store
    embedder: Embedder
    clock: Clock = time.time
    dimension: int | None = None

    @property
    def space(self) -> str:
        """Return the space that is filled here."""
        return self.embedder.fingerprint

    def attempt(self, texts: Mapping[str, str]) -> Attempt:
        """Embed texts together, or one by one where that fails for another reason than that nobody is there."""
        if not texts:
            return Attempt()
        try:
            return self._placed(texts, self._vectors(texts))
        except Exception as error:  # whatever a provider throws, the texts must be stored
            return self._after(error, texts)

    def looked_into(self, texts: Mapping[str, str], given: Given) -> Attempt:
        """Do the same with what was given for texts before; what was not asked for any more has no vector yet."""
        vectors: dict[str, Vector] = {}
        seen: set[str] = set()
        try:
            for hashes, rows in given.parts:
                vectors |= self._looked_at({text_hash: texts[text_hash] for text_hash in hashes}, rows)
                seen.update(hashes)
            if given.error is not None:
                raise given.error
            return self._placed(texts, vectors)
        except Exception as error:  # as above
            rest = self._after(error, {text_hash: text for text_hash, text in texts.items() if text_hash not in seen})
            done = self._placed(seen, vectors)
            return Attempt({**vectors, **rest.vectors}, {**done.failures, **rest.failures}, rest.error)

    def attempt_one(self, text: str) -> Vector | Attempt:
        """Embed one text; its vector comes alone where it is fit to be stored as it is."""
        try:
            rows = self.embedder.documents([text])
            row = lone_row(rows, self.dimension)
            asked = {content_hash(text): text}
            return self._placed(asked, self._looked_at(asked, rows)) if row is None else row
        except Exception as error:  # as above
            return self._after(error, {content_hash(text): text})

    def _placed(self, asked: Iterable[str], vectors: Mapping[str, Vector]) -> Attempt:
        """Write down, once for all, which of the texts that were asked for have no direction in this space."""
        nowhere = [key for key in asked if key not in vectors]
        now = self.clock() if nowhere else 0.0
        return Attempt(vectors, {key: Failure(key, 1, NO_DIRECTION, now, NEVER) for key in nowhere})

    def _after(self, error: Exception, texts: Mapping[str, str]) -> Attempt:
        """Find out whom a failure is about, and write it down."""
        known = {failure.hash: failure for failure in self.store.failures(self.space)}
        return self._one_by_one(texts, known) if _is_about_a_text(error) else self._failed(PROVIDER, error, known)

    def _one_by_one(self, texts: Mapping[str, str], known: Mapping[str, Failure]) -> Attempt:
        """Find out which texts it is; where nobody takes any of the first few, it is the provider."""
        vectors: dict[str, Vector] = {}
        failures: dict[str, Failure | None] = {}
        taken = False
        for text_hash, text in texts.items():
            try:
                done = self._placed([text_hash], self._vectors({text_hash: text}))
                vectors, failures, taken = {**vectors, **done.vectors}, {**failures, **done.failures}, True
            except Exception as error:  # as above
                if not _is_about_a_text(error) or (not taken and len(failures) + 1 >= REFUSALS_IN_A_ROW):
                    stopped = self._failed(PROVIDER, error, known)
                    return Attempt(vectors, {**failures, **stopped.failures}, stopped.error)
                failures |= self._failed(text_hash, error, known).failures
        return Attempt(vectors, failures)

    def _vectors(self, texts: Mapping[str, str]) -> dict[str, Vector]:
        return self._looked_at(texts, self.embedder.documents(list(texts.values())))

    def _looked_at(self, texts: Mapping[str, str], given: object) -> dict[str, Vector]:
        """Look at what an embedder gave for texts; what has no direction in this space is left out."""
        try:
            rows = unit_rows(given, len(texts), self.dimension or self.store.dimensions(self.space))
        except (ValueError, TypeError) as error:
            raise ProviderGarbage(str(error)) from error
        return {key: row for key, row, square in zip(texts, rows, squares_of(rows), strict=True) if square}

    def _failed(self, text_hash: str, error: Exception, known: Mapping[str, Failure]) -> Attempt:
        """Write a failure down, with the moment of the next try."""
        now, attempts = self.clock(), known[text_hash].attempts + 1 if text_hash in known else 1
        said = (str(error) or type(error).__name__)[:_ERROR_LETTERS]
        wait = max(_wait(attempts, text_hash), _asked_to_wait(error))
        failure = Failure(text_hash, attempts, said, now, now + wait)
        return Attempt(failures={text_hash: failure}, error=said if text_hash == PROVIDER else "")

    def put_off(self, known: Sequence[Failure]) -> Failure | None:
        """Return the provider's failure of a moment ago, while it should not be asked again."""
        failure = _of_the_provider(known)
        return failure if failure is not None and failure.next_try > self.clock() else None

    def failure(self) -> Failure | None:
        """Return the provider's failure, as long as texts wait because of it."""
        return _of_the_provider(self.store.failures(self.space))

    def is_due(self) -> bool:
        """Tell whether something failed before whose time to be tried again has come."""
        return any(failure.next_try <= self.clock() for failure in self.store.failures(self.space))

    def lack(self, changes: Changes) -> Lack:
        """Look which of the texts that are put have no vector, and what has failed in this space."""
        texts = {entry.embed_hash: entry.embed_text for entry in changes.put}
        with self.store.reading():
            failures = self.store.failures(self.space)
            known = self.store.known_vectors(texts, self.space) | changes.vectors.keys() | changes.failures.keys()
            known |= {failure.hash for failure in failures if failure.next_try >= NEVER}
            missing = {text_hash: text for text_hash, text in texts.items() if text_hash not in known}
            return Lack(missing, [failure for failure in failures if failure.next_try < NEVER])

    def store_with_vectors(self, changes: Changes, lack: Lack | None = None) -> Attempt:
        """Embed what is put and has no vector, then write it all; what got none waits and is stored all the same."""
        missing, failures = lack or self.lack(changes)
        failed = changes.failures.get(PROVIDER) or (self.put_off(failures) if missing else None)
        return self.write(changes, Attempt(error=failed.error) if failed else self.attempt(missing))

    def attempt_in_time(self, texts: Mapping[str, str]) -> Attempt:
        """Embed texts unless the provider has failed a moment ago."""
        put_off = self.put_off(self.store.failures(self.space)) if texts else None
        return Attempt(error=put_off.error) if put_off else self.attempt(texts)

    def write(self, changes: Changes, done: Attempt) -> Attempt:
        """Write changes with what was embedded, and return it; if the vectors do not fit, without them."""
        vectors, failures = {**changes.vectors, **done.vectors}, {**changes.failures, **done.failures}
        whole = replace(changes, space=self.space, vectors=vectors, failures=failures)
        try:
            self.store.write(whole)
        except SpaceMismatch as error:
            done = self._failed(PROVIDER, error, {})
            self.store.write(replace(whole, vectors={}, failures=done.failures))
            return done
        return done._replace(vectors=vectors)

    def fill(
        self,
        progress: Progress = lambda *_: None,
        *,
        most: int | None = None,
        all_texts: bool = True,
        again: bool = False,
    ) -> Embedded:
        """Embed what waits, batch by batch, each in a transaction of its own; stopped, it goes on when called again.

        Unless all texts are asked for, those that failed wait for their time; those without a direction are asked for
        `again` only by whoever says so. A provider that fails ends it.
        """
        made, left, after, total = 0, 0, 0, most
        nowhere = 0 if again else self._nowhere()
        due = None if again else (NEVER - 1 if all_texts else self.clock())
        while most is None or made + left < most:
            waiting = self.store.without_vector(self.space, TEXTS_PER_TRANSACTION, after, due)
            if not waiting:
                self._recover()
                break
            if total is None:  # which takes a look at all memories, and mostly nothing waits
                total = self.store.status(self.space).without_vector
            after = waiting[-1].place
            texts = {one.hash: one.text for one in waiting}
            done = self.write(Changes(), self.attempt(texts))
            made, left = made + len(done.vectors), left + len(texts) - len(done.vectors)
            progress(min(made, total), total, "")
            if done.error:
                return Embedded(self.space, made, max(left, self.store.status(self.space).without_vector), done.error)
        return Embedded(self.space, made, left + nowhere)

    def _nowhere(self) -> int:
        """Count the memories whose texts are known to have no direction in this space."""
        return sum(failure.memories for failure in self.store.failures(self.space) if failure.next_try >= NEVER)

    def _recover(self) -> None:
        """Nothing waits any more, so the provider's failure is over."""
        if self.failure() is not None:
            self.store.write(Changes(space=self.space, failures={PROVIDER: None}))


def embed_all(store: Store, embedder: Embedder, progress: Progress, clock: Clock = time.time) -> Embedded:
    """Embed whatever is missing in the embedder's space, vectors that are damaged among it."""
    store.drop_damaged_vectors(embedder.fingerprint)
    return Desk(store, embedder, clock).fill(progress, again=True)


def _of_the_provider(failures: Sequence[Failure]) -> Failure | None:
    return failures[0] if failures and failures[0].hash == PROVIDER else None


def _is_about_a_text(error: Exception) -> bool:
    """Tell whether an error may be about a text, so that others would fare better."""
    if isinstance(error, ProviderRefused):
        return error.status not in REFUSALS_OF_EVERYBODY
    return isinstance(error, ProviderGarbage)


def _wait(attempts: int, text_hash: str) -> float:
    first, longest = (
        (FIRST_WAIT_S, LONGEST_WAIT_S)
        if text_hash == PROVIDER
        else (FIRST_WAIT_FOR_A_TEXT_S, LONGEST_WAIT_FOR_A_TEXT_S)
    )
    doublings = min(attempts - 1, 32)  # more would be no number a moment can be given in
    return float(min(longest, first * 2**doublings))


def _asked_to_wait(error: Exception) -> float:
    """Return how many seconds a provider asked to be left alone, which is honoured up to the longest wait."""
    asked = getattr(error, "retry_after_s", None)
    return min(float(asked), LONGEST_WAIT_S) if isinstance(asked, int | float) and asked > 0 else 0.0
