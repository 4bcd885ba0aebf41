"""Models of a store: embed the queue, change, add and drop models, calibrate."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import ConfigError, NotFound, ProviderUnavailable
from ..formatting import counted
from ..providers.registry import MissingModel
from ..search.confidence import Calibration, calibrated_owners, calibrations_in
from ..types.memory import NEVER, Notice, Scope
from ..types.query import Where
from .arguments import Scopes, share_of
from .records import Backlog, ModelChange, SpaceState

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ..evaluation.compare import Agreement
    from ..evaluation.pins import Pinboard, PinnedEngine
    from ..ingest.embedding import Embedded, Progress
    from ..protocols import Embedder, Failure, Llm, Store
    from .spaces import Calibrator, FindVectors, Roles, Serving, Space

Tick = Callable[[int, int, str], None]

PAUSE_S = 0.01  # after each step, so that searches and writes come first
_JOIN_S = 10.0  # a step in a slow model may take a while


class Stopped(Exception):
    """Raised inside background work that was stopped; it can be resumed later."""


class _Worker(threading.Thread):
    """A thread with its own stop event, so that starting the next thread does not clear it."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__(target=work, name="whyrank-background", daemon=True)
        self.stop = threading.Event()


class Background:
    """At most one background task at a time; the error of the last one is kept until it is read."""

    def __init__(self) -> None:
        self._thread: _Worker | None = None
        self.error: Exception | None = None

    @property
    def is_running(self) -> bool:
        """Return true while a task is running."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, work: Callable[[Tick], object]) -> None:
        """Start a task in place of the one before; it reports its steps, and is stopped between them."""
        self.close()
        self.error = None
        self._thread = _Worker(lambda: self._run(work))
        self._thread.start()

    def pause(self, seconds: float) -> None:
        """Sleep inside a task; raise Stopped if a stop was requested."""
        worker = threading.current_thread()
        if isinstance(worker, _Worker) and worker.stop.wait(seconds):
            raise Stopped

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the task; return true if it has ended."""
        if self._thread is not None:
            self._thread.join(timeout_s)
        return not self.is_running

    def close(self) -> None:
        """Stop the task after its current step."""
        if self._thread is None:
            return
        self._thread.stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join(_JOIN_S)

    def _run(self, work: Callable[[Tick], object]) -> None:
        try:
            work(lambda done, total, label: self.pause(PAUSE_S))
        except Stopped:
            return
        except Exception as error:  # a thread has no caller to raise to
            self.error = error


_QUESTIONS = 100  # queries run on both models before a switch
_GO_ON = "vectors made so far are kept; run it again to continue"


class Models:
    """The embedding models of a store: the active, the filling, the previous and the additional one."""

    def __init__(
        self,
        store: Store,
        serving: Serving,
        calibrator: Calibrator,
        clock: Callable[[], float],
        llm: Callable[[str | None], Llm] | None,
        asked_with: Callable[[Embedder], PinnedEngine],
        pinboard: Callable[[], Pinboard],
    ) -> None:
        self._store = store
        self._serving = serving
        self._calibrator = calibrator
        self._clock = clock
        self._llm = llm
        self._asked_with = asked_with
        self._pinboard = pinboard
        self._background = Background()

    @property
    def space(self) -> str:
        """Return the name of the active embedding space, or "" without an embedder."""
        return self._serving.space

    def dimension(self) -> int | None:
        """Return the dimension of the active space, as far as it is known."""
        return self._store.dimensions(self.space) if self.space else None

    def taking(self, find: FindVectors) -> AbstractContextManager[None]:
        """Take the vectors of texts that `find` knows from there instead of the model, for importers."""
        return self._serving.taking(find)

    def language_model(self, name: str | None = None) -> Llm:
        """Return the language model of this engine or its settings, or the model of the given name."""
        if self._llm is None:
            raise ProviderUnavailable("this engine was made without a language model", "open it with whyrank.open")
        return self._llm(name)

    def calibrations(self) -> Sequence[Calibration]:
        """Return the calibrations of this embedder, one for each set of scopes."""
        return calibrations_in(self._store, self.space)

    def close(self) -> None:
        """Stop background work after its current step."""
        self._background.close()

    def embed(self, progress: Progress | None = None, *, background: bool = False) -> Embedded:
        """Embed every memory that waits for a vector; an interrupted run continues when called again.

        In the background it runs until nothing waits or the engine is closed, and retries a provider that failed.
        """
        from ..ingest.embedding import Embedded

        embedder = self._serving.embedder
        if embedder is None:
            return Embedded("", 0, 0)
        self._serving.adopt()
        if background:
            models = [embedder, *filter(None, [self._serving.current().added])]
            self._background.start(lambda tick: [self._filled(model, tick, patient=True) for model in models])
            return Embedded(embedder.fingerprint, 0, self.backlog().waiting)
        done = self._filled(embedder, progress)
        if done.embedded:
            self._calibrator.renew(calibrated_owners(self._store), is_embedded=True)
        added = self._serving.current().added
        if added is None:
            return done
        more = self._filled(added, progress)
        lacking = max(done.without_vector, more.without_vector)
        return done._replace(
            embedded=done.embedded + more.embedded, without_vector=lacking, error=done.error or more.error
        )

    def _filled(self, embedder: Embedder, progress: Progress | None, *, patient: bool = False) -> Embedded:
        """Fill the space of an embedder; with `patient`, wait and retry after a failure of the provider."""
        from ..ingest.embedding import Desk, embed_all

        tick = progress or (lambda *_: None)
        done = embed_all(self._store, embedder, tick, self._clock)
        while patient and done.error:
            failure = Desk(self._store, embedder, self._clock).failure()
            self._background.pause(max(0.0, failure.next_try - self._clock()) if failure else 0.0)
            more = embed_all(self._store, embedder, tick, self._clock)
            done = more._replace(embedded=done.embedded + more.embedded)
        return done

    def backlog(self, *, scope: Scopes = None) -> Backlog:
        """Count the memories waiting for a vector in the active space, with the last error.

        With a scope, only those it sees; failures of other scopes are not reported where nothing waits.
        """
        space, share = self.space, share_of(scope)
        if not space:
            return Backlog()
        without, known = self._store.status(space, share).without_vector, self._store.failures(space, share)
        failures = [failure for failure in known if failure.next_try < NEVER]
        nowhere = _without_direction(known)
        waiting = max(0, without - nowhere)
        if not failures or (share is not None and not waiting):
            return Backlog(waiting, nowhere=nowhere)
        last = max(failures, key=lambda failure: (not failure.hash, failure.failed))
        refused = sum(bool(failure.hash) for failure in failures)
        return Backlog(waiting, refused, last.attempts, last.error, last.next_try, nowhere)

    def waiting_notices(self, *, scope: Scopes = None) -> tuple[Notice, ...]:
        """Return a notice if memories wait for a vector because the embedder failed."""
        if not self.space or not self._store.failures(self.space, share_of(scope)):
            return ()
        behind = self.backlog(scope=scope)
        text = f"stored and found by words; {behind.waiting} wait for a vector: {behind.error}"
        return (Notice("waiting", f"{text}; `whyrank embed` tries again"),) if behind.waiting and behind.error else ()

    def list(self, *, scope: Scopes = None) -> list[SpaceState]:
        """Return the spaces of the store: the active one first, then the previous one, then the others.

        With a scope, only the vectors it sees are counted, and other spaces without any of them are left out.
        """
        share = share_of(scope)
        roles = self._serving.roles()
        vectors = self._store.spaces() if share is None else self._store.status("", share).spaces
        named = reversed(roles.spaces.items())
        known = {space.name: (role, space.provider) for role, space in named if space is not None}
        names = [*reversed(known), *(name for name in vectors if name not in known)]
        return [self._state(name, *known.get(name, ("kept", "")), vectors.get(name, 0), share) for name in names]

    def _state(self, name: str, role: str, provider: str, vectors: int, share: frozenset[Scope] | None) -> SpaceState:
        without, failures = self._store.status(name, share).without_vector, self._store.failures(name, share)
        waiting = max(0, without - _without_direction(failures))
        told = (failure for failure in failures if failure.next_try < NEVER)
        failure = next(told, None) if waiting or share is None else None
        return SpaceState(name, provider, role, vectors, waiting, failure.error if failure else "")

    def use(
        self,
        name: str | None = None,
        *,
        check: bool = False,
        force: bool = False,
        background: bool = False,
        progress: Progress | None = None,
    ) -> ModelChange:
        """Fill the space of a model while the active one answers, then switch atomically for all processes.

        Without a name it is the model this engine was opened with. With `check` both models are compared first, and
        pins that would be lost keep the old one in place, unless forced. An interrupted run continues when called
        again.
        """
        space, embedder = self._serving.target(name)
        if background:
            if check:
                raise ConfigError("a comparison cannot run in the background", "omit background, or check")
            self._begin(space)
            self._background.start(lambda tick: self._changed(space, embedder, tick, patient=True))
            waiting = self._store.status(space.name).without_vector
            return ModelChange(space.name, space.provider, self.space, False, 0, waiting)
        return self._changed(space, embedder, progress, check=check, force=force)

    def add(self, name: str, *, background: bool = False, progress: Progress | None = None) -> ModelChange:
        """Add a second model, which votes for memories in another language than that of the query.

        Its vectors vote as soon as they are made. An interrupted run continues when called again; `drop` removes
        it.
        """
        space, embedder = self._serving.target(name)
        if self._serving.embedder is None:
            raise ConfigError("the store has no embedding model", f"`whyrank model use {name}` makes it the main model")
        if len(embedder.languages) == 1:
            [language] = embedder.languages
            raise ConfigError(f"{name} only knows {language}", "add a model that knows several languages")
        self._serving.adopt()

        def beside(roles: Roles) -> Roles:
            if roles.serving is not None and roles.serving.name == space.name:
                raise ConfigError(f"{name} is the model in use", "add another one")
            return replace(roles, added=space)

        roles = self._serving.change(beside)
        change = ModelChange(space.name, space.provider, roles.serving.name if roles.serving else "", True, 0, 0)
        if background:
            self._background.start(lambda tick: self._filled(embedder, tick, patient=True))
            return change._replace(without_vector=self._store.status(space.name).without_vector)
        done = self._filled(embedder, progress)
        if done.error:
            raise ProviderUnavailable(
                f"{counted(done.embedded, 'text was', 'texts were')} embedded, then: {done.error}", _GO_ON
            )
        self._calibrator.renew(calibrated_owners(self._store), is_embedded=True)
        return change._replace(embedded=done.embedded, without_vector=done.without_vector)

    def has_earlier_vectors(self) -> bool:
        """Return true if an earlier version made the active vectors and no rollback chose them."""
        outdated, before = self._serving.outdated(), self._serving.roles().before
        return bool(outdated) and (before is None or before.provider != outdated)

    def notices(self) -> tuple[Notice, ...]:
        """Return a notice if the active model is not the configured one, or its vectors are outdated."""
        return self._serving.current().notices

    def reembed(self, progress: Progress | None = None) -> int:
        """Re-embed the store if an earlier version of its model made the vectors; return the number embedded.

        The earlier vectors answer until the last new one is made, and are kept for a rollback. An interrupted run
        continues when called again.
        """
        if not self.has_earlier_vectors():
            return 0
        return self.use(self._serving.outdated(), progress=progress).embedded

    def rollback(self, *, progress: Progress | None = None) -> ModelChange:
        """Switch back to the previous model; memories added since are embedded first."""
        before = self._serving.roles().before
        if before is None:
            raise NotFound("there is no model before this one", "`whyrank model list` shows what there is")
        return self._changed(before, self._usable(before), progress)

    def _usable(self, space: Space) -> Embedder:
        embedder = self._serving.made(space)
        if isinstance(embedder, MissingModel):
            raise embedder.error
        return embedder

    def drop(self, name: str) -> int:
        """Delete the vectors of a model, or of a space by its full name; the active one is refused.

        With keyword search alone no model is active, and every one may be deleted.
        """
        roles = self._serving.roles()
        spaces = self._spaces_called(name, roles)
        answers = roles.serving if self._serving.embedder is not None else None
        if answers is not None and answers.name in spaces:
            raise ConfigError(f"{name} is the model in use", "change to another one first")
        self._serving.change(lambda now: now.without(spaces))
        return sum(self._store.drop_space(space) for space in spaces)

    def _spaces_called(self, name: str, roles: Roles) -> Sequence[str]:
        recorded = [space for space in roles.spaces.values() if space is not None]
        provided = {space.name: space.provider for space in recorded}
        there = {*self._store.spaces(), *provided}
        found = [
            space for space in sorted(there) if name in (space, provided.get(space) or self._serving.provider_of(space))
        ]
        if not found:
            raise NotFound(f"the store holds no vectors of {name!r}", "`whyrank status` lists the spaces")
        return found

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for background work; return true if it has ended, and raise its error."""
        ended = self._background.wait(timeout_s)
        if self._background.error is not None:
            raise self._background.error
        return ended

    def _begin(self, space: Space) -> str:
        """Record the space being filled; return the name of the active one."""
        self._serving.adopt()

        def begun(roles: Roles) -> Roles:
            is_serving = roles.serving is not None and roles.serving.name == space.name
            return roles if is_serving else replace(roles, filling=space)

        roles = self._serving.change(begun)
        return roles.serving.name if roles.serving is not None else ""

    def _changed(
        self,
        space: Space,
        embedder: Embedder,
        progress: Progress | None,
        *,
        check: bool = False,
        force: bool = False,
        patient: bool = False,
    ) -> ModelChange:
        from ..ingest.embedding import Desk

        before = self._begin(space)
        done = self._filled(embedder, progress, patient=patient)
        if done.error:
            raise ProviderUnavailable(
                f"{counted(done.embedded, 'text was', 'texts were')} embedded, then: {done.error}", _GO_ON
            )
        if done.without_vector and not self._store.spaces().get(space.name):
            failures = self._store.failures(space.name)
            said = failures[0].error if failures else "every text gives a zero vector"
            raise ProviderUnavailable(f"{space} gave no vector at all: {said}", "the model before it stays in place")
        agreement = self._compared(embedder, progress) if check and before not in ("", space.name) else None
        change = ModelChange(
            space.name, space.provider, before, False, done.embedded, done.without_vector, agreement
        )  # fmt: skip
        if agreement is not None and agreement.lost and not force:
            return change
        # Thresholds first, so that the first answer of the new space has them.
        self._calibrator.renew(calibrated_owners(self._store), embedder=embedder, is_embedded=True)
        desk = Desk(self._store, embedder, self._clock)
        meanwhile = desk.fill()  # what was written while it was filled
        self._serving.change(lambda roles: roles.switched(_wanted(space, roles)))
        since = desk.fill()  # and in the moment of the switch
        embedded = done.embedded + meanwhile.embedded + since.embedded
        return change._replace(switched=True, embedded=embedded, without_vector=since.without_vector)

    def _compared(self, embedder: Embedder, progress: Progress | None) -> Agreement:
        from ..evaluation.compare import compare_spaces

        serving = self._serving.embedder
        if serving is None:
            serving = self._usable(self._serving.roles().serving or self._serving.target(None)[0])
        memories = self._store.sample(Where(self._store.scopes(), now=self._clock()), _QUESTIONS)
        subjects = (self._asked_with(serving), self._asked_with(embedder))
        return compare_spaces(*subjects, memories, self._pinboard(), None, progress or (lambda *_: None))


def _wanted(space: Space, roles: Roles) -> Space:
    """Return a space if it still has a role: it may have been dropped while it was being filled."""
    if not any(one is not None and one.name == space.name for one in (roles.serving, roles.filling)):
        raise ConfigError(f"{space} was dropped while it was being filled", "the model before it stays in place")
    return space


def _without_direction(failures: Sequence[Failure]) -> int:
    """Count the memories that never get a vector: the model knows no part of their texts."""
    return sum(failure.memories for failure in failures if failure.next_try >= NEVER)
