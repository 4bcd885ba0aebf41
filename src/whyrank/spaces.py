"""What the facade does with embedding spaces: gives texts vectors, and changes models while the old one answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from .arguments import Scopes, share_of
from .background import Background
from .calibrations import Calibrating
from .embedding.missing import MissingModel
from .errors import ConfigError, NotFound, ProviderUnavailable
from .lifetimes import NEVER
from .ports import Changes, Embedder, Failure
from .search.calibration import calibrated_owners
from .serving import Roles, Space
from .types import Notice, Scope, Where
from .wording import counted

if TYPE_CHECKING:
    from .evaluation.agreement import Agreement
    from .evaluation.pinboard import Pinboard, Subject
    from .ingest.filling import Attempt, Embedded, Progress

# What one write does for those that wait: no more than a user who adds a fact would wait for.
_DRAINED_BY_A_WRITE = 64
_QUESTIONS = 100  # that are asked of both models before one takes over
_GO_ON = "what was embedded stays; call it again to go on"


class SpaceState(NamedTuple):
    """One space of a store: what it is for, how many vectors it holds, how many memories wait for one, what failed."""

    name: str
    provider: str
    role: str
    vectors: int
    waiting: int
    error: str = ""


class Backlog(NamedTuple):
    """What waits for a vector in the space that answers, and why; and of how many the model knows no part."""

    waiting: int = 0
    refused: int = 0
    attempts: int = 0
    error: str = ""
    next_try: float | None = None
    nowhere: int = 0


class ModelChange(NamedTuple):
    """What came of changing the model."""

    space: str
    provider: str
    before: str
    switched: bool
    embedded: int
    without_vector: int
    agreement: Agreement | None = None


class Spaces(Calibrating):
    """Embedding spaces: the one that answers, the one that is being filled, the one before."""

    _background: Background

    def _asked_with(self, embedder: Embedder) -> Subject:
        raise NotImplementedError

    def _pinboard(self) -> Pinboard:
        raise NotImplementedError

    # -- the queue -------------------------------------------------------------------------------------------

    def _keep(self, changes: Changes) -> None:
        """Write changes with the vectors of what they put; what gets none is stored all the same, and waits."""
        from .ingest.filling import Desk

        with self._store.reading():
            embedder = self._embedder
            is_adopted = self._serving.is_adopted()
            if embedder is not None:
                desk = Desk(self._store, embedder, self._clock, self._store.dimensions(embedder.fingerprint))
                if (changes.vectors or changes.failures) and changes.space != desk.space:  # another model took over
                    changes = replace(changes, vectors={}, failures={})
                lack = desk.lack(changes)
        if embedder is None:
            self._store.write(changes)
            return
        if not is_adopted:
            self._serving.adopt()
        done = desk.store_with_vectors(changes, lack)
        if changes.put and not done.error and lack.failures and desk.is_due():
            desk.fill(most=_DRAINED_BY_A_WRITE, all_texts=False)

    def _attempt(self, embedder: Embedder, texts: Mapping[str, str]) -> Attempt:
        """Embed texts before they are written; a provider that failed a moment ago is not asked again."""
        from .ingest.filling import Desk

        return Desk(self._store, embedder, self._clock).attempt_in_time(texts)

    def embed(self, progress: Progress | None = None, *, background: bool = False) -> Embedded:
        """Give a vector to every memory that waits for one; stopped and called again, it goes on.

        In the background it goes on until nothing waits or the engine is closed, asking a provider that failed again.
        """
        from .ingest.filling import Embedded

        embedder = self._embedder
        if embedder is None:
            return Embedded("", 0, 0)
        self._serving.adopt()
        if background:
            self._background.start(lambda tick: self._filled(embedder, tick, patient=True))
            return Embedded(embedder.fingerprint, 0, self.backlog().waiting)
        done = self._filled(embedder, progress)
        if done.embedded:
            self._recalibrate(calibrated_owners(self._store))
        return done

    def _filled(self, embedder: Embedder, progress: Progress | None, *, patient: bool = False) -> Embedded:
        """Fill the space of an embedder; a patient one waits for a provider that failed and asks again."""
        from .ingest.filling import Desk, embed_all

        tick = progress or (lambda *_: None)
        done = embed_all(self._store, embedder, tick, self._clock)
        while patient and done.error:
            failure = Desk(self._store, embedder, self._clock).failure()
            self._background.pause(max(0.0, failure.next_try - self._clock()) if failure else 0.0)
            more = embed_all(self._store, embedder, tick, self._clock)
            done = more._replace(embedded=done.embedded + more.embedded)
        return done

    def backlog(self, *, scope: Scopes = None) -> Backlog:
        """Count what waits for a vector in the space that answers, and say what went wrong last.

        With a scope, only of what it sees; an embedder that failed for others is no news where nothing waits.
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
        """Say that something waits for its vector because the embedder failed; nothing where it did not."""
        if not self.space or not self._store.failures(self.space, share_of(scope)):
            return ()
        behind = self.backlog(scope=scope)
        text = f"stored and found by words; {behind.waiting} wait for a vector: {behind.error}"
        return (Notice("waiting", f"{text}; `whyrank embed` tries again"),) if behind.waiting and behind.error else ()

    # -- changing the model ----------------------------------------------------------------------------------

    def spaces(self, *, scope: Scopes = None) -> list[SpaceState]:
        """Return the spaces of the store: the one that answers first, then the one before, then the others.

        With a scope, those others are left out in which nothing lies that it sees, and only what it sees is counted.
        """
        share = share_of(scope)
        roles = self._serving.roles()
        vectors = self._store.spaces() if share is None else self._store.status("", share).spaces
        named = {"serving": roles.serving, "filling": roles.filling, "before": roles.before}
        known = {space.name: (role, space.provider) for role, space in reversed(named.items()) if space is not None}
        names = [*reversed(known), *(name for name in vectors if name not in known)]
        return [self._state(name, *known.get(name, ("kept", "")), vectors.get(name, 0), share) for name in names]

    def _state(self, name: str, role: str, provider: str, vectors: int, share: frozenset[Scope] | None) -> SpaceState:
        without, failures = self._store.status(name, share).without_vector, self._store.failures(name, share)
        waiting = max(0, without - _without_direction(failures))
        told = (failure for failure in failures if failure.next_try < NEVER)
        failure = next(told, None) if waiting or share is None else None
        return SpaceState(name, provider, role, vectors, waiting, failure.error if failure else "")

    def change_model(
        self,
        name: str | None = None,
        *,
        check: bool = False,
        force: bool = False,
        background: bool = False,
        progress: Progress | None = None,
    ) -> ModelChange:
        """Fill the space of a model while the one before answers, then switch at once for all who have the store open.

        Without a name it is the model this engine was opened with. With `check` both models are compared first, and
        pins that would be lost keep the old one in place, unless forced. Stopped and called again, it goes on.
        """
        space, embedder = self._serving.target(name)
        if background:
            if check:
                raise ConfigError("a comparison is nothing to be done unseen", "leave out background, or check")
            self._begin(space)
            self._background.start(lambda tick: self._changed(space, embedder, tick, patient=True))
            waiting = self._store.status(space.name).without_vector
            return ModelChange(space.name, space.provider, self.space, False, 0, waiting)
        return self._changed(space, embedder, progress, check=check, force=force)

    def has_earlier_vectors(self) -> bool:
        """Tell whether the vectors that answer are as an earlier whyrank made them, and nobody went back to them."""
        outdated, before = self._serving.outdated(), self._serving.roles().before
        return bool(outdated) and (before is None or before.provider != outdated)

    def vector_notices(self) -> tuple[Notice, ...]:
        """Say that another model answers than the one asked for, or its vectors are as an earlier whyrank made them."""
        return self._serving.notices()

    def renew_vectors(self, progress: Progress | None = None) -> int:
        """Change to the vectors that the model of the store has today, if an earlier whyrank made them; count the new.

        The earlier ones answer until the last is made, and are still there to go back to. Stopped, it goes on when
        called again.
        """
        if not self.has_earlier_vectors():
            return 0
        return self.change_model(self._serving.outdated(), progress=progress).embedded

    def rollback_model(self, *, progress: Progress | None = None) -> ModelChange:
        """Go back to the model before; what was added since is embedded first."""
        before = self._serving.roles().before
        if before is None:
            raise NotFound("there is no model before this one", "`whyrank model list` shows what there is")
        return self._changed(before, self._usable(before), progress)

    def _usable(self, space: Space) -> Embedder:
        embedder = self._serving.made(space)
        if isinstance(embedder, MissingModel):
            raise embedder.error
        return embedder

    def drop_model(self, name: str) -> int:
        """Delete the vectors of a model, or of a space by its whole name; the one that answers is refused.

        Where words answer alone, no model does, and every one may go.
        """
        roles = self._serving.roles()
        spaces = self._spaces_called(name, roles)
        answers = roles.serving if self._embedder is not None else None
        if answers is not None and answers.name in spaces:
            raise ConfigError(f"{name} is the model that answers", "change to another one first")
        self._serving.change(lambda now: now.without(spaces))
        return sum(self._store.drop_space(space) for space in spaces)

    def _spaces_called(self, name: str, roles: Roles) -> list[str]:
        recorded = [space for space in (roles.serving, roles.filling, roles.before) if space is not None]
        provided = {space.name: space.provider for space in recorded}
        there = {*self._store.spaces(), *provided}
        found = [
            space for space in sorted(there) if name in (space, provided.get(space) or self._serving.provider_of(space))
        ]
        if not found:
            raise NotFound(f"the store holds no vectors of {name!r}", "`whyrank status` names the spaces there are")
        return found

    def settle(self, timeout_s: float | None = None) -> bool:
        """Wait for what is done in the background; tell whether it has ended, and raise what it failed with."""
        ended = self._background.wait(timeout_s)
        if self._background.error is not None:
            raise self._background.error
        return ended

    def _begin(self, space: Space) -> str:
        """Write down what is being filled; return what answers meanwhile."""
        self._serving.adopt()

        def begun(roles: Roles) -> Roles:
            is_serving = roles.serving is not None and roles.serving.name == space.name
            return roles if is_serving else Roles(roles.serving, space, roles.before)

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
        from .ingest.filling import Desk

        before = self._begin(space)
        done = self._filled(embedder, progress, patient=patient)
        if done.error:
            raise ProviderUnavailable(
                f"{counted(done.embedded, 'text was', 'texts were')} embedded, then: {done.error}", _GO_ON
            )
        if done.without_vector and not self._store.spaces().get(space.name):
            failures = self._store.failures(space.name)
            said = failures[0].error if failures else "no text has a direction in it"
            raise ProviderUnavailable(f"{space} gave no vector at all: {said}", "the model before it stays in place")
        agreement = self._compared(embedder, progress) if check and before not in ("", space.name) else None
        change = ModelChange(
            space.name, space.provider, before, False, done.embedded, done.without_vector, agreement
        )  # fmt: skip
        if agreement is not None and agreement.lost and not force:
            return change
        # Thresholds first, so that the first answer of the new space has them.
        self._recalibrate(calibrated_owners(self._store), embedder=embedder)
        desk = Desk(self._store, embedder, self._clock)
        meanwhile = desk.fill()  # what was written while it was filled
        self._serving.change(lambda roles: roles.switched(_wanted(space, roles)))
        since = desk.fill()  # and in the moment of the switch
        embedded = done.embedded + meanwhile.embedded + since.embedded
        return change._replace(switched=True, embedded=embedded, without_vector=since.without_vector)

    def _compared(self, embedder: Embedder, progress: Progress | None) -> Agreement:
        from .evaluation.agreement import compare

        serving = self._embedder
        if serving is None:
            serving = self._usable(self._serving.roles().serving or self._serving.target(None)[0])
        scopes = frozenset(map(Scope.parse, self._store.status("").scopes))
        memories = self._store.sample(Where(scopes, now=self._clock()), _QUESTIONS)
        subjects = (self._asked_with(serving), self._asked_with(embedder))
        return compare(*subjects, memories, self._pinboard(), None, progress or (lambda *_: None))


def _wanted(space: Space, roles: Roles) -> Space:
    """Return a space if it shall still answer: it may have been dropped while it was being filled."""
    if not any(one is not None and one.name == space.name for one in (roles.serving, roles.filling)):
        raise ConfigError(f"{space} was dropped while it was being filled", "the model before it stays in place")
    return space


def _without_direction(failures: Sequence[Failure]) -> int:
    """Count the memories that never get a vector: the model knows no part of their texts."""
    return sum(failure.memories for failure in failures if failure.next_try >= NEVER)
