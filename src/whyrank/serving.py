"""Which embedding space answers for a store: the store knows, whatever the settings say, and all processes follow it.

The roles of the spaces are one small note of the store, so that changing them is one transaction. It holds the names of
providers and settings that shape vectors, never an address or a key: a file that came from somewhere must not say where
texts are sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache

from .embedding.missing import MissingModel
from .errors import ConfigError, ProviderUnavailable, StoreError, WhyrankError
from .ports import Embedder, Store
from .types import Notice

NOTE = "spaces"
_FORMAT = 1
_EARLIER = "the vectors of these memories are as an earlier whyrank made them, and go on answering"
_ATTEMPTS = 10  # to change a note that others change at the same time


@dataclass(frozen=True)
class Space:
    """One embedding space and how its embedder is made again; no provider where it was handed in as an object."""

    name: str
    provider: str = ""
    settings: Mapping[str, object] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return self.provider or self.name


@dataclass(frozen=True)
class Roles:
    """Which space answers, which is being filled, which answered before."""

    serving: Space | None = None
    filling: Space | None = None
    before: Space | None = None

    def switched(self, to: Space) -> Roles:
        """Return the roles after the one switch: what answered till now is the one before."""
        filling = None if self.filling is not None and self.filling.name == to.name else self.filling
        if self.serving is None or self.serving.name == to.name:
            return replace(self, serving=to, filling=filling)
        return Roles(to, filling, self.serving)

    def without(self, names: Collection[str]) -> Roles:
        """Return the roles without spaces that shall not be there any more."""
        serving = None if self.serving is not None and self.serving.name in names else self.serving
        filling = None if self.filling is not None and self.filling.name in names else self.filling
        before = None if self.before is not None and self.before.name in names else self.before
        return Roles(serving, filling, before)


@dataclass(frozen=True)
class Makers:
    """How embedders are made here: by the name of a provider; and who makes the vectors of a space."""

    configured: str = ""
    is_chosen: bool = False  # somebody wrote the setting down; it is not the default
    settings: Callable[[str], Mapping[str, object]] = lambda provider: {}
    make: Callable[[str, Mapping[str, object]], Embedder | None] = lambda provider, settings: None
    provider_of: Callable[[str], str] = lambda space: ""
    earlier: Callable[[str], Embedder | None] = lambda space: None  # as an earlier whyrank made its vectors


class Serving:
    """The embedder that answers for a store: that of the space which serves, as soon as another process changes it."""

    def __init__(self, store: Store, configured: Embedder | None, makers: Makers) -> None:
        self._store = store
        self._configured = configured
        self._makers = makers
        self._seen: tuple[str | None, Embedder] | None = None
        self._said: tuple[str | None, bool, tuple[Notice, ...]] | None = None
        self._old: Roles | None = None
        self._agreed = False

    def embedder(self) -> Embedder | None:
        """Return the embedder that answers, or None where words shall answer alone."""
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

    def roles(self) -> Roles:
        """Return the roles of the spaces; in a store that does not know them yet, as its vectors suggest."""
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
        """Make the embedder of a space; where that cannot be done, one that says so when it is needed."""
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
        """Write the roles down where a store does not know them yet; done before the first vector is written."""
        if not self.is_adopted():
            self._store.swap_note(NOTE, None, _text(self.roles()))

    def is_adopted(self) -> bool:
        """Tell whether there is nothing to write down: the store knows its roles, or words answer alone."""
        return self._configured is None or self._store.note(NOTE) is not None

    def change(self, change: Callable[[Roles], Roles]) -> Roles:
        """Change the roles in one transaction, whatever others do to them at the same time."""
        for _ in range(_ATTEMPTS):
            before = self._store.note(NOTE)
            wanted = change(self.roles())
            if before == _text(wanted) or self._store.swap_note(NOTE, before, _text(wanted)):
                return wanted
        raise StoreError("the spaces of the store are being changed by somebody else", "try again in a moment")

    def outdated(self) -> str:
        """Name the provider of the space that answers, if its vectors are as an earlier whyrank made them."""
        serving = self.roles().serving if self._configured is not None else None
        return serving.provider if serving is not None and self._makers.earlier(serving.name) is not None else ""

    def notices(self) -> tuple[Notice, ...]:
        """Say that another model answers than the one that was asked for, or the same as an earlier whyrank made it."""
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
    """One embedder, whatever the store says: for trying out what it would answer."""

    def __init__(self, store: Store, embedder: Embedder) -> None:
        super().__init__(store, embedder, Makers())
        self._always = embedder

    def embedder(self) -> Embedder | None:
        """Return that embedder."""
        return self._always

    def notices(self) -> tuple[Notice, ...]:
        """Say nothing: this is what was asked for."""
        return ()


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
    return json.dumps({**asdict(roles), "format": _FORMAT}, sort_keys=True)


@lru_cache(maxsize=64)
def _read(text: str) -> Roles:
    """Read the roles; of those another version wrote in another shape nothing is known."""
    try:
        data = json.loads(text)
        if data.pop("format") != _FORMAT:
            return Roles()
        return Roles(**{role: Space(**space) if space is not None else None for role, space in data.items()})
    except (ValueError, TypeError, KeyError, AttributeError):
        return Roles()
