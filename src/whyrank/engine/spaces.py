"""The embedding spaces of a store: the embedder in use, and writes with vectors and terms."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ..analysis.document import READER_VERSION, entry_for
from ..errors import ConfigError, ProviderUnavailable, StoreChanged, StoreError, WhyrankError
from ..protocols import Changes, Embedder, Hint, Store, Vector
from ..providers.registry import MissingModel
from ..search.confidence import Calibration, is_due, keep_calibration, note_names
from ..types.memory import Entry, Notice, Scope, visible
from ..types.query import Where

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ..config import load as settings
    from ..ingest.embedding import Progress


FindVectors = Callable[[Sequence[str]], Mapping[str, Vector]]
NOTE = "spaces"
_FORMAT = 1
_EARLIER = "the vectors of these memories were made by an earlier whyrank and are still used"
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


class Active(NamedTuple):
    """Embedder in use (None: keywords only), the additional one, and notices on both."""

    embedder: Embedder | None = None
    added: Embedder | None = None
    notices: tuple[Notice, ...] = ()


class GivenVectors:
    """An embedder that has the vectors of some texts from elsewhere, and asks the model for the others."""

    def __init__(self, embedder: Embedder, find: FindVectors) -> None:
        self._embedder = embedder
        self._find = find

    def __getattr__(self, name: str) -> Any:
        """Return what else the embedder has."""
        return getattr(self._embedder, name)

    def documents(self, texts: Sequence[str]) -> object:
        """Return one vector per text."""
        import numpy as np

        known = self._find(texts)
        rest = [text for text in dict.fromkeys(texts) if text not in known]
        if not known:
            return self._embedder.documents(texts)
        made = dict(zip(rest, np.asarray(self._embedder.documents(rest), np.float32), strict=True)) if rest else {}
        return np.stack([known.get(text, made.get(text)) for text in texts])  # type: ignore[arg-type]


class Serving:
    """The embedder of the active space of a store; follows switches made by other processes.

    A fixed one answers whatever roles the store records: for comparing models.
    """

    def __init__(self, store: Store, configured: Embedder | None, makers: Makers, *, is_fixed: bool = False) -> None:
        self._store = store
        self._configured = configured
        self._makers = makers
        self._is_fixed = is_fixed
        self._seen: tuple[str | None, Active] | None = None
        self._derived: Roles | None = None
        self._agreed = False
        self._find: FindVectors | None = None

    @property
    def embedder(self) -> Embedder | None:
        """Return the embedder of the active space, or None for keyword search alone."""
        embedder = self.current().embedder
        if self._find is None or embedder is None:
            return embedder
        return cast("Embedder", GivenVectors(embedder, self._find))

    @contextmanager
    def taking(self, find: FindVectors) -> Iterator[None]:
        """Take the vectors of texts that `find` knows from there, as long as the context lasts."""
        self._find = find
        try:
            yield
        finally:
            self._find = None

    @property
    def space(self) -> str:
        """Return the name of the active space, or "" without an embedder."""
        embedder = self.current().embedder
        return embedder.fingerprint if embedder else ""

    def current(self) -> Active:
        """Return the embedders that answer now; cached until another process writes other roles."""
        if self._configured is None or self._is_fixed:
            return Active(self._configured)
        text = self._store.note(NOTE)
        if self._seen is not None and self._seen[0] == text:
            return self._seen[1]
        roles = self.roles()
        embedder = self._configured if roles.serving is None else self.made(roles.serving)
        added = None if roles.added is None else self.made(roles.added)
        self._agreed = self._agreed or embedder is self._configured
        active = Active(embedder, added, self._notices(roles))
        if not (isinstance(embedder, MissingModel) or isinstance(added, MissingModel)):  # it may be fetched meanwhile
            self._seen = (text, active)
        return active

    def hint(self, scopes: frozenset[Scope] = frozenset()) -> Hint:
        """Return what a call reads first of these scopes, with the embedders that were last in use."""
        active = self._seen[1] if self._seen is not None else Active(self._configured)
        spaces = [one.fingerprint for one in active[:2] if one is not None]
        measured = [name for space in spaces or [""] for name in note_names(space, scopes)] if scopes else []
        return Hint(scopes, spaces, [NOTE, *measured])

    def note(self) -> tuple[str, str] | None:
        """Return the note of the store in which the roles are recorded, by name and text; None without one."""
        text = self._store.note(NOTE)
        return None if text is None else (NOTE, text)

    def roles(self) -> Roles:
        """Return the roles of the spaces; if the store has none recorded, derive them from its vectors."""
        text = self._store.note(NOTE)
        if text is not None:
            return _read(text)
        if self._derived is None:
            self._derived = self._suggested()
        return self._derived

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
                "there is no space without an embedder",
                "name a model, or set embedding = none for keyword and name search only",
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
        raise StoreError("another process is changing the spaces of the store", "try again in a moment")

    def outdated(self) -> str:
        """Return the provider of the active space if an earlier version made its vectors, else ""."""
        serving = self.roles().serving if self._configured is not None else None
        return serving.provider if serving is not None and self._makers.earlier(serving.name) is not None else ""

    def _notices(self, roles: Roles) -> tuple[Notice, ...]:
        """Return a notice if the active model is not the configured one, or its vectors are outdated."""
        outdated = self.outdated()
        if outdated and outdated == self._makers.configured:
            text = f"{_EARLIER}; `whyrank model use {outdated}` makes new ones, which find more"
            return (Notice("earlier-vectors", text),)
        if self._agreed or not self._makers.is_chosen or self._configured is None:
            return ()
        serving = roles.serving
        if serving is None or serving.name == self._configured.fingerprint:
            return ()
        asked = self._makers.configured or self._configured.fingerprint
        text = f"{serving} is used, because this store is embedded with it; `whyrank model use {asked}` changes that"
        return (Notice("model-differs", text),)


def _is(space: Space | None, names: Collection[str]) -> bool:
    return space is not None and space.name in names


def _hinting(error: WhyrankError, space: Space) -> WhyrankError:
    return error if error.hint else ProviderUnavailable(error.message, f"`whyrank model use {space}` makes it work")


def _cannot_be_made(space: Space, made: Embedder | None, configured: str) -> ProviderUnavailable:
    if made is not None:
        return ProviderUnavailable(
            f"the vectors are of {space.name}, but {space.provider} makes those of {made.fingerprint} here",
            f"`whyrank model use {space.provider}` embeds the memories again",
        )
    mend = f"`whyrank model use {configured}`" if configured else "`models.use()`"
    return ProviderUnavailable(
        f"the vectors are of {space.name}, and no model here makes these", f"{mend} embeds the memories again"
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


_DRAINED_BY_A_WRITE = 64  # queued texts embedded by one write: no more than a user who adds a fact would wait for
_READ_BY_A_WRITE = 64  # stale memories reindexed by one write, likewise
_READ_PER_STEP = 256  # so that a reader or another writer never waits long
_READ_ATTEMPTS = 5  # of a step over memories that others change at the same time


def defers(config: settings.Config) -> bool:
    """Return whether writers leave new texts to be embedded by workers."""
    return bool(config["embedder.when"] == "worker")


class IndexWriter:
    """Writes memories with terms and vectors; reindexes those of earlier analyzers in small steps."""

    def __init__(self, store: Store, serving: Serving, config: settings.Config, clock: Callable[[], float]) -> None:
        self._store = store
        self._serving = serving
        self._language: str = config["language"]
        self._defers = defers(config)
        self._clock = clock
        self._is_reindexed = False

    def write(self, changes: Changes) -> None:
        """Write changes with vectors, and reindex some memories of an earlier analyzer along with them."""
        self._write(changes)
        if self._is_reindexed or not changes.put:
            return
        try:
            self._is_reindexed = not self._reindex_some(_READ_BY_A_WRITE)
        except WhyrankError:
            return  # the changes are stored; a notice reports the rest until it is done

    def _write(self, changes: Changes) -> None:
        """Write changes with the vectors of their entries; entries without a vector are stored and queued."""
        from ..ingest.embedding import Desk

        with self._store.reading():
            embedder = self._serving.embedder
            is_adopted = self._serving.is_adopted()
            if embedder is not None:
                dimension = self._store.dimensions(embedder.fingerprint)
                desk = Desk(self._store, embedder, self._clock, dimension, self._defers)
                if (changes.vectors or changes.failures) and changes.space != desk.space:  # another model took over
                    changes = replace(changes, vectors={}, failures={})
                lack = None if desk.defers else desk.lack(changes)
        if embedder is None:
            self._store.write(changes)
            return
        if not is_adopted:
            self._serving.adopt()
        done = desk.store_with_vectors(changes, lack)
        if lack is not None and changes.put and not done.error and lack.failures and desk.is_due():
            desk.fill(most=_DRAINED_BY_A_WRITE, all_texts=False)
        self.embed_added(changes.put)

    def embed_added(self, entries: Sequence[Entry] | None = None) -> None:
        """Embed entries in the added space, if there is one; without entries, all that have no vector there.

        Texts that failed a moment ago wait.
        """
        embedder = self._serving.current().added
        if embedder is None or self._defers or (entries is not None and not entries):
            return
        from ..ingest.embedding import Desk

        desk = Desk(self._store, embedder, self._clock)
        if entries is None:
            desk.fill(all_texts=False)
            return
        lack = desk.lack(Changes(put=entries))
        if lack.texts:
            desk.store_with_vectors(Changes(), lack)

    def is_reindexed(self) -> bool:
        """Return true if no memory has terms of an earlier analyzer; queried until that is so, then cached."""
        self._is_reindexed = self._is_reindexed or not self._store.read_before(READER_VERSION, 1)
        return self._is_reindexed

    def reindex(self, progress: Progress | None = None) -> int:
        """Reindex all memories that an earlier analyzer indexed; return their number.

        An interrupted run continues when called again.
        """
        if not self._store.read_before(READER_VERSION, 1):  # counting them scans all memories
            return 0
        readers = self._store.readers(self._store.scopes())
        total = sum(count for reader, count in readers.items() if reader < READER_VERSION)
        done = 0
        while read := self._reindex_some(_READ_PER_STEP):
            done += read
            if progress is not None:
                progress(min(done, total), total, "")
        if done:
            self._store.settle(sorted(self._store.scopes()))
        return done

    def _reindex_some(self, most: int) -> int:
        """Reindex up to `most` memories in one transaction; return their number."""
        for _ in range(_READ_ATTEMPTS):
            memories = self._store.read_before(READER_VERSION, most)
            if not memories:
                return 0
            entries = [entry_for(memory, self._language) for memory in memories]
            try:
                self._write(Changes(put=entries, basis={memory.id: memory for memory in memories}))
            except StoreChanged:
                continue  # version conflict: another writer changed one of them
            return len(memories)
        raise StoreChanged("the memories to be reindexed keep changing", "try again in a moment")


class Calibrator:
    """Calibrates the confidence thresholds on the stored memories, with the embedder that answers."""

    def __init__(self, store: Store, serving: Serving, config: settings.Config, clock: Callable[[], float]) -> None:
        self._store = store
        self._serving = serving
        self._language: str = config["language"]
        self._is_automatic = config["calibration"] == "automatic"
        self._defers = defers(config)
        self._clock = clock

    def calibrate(self, scopes: frozenset[Scope], progress: Progress | None, embedder: Embedder | None) -> Calibration:
        """Calibrate the thresholds of an embedder on the memories of these scopes, and store them."""
        from ..search.calibrator import calibrate

        where = Where(scopes, now=self._clock())
        told = [progress] if progress else []
        made = calibrate(self._store, embedder, self._language, where, *told)
        keep_calibration(self._store, made)
        return made

    def renew(
        self,
        owners: Sequence[Scope],
        progress: Progress | None = None,
        embedder: Embedder | None = None,
        *,
        is_embedded: bool = False,
    ) -> list[str]:
        """Recalibrate the scopes that have outgrown their calibration; failures are returned as remarks.

        Where workers embed, only once the memories have vectors: cosines would be measured on too few.
        """
        if not self._is_automatic or (self._defers and not is_embedded):
            return []
        remarks = []
        active = self._serving.current()
        for owner in owners:
            scopes = visible([owner])
            several = active.added is not None and len(self._store.languages(scopes)) > 1
            for one in (embedder or active.embedder, *([active.added] if several else [])):
                try:
                    if is_due(self._store, one.fingerprint if one else "", scopes):
                        self.calibrate(scopes, progress, one)
                except WhyrankError as error:
                    remarks.append(f"not done: {error.message}")
        return remarks
