"""The seam between the index and a database: what stores rows and pages in transactions and gives them back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextlib import AbstractContextManager

    from ..types.memory import Notice


Done = TypeVar("Done")
Asked = tuple[str, "Sequence[Any]"]  # a statement and its parameters
Scrub = Callable[[Any, str], bool]


class Description(NamedTuple):
    """Facts about a database for `status`: version of the schema, sizes, and the engine that reads it."""

    schema: int
    engine: str
    bytes: int | None = None
    free_bytes: int | None = None
    ballast_bytes: int | None = None
    server: Mapping[str, Any] = MappingProxyType({})


class Channel(Protocol):
    """Messages of writers to workers that texts without a vector were stored."""

    def notify(self, connection: Any) -> None:
        """Send one when the transaction of this connection commits."""

    def listening(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `wake` in a thread for each message while the block runs, and after messages may have been lost."""


class Backend(Protocol):
    """A database beneath the index.

    Statements are written once, in SQLite's form; connections and snapshots have the interface of `sqlite3`.
    """

    location: str
    read_only: bool
    channel: Channel | None  # None: workers poll

    @property
    def is_current(self) -> bool:
        """Return whether the opened database is still the one under its name."""

    def prepare(self, keyword: str) -> None:
        """Create the tables, or bring them to the newest schema, and the keyword index of this name."""

    def reading(self, foreseen: Iterable[Asked] = ()) -> AbstractContextManager[Any]:
        """Hold one snapshot for all reads of this thread inside the block; blocks may nest.

        A server answers the foreseen statements together; their results are read when they are asked for.
        """

    def searching(self, foreseen: Iterable[Asked] = (), until: float | None = None) -> AbstractContextManager[Any]:
        """Hold a snapshot as `reading` does, of a replica where that is allowed and one is recent enough.

        If no connection is free until a moment, by `time.monotonic()`, StoreTimeout is raised.
        """

    def notices(self, connection: Any) -> tuple[Notice, ...]:
        """Return notices for answers that are read through the connection of a snapshot."""

    def writing(self, foreseen: Iterable[Asked] = (), *, alone: bool = True) -> AbstractContextManager[Any]:
        """Run one transaction; it is durable when the block has ended without an error.

        Unless `alone`, a server may run other writers at the same time; the caller locks the rows that it changes.
        """

    def connection(self) -> AbstractContextManager[Any]:
        """Hold a connection outside a transaction."""

    def aborting(self, connection: Any, moment: float) -> AbstractContextManager[None]:
        """Abort statements inside the block after a deadline, by `time.monotonic()`."""

    def attempt(self, work: Callable[[], Done], *, frees: bool = False) -> Done:
        """Run a transaction, and again where that can help: after a lost connection, or with room made on the disk.

        `frees` marks work that must not fail on a full disk, because it frees space.
        """

    def keep(self) -> None:
        """Do what a write leaves to do beside its transaction."""

    def purge(self, scrub: Scrub) -> tuple[str, ...]:
        """Erase removed content; return messages on what may remain. `scrub` does so in the index, scope by scope."""

    def describe(self) -> Description:
        """Return what `status` shows of the database."""

    def close(self) -> None:
        """Close every connection."""
