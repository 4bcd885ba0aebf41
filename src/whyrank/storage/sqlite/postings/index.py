"""Exact lexical scores from posting lists: words, pairs and letters, of a memory and of what surrounds it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from weakref import WeakKeyDictionary

import numpy as np

from ....ports import Entry
from ....types import Join, MemoryId, Scope, Signal, Statistics, Where, inverse_frequency
from ...fields import GRAMS, PAIRS, WORDS, Field, grams_of, pairs_of
from ...pools import Scored
from ..connection import Connection, run_script
from ..keyword import View
from ..passing import passing
from . import writer
from .codec import Postings
from .reader import NOWHERE, Floats, Integers, Visible, load, phrase, postings
from .spaces import Addend, Files, Own, Windows

_VIEWS_KEPT = 8
_PLACES_KEPT = 4_000_000  # 64 MB of what the terms of the last query add


class PostingsIndex:
    """Keyword index on posting lists of our own, with the statistics of the visible scopes."""

    name = "postings"

    def __init__(self) -> None:
        self._views: dict[frozenset[Scope], Visible] = {}
        self._measured: WeakKeyDictionary[Visible, dict[Field, tuple[Own, Files, Windows]]] = WeakKeyDictionary()
        self._last: tuple[tuple[object, ...], list[Addend]] = ((), [])
        self._turn = threading.Lock()

    def exists(self, connection: Connection) -> bool:
        """Tell whether its tables are there."""
        return connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'posting_lists'").fetchone() is not None

    def create(self, connection: Connection) -> None:
        """Make its tables."""
        run_script(connection, writer.TABLES)

    def stored_tokens(self, connection: Connection, row: int) -> list[str]:
        """Return the tokens of a memory."""
        stored = connection.execute("SELECT tokens FROM posting_rows WHERE row = ?", (row,)).fetchone()
        return writer.unpack(stored[0]) if stored else []

    def drop(self, connection: Connection) -> None:
        """Remove its tables."""
        for table in writer.TABLE_NAMES:
            connection.execute(f"DROP TABLE {table}")

    def put(self, connection: Connection, row: int, entry: Entry) -> None:
        """Index a memory."""
        writer.put(connection, row, entry)

    def remove(self, connection: Connection, rows: Iterable[int]) -> None:
        """Take memories out."""
        writer.remove(connection, rows)

    def run(self, view: View, terms: Sequence[str], where: Where, join: Join, limit: int | None) -> list[Scored]:
        """Return the best rows by lexical score, filtered before they are cut."""
        visible = self._visible(view, where.scopes)
        scores = np.zeros(len(visible.records))
        for addend in self._addends(view, visible, terms):
            scores[addend.places] += addend.values
        places = self._matching(view, visible, terms, join, scores)
        rows = visible.records["row"][places]
        return [found for _, found in passing(view.connection, rows, scores[places], where, limit)]

    def score(self, view: View, rows: Mapping[int, MemoryId], terms: Sequence[str], scopes: frozenset[Scope]) -> Signal:
        """Score the given rows, with what each term adds."""
        visible = self._visible(view, scopes)
        wanted = sorted(rows)
        places = visible.places_of(np.array(wanted, np.int64))
        details: dict[int, list[tuple[str, float]]] = {row: [] for row in wanted}
        for addend in self._addends(view, visible, terms):
            found = np.minimum(np.searchsorted(addend.places, places), len(addend.places) - 1)
            held = (addend.places[found] == places) & (places != NOWHERE)
            for i in np.flatnonzero(held).tolist():
                details[wanted[i]].append((addend.label, float(addend.values[found[i]])))
        values = {rows[row]: _folded(found) for row, found in details.items()}
        covered = self._coverage(view, visible, places, terms)
        return Signal(
            "keyword",
            values,
            dict(zip((rows[row] for row in wanted), covered.tolist(), strict=True)),
            {rows[row]: tuple(found) for row, found in details.items()},
        )

    def statistics(self, view: View, terms: Iterable[str], scopes: frozenset[Scope]) -> Statistics:
        """Return the term statistics of what the scopes may see."""
        visible = self._visible(view, scopes)
        total = int(visible.alive.sum())
        length = float(visible.lengths(WORDS)[visible.alive].sum())
        frequency = {term: len(_list(view, visible, term).numbers) for term in terms}
        return Statistics(total, length / total if total else 0.0, frequency)

    def _visible(self, view: View, scopes: frozenset[Scope]) -> Visible:
        with self._turn:
            visible = self._views.get(scopes)
            if visible is None or visible.generation != view.generation:
                if len(self._views) >= _VIEWS_KEPT:
                    self._views.clear()
                visible = self._views[scopes] = load(view.connection, view.generation, scopes)
            return visible

    def _matching(self, view: View, visible: Visible, terms: Sequence[str], join: Join, scores: Floats) -> Integers:
        """Return the places that count as found: that hold any word, or every word, of the query themselves."""
        held = np.zeros(len(scores), np.int64)
        for term in terms:
            held[_list(view, visible, term).numbers] += 1
        if join == "and":
            return np.flatnonzero(held == len(terms))
        return np.flatnonzero(scores > 0)

    def _coverage(self, view: View, visible: Visible, places: Integers, terms: Sequence[str]) -> Floats:
        """Return the share of the query's idf that the words of each place score."""
        texts, *_ = self._spaces(visible, WORDS)
        own = np.zeros(len(visible.records) + 1)  # the last for what is nowhere
        bound = 0.0
        for term in terms:
            found = _list(view, visible, term)
            bound += inverse_frequency(int(visible.alive.sum()), len(found.numbers))
            own[found.numbers] += texts.scores(found)
        return own[places] / bound if bound else np.zeros(len(places))

    def _addends(self, view: View, visible: Visible, terms: Sequence[str]) -> Sequence[Addend]:
        """Return what each term adds; a search asks twice, for its run and for its candidates."""
        asked = (visible.generation, tuple(part.scope for part in visible.parts), tuple(terms))
        known, addends = self._last
        if known != asked:
            addends = list(self._all_addends(view, visible, terms))
            if sum(len(addend.places) for addend in addends) <= _PLACES_KEPT:
                self._last = (asked, addends)
        return addends

    def _all_addends(self, view: View, visible: Visible, terms: Sequence[str]) -> Iterator[Addend]:
        """Yield what each term adds, in its own text first, then in its surroundings; always in the same order."""
        words = [term for term in terms if " " not in term]
        for field, wanted in ((WORDS, terms), (PAIRS, pairs_of(words)), (GRAMS, [*dict.fromkeys(grams_of(words))])):
            for term in wanted:
                found = _list(view, visible, term, field)
                if len(found.numbers):
                    for space in self._spaces(visible, field):
                        yield from space.addends(found, term)

    def _spaces(self, visible: Visible, field: Field) -> tuple[Own, Files, Windows]:
        """Return the texts of a field, measured once per view."""
        spaces = self._measured.setdefault(visible, {})
        if field not in spaces:
            spaces[field] = (Own(visible, field), Files(visible, field), Windows(visible, field))
        return spaces[field]


def _list(view: View, visible: Visible, term: str, field: Field = WORDS) -> Postings:
    """Return the postings of a term; several words as one term are a phrase."""
    if field is WORDS and " " in term:
        return phrase(view.connection, visible, term.split(" "))
    return postings(view.connection, visible, field, term)


def _folded(addends: Iterable[tuple[str, float]]) -> float:
    """Add up from left to right, as the run does."""
    value = 0.0
    for _, addend in addends:
        value += addend
    return value
