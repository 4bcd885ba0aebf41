"""Exact lexical scores from posting lists of our own, with the statistics of the visible scopes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ....analysis.datewords import is_mark
from ....columns import Column, MemoryId
from ....ports import Entry
from ....trail import TermTable
from ....types import Join, Notice, Scope, Signal, Statistics, Where
from ...fields import FIELDS, WORDS, Field
from ..catalogue import NOWHERE, Flags, Shelf, damage
from ..connection import Connection, run_script
from ..keyword import Found, View
from ..selection import best_rows
from . import segments
from .inversion import Text
from .lists import POSTINGS_KEPT, Lists, Pages, shelved
from .scores import Library, Scores, asked, folded, named_speaker

CACHE_BYTES = 64 * 1024 * 1024  # of pages; two hundred thousand notes fit
_SCOPES_KEPT = 256  # whose lists and statistics are kept


class PostingsIndex:
    """Keyword index on posting lists of our own."""

    name = "postings"

    def __init__(self, cache_bytes: int = CACHE_BYTES, fields: Sequence[Field] = FIELDS) -> None:
        self._fields = fields
        self._pages = Pages(cache_bytes)
        self._known: OrderedDict[str, Lists] = OrderedDict()
        self._libraries: dict[tuple[str, ...], tuple[tuple[tuple[str, int], ...], Library]] = {}
        self._last: tuple[tuple[object, ...], Scores] | None = None
        self._turn = threading.Lock()

    def exists(self, connection: Connection) -> bool:
        """Tell whether its tables are there."""
        return connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'posting_pages'").fetchone() is not None

    def create(self, connection: Connection) -> None:
        """Make its tables."""
        run_script(connection, segments.TABLES)

    def stored_tokens(self, connection: Connection, row: int) -> list[str]:
        """Return the tokens of a memory."""
        stored = connection.execute(
            "SELECT t.scope, t.number, t.tokens FROM memories AS m "
            "JOIN posting_tokens AS t ON t.scope = m.scope AND t.number = m.number WHERE m.row = ?",
            (row,),
        ).fetchone()
        return segments.tokens_in(connection, *stored) if stored else []

    def drop(self, connection: Connection) -> None:
        """Remove its tables."""
        for table in segments.TABLE_NAMES:
            connection.execute(f"DROP TABLE {table}")

    def put(self, connection: Connection, row: int, number: int, entry: Entry) -> None:
        """Index a memory."""
        text = Text(number, entry.tokens, entry.letters, entry.marks)
        segments.put(connection, str(entry.memory.scope), text)

    def remove(self, connection: Connection, row: int, scope: str, number: int) -> None:
        """Take a memory out."""
        segments.remove(connection, scope, number)

    def close(self, connection: Connection, numbers: Mapping[str, int]) -> None:
        """Flush the scopes that have enough fresh memories."""
        for scope, count in numbers.items():
            segments.flush(connection, scope, count)

    def renumber(self, connection: Connection, scope: str, moves: Sequence[tuple[int, str, int]], numbers: int) -> None:
        """Give the tokens their new numbers, and make all segments anew."""
        segments.renumber(connection, scope, moves, numbers)

    def is_due(self, connection: Connection) -> bool:
        """Tell whether a segment is broken or a merge is due."""
        return bool(self._pages.broken) or segments.is_due(connection)

    def scrub(self, connection: Connection) -> None:
        """Nothing is left: renumbering has written everything anew."""

    def tidy(self, connection: Connection) -> bool:
        """Make broken segments anew, or merge a little."""
        broken = self._pages.broken
        if broken:
            _, (scope, segment) = broken.popitem()
            if segment in segments.live_segments(connection, scope):
                segments.rewrite(connection, scope, [segment])
            return True
        return segments.merge_step(connection)

    def run(self, view: View, terms: Sequence[str], where: Where, join: Join, limit: int | None) -> Found:
        """Return the best rows by lexical score, filtered before they are cut."""
        shelves = view.shelves(where.scopes)
        scores = self._scores(view, shelves, terms)
        allowed = [view.masks.allowed(view.connection, shelf, where) for shelf in shelves]
        if join == "and":
            allowed = [
                _both(mask, held) for mask, held in zip(allowed, self._with_all(view, shelves, terms), strict=True)
            ]
        rows = best_rows(view.connection, shelves, scores.totals, allowed, limit)
        return Found(rows, self._damage(shelves))

    def _with_all(self, view: View, shelves: Sequence[Shelf], terms: Sequence[str]) -> list[Flags]:
        """Tell which places hold every word of the query themselves."""
        held = []
        words = [term for term in terms if not is_mark(term)]
        for shelf, lists in zip(shelves, self._lists(view, shelves), strict=True):
            count = np.zeros(len(shelf), np.int64)
            for term in words:
                count[lists.postings(view.connection, WORDS, term).places] += 1
            held.append(count == len(words))
        return held

    def score(
        self, view: View, ids: Sequence[MemoryId], rows: Sequence[int], terms: Sequence[str], scopes: frozenset[Scope]
    ) -> Signal:
        """Score the given memories, with what each term adds."""
        shelves = view.shelves(scopes)
        scores = self._scores(view, shelves, terms)
        numbers = np.array(rows, np.int64)
        labels = scores.labels
        addends = np.zeros((len(labels), len(rows)))
        covered = np.zeros(len(rows))
        for number, shelf in enumerate(shelves):
            places = shelf.places_of(numbers)
            here = np.flatnonzero(places != NOWHERE)
            found = scores.addends(number, places[here])
            addends[:, here] = found
            covered[here] = scores.covered(number, places[here], found)
        covered /= scores.bound(terms) or 1.0
        # Row by row from the first term to the last: the order in which the trail adds them up.
        values = Column(ids, folded(addends).tolist())
        return Signal("keyword", values, Column(ids, covered.tolist()), TermTable(labels, ids, addends.T))

    def statistics(self, view: View, terms: Iterable[str], scopes: frozenset[Scope]) -> Statistics:
        """Return the term statistics of what the scopes may see."""
        return self._statistics(view, view.shelves(scopes), terms)

    def _statistics(self, view: View, shelves: Sequence[Shelf], terms: Iterable[str]) -> Statistics:
        library, lists = self._library(shelves), self._lists(view, shelves)
        frequency = {
            term: sum(len(scope.postings(view.connection, WORDS, term).places) for scope in lists) for term in terms
        }
        return Statistics(library.count, library.texts(WORDS, "own").average, frequency)

    def _scores(self, view: View, shelves: Sequence[Shelf], terms: Sequence[str]) -> Scores:
        """Return the scores of a query; a search asks twice, for its run and for its candidates."""
        question = (_moment(shelves), tuple(terms))
        last = self._last
        if last is None or last[0] != question:
            library, lists = self._library(shelves), self._lists(view, shelves)
            found = tuple(asked(view.connection, library, lists, terms, self._fields))
            speaker = named_speaker(view.connection, library, lists, terms)
            last = self._last = (question, Scores(library, found, speaker))
        return last[1]

    def _library(self, shelves: Sequence[Shelf]) -> Library:
        """Return the statistics of some shelves, measured once."""
        moment = _moment(shelves)
        scopes = tuple(shelf.scope for shelf in shelves)
        with self._turn:
            known = self._libraries.get(scopes)
            if known is None or known[0] != moment:
                if len(self._libraries) >= _SCOPES_KEPT:
                    self._libraries.clear()
                known = self._libraries[scopes] = (moment, Library(shelves))
            return known[1]

    def _lists(self, view: View, shelves: Sequence[Shelf]) -> list[Lists]:
        return [self._list(view, shelf) for shelf in shelves]

    def _list(self, view: View, shelf: Shelf) -> Lists:
        with self._turn:
            known = self._known.get(shelf.scope)
            if known is None or known.stored.changed != shelf.changed:
                stored = shelved(view.connection, shelf, known.stored if known else None)
                known = self._known[shelf.scope] = Lists(shelf, stored, self._pages)
                kept = sum(lists.kept for lists in self._known.values())
                while len(self._known) > 1 and (len(self._known) > _SCOPES_KEPT or kept > POSTINGS_KEPT):
                    kept -= self._known.popitem(last=False)[1].kept
            self._known.move_to_end(shelf.scope)
            return known

    def _damage(self, shelves: Sequence[Shelf]) -> list[Notice]:
        living = {segment.segment for shelf in shelves for segment in self._known[shelf.scope].stored.segments}
        broken = damage(shelves) + sum(segment in living for segment in self._pages.broken)
        if not broken:
            return []
        message = (
            f"{broken} blocks of the keyword index fail their checksum and were made anew from the texts for this "
            "answer; they are mended as this store is written to"
        )
        return [Notice("index-damaged", message)]


def _moment(shelves: Sequence[Shelf]) -> tuple[tuple[str, int], ...]:
    return tuple((shelf.scope, shelf.changed) for shelf in shelves)


def _both(mask: Flags | None, other: Flags) -> Flags:
    return other if mask is None else mask & other
