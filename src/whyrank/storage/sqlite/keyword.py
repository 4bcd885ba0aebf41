"""The seam of the keyword index: what the store asks of any implementation of it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from ...columns import MemoryId
from ...ports import UNREADABLE, Entry
from ...types import ONCE, Join, Notice, Repeats, Scope, Signal, Statistics, Where
from ...wording import counted, which
from .catalogue import Catalogue, Flags, Integers, Shelf
from .connection import Connection
from .filters import Clause, clause_for
from .masks import Masks
from .matching import Said, lists_wanted, matching
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

    def allowed(self, shelves: Sequence[Shelf], where: Where) -> list[Flags | None]:
        """Tell which places of some shelves may answer, by every filter; None where all may."""
        masks = [self.masks.allowed(self.connection, shelf, where) for shelf in shelves]
        if where.matching is None:
            return masks
        return [both(mask, self._matching(shelf, where)) for mask, shelf in zip(masks, shelves, strict=True)]

    def _matching(self, shelf: Shelf, where: Where, besides: Flags | None = None) -> Flags:
        """Tell of which places the expression of a filter is true; those `besides` say whatever they are asked for."""
        assert where.matching is not None
        holders = partial(self.keyword.holders, self, shelf)
        said: Said = partial(self.masks.saying, self.connection, shelf)
        return matching(shelf, where.matching, holders, said if besides is None else lambda leaf: said(leaf) | besides)

    def unlisted(self, where: Where) -> tuple[Notice, ...]:
        """Say what a filter leaves out because a list that it asks about was damaged, and maybe for nothing else."""
        columns = lists_wanted(where.matching) | ({"tags"} if where.tags else set())
        if not columns:
            return ()
        left = sum(self._unlisted(shelf, columns, where) for shelf in self.shelves(where.scopes))
        if not left:
            return ()
        said = f"the {' and '.join(sorted(columns))} of {counted(left, 'memory', 'memories')} were damaged"
        told = f"{said}, so nobody knows whether {which(left, 'it says', 'they say')} what is asked for"
        return (Notice(UNREADABLE, f"{told}; `whyrank doctor` names what is damaged, and `--repair` mends it"),)

    def _unlisted(self, shelf: Shelf, columns: Collection[str], where: Where) -> int:
        broken = [self.masks.illegible(self.connection, shelf, column) for column in columns]
        known = [flags for flags in broken if flags is not None]
        if not known:
            return 0
        left: Flags = np.logical_or.reduce(known)
        may = both(self.masks.allowed(self.connection, shelf, replace(where, tags=frozenset())), left)
        if where.matching is not None:
            may = may & self._matching(shelf, where, left)
        [passing] = self.allowed([shelf], where)
        return int(np.count_nonzero(may & ~both(passing, may)))

    def rows_matching(self, where: Where) -> set[int] | None:
        """Return the rows of which the expression of a filter is true; None without one."""
        if where.matching is None:
            return None
        rows = (shelf.rows[self._matching(shelf, where) & shelf.alive].tolist() for shelf in self.shelves(where.scopes))
        return {row for some in rows for row in some}

    def clause(self, where: Where) -> Clause:
        """Return every filter in SQL."""
        clause, rows = clause_for(where), self.rows_matching(where)
        if rows is None:
            return clause
        listed = json.dumps(sorted(rows))
        return Clause(f"{clause.sql} AND m.row IN (SELECT value FROM json_each(?))", (*clause.parameters, listed))


def both(mask: Flags | None, other: Flags) -> Flags:
    """Return what two masks allow; None allows everything."""
    return other if mask is None else np.logical_and(mask, other)


class Found(NamedTuple):
    """Rows with their scores, best first, cut at the sources asked for; and what must be said of them."""

    rows: Rows
    notices: Sequence[Notice] = ()


class Placed(NamedTuple):
    """A memory that is put, under its row and its number in its scope."""

    row: int
    number: int
    entry: Entry


class KeywordIndex(Protocol):
    """An index over analysed tokens that lives in the store's own file and transactions."""

    @property
    def name(self) -> str:
        """Return the name users choose it by."""

    def cache_bytes(self) -> Mapping[str, int]:
        """Return how much memory each of its caches holds."""

    def exists(self, connection: Connection) -> bool:
        """Tell whether its tables are there."""

    def create(self, connection: Connection) -> None:
        """Make its tables."""

    def stored_tokens(self, connection: Connection, row: int) -> list[str]:
        """Return the tokens of a memory, so that another index can take over."""

    def drop(self, connection: Connection) -> None:
        """Remove its tables."""

    def put(self, connection: Connection, placed: Sequence[Placed]) -> None:
        """Index memories, in each scope by ascending number."""

    def remove(self, connection: Connection, row: int, scope: str, number: int) -> None:
        """Take a memory out."""

    def close(self, connection: Connection, numbers: Mapping[str, int], newest: Sequence[Placed] = ()) -> None:
        """End a transaction that put memories; `numbers` says where each scope's numbers end now.

        The newest need not be read again: from the first of them on they are all there are of their scope.
        """

    def renumber(self, connection: Connection, scope: str, moves: Sequence[tuple[int, str, int]], numbers: int) -> None:
        """Follow memories of a scope to new numbers (new, scope, old), below `numbers` and in the same order."""

    def is_due(self, connection: Connection) -> bool:
        """Tell whether there is housekeeping to be done."""

    def tidy(self, connection: Connection) -> bool:
        """Do a bounded piece of housekeeping in a transaction of its own; tell whether more is due."""

    def settle(self, connection: Connection, scope: str) -> None:
        """Make housekeeping due that is worth it once many memories of a scope were put and no more are to come."""

    def abandon_merge(self, connection: Connection, scope: str) -> None:
        """Drop what a merge has written so far: it may hold postings of memories that are being purged."""

    def scrub(self, connection: Connection, scope: str) -> bool:
        """Take what is left of removed memories out of a scope, a bounded piece of it; tell whether more is left."""

    def holders(self, view: View, shelf: Shelf, term: str) -> Integers:
        """Return the places of a shelf whose own texts hold a term."""

    def beginning(self, view: View, beginning: str, scopes: frozenset[Scope]) -> Mapping[str, int]:
        """Return the terms of what the scopes may see that begin so as typed, and how many memories hold each."""

    def spelled(self, view: View, plain: Collection[str], scopes: frozenset[Scope]) -> Mapping[str, tuple[str, ...]]:
        """Return terms of what the scopes may see, or saw, that are these without accents."""

    def run(
        self, view: View, terms: Sequence[str], where: Where, join: Join, limit: int | None, repeats: Repeats = ONCE
    ) -> Found:
        """Return the best `limit` distinct sources with exact scores; None for all."""

    def score(
        self,
        view: View,
        ids: Sequence[MemoryId],
        rows: Sequence[int],
        terms: Sequence[str],
        scopes: frozenset[Scope],
        repeats: Repeats = ONCE,
    ) -> Signal:
        """Score the given memories in their rows, whether a run would list them or not."""

    def statistics(self, view: View, terms: Iterable[str], scopes: frozenset[Scope]) -> Statistics:
        """Return the term statistics of what the scopes may see."""
