"""Exception hierarchy; each error has a message and a hint with the next step.

WhyrankError (message, hint)
├── ConfigError            unknown key, bad value, and where it came from
│   └── Conflict           the stored data conflicts with the request
├── StoreError             the store cannot be used
│   ├── StoreLocked        another process holds the writer's lock
│   ├── StoreChanged       the data that a change was based on has changed
│   ├── SchemaTooNew       written by a newer whyrank; left untouched
│   ├── StoreDamaged       not a database, or a damaged one
│   ├── StoreFull          no space left on the disk
│   ├── StoreUnavailable   deleted or replaced while open, forked during a call, or a server that does not answer
│   └── StoreTimeout       a search took so long that its statement was aborted
├── SpaceMismatch          vectors of another model, prompt or dimension
├── ProviderError          an embedder or model cannot answer
│   ├── ProviderUnavailable  unreachable, overloaded, or requesting a wait
│   ├── ProviderTimeout      it took too long
│   ├── ProviderRefused      it does not accept the key, the model or the text
│   └── ProviderGarbage      its answer makes no sense
├── MissingExtra           an optional part is not installed (also an ImportError)
├── IngestError            nothing could be read
├── NotFound               no such memory for this caller
├── BadQuery               a query in the advanced syntax cannot be read
└── BadDataset             an evaluation set, or results that were kept, cannot be read
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
import math
from dataclasses import fields


class WhyrankError(Exception):
    """Root of all errors whyrank raises on purpose."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class ConfigError(WhyrankError):
    """A setting or argument is unknown or has a bad value."""


class Conflict(ConfigError):
    """Conflict between the stored data, or another argument, and the request."""


class StoreError(WhyrankError):
    """The store cannot be used."""


class StoreLocked(StoreError):
    """Another process holds the writer's lock."""


class StoreChanged(StoreError):
    """The stored data that a change was based on has changed."""


class SchemaTooNew(StoreError):
    """The store was written by a newer whyrank and is left untouched."""


class StoreDamaged(StoreError):
    """The file is not a whyrank store, or is damaged."""


class StoreFull(StoreError):
    """No space left on the disk."""


class StoreUnavailable(StoreError):
    """The store is not there, not any more, or must not be used by this process; that may pass by itself."""

    def __init__(self, message: str, hint: str = "", *, may_pass: bool = False) -> None:
        super().__init__(message, hint)
        self.may_pass = may_pass


class StoreTimeout(StoreError):
    """A statement was aborted because a search had taken too long."""


class SpaceMismatch(WhyrankError):
    """Vectors come from another model, prompt or dimension."""


class ProviderError(WhyrankError):
    """An embedder or language model cannot answer."""


class ProviderUnavailable(ProviderError):
    """A provider is unreachable, is overloaded, or requests a wait of so many seconds."""

    def __init__(self, message: str, hint: str = "", *, retry_after_s: float | None = None) -> None:
        super().__init__(message, hint)
        self.retry_after_s = retry_after_s


class ProviderTimeout(ProviderError):
    """A provider took too long."""


class ProviderRefused(ProviderError):
    """A provider does not accept the key, the model or the text; the status is that of its answer."""

    def __init__(self, message: str, hint: str = "", *, status: int = 0) -> None:
        super().__init__(message, hint)
        self.status = status


class ProviderGarbage(ProviderError):
    """The answer of a provider makes no sense."""


class MissingExtra(WhyrankError, ImportError):
    """An optional part is not installed."""


class IngestError(WhyrankError):
    """Nothing could be read."""


class NotFound(WhyrankError):
    """There is no such memory for this caller."""


class BadQuery(WhyrankError):
    """A query in the advanced syntax cannot be read."""


class BadDataset(WhyrankError):
    """An evaluation set, or kept results, cannot be read."""


def check_finite(part: DataclassInstance) -> None:
    """Raise if a part of a recipe holds an infinity or a NaN."""
    for field in fields(part):
        value = getattr(part, field.name)
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{field.name} of {type(part).__name__} is {value}", "give a finite number")
