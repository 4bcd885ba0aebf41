"""Embedding spaces: the active one, filling another in the background, switching, calibration."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ..errors import ConfigError, NotFound, ProviderUnavailable, StoreError, WhyrankError
from ..formatting import counted
from ..protocols import Changes, Embedder, Failure, Store
from ..providers.registry import MissingModel
from ..search.confidence import Calibration, calibrated_owners, calibrations_in, is_due, keep_calibration
from ..types.memory import NEVER, Entry, Notice, Scope, visible
from ..types.query import Where
from .arguments import Scopes, scopes_of, share_of

if TYPE_CHECKING:
    from ..config import load as settings
    from ..evaluation.compare import Agreement
    from ..evaluation.pins import Pinboard, PinnedEngine
    from ..ingest.embedding import Attempt, Embedded, Progress


NOTE = "spaces"
_FORMAT = 1
_EARLIER = "the vectors of these memories are as an earlier whyrank made them, and go on answering"
_ATTEMPTS = 10  # to change a note that others change at the same time


@dataclass(frozen=True)
class Space:
    """One embedding space and how to recreate its embedder; no provider if it was given as an object."""

    name: str
    provider: str = ""
    settings: Mapping[str, object] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return self.provider or self.name


@dataclass(frozen=True)
class Roles:
    """Roles of the spaces: the active one, the one being filled, the previous one, the added second one."""

    serving: Space | None = None
    filling: Space | None = None
    before: Space | None = None
    added: Space | None = None

    def switched(self, to: Space) -> Roles:
        """Return the roles after a switch: the active space becomes the previous one."""
        filling, added = (None if _is(space, [to.name]) else space for space in (self.filling, self.added))
        before = self.before if self.serving is None or _is(self.serving, [to.name]) else self.serving
        return Roles(to, filling, before, added)

    def without(self, names: Collection[str]) -> Roles:
        """Return the roles without the given spaces."""
        return Roles(*(None if _is(space, names) else space for space in self.spaces.values()))

    @property
    def spaces(self) -> dict[str, Space | None]:
        """Return the spaces by their roles."""
        return {"serving": self.serving, "filling": self.filling, "before": self.before, "added": self.added}


@dataclass(frozen=True)
class Makers:
    """Factories of embedders by provider name, and the mapping from a space to its provider."""

    configured: str = ""
    is_chosen: bool = False  # the setting was given explicitly; it is not the default
    settings: Callable[[str], Mapping[str, object]] = lambda provider: {}
    make: Callable[[str, Mapping[str, object]], Embedder | None] = lambda provider, settings: None
    provider_of: Callable[[str], str] = lambda space: ""
    earlier: Callable[[str], Embedder | None] = lambda space: None  # as an earlier whyrank made its vectors


class Serving:
    """The embedder of the active space of a store; follows switches made by other processes."""

    def __init__(self, store: Store, configured: Embedder | None, makers: Makers) -> None:
        self._store = store
        self._configured = configured
        self._makers = makers
        self._seen: tuple[str | None, Embedder] | None = None
        self._seen_added: tuple[str, Embedder] | None = None
        self._said: tuple[str | None, bool, tuple[Notice, ...]] | None = None
        self._old: Roles | None = None
        self._agreed = False

    def embedder(self) -> Embedder | None:
        """Return the embedder of the active space, or None for keyword search alone."""
        if self._configured is None:
            return None
        text = self._store.note(NOTE)
        seen = self._seen
        if seen is not None and seen[0] == text:
            return seen[1]
        space = self.roles().serving
        embedder = self._configured if space is None else self.made(space)
        self._agreed = self._agreed or embedder is self._configured
        if not isinstance(embedder, MissingModel):  # it may be fetched in the meantime
            self._seen = (text, embedder)
        return embedder

    def added(self) -> Embedder | None:
        """Return the embedder added beside the active one, if any."""
        text = self._store.note(NOTE) if self._configured is not None else None
        if text is None:
            return None
        if self._seen_added is not None and self._seen_added[0] == text:
            return self._seen_added[1]
        space = self.roles().added
        embedder = self.made(space) if space is not None else None
        if embedder is not None and not isinstance(embedder, MissingModel):
            self._seen_added = (text, embedder)
        return embedder

    def roles(self) -> Roles:
        """Return the roles of the spaces; if the store has none recorded, derive them from its vectors."""
        text = self._store.note(NOTE)
        if text is not None:
            return _read(text)
        if self._old is None:
            self._old = self._suggested()
        return self._old

    def _suggested(self) -> Roles:
        configured, vectors = self.configured, self._store.spaces()
        if configured is not None and (not vectors or configured.name in vectors):
            return Roles(configured)
        if not vectors:
            return Roles()
        most = max(vectors, key=lambda name: vectors[name])
        return Roles(Space(most, self._makers.provider_of(most)))

    @property
    def configured(self) -> Space | None:
        """Return the space that the settings name."""
        if self._configured is None:
            return None
        provider = self._makers.configured
        return Space(self._configured.fingerprint, provider, self._makers.settings(provider))

    def made(self, space: Space) -> Embedder:
        """Make the embedder of a space; if that fails, return one that raises the reason when it is used."""
        if self._configured is not None and self._configured.fingerprint == space.name:
            return self._configured
        try:
            embedder = self._makers.make(space.provider, space.settings) if space.provider else None
        except WhyrankError as error:
            return MissingModel(space.name, _hinting(error, space))
        if embedder is not None and embedder.fingerprint == space.name:
            return embedder
        earlier = self._makers.earlier(space.name)
        return earlier or MissingModel(space.name, _cannot_be_made(space, embedder, self._makers.configured))

    def target(self, provider: str | None) -> tuple[Space, Embedder]:
        """Return the space and the embedder a provider makes here; without a name, what the settings name."""
        if provider is None or (provider == self._makers.configured and self._configured is not None):
            space, embedder = self.configured, self._configured
        else:
            made = self._makers.make(provider, self._makers.settings(provider))
            space = Space(made.fingerprint, provider, self._makers.settings(provider)) if made is not None else None
            embedder = made
        if space is None or embedder is None:
            raise ConfigError(
                "there is no space without an embedder", "name a model, or set embedding = none for words alone"
            )
        return space, embedder

    def provider_of(self, space: str) -> str:
        """Return the name of the provider that makes the vectors of a space here, or nothing."""
        return self._makers.provider_of(space)

    def adopt(self) -> None:
        """Record the roles in a store that has none yet; done before the first vector is written."""
        if not self.is_adopted():
            self._store.swap_note(NOTE, None, _text(self.roles()))

    def is_adopted(self) -> bool:
        """Check that the roles are recorded, or that there is no embedder and nothing to record."""
        return self._configured is None or self._store.note(NOTE) is not None

    def change(self, change: Callable[[Roles], Roles]) -> Roles:
        """Change the roles in one transaction; retried if other writers change them at the same time."""
        for _ in range(_ATTEMPTS):
            before = self._store.note(NOTE)
            wanted = change(self.roles())
            if before == _text(wanted) or self._store.swap_note(NOTE, before, _text(wanted)):
                return wanted
        raise StoreError("the spaces of the store are being changed by somebody else", "try again in a moment")

    def outdated(self) -> str:
        """Return the provider of the active space if an earlier version made its vectors, else ""."""
        serving = self.roles().serving if self._configured is not None else None
        return serving.provider if serving is not None and self._makers.earlier(serving.name) is not None else ""

    def notices(self) -> tuple[Notice, ...]:
        """Return a notice if the active model is not the configured one, or its vectors are outdated."""
        text, said = self._store.note(NOTE), self._said
        if said is None or said[:2] != (text, self._agreed):
            said = self._said = (text, self._agreed, self._notices())
        return said[2]

    def _notices(self) -> tuple[Notice, ...]:
        outdated = self.outdated()
        if outdated and outdated == self._makers.configured:
            text = f"{_EARLIER}; `whyrank model use {outdated}` makes today's, which find more"
            return (Notice("earlier-vectors", text),)
        if self._agreed or not self._makers.is_chosen or self._configured is None:
            return ()
        serving = self.roles().serving
        if serving is None or serving.name == self._configured.fingerprint:
            return ()
        asked = self._makers.configured or self._configured.fingerprint
        text = f"{serving} answers, because this store is embedded with it; `whyrank model use {asked}` changes that"
        return (Notice("model-differs", text),)


class Always(Serving):
    """A fixed embedder, whatever roles the store records: for comparing models."""

    def __init__(self, store: Store, embedder: Embedder) -> None:
        super().__init__(store, embedder, Makers())
        self._always = embedder

    def embedder(self) -> Embedder | None:
        """Return the fixed embedder."""
        return self._always

    def added(self) -> Embedder | None:
        """Return None: an added space takes no part in a comparison."""
        return None

    def notices(self) -> tuple[Notice, ...]:
        """Return no notices: the embedder was chosen explicitly."""
        return ()


def _is(space: Space | None, names: Collection[str]) -> bool:
    return space is not None and space.name in names


def _hinting(error: WhyrankError, space: Space) -> WhyrankError:
    return error if error.hint else ProviderUnavailable(error.message, f"`whyrank model use {space}` makes it work")


def _cannot_be_made(space: Space, made: Embedder | None, configured: str) -> ProviderUnavailable:
    if made is not None:
        return ProviderUnavailable(
            f"the vectors are of {space.name}, and {space.provider} makes those of {made.fingerprint} here",
            f"`whyrank model use {space.provider}` embeds the memories anew",
        )
    mend = f"`whyrank model use {configured}`" if configured else "`change_model()`"
    return ProviderUnavailable(
        f"the vectors are of {space.name}, and nothing here makes such", f"{mend} embeds the memories anew"
    )


def _text(roles: Roles) -> str:
    told = asdict(roles)
    if roles.added is None:  # whyrank 0.1 knows three roles, and reads no note that has others
        del told["added"]
    return json.dumps({**told, "format": _FORMAT}, sort_keys=True)


@lru_cache(maxsize=64)
def _read(text: str) -> Roles:
    """Parse the roles; a note in the format of another version gives no roles."""
    try:
        data = json.loads(text)
        if data.pop("format") != _FORMAT:
            return Roles()
        return Roles(**{role: Space(**space) if space is not None else None for role, space in data.items()})
    except (ValueError, TypeError, KeyError, AttributeError):
        return Roles()


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


class Calibrating:
    """Calibration of confidence thresholds on the stored memories."""

    _store: Store
    _serving: Serving
    _config: settings.Config
    _clock: Callable[[], float]

    @property
    def _embedder(self) -> Embedder | None:
        """Return the embedder of the active space, read each time: another process may have switched it."""
        return self._serving.embedder()

    @property
    def space(self) -> str:
        """Return the name of the active embedding space, or "" without an embedder."""
        embedder = self._embedder
        return embedder.fingerprint if embedder else ""

    def calibrate(self, *, scope: Scopes = None, progress: Progress | None = None) -> Calibration:
        """Calibrate the confidence thresholds on the memories visible to this scope."""
        return self._calibrated(visible(scopes_of(scope)), progress, self._embedder)

    def calibrations(self) -> Sequence[Calibration]:
        """Return the calibrations of this embedder, one for each set of scopes."""
        return calibrations_in(self._store, self.space)

    def _calibrated(
        self, scopes: frozenset[Scope], progress: Progress | None, embedder: Embedder | None
    ) -> Calibration:
        from ..search.calibrator import calibrate

        where = Where(scopes, now=self._clock())
        told = [progress] if progress else []
        made = calibrate(self._store, embedder, self._config["language"], where, *told)
        keep_calibration(self._store, made)
        return made

    def _recalibrate(
        self, owners: Sequence[Scope], progress: Progress | None = None, embedder: Embedder | None = None
    ) -> list[str]:
        """Recalibrate the scopes that have outgrown their calibration; failures are returned as remarks."""
        if self._config["calibration"] != "automatic":
            return []
        remarks = []
        added = self._serving.added()
        for owner in owners:
            scopes = visible([owner])
            several = added is not None and len(self._store.languages(scopes)) > 1
            for one in (embedder or self._embedder, *([added] if several else [])):
                try:
                    if is_due(self._store, one.fingerprint if one else "", scopes):
                        self._calibrated(scopes, progress, one)
                except WhyrankError as error:
                    remarks.append(f"not done: {error.message}")
        return remarks


# Queued texts embedded by one write: no more than a user who adds a fact would wait for.
_DRAINED_BY_A_WRITE = 64
_QUESTIONS = 100  # queries run on both models before a switch
_GO_ON = "what was embedded stays; call it again to go on"


class SpaceState(NamedTuple):
    """State of one space: its role, number of vectors, number of memories waiting, last error."""

    name: str
    provider: str
    role: str
    vectors: int
    waiting: int
    error: str = ""


class Backlog(NamedTuple):
    """Counts of memories waiting for a vector in the active space, and of those that never get one."""

    waiting: int = 0
    refused: int = 0
    attempts: int = 0
    error: str = ""
    next_try: float | None = None
    nowhere: int = 0


class ModelChange(NamedTuple):
    """Outcome of a change of model."""

    space: str
    provider: str
    before: str
    switched: bool
    embedded: int
    without_vector: int
    agreement: Agreement | None = None


class Spaces(Calibrating):
    """Embedding spaces: the active one, the one being filled, the previous one."""

    _background: Background

    def _asked_with(self, embedder: Embedder) -> PinnedEngine:
        raise NotImplementedError

    def _pinboard(self) -> Pinboard:
        raise NotImplementedError

    # -- the queue -------------------------------------------------------------------------------------------

    def _keep(self, changes: Changes) -> None:
        """Write changes with the vectors of their entries; entries without a vector are stored and queued."""
        from ..ingest.embedding import Desk

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
        self._keep_added(changes.put)

    def _keep_added(self, entries: Sequence[Entry]) -> None:
        """Embed stored entries in the added space, if there is one."""
        embedder = self._serving.added() if entries else None
        if embedder is None:
            return
        from ..ingest.embedding import Desk

        desk = Desk(self._store, embedder, self._clock)
        lack = desk.lack(Changes(put=entries))
        if lack.texts:
            desk.store_with_vectors(Changes(), lack)

    def _fill_added(self) -> None:
        """Embed all memories without a vector in the added space, except those that failed a moment ago."""
        embedder = self._serving.added()
        if embedder is not None:
            from ..ingest.embedding import Desk

            Desk(self._store, embedder, self._clock).fill(all_texts=False)

    def _attempt(self, embedder: Embedder, texts: Mapping[str, str]) -> Attempt:
        """Embed texts before they are written; a provider that failed a moment ago is not called again."""
        from ..ingest.embedding import Desk

        return Desk(self._store, embedder, self._clock).attempt_in_time(texts)

    def embed(self, progress: Progress | None = None, *, background: bool = False) -> Embedded:
        """Embed every memory that waits for a vector; an interrupted run continues when called again.

        In the background it runs until nothing waits or the engine is closed, and retries a provider that failed.
        """
        from ..ingest.embedding import Embedded

        embedder = self._embedder
        if embedder is None:
            return Embedded("", 0, 0)
        self._serving.adopt()
        if background:
            models = [embedder, *filter(None, [self._serving.added()])]
            self._background.start(lambda tick: [self._filled(model, tick, patient=True) for model in models])
            return Embedded(embedder.fingerprint, 0, self.backlog().waiting)
        done = self._filled(embedder, progress)
        if done.embedded:
            self._recalibrate(calibrated_owners(self._store))
        added = self._serving.added()
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

    # -- changing the model ----------------------------------------------------------------------------------

    def spaces(self, *, scope: Scopes = None) -> list[SpaceState]:
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

    def change_model(
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
                raise ConfigError("a comparison is nothing to be done unseen", "leave out background, or check")
            self._begin(space)
            self._background.start(lambda tick: self._changed(space, embedder, tick, patient=True))
            waiting = self._store.status(space.name).without_vector
            return ModelChange(space.name, space.provider, self.space, False, 0, waiting)
        return self._changed(space, embedder, progress, check=check, force=force)

    def add_model(self, name: str, *, background: bool = False, progress: Progress | None = None) -> ModelChange:
        """Add a second model, which votes for memories in another language than that of the query.

        Its vectors vote as soon as they are made. An interrupted run continues when called again; `drop_model` removes
        it.
        """
        space, embedder = self._serving.target(name)
        if self._embedder is None:
            raise ConfigError("words answer alone here", f"`whyrank model use {name}` makes it answer")
        if len(embedder.languages) == 1:
            [language] = embedder.languages
            raise ConfigError(f"{name} knows {language} alone", "add a model that knows several languages")
        self._serving.adopt()

        def beside(roles: Roles) -> Roles:
            if roles.serving is not None and roles.serving.name == space.name:
                raise ConfigError(f"{name} is the model that answers", "add another one")
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
        self._recalibrate(calibrated_owners(self._store))
        return change._replace(embedded=done.embedded, without_vector=done.without_vector)

    def has_earlier_vectors(self) -> bool:
        """Return true if an earlier version made the active vectors and no rollback chose them."""
        outdated, before = self._serving.outdated(), self._serving.roles().before
        return bool(outdated) and (before is None or before.provider != outdated)

    def vector_notices(self) -> tuple[Notice, ...]:
        """Return a notice if the active model is not the configured one, or its vectors are outdated."""
        return self._serving.notices()

    def renew_vectors(self, progress: Progress | None = None) -> int:
        """Re-embed the store if an earlier version of its model made the vectors; return the number embedded.

        The earlier vectors answer until the last new one is made, and are kept for a rollback. An interrupted run
        continues when called again.
        """
        if not self.has_earlier_vectors():
            return 0
        return self.change_model(self._serving.outdated(), progress=progress).embedded

    def rollback_model(self, *, progress: Progress | None = None) -> ModelChange:
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

    def drop_model(self, name: str) -> int:
        """Delete the vectors of a model, or of a space by its full name; the active one is refused.

        With keyword search alone no model is active, and every one may be deleted.
        """
        roles = self._serving.roles()
        spaces = self._spaces_called(name, roles)
        answers = roles.serving if self._embedder is not None else None
        if answers is not None and answers.name in spaces:
            raise ConfigError(f"{name} is the model that answers", "change to another one first")
        self._serving.change(lambda now: now.without(spaces))
        return sum(self._store.drop_space(space) for space in spaces)

    def _spaces_called(self, name: str, roles: Roles) -> list[str]:
        recorded = [space for space in roles.spaces.values() if space is not None]
        provided = {space.name: space.provider for space in recorded}
        there = {*self._store.spaces(), *provided}
        found = [
            space for space in sorted(there) if name in (space, provided.get(space) or self._serving.provider_of(space))
        ]
        if not found:
            raise NotFound(f"the store holds no vectors of {name!r}", "`whyrank status` names the spaces there are")
        return found

    def settle(self, timeout_s: float | None = None) -> bool:
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
        from ..evaluation.compare import compare_spaces

        serving = self._embedder
        if serving is None:
            serving = self._usable(self._serving.roles().serving or self._serving.target(None)[0])
        scopes = frozenset(map(Scope.parse, self._store.status("").scopes))
        memories = self._store.sample(Where(scopes, now=self._clock()), _QUESTIONS)
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
