"""Shared parts of all indexes: the view of the file, and the top-k rows of some scopes.

Rows are filtered before the cut, ties broken by content, and a run cut by source.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ...formatting import counted, which
from ...protocols import UNREADABLE
from ...types.memory import Entry, Notice, Scope
from ...types.query import ONCE, Join, Repeats, Statistics, Where
from ..bm25 import CHUNKS_PER_SOURCE
from .doc_values import RECORD, Flags, Floats, Integers, ScopeDocValues
from .filters import Clause, Masks, Said, clause_for, lists_wanted, matching
from .rows import content_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ...types.memory import MemoryId
    from ...types.results import Signal
    from ..backend import Asked
    from .database import Connection, Key
    from .doc_values import DocValues


_SCOPE_SETS_KEPT = 4  # whose doc values one snapshot keeps


class View(NamedTuple):
    """A snapshot of the file: a connection inside a read transaction, and the caches that belong to it."""

    connection: Connection
    generation: int
    keyword: KeywordIndex
    catalogue: DocValues
    masks: Masks
    opened: dict[frozenset[Scope], list[ScopeDocValues]]  # the doc values that were read in this snapshot
    is_remote: bool = False  # in a server, to which the statements of a search are sent together

    def shelves(self, scopes: frozenset[Scope]) -> list[ScopeDocValues]:
        """Return the doc values of the scopes that exist, always in the same order."""
        known = self.opened.get(scopes)
        if known is None:
            if len(self.opened) >= _SCOPE_SETS_KEPT:
                self.opened.clear()
            known = self.opened[scopes] = self.catalogue.shelves(self.connection, scopes)
        return known

    def allowed(self, shelves: Sequence[ScopeDocValues], where: Where) -> list[Flags | None]:
        """Return the masks of places that pass every filter, by scope; None where all do."""
        masks = [self.masks.allowed(self.connection, shelf, where) for shelf in shelves]
        if where.expression is None:
            return masks
        return [combine_masks(mask, self._matching(shelf, where)) for mask, shelf in zip(masks, shelves, strict=True)]

    def _matching(self, shelf: ScopeDocValues, where: Where, besides: Flags | None = None) -> Flags:
        """Return the mask of places where the filter's expression is true; `besides` match every field."""
        assert where.expression is not None
        holders = partial(self.keyword.holders, self, shelf)
        said: Said = partial(self.masks.saying, self.connection, shelf)
        either: Said = said if besides is None else lambda leaf: said(leaf) | besides
        return matching(shelf, where.expression, holders, either)

    def unlisted(self, where: Where) -> tuple[Notice, ...]:
        """Return a notice on the memories that a filter drops because a list it reads is damaged."""
        columns = lists_wanted(where.expression) | ({"tags"} if where.tags else set())
        if not columns:
            return ()
        left = sum(self._unlisted(shelf, columns, where) for shelf in self.shelves(where.scopes))
        if not left:
            return ()
        said = f"the {' and '.join(sorted(columns))} of {counted(left, 'memory', 'memories')} were damaged"
        told = f"{said}, so it is unknown whether {which(left, 'it matches', 'they match')} the filter"
        return (Notice(UNREADABLE, f"{told}; `whyrank doctor` lists what is damaged, and `--repair` fixes it"),)

    def _unlisted(self, shelf: ScopeDocValues, columns: Collection[str], where: Where) -> int:
        broken = [self.masks.illegible(self.connection, shelf, column) for column in columns]
        known = [flags for flags in broken if flags is not None]
        if not known:
            return 0
        left: Flags = np.logical_or.reduce(known)
        may = combine_masks(self.masks.allowed(self.connection, shelf, replace(where, tags=frozenset())), left)
        if where.expression is not None:
            may = may & self._matching(shelf, where, left)
        [passing] = self.allowed([shelf], where)
        return int(np.count_nonzero(may & ~combine_masks(passing, may)))

    def clause(self, where: Where) -> Clause:
        """Return the whole filter in SQL."""
        clause = clause_for(where)
        if where.expression is None:
            return clause
        parts, values = ["FALSE"], list[str]()
        for shelf in self.shelves(where.scopes):
            matches = np.flatnonzero(self._matching(shelf, where) & shelf.alive).tolist()
            parts.append("(m.scope = ? AND m.number IN (SELECT value FROM json_each(?)))")
            values += (shelf.scope, json.dumps(matches))
        return Clause(f"{clause.sql} AND ({' OR '.join(parts)})", (*clause.parameters, *values))


def combine_masks(mask: Flags | None, other: Flags) -> Flags:
    """Return the conjunction of two masks; None allows everything."""
    return other if mask is None else np.logical_and(mask, other)


class KeywordRun(NamedTuple):
    """Rows with their scores, best first, cut at the requested number of sources; and notices on them."""

    rows: Rows
    notices: Sequence[Notice] = ()


class NumberedMemory(NamedTuple):
    """A memory to be indexed, with its number in its scope."""

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

    def stored_tokens(self, connection: Connection, scope: str, number: int) -> list[str]:
        """Return the tokens of a memory, so that another index can take over."""

    def drop(self, connection: Connection) -> None:
        """Drop its tables."""

    def put(self, connection: Connection, placed: Sequence[NumberedMemory]) -> None:
        """Index memories, in each scope by ascending number."""

    def remove(self, connection: Connection, scope: str, number: int) -> None:
        """Remove a memory, while its row is still there."""

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
        keys: Sequence[Key],
        terms: Sequence[str],
        scopes: frozenset[Scope],
        repeats: Repeats = ONCE,
    ) -> Signal:
        """Score the given memories, with their keys, whether a run would list them or not."""

    def find_marks(
        self, view: View, keys: Sequence[Key], marks: Sequence[str], scopes: frozenset[Scope]
    ) -> Mapping[Key, str]:
        """Return the mark of each memory that has one of these and is visible."""

    def count_marks(self, view: View, marks: Sequence[str], scopes: frozenset[Scope]) -> Mapping[str, int]:
        """Count the visible memories by mark."""

    def statistics(self, view: View, terms: Iterable[str], scopes: frozenset[Scope]) -> Statistics:
        """Return the term statistics of the visible memories."""

    def asked(self, view: View, terms: Sequence[str], scopes: frozenset[Scope]) -> Iterator[Asked]:
        """Yield the statements that a run and its scores will execute, so that they can be sent together."""


_BLOCK = 128  # scores per block when the threshold is estimated
_TEXT = bytes.decode  # ids are ASCII
_FEW = 2  # times as many as are wanted
_NO_KEY = ("",)  # of a row that is in an index but not in its table
MORE = 64  # rows examined beyond the requested sources, before a deeper pass


class ScoredOrdinals(NamedTuple):
    """Places of scopes with their scores, unordered."""

    shelves: Integers
    places: Integers
    scores: Floats


class Sums(NamedTuple):
    """Scores of the allowed places of a scope: of all in order, or only of those that can be among the best."""

    values: Floats
    places: Integers | None = None
    is_chosen: bool = (
        False  # they are the best of those allowed, one more than wanted if there are more, and its equals
    )


class Cutter(Protocol):
    """Function of the kernel that orders and cuts candidates, if they are all unlike."""

    def cut(
        self,
        shelves: NDArray[np.int64],
        places: NDArray[np.int64],
        scores: NDArray[np.float64],
        limit: int,
        is_all: bool,
        known: tuple[tuple[object, ...], ...],
        /,
    ) -> tuple[list[int], list[float], list[str], list[str], list[int]] | None:
        """Sort places by descending score and keep `limit`; None if that takes more than scores."""


class Rows(NamedTuple):
    """Result rows, best first: numbers, scores, ids (empty if unknown), scopes, and codes of their sources."""

    numbers: Sequence[int] = ()
    scores: Sequence[float] = ()
    ids: Sequence[str] = ()
    scopes: Sequence[str] = ()
    origins: Sequence[int] = ()


def best_rows(
    connection: Connection,
    kernel: Cutter,
    shelves: Sequence[ScopeDocValues],
    scores: Callable[[Sequence[Flags | None], int | None], Sequence[Sums]],
    allowed: Sequence[Flags | None],
    limit: int | None,
) -> Rows:
    """Return the rows with a score above zero, best first, cut at `limit` distinct sources.

    `scores` returns the scores of places, exact for the best `wanted` of those that are allowed.
    """
    wanted = None if limit is None else limit + spare_rows(shelves)
    while True:
        sums = scores(allowed, wanted)
        is_chosen = all(own.is_chosen for own in sums)
        lowest = 0.0 if wanted is None or is_chosen else threshold([own.values for own in sums], wanted)
        chosen = select_above(sums, lowest)
        is_all = lowest <= 0.0 and (wanted is None or len(chosen.scores) <= wanted)
        # Up to twice as many as are wanted are cheaper kept than selected.
        if wanted is not None and not is_all and len(chosen.scores) > _FEW * wanted:
            chosen = keep_only(chosen, chosen.scores >= nth_best(chosen.scores, wanted))
        rows = cut(connection, kernel, shelves, chosen, limit, is_all)
        if rows is not None or wanted is None:
            return rows or Rows()
        wanted *= 4


def spare_rows(shelves: Sequence[ScopeDocValues]) -> int:
    """Return the rows to examine beyond the requested sources: one where every memory is its own source."""
    return 1 if all(shelf.is_one_chunk_each for shelf in shelves) else MORE


def select_above(scores: Sequence[Sums], threshold: float) -> ScoredOrdinals:
    """Choose the places at or above a threshold, or above zero."""
    chosen: list[ScoredOrdinals] = []
    for number, (values, places, is_chosen) in enumerate(scores):
        if not is_chosen or places is None:
            found = (values >= threshold if threshold > 0.0 else values > 0.0).nonzero()[0]
            places, values = found if places is None else places[found], values[found]
        chosen.append(ScoredOrdinals(np.full(len(values), number), places, values))
    if len(chosen) == 1:
        return chosen[0]
    if not chosen:
        return ScoredOrdinals(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    return ScoredOrdinals(*map(np.concatenate, zip(*chosen, strict=True)))


def keep_only(chosen: ScoredOrdinals, kept: Flags) -> ScoredOrdinals:
    """Keep some of the candidates; mostly all are kept."""
    if kept.all():
        return chosen
    return ScoredOrdinals(chosen.shelves[kept], chosen.places[kept], chosen.scores[kept])


def threshold(scores: Sequence[NDArray[np.floating]], wanted: int) -> float:
    """Return a score that at least `wanted` places reach, from the maxima of blocks.

    Blocks are strided, which numpy reduces much faster.
    """
    size = max(1, min(_BLOCK, sum(map(len, scores)) // (4 * wanted)))
    blocks: list[NDArray[np.floating]] = []
    for own in scores:
        whole = len(own) - len(own) % size
        if not whole:  # a small scope beside a large one
            blocks.append(own)
            continue
        highest: NDArray[np.floating] = np.maximum.reduce(own[:whole].reshape(size, -1), axis=0)
        if whole < len(own):  # the few behind the last whole block count to the first
            highest[0] = max(highest[0], np.maximum.reduce(own[whole:]))
        blocks.append(highest)
    maxima = blocks[0] if len(blocks) == 1 else np.concatenate(blocks) if blocks else np.zeros(0)
    return 0.0 if len(maxima) <= wanted else nth_best(maxima, wanted)


def nth_best(scores: NDArray[np.floating], number: int) -> float:
    """Return the score at a rank from the top."""
    ordered, place = scores.copy(), len(scores) - number
    ordered.partition(place)
    return float(ordered[place])


def cut(
    connection: Connection,
    kernel: Cutter,
    shelves: Sequence[ScopeDocValues],
    chosen: ScoredOrdinals,
    limit: int | None,
    is_all: bool = False,
) -> Rows | None:
    """Order the candidates and cut them at `limit` sources; None if more candidates are needed."""
    if limit is not None:
        found = kernel.cut(*chosen, limit, is_all, tuple([shelf.known for shelf in shelves]))
        if found is not None:
            return Rows(*found)
    order = (-chosen.scores).argsort(kind="stable")
    ordered = chosen.scores[order]
    scores, sources = ordered.tolist(), _read_column(shelves, chosen, order, "group")
    # Sources are counted up to the first that is too many; ties with that one are decided together.
    kept, end = _keep_sources(sources, limit)
    if end is None and not (is_all or limit is None):
        return None
    if end is not None:
        end += 1
        while end < len(scores) and scores[end] == scores[end - 1]:
            end += 1
        order = order[:end]
    equal = (ordered[1 : len(order)] == ordered[: len(order) - 1]).nonzero()[0].tolist()
    if equal:
        places, alike = _sort_ties(shelves, chosen, order, equal)
        if alike:  # whole content keys are read only where their prefixes do not decide
            owners = [shelves[number].scope for number in chosen.shelves[order].tolist()]
            keys = [*zip(owners, chosen.places[order].tolist(), strict=True)]
            ties = content_keys(connection, [keys[i] for run in alike for i in places[run]])
            for run in alike:
                places[run] = sorted(places[run], key=lambda i: ties.get(keys[i], _NO_KEY))
        order = order[places]
        sources = _read_column(shelves, chosen, order, "group")
        kept, _ = _keep_sources(sources, limit)
    order = order[kept]
    ids = [*map(_TEXT, _read_column(shelves, chosen, order, "id"))]
    scopes = [shelves[number].scope for number in chosen.shelves[order].tolist()]
    return Rows(chosen.places[order].tolist(), [scores[i] for i in kept], ids, scopes, [sources[i] for i in kept])


def _read_column(shelves: Sequence[ScopeDocValues], chosen: ScoredOrdinals, order: Integers, column: str) -> list[Any]:
    """Return a column of the records of the candidates, in order."""
    places = chosen.places[order]
    if len(shelves) == 1:
        return list(shelves[0].columns[column][places].tolist())
    numbers = chosen.shelves[order]
    values = np.zeros(len(order), RECORD[column])
    for number, shelf in enumerate(shelves):
        here = numbers == number
        values[here] = shelf.columns[column][places[here]]
    return list(values.tolist())


def _sort_ties(
    shelves: Sequence[ScopeDocValues], chosen: ScoredOrdinals, order: Integers, equal: Sequence[int]
) -> tuple[list[int], list[slice]]:
    """Sort equal scores by the prefixes of their content keys; return the runs whose prefixes are equal or empty too.

    `equal` are the positions whose score equals the next one.
    """
    tied: list[slice] = []
    begin = equal[0]
    for place, following in zip(equal, [*equal[1:], -1], strict=True):
        if following != place + 1:
            tied.append(slice(begin, place + 2))
            begin = following
    ordered = [*range(len(order))]
    among = [place for run in tied for place in ordered[run]]
    ties = dict(zip(among, _read_column(shelves, chosen, order[among], "tie"), strict=True))
    alike: list[slice] = []
    for run in tied:
        ordered[run] = sorted(ordered[run], key=ties.__getitem__)
        if any(ties[one] == ties[other] or not ties[one] for one, other in pairwise(ordered[run])):
            alike.append(run)
    return ordered, alike


def _keep_sources(sources: Sequence[int], limit: int | None) -> tuple[Sequence[int], int | None]:
    """Return positions until `limit` sources were seen, a few of each, and that of the first source beyond.

    None is no limit, and no such source.
    """
    if limit is None:
        return range(len(sources)), None
    if len(set(sources[: limit + 1])) > limit:
        return range(limit), limit
    seen: dict[int, int] = {}
    kept: list[int] = []
    for place, source in enumerate(sources):
        count = seen.get(source, 0)
        if not count and len(seen) >= limit:
            return kept, place
        seen[source] = count + 1
        if count < CHUNKS_PER_SOURCE:
            kept.append(place)
    return kept, None
