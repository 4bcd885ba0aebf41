"""The seam of the keyword index: what the store asks of any implementation of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from ...columns import MemoryId
from ...ports import Entry
from ...types import Join, Notice, Scope, Signal, Statistics, Where
from .catalogue import Catalogue, Shelf
from .connection import Connection
from .masks import Masks
from .selection import Rows


class View(NamedTuple):
    """One consistent moment of the file: a connection inside a read transaction, and what is kept in memory of it."""

    connection: Connection
    generation: int
    keyword: KeywordIndex
    catalogue: Catalogue
    masks: Masks

    def shelves(self, scopes: frozenset[Scope]) -> list[Shelf]:
        """Return what the scopes hold."""
        return self.catalogue.shelves(self.connection, self.generation, scopes)


class Found(NamedTuple):
    """Rows with their scores, best first, cut at the sources asked for; and what must be said of them."""

    rows: Rows
    notices: Sequence[Notice] = ()


class KeywordIndex(Protocol):
    """An index over analysed tokens that lives in the store's own file and transactions."""

    @property
    def name(self) -> str:
        """Return the name users choose it by."""

    def exists(self, connection: Connection) -> bool:
        """Tell whether its tables are there."""

    def create(self, connection: Connection) -> None:
        """Make its tables."""

    def stored_tokens(self, connection: Connection, row: int) -> list[str]:
        """Return the tokens of a memory, so that another index can take over."""

    def drop(self, connection: Connection) -> None:
        """Remove its tables."""

    def put(self, connection: Connection, row: int, number: int, entry: Entry) -> None:
        """Index a memory under its row and its number in its scope."""

    def remove(self, connection: Connection, row: int, scope: str, number: int) -> None:
        """Take a memory out."""

    def close(self, connection: Connection, numbers: Mapping[str, int]) -> None:
        """End a transaction that put memories; `numbers` says where each scope's numbers end now."""

    def renumber(self, connection: Connection, scope: str, moves: Sequence[tuple[int, str, int]], numbers: int) -> None:
        """Follow memories of a scope to new numbers (new, scope, old), below `numbers` and in the same order."""

    def is_due(self, connection: Connection) -> bool:
        """Tell whether there is housekeeping to be done."""

    def tidy(self, connection: Connection) -> bool:
        """Do a bounded piece of housekeeping in a transaction of its own; tell whether more is due."""

    def scrub(self, connection: Connection) -> None:
        """Leave nothing of removed memories that `renumber` has not written anew."""

    def run(self, view: View, terms: Sequence[str], where: Where, join: Join, limit: int | None) -> Found:
        """Return the best `limit` distinct sources with exact scores; None for all."""

    def score(
        self, view: View, ids: Sequence[MemoryId], rows: Sequence[int], terms: Sequence[str], scopes: frozenset[Scope]
    ) -> Signal:
        """Score the given memories in their rows, whether a run would list them or not."""

    def statistics(self, view: View, terms: Iterable[str], scopes: frozenset[Scope]) -> Statistics:
        """Return the term statistics of what the scopes may see."""
