"""The seam of the keyword index: what the store asks of any implementation of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from ...types import Join
from ..pools import Scored
from .connection import Connection
from .filters import Clause


class KeywordIndex(Protocol):
    """An index over analysed tokens that lives in the store's own file and transactions."""

    @property
    def name(self) -> str:
        """Return the name users choose it by."""

    def exists(self, connection: Connection) -> bool:
        """Tell whether its tables are there."""

    def create(self, connection: Connection) -> None:
        """Make its tables."""

    def put(self, connection: Connection, row: int, tokens: Sequence[str]) -> None:
        """Index the tokens of a memory."""

    def remove(self, connection: Connection, rows: Iterable[int]) -> None:
        """Take memories out."""

    def select(
        self, connection: Connection, terms: Sequence[str], where: Clause, join: Join, limit: int | None
    ) -> dict[int, Scored]:
        """Return the rows worth scoring, with a margin beyond `limit` distinct sources; None for all that match."""

    def tokens(self, connection: Connection, rows: Iterable[int]) -> dict[int, str]:
        """Return the padded tokens of rows."""

    def frequency(self, connection: Connection, term: str, scopes: Clause) -> int:
        """Count the memories of these scopes that hold a term."""
