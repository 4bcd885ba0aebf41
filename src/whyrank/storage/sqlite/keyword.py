"""Interface of the keyword index: the protocol of all implementations, and their view of the file."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from ...formatting import counted, which
from ...protocols import UNREADABLE
from ...types.memory import Entry, Notice, Scope
from ...types.query import ONCE, Join, Repeats, Statistics, Where
from ...types.results import Signal
from .filters import Clause, Masks, Said, clause_for, lists_wanted, matching

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from ...types.memory import MemoryId
    from .connection import Connection
    from .doc_values import DocValues, Flags, Integers, ScopeDocValues
    from .top_k import Rows


class View(NamedTuple):
    """A snapshot of the file: a connection inside a read transaction, and the caches that belong to it."""

    connection: Connection
    generation: int
    keyword: KeywordIndex
    catalogue: DocValues
    masks: Masks

    def shelves(self, scopes: frozenset[Scope]) -> list[ScopeDocValues]:
        """Return the doc values of the scopes."""
        return self.catalogue.shelves(self.connection, self.generation, scopes)

    def allowed(self, shelves: Sequence[ScopeDocValues], where: Where) -> list[Flags | None]:
        """Return the masks of places that pass every filter, by scope; None where all do."""
        masks = [self.masks.allowed(self.connection, shelf, where) for shelf in shelves]
        if where.matching is None:
            return masks
        return [both(mask, self._matching(shelf, where)) for mask, shelf in zip(masks, shelves, strict=True)]

    def _matching(self, shelf: ScopeDocValues, where: Where, besides: Flags | None = None) -> Flags:
        """Return the mask of places where the filter's expression is true; `besides` match every field."""
        assert where.matching is not None
        holders = partial(self.keyword.holders, self, shelf)
        said: Said = partial(self.masks.saying, self.connection, shelf)
        return matching(shelf, where.matching, holders, said if besides is None else lambda leaf: said(leaf) | besides)

    def unlisted(self, where: Where) -> tuple[Notice, ...]:
        """Return a notice on the memories that a filter drops because a list it reads is damaged."""
        columns = lists_wanted(where.matching) | ({"tags"} if where.tags else set())
        if not columns:
            return ()
        left = sum(self._unlisted(shelf, columns, where) for shelf in self.shelves(where.scopes))
        if not left:
            return ()
        said = f"the {' and '.join(sorted(columns))} of {counted(left, 'memory', 'memories')} were damaged"
        told = f"{said}, so nobody knows whether {which(left, 'it says', 'they say')} what is asked for"
        return (Notice(UNREADABLE, f"{told}; `whyrank doctor` names what is damaged, and `--repair` mends it"),)

    def _unlisted(self, shelf: ScopeDocValues, columns: Collection[str], where: Where) -> int:
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
        """Return the rows that match the expression of a filter; None without one."""
        if where.matching is None:
            return None
        rows = (shelf.rows[self._matching(shelf, where) & shelf.alive].tolist() for shelf in self.shelves(where.scopes))
        return {row for some in rows for row in some}

    def clause(self, where: Where) -> Clause:
        """Return the whole filter in SQL."""
        clause, rows = clause_for(where), self.rows_matching(where)
        if rows is None:
            return clause
        listed = json.dumps(sorted(rows))
        return Clause(f"{clause.sql} AND m.row IN (SELECT value FROM json_each(?))", (*clause.parameters, listed))


def both(mask: Flags | None, other: Flags) -> Flags:
    """Return the conjunction of two masks; None allows everything."""
    return other if mask is None else np.logical_and(mask, other)


class KeywordRun(NamedTuple):
    """Rows with their scores, best first, cut at the requested number of sources; and notices on them."""

    rows: Rows
    notices: Sequence[Notice] = ()


class NumberedMemory(NamedTuple):
    """A memory to be indexed, with its row and its number in its scope."""

    row: int
    number: int
    entry: Entry


class KeywordIndex(Protocol):
    """An index over analysed tokens that lives in the store's own file and transactions."""

    @property
    def name(self) -> str:
        """Return the name users choose it by."""

    def cache_bytes(self) -> Mapping[str, int]:
        """Return the memory of each cache, in bytes."""

    def exists(self, connection: Connection) -> bool:
        """Return whether its tables exist."""

    def create(self, connection: Connection) -> None:
        """Create its tables."""

    def stored_tokens(self, connection: Connection, row: int) -> list[str]:
        """Return the tokens of a memory, so that another index can take over."""

    def drop(self, connection: Connection) -> None:
        """Drop its tables."""

    def put(self, connection: Connection, placed: Sequence[NumberedMemory]) -> None:
        """Index memories, in each scope by ascending number."""

    def remove(self, connection: Connection, row: int, scope: str, number: int) -> None:
        """Remove a memory."""

    def close(self, connection: Connection, numbers: Mapping[str, int], newest: Sequence[NumberedMemory] = ()) -> None:
        """End a transaction that put memories; `numbers` holds the new end of each scope's numbers.

        The newest need not be read again: they are all memories of their scope from the first of them on.
        """

    def renumber(self, connection: Connection, scope: str, moves: Sequence[tuple[int, str, int]], numbers: int) -> None:
        """Move memories of a scope to new numbers (new, scope, old), below `numbers` and in the same order."""

    def is_due(self, connection: Connection) -> bool:
        """Return whether maintenance is due: a merge, or the rebuild of a damaged segment."""

    def tidy(self, connection: Connection) -> bool:
        """Run a bounded piece of maintenance in a transaction of its own; return whether more is due."""

    def compact(self, connection: Connection, scope: str) -> None:
        """Schedule the merges that pay off after a bulk write to a scope."""

    def abandon_merge(self, connection: Connection, scope: str) -> None:
        """Drop the partial result of a merge: it may hold postings of memories that are being purged."""

    def scrub(self, connection: Connection, scope: str) -> bool:
        """Remove a bounded part of the remains of deleted memories from a scope; return whether more is left."""

    def holders(self, view: View, shelf: ScopeDocValues, term: str) -> Integers:
        """Return the places of a scope whose own texts hold a term, or which have a mark."""

    def beginning(self, view: View, beginning: str, scopes: frozenset[Scope]) -> Mapping[str, int]:
        """Return the visible terms with a prefix, as typed, and their document frequencies."""

    def spelled(self, view: View, plain: Collection[str], scopes: frozenset[Scope]) -> Mapping[str, tuple[str, ...]]:
        """Return the terms that equal these without accents; they may include those of removed memories."""

    def run(
        self, view: View, terms: Sequence[str], where: Where, join: Join, limit: int | None, repeats: Repeats = ONCE
    ) -> KeywordRun:
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

    def marked(
        self, view: View, rows: Sequence[int], marks: Sequence[str], scopes: frozenset[Scope]
    ) -> Mapping[int, str]:
        """Return the mark of each row that has one of these and is visible."""

    def count_marks(self, view: View, marks: Sequence[str], scopes: frozenset[Scope]) -> Mapping[str, int]:
        """Count the visible memories by mark."""

    def statistics(self, view: View, terms: Iterable[str], scopes: frozenset[Scope]) -> Statistics:
        """Return the term statistics of the visible memories."""
