"""Embed memories that have no vector in a space; failures wait and are retried."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..analysis.document import content_hash
from ..errors import ProviderGarbage, ProviderRefused, SpaceMismatch, StoreError
from ..protocols import FIRST_PLACE, LEASE_SECONDS, Changes, Embedder, Failure, Store, Vector
from ..types.memory import NEVER, Scope, lone_row, squares_of, unit_rows

Progress = Callable[[int, int, str], None]
Clock = Callable[[], float]

PROVIDER = ""  # the hash of a provider's own failure

# A slow model takes some seconds for so many: as much as may be lost when it is stopped.
TEXTS_PER_TRANSACTION = 64
# So many texts refused one after the other, and none taken: it is not the texts.
REFUSALS_IN_A_ROW = 4
# A provider that failed for a moment should be retried soon, one that fails for long less often.
_WAITS_S = 1.0, 300.0  # the first and the longest
# A text that was refused is seldom taken soon after.
_WAITS_FOR_A_TEXT_S = 60.0, 86_400.0
REFUSALS_OF_EVERYBODY = frozenset({401, 402, 403, 404})  # the key, the account, the model
_ERROR_LETTERS = 500
NO_DIRECTION = "the embedder knows none of the tokens of this text"  # which is no failure, and no reason to retry


class Embedded(NamedTuple):
    """Result of embedding: counts of texts with and without a vector, and the provider's error, if any."""

    space: str
    embedded: int
    without_vector: int
    error: str = ""


class Attempt(NamedTuple):
    """Result of embedding some texts: vectors, failures by text, and the error that stopped it."""

    vectors: Mapping[str, Vector] = {}
    failures: Mapping[str, Failure | None] = {}
    error: str = ""

    @property
    def wrong(self) -> str:
        """Return the first error, or an empty text; a text without a direction is no error."""
        failures = (failure for failure in self.failures.values() if failure and failure.next_try < NEVER)
        return self.error or next((failure.error for failure in failures), "")


class EmbeddedTexts(NamedTuple):
    """Output of an embedder for texts, in parts, and the error that ended it."""

    parts: Sequence[tuple[Sequence[str], object]]
    error: Exception | None = None


class Lack(NamedTuple):
    """Texts without a vector, by hash, and earlier failures, the provider's own first."""

    texts: Mapping[str, str]
    failures: Sequence[Failure]


@dataclass(frozen=True)
class Desk:
    """Embedding into one space of a store, by its embedder, with a clock and the dimension if it is known.

    One that defers leaves every text to workers: it is stored without a vector.
    """

    store: Store
    embedder: Embedder
    clock: Clock = time.time
    dimension: int | None = None
    defers: bool = False

    @property
    def space(self) -> str:
        """Return the space that is filled here."""
        return self.embedder.fingerprint

    def attempt(self, texts: Mapping[str, str]) -> Attempt:
        """Embed texts in one batch, or one by one if it fails and the provider is not unavailable."""
        if not texts or self.defers:
            return Attempt()
        try:
            return self._placed(texts, self._vectors(texts))
        except Exception as error:  # whatever a provider throws, the texts must be stored
            return self._after(error, texts)

    def looked_into(self, texts: Mapping[str, str], given: EmbeddedTexts) -> Attempt:
        """Do the same with an earlier output of the embedder; texts that it did not reach have no vector yet."""
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
        if self.defers:
            return Attempt()
        try:
            rows = self.embedder.documents([text])
            row = lone_row(rows, self.dimension)
            asked = {content_hash(text): text}
            return self._placed(asked, self._looked_at(asked, rows)) if row is None else row
        except Exception as error:  # as above
            return self._after(error, {content_hash(text): text})

    def _placed(self, asked: Iterable[str], vectors: Mapping[str, Vector]) -> Attempt:
        """Record, for good, which of the embedded texts have no direction in this space."""
        nowhere = [key for key in asked if key not in vectors]
        now = self.clock() if nowhere else 0.0
        return Attempt(vectors, {key: Failure(key, 1, NO_DIRECTION, now, NEVER) for key in nowhere})

    def _after(self, error: Exception, texts: Mapping[str, str]) -> Attempt:
        """Attribute a failure to a text or to the provider, and record it."""
        known = {failure.hash: failure for failure in self.store.failures(self.space)}
        return self._one_by_one(texts, known) if _is_about_a_text(error) else self._failed(PROVIDER, error, known)

    def _one_by_one(self, texts: Mapping[str, str], known: Mapping[str, Failure]) -> Attempt:
        """Find the failing texts; if none of the first few is accepted, the provider has failed."""
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
        """Validate the output of an embedder for texts; texts without a direction in this space are left out."""
        try:
            rows = unit_rows(given, len(texts), self.dimension or self.store.dimensions(self.space))
        except (ValueError, TypeError) as error:
            raise ProviderGarbage(str(error)) from error
        return {key: row for key, row, square in zip(texts, rows, squares_of(rows), strict=True) if square}

    def _failed(self, text_hash: str, error: Exception, known: Mapping[str, Failure]) -> Attempt:
        """Write a failure down, with the moment of the next try."""
        now, attempts = self.clock(), known[text_hash].attempts + 1 if text_hash in known else 1
        said = (str(error) or type(error).__name__)[:_ERROR_LETTERS]
        asked = getattr(error, "retry_after_s", None)  # by the provider
        first, longest = _WAITS_S if text_hash == PROVIDER else _WAITS_FOR_A_TEXT_S
        doublings = min(attempts - 1, 32)  # more would be no number a moment can be given in
        wait = float(min(longest, first * 2**doublings))
        if isinstance(asked, int | float) and asked > 0:
            wait = max(wait, min(float(asked), _WAITS_S[1]))
        failure = Failure(text_hash, attempts, said, now, now + wait)
        return Attempt(failures={text_hash: failure}, error=said if text_hash == PROVIDER else "")

    def put_off(self, known: Sequence[Failure]) -> Failure | None:
        """Return the provider's recent failure, as long as it should not be retried."""
        failure = _of_the_provider(known)
        return failure if failure is not None and failure.next_try > self.clock() else None

    def failure(self) -> Failure | None:
        """Return the provider's failure, as long as texts wait because of it."""
        return _of_the_provider(self.store.failures(self.space))

    def is_due(self) -> bool:
        """Return whether a failed text or provider is due for a retry."""
        return any(failure.next_try <= self.clock() for failure in self.store.failures(self.space))

    def lack(self, changes: Changes) -> Lack:
        """Return the texts to be stored that have no vector, and the failures of this space."""
        texts: dict[Scope, dict[str, str]] = {}
        for entry in changes.put:
            texts.setdefault(entry.memory.scope, {})[entry.embed_hash] = entry.embed_text
        with self.store.reading():
            failures = self.store.failures(self.space)
            known = {*changes.vectors, *changes.failures}
            known |= {failure.hash for failure in failures if failure.next_try >= NEVER}
            missing: dict[str, str] = {}
            for scope, theirs in texts.items():
                here = self.store.known_vectors(theirs, self.space, scope) | known
                missing |= {text_hash: text for text_hash, text in theirs.items() if text_hash not in here}
            return Lack(missing, [failure for failure in failures if failure.next_try < NEVER])

    def store_with_vectors(self, changes: Changes, lack: Lack | None = None) -> Attempt:
        """Embed new texts without a vector, then write all; texts that got none are stored and stay pending."""
        if self.defers:
            return self.write(changes, Attempt())
        missing, failures = lack or self.lack(changes)
        failed = changes.failures.get(PROVIDER) or (self.put_off(failures) if missing else None)
        return self.write(changes, Attempt(error=failed.error) if failed else self.attempt(missing))

    def attempt_in_time(self, texts: Mapping[str, str]) -> Attempt:
        """Embed texts unless the provider has failed a moment ago."""
        put_off = self.put_off(self.store.failures(self.space)) if texts and not self.defers else None
        return Attempt(error=put_off.error) if put_off else self.attempt(texts)

    def write(self, changes: Changes, done: Attempt) -> Attempt:
        """Write changes with their vectors, and return these; if the vectors do not fit, without them."""
        vectors, failures = {**changes.vectors, **done.vectors}, {**changes.failures, **done.failures}
        whole = replace(changes, space=self.space, vectors=vectors, failures=failures)
        try:
            self.store.write(whole)
        except SpaceMismatch as error:
            done = self._failed(PROVIDER, error, {})
            self.store.write(replace(whole, vectors={}, failures=done.failures))
            return done
        return done._replace(vectors=vectors)

    def embed_share(
        self, worker: str, lease_seconds: float = LEASE_SECONDS, *, has_failed: bool = False
    ) -> Attempt | None:
        """Embed and store a batch of texts that nobody else embeds; None where there is none.

        Leases on texts that got neither a vector nor a failure are ended. `has_failed` if the provider did before.
        """
        claimed = self.store.claim(self.space, TEXTS_PER_TRANSACTION, worker, lease_seconds, self.clock())
        if not claimed:
            return None
        texts, done = {one.hash: one.text for one in claimed}, Attempt()
        try:
            done = self.attempt(texts)
            is_over = has_failed and not done.error  # the provider works again
            return self.write(Changes(failures={PROVIDER: None} if is_over else {}), done)
        finally:
            left = texts.keys() - done.vectors.keys() - done.failures.keys()
            if left:
                with suppress(StoreError):  # they end by their time
                    self.store.release(self.space, left, worker)

    def fill(
        self,
        progress: Progress = lambda *_: None,
        *,
        most: int | None = None,
        all_texts: bool = True,
        again: bool = False,
    ) -> Embedded:
        """Embed pending texts in batches, each in its own transaction; if stopped, a new call resumes it.

        Without `most`, texts are shared with workers, before those are embedded that have failed or are still leased.
        Unless `all_texts` is set, failed texts wait until their retry is due; those without a direction are retried
        only with `again`. A failing provider ends it.
        """
        if self.defers:
            return Embedded(self.space, 0, self.store.status(self.space).without_vector)
        failures = [] if again else self.store.failures(self.space)
        nowhere = sum(failure.memories for failure in failures if failure.next_try >= NEVER)
        due = None if again else (NEVER - 1 if all_texts else self.clock())
        made, after, total, error = 0, FIRST_PLACE, most, ""
        tried: set[str] = set()  # and not embedded
        for done in self._shares() if most is None else ():
            made, error = made + len(done.vectors), done.error
            tried |= done.failures.keys() - {PROVIDER}
            total = total or made + self.store.status(self.space).without_vector  # which scans all memories
            progress(min(made, total), total, "")
        while not error and (most is None or made + len(tried) < most):
            waiting = self.store.without_vector(self.space, TEXTS_PER_TRANSACTION, after, due)
            if not waiting:
                if self.failure() is not None:  # which is over, as nothing waits any more
                    self.store.write(Changes(space=self.space, failures={PROVIDER: None}))
                break
            after = waiting[-1].place
            texts = {one.hash: one.text for one in waiting if one.hash not in tried}
            if not texts:
                continue
            total = total or made + self.store.status(self.space).without_vector
            done = self.write(Changes(), self.attempt(texts))
            made, error = made + len(done.vectors), done.error
            tried |= texts.keys() - done.vectors.keys()
            progress(min(made, total), total, "")
        left = len(tried)
        if error:
            left = max(left, self.store.status(self.space).without_vector)
            return Embedded(self.space, made, left, error)
        return Embedded(self.space, made, left + nowhere)

    def _shares(self) -> Iterator[Attempt]:
        """Embed what workers do not embed at the same time, up to a failure of the provider."""
        worker = worker_name()
        while (done := self.embed_share(worker)) is not None:
            yield done
            if done.error:
                return


def worker_name() -> str:
    """Return a name that no other worker has: host, process, and a part by chance."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


def embed_all(store: Store, embedder: Embedder, progress: Progress, clock: Clock = time.time) -> Embedded:
    """Embed whatever is missing in the embedder's space, vectors that are damaged among it."""
    store.drop_damaged_vectors(embedder.fingerprint)
    return Desk(store, embedder, clock).fill(progress, again=True)


def _of_the_provider(failures: Sequence[Failure]) -> Failure | None:
    return failures[0] if failures and failures[0].hash == PROVIDER else None


def _is_about_a_text(error: Exception) -> bool:
    """Return whether an error may concern one text, so that others may succeed."""
    if isinstance(error, ProviderRefused):
        return error.status not in REFUSALS_OF_EVERYBODY
    return isinstance(error, ProviderGarbage)
