"""The seam of the keyword index: what the store asks of any implementation of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from ...ports import Entry
from ...types import Join, MemoryId, Scope, Signal, Statistics, Where
from ..pools import Scored
from .connection import Connection


class View(NamedTuple):
    """One consistent moment of the file: a connection inside a read transaction, and the generation it sees."""

    connection: Connection
    generation: int


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

    def put(self, connection: Connection, row: int, entry: Entry) -> None:
        """Index a memory."""

    def remove(self, connection: Connection, rows: Iterable[int]) -> None:
        """Take memories out."""

    def run(self, view: View, terms: Sequence[str], where: Where, join: Join, limit: int | None) -> list[Scored]:
        """Return at least what belongs to the best `limit` distinct sources, with exact scores; None for all."""

    def score(self, view: View, rows: Mapping[int, MemoryId], terms: Sequence[str], scopes: frozenset[Scope]) -> Signal:
        """Score the given rows, whether a run would list them or not."""

    def statistics(self, view: View, terms: Iterable[str], scopes: frozenset[Scope]) -> Statistics:
        """Return the term statistics of what the scopes may see."""
