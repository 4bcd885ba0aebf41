"""Exact lexical scores from posting lists of our own, with the statistics of the visible scopes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from ....analysis.datewords import is_mark
from ....analysis.spellings import typed_beginning
from ....columns import Column, MemoryId
from ....kernel import COMPILED, Kernel
from ....trail import TermTable
from ....types import ONCE, Join, Notice, Repeats, Scope, Signal, Statistics, Where
from ....wording import counted, which
from ...fields import FIELDS, WORDS, Field
from ..catalogue import NOWHERE, Flags, Floats, Integers, Shelf, damage
from ..connection import Connection, rows_of, run_script
from ..keyword import Found, Placed, View, both
from ..sealed import BrokenSeal
from ..selection import best_rows
from . import segments
from .addends import Addends, Scored, Unread, Written
from .addends import Placed as Standing
from .asked import asked, by_term, named_speaker
from .cache import Pages
from .inversion import Text
from .library import Library
from .lists import Lists, shelved
from .pruning import LONG_FROM
from .scores import Scores, folded
from .spans import LIVE, live_segments
from .texts import tokens_in

CACHE_BYTES = 120 * 1024 * 1024  # of lists and pages; the pages of two hundred thousand notes fit
_LIST_SHARE = 3 / 8  # of the cache, for lists read lately; their pages take the rest
_SCOPES_KEPT = 256  # whose lists and statistics are kept
_READ_INSTEAD = "for this answer the texts were read instead"
_ASTRAY = "pages of the keyword index belong to no segment"


class PostingsIndex:
    """Keyword index on posting lists of our own."""

    name = "postings"

    def __init__(
        self, cache_bytes: int = CACHE_BYTES, fields: Sequence[Field] = FIELDS, kernel: Kernel | None = COMPILED
    ) -> None:
        self._fields = fields
        self._kernel = kernel
        self._list_bytes = int(cache_bytes * _LIST_SHARE)
        self._pages = Pages(cache_bytes - self._list_bytes, kernel)
        self._known: OrderedDict[str, Lists] = OrderedDict()
        self._libraries: dict[tuple[str, ...], tuple[tuple[tuple[str, int], ...], Library]] = {}
        self._last: tuple[tuple[object, ...], Scores] | None = None
        self._before: tuple[tuple[object, ...], Scores] | None = None  # the one before that, of a small store
        self._scored: Scored | None = None
        self._begun: tuple[tuple[object, ...], dict[str, int]] | None = None
        self._unread = Unread()
        self._turn = threading.Lock()
        self._is_planned = False

    def only(self, fields: Sequence[Field]) -> PostingsIndex:
        """Return an index that asks some fields alone, and shares the pages this one has read."""
        narrow = PostingsIndex(0, fields, self._kernel)
        narrow._list_bytes = self._list_bytes
        narrow._pages = self._pages
        return narrow

    def cache_bytes(self) -> Mapping[str, int]:
        """Return how much memory each of its caches holds."""
        return {"lists": sum(lists.nbytes for lists in [*self._known.values()]), **self._pages.cache_bytes()}

    def exists(self, connection: Connection) -> bool:
        """Tell whether its tables are there."""
        return connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'posting_pages'").fetchone() is not None

    def create(self, connection: Connection) -> None:
        """Make its tables."""
        run_script(connection, segments.TABLES)

    def stored_tokens(self, connection: Connection, row: int) -> list[str]:
        """Return the tokens of a memory."""
        stored = connection.execute(
            "SELECT m.scope, m.number, m.row, t.tokens FROM memories AS m "
            "LEFT JOIN posting_tokens AS t ON t.scope = m.scope AND t.number = m.number WHERE m.row = ?",
            (row,),
        ).fetchone()
        return tokens_in(connection, *stored) if stored else []

    def drop(self, connection: Connection) -> None:
        """Remove its tables."""
        for table in segments.TABLE_NAMES:
            connection.execute(f"DROP TABLE {table}")

    def put(self, connection: Connection, placed: Sequence[Placed]) -> None:
        """Index memories."""
        segments.put(connection, ((str(one.entry.memory.scope), one.row, _text(one)) for one in placed))

    def remove(self, connection: Connection, row: int, scope: str, number: int) -> None:
        """Take a memory out."""
        segments.remove(connection, scope, number)

    def close(self, connection: Connection, numbers: Mapping[str, int], newest: Sequence[Placed] = ()) -> None:
        """Flush the scopes that have enough fresh memories."""
        texts: dict[str, list[Text]] = {}
        for one in newest:
            texts.setdefault(str(one.entry.memory.scope), []).append(_text(one))
        for scope, count in numbers.items():
            segments.flush(connection, scope, count, texts.get(scope, ()))

    def renumber(self, connection: Connection, scope: str, moves: Sequence[tuple[int, str, int]], numbers: int) -> None:
        """Give the tokens their new numbers, and make all segments anew."""
        segments.renumber(connection, scope, moves, numbers)

    def is_due(self, connection: Connection) -> bool:
        """Tell whether a segment is broken, or a merge or a list of words is due; at first look what others left."""
        if not self._is_planned:
            segments.plan_listing(connection)
            _plan_merges(connection)
            self._is_planned = True
        return bool(self._pages.broken or self._pages.unbelieved) or segments.is_due(connection)

    def abandon_merge(self, connection: Connection, scope: str) -> None:
        """Drop the segment that a merge is making."""
        segments.abandon_merge(connection, scope)

    def scrub(self, connection: Connection, scope: str) -> bool:
        """Rewrite the pages of one segment that hold postings or words of removed memories."""
        return segments.scrub(connection, scope)

    def tidy(self, connection: Connection) -> bool:
        """Make broken segments anew, or merge a little."""
        broken, unbelieved = self._pages.broken, self._pages.unbelieved
        if unbelieved:
            segments.made_sound(connection, unbelieved.pop())
            return True
        if broken:
            _, (scope, segment) = broken.popitem()
            if segment in segments.made_sound(connection, scope).segments:
                segments.rewrite(connection, scope, [segment])
            return True
        return segments.merge_step(connection)

    def settle(self, connection: Connection, scope: str) -> None:
        """Begin to merge what many writes have left behind."""
        segments.settle(connection, scope)

    def holders(self, view: View, shelf: Shelf, term: str) -> Integers:
        """Return the places of a shelf whose own texts hold a term."""
        return self._list(view, shelf).postings(view.connection, WORDS, term).places

    def beginning(self, view: View, beginning: str, scopes: frozenset[Scope]) -> Mapping[str, int]:
        """Return the terms of what the scopes may see that begin so as typed, and how many memories hold each."""
        shelves = view.shelves(scopes)
        asked = (_moment(shelves), beginning)
        last = self._begun
        if last is None or last[0] != asked:
            last = self._begun = (asked, self._beginning(view, shelves, beginning))
        return last[1]

    def spelled(self, view: View, plain: Collection[str], scopes: frozenset[Scope]) -> Mapping[str, tuple[str, ...]]:
        """Return terms of what the scopes may see, or saw, that are these without accents."""
        tables = [
            table for scope in self._lists(view, view.shelves(scopes)) for table in scope.accented(view.connection)
        ]
        known = [(word, table[word]) for table in tables for word in plain if word in table]
        found: dict[str, set[str]] = {}
        for word, tokens in known:
            found.setdefault(word, set()).update(tokens)
        return {word: tuple(sorted(tokens)) for word, tokens in found.items()}

    def _beginning(self, view: View, shelves: Sequence[Shelf], beginning: str) -> dict[str, int]:
        lists = self._lists(view, shelves)
        accented = [table for scope in lists for table in scope.accented(view.connection)]
        written = {word for scope in lists for word in scope.beginning(view.connection, beginning)}
        words = sorted(written.union(*(typed_beginning(table, beginning) for table in accented)))
        if not words:
            return {}
        held = sum((scope.counts(view.connection, words) for scope in lists), np.zeros(len(words), np.int64))
        return {word: count for word, count in zip(words, held.tolist(), strict=True) if count}

    def run(
        self, view: View, terms: Sequence[str], where: Where, join: Join, limit: int | None, repeats: Repeats = ONCE
    ) -> Found:
        """Return the best rows by lexical score, filtered before they are cut."""
        shelves = view.shelves(where.scopes)
        scores = self._scores(view, shelves, terms, repeats)
        allowed = view.allowed(shelves, where)
        if join == "and":
            allowed = [
                both(mask, held) for mask, held in zip(allowed, self._with_all(view, shelves, terms), strict=True)
            ]
        if any(mask is not None for mask in allowed):
            rows = best_rows(view.connection, self._kernel, shelves, scores.totals, allowed, limit)
            return Found(rows, self._damage(shelves))
        if limit not in scores.unfiltered:  # a search is followed by a why, and a look for entities by a search
            rows = best_rows(view.connection, self._kernel, shelves, scores.totals, allowed, limit)
            scores.unfiltered[limit] = rows
        return Found(scores.unfiltered[limit], self._damage(shelves))

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
        self,
        view: View,
        ids: Sequence[MemoryId],
        rows: Sequence[int],
        terms: Sequence[str],
        scopes: frozenset[Scope],
        repeats: Repeats = ONCE,
    ) -> Signal:
        """Score the given memories, with what each term adds."""
        shelves = view.shelves(scopes)
        scores = self._scores(view, shelves, terms, repeats)
        before, moment = self._scored, _moment(shelves)
        if before is not None and before.rows == rows and before.serves(scores, moment, terms, repeats):
            if len(terms) < len(before.asked) and scores.speaker is None:
                return _left_over(scores, terms, ids, before)
            return _added_up(scores, terms, ids, before.placed, before.without(scores))
        standing = view.catalogue.standing(shelves, rows)
        placed = [Standing(number, *_there(places)) for number, places in enumerate(standing)]
        addends = Addends(scores, placed, len(rows))
        self._scored = Scored(moment, frozenset(terms), repeats, scores.terms, rows, placed, addends)
        if not scores.is_simple:
            return _added_up(scores, terms, ids, placed, addends.table)
        values, covered = np.zeros(len(rows)), np.zeros(len(rows))
        for number, here, places in placed:
            values[here], covered[here] = scores.simply(number, places)
        self._unread.add(addends)
        return _signal(scores, terms, ids, values, covered, addends)

    def statistics(self, view: View, terms: Iterable[str], scopes: frozenset[Scope]) -> Statistics:
        """Return the term statistics of what the scopes may see."""
        return self._statistics(view, view.shelves(scopes), terms)

    def _statistics(self, view: View, shelves: Sequence[Shelf], terms: Iterable[str]) -> Statistics:
        library, lists = self._library(shelves), self._lists(view, shelves)
        words = [*terms]
        found = [scope.several(view.connection, WORDS, words) for scope in lists]
        frequency = {term: sum([postings[i].size for postings in found]) for i, term in enumerate(words)}
        return Statistics(library.count, library.texts(WORDS, "own").average, frequency)

    def _scores(self, view: View, shelves: Sequence[Shelf], terms: Sequence[str], repeats: Repeats) -> Scores:
        """Return the scores of a query; a search asks twice, and who drops a word asks for most of them again.

        Who looks for entities asks for the words alone before, and a why asks for both again.
        """
        question = (_moment(shelves), tuple(terms), tuple(sorted(repeats.items())))
        last = self._last
        if last is None or last[0] != question:
            found = self._before
            if found is None or found[0] != question:
                found = question, self._new_scores(view, shelves, terms, repeats, last)
            self._before = last if found[1].library.count < LONG_FROM else None
            last = self._last = found
        return last[1]

    def _new_scores(
        self,
        view: View,
        shelves: Sequence[Shelf],
        terms: Sequence[str],
        repeats: Repeats,
        last: tuple[tuple[object, ...], Scores] | None,
    ) -> Scores:
        moment = _moment(shelves)
        library, lists = self._library(shelves), self._lists(view, shelves)
        before = self._scored
        if before is not None and before.covers(moment, terms, repeats):
            known = before.by_term
        else:
            known = by_term(last[1].terms if last is not None and last[0][0] == moment else ())
        found = tuple(asked(view.connection, library, lists, terms, self._fields, repeats, known))
        return Scores(library, found, named_speaker(view.connection, library, lists, terms), self._kernel)

    def _library(self, shelves: Sequence[Shelf]) -> Library:
        """Return the statistics of some shelves, measured once."""
        moment = _moment(shelves)
        scopes = tuple(shelf.scope for shelf in shelves)
        with self._turn:
            known = self._libraries.get(scopes)
            if known is None or known[0] != moment:
                self._scored = None  # it waits for nobody who asks later
                self._unread.settle()
                if len(self._libraries) >= _SCOPES_KEPT:
                    self._libraries.clear()
                # One of an earlier moment would keep arrays of a shelf that nobody else holds any more.
                current = dict(moment)
                for others, (then, _) in [*self._libraries.items()]:
                    if any(current.get(scope, changed) != changed for scope, changed in then):
                        del self._libraries[others]
                known = self._libraries[scopes] = (moment, Library(shelves))
            return known[1]

    def _lists(self, view: View, shelves: Sequence[Shelf]) -> list[Lists]:
        lists = [self._list(view, shelf) for shelf in shelves]
        if len(self._known) > 1:
            self._evict_scopes(len(shelves))
        return lists

    def _evict_scopes(self, used: int) -> None:
        """Let the lists of scopes go that were not asked for lately; of those asked for now, what was read before."""
        with self._turn:
            kept = sum(lists.nbytes for lists in self._known.values())
            while len(self._known) > max(1, used) and (len(self._known) > _SCOPES_KEPT or kept > self._list_bytes):
                kept -= self._known.popitem(last=False)[1].nbytes
            if kept > self._list_bytes:
                for lists in self._known.values():
                    lists.clear()

    def _list(self, view: View, shelf: Shelf) -> Lists:
        with self._turn:
            known = self._known.get(shelf.scope)
            if known is None or known.stored.changed != shelf.changed:
                stored = shelved(view.connection, shelf, known.stored if known else None)
                known = self._known[shelf.scope] = Lists(shelf, stored, self._pages, self._kernel, self._list_bytes)
                if not stored.is_believed:
                    self._pages.unbelieved.add(shelf.scope)
            self._known.move_to_end(shelf.scope)
            return known

    def _damage(self, shelves: Sequence[Shelf]) -> list[Notice]:
        known = [self._known.get(shelf.scope) for shelf in shelves]
        stored = [lists.stored for lists in known if lists is not None]  # another thread may have evicted some
        living = {segment.segment for one in stored for segment in one.segments}
        broken = damage(shelves) + sum(segment in living for segment in self._pages.broken)
        broken += sum(not one.is_believed for one in stored)
        if broken:
            blocks = f"{counted(broken, 'block')} of the keyword index {which(broken, 'is', 'are')} damaged or missing"
            return [Notice("index-damaged", f"{blocks}; {_READ_INSTEAD}, and writing to this store mends it")]
        if living and self._pages.has_strays:
            return [Notice("index-damaged", f"{_ASTRAY}; {_READ_INSTEAD}, and `whyrank doctor --repair` mends it")]
        return []


def _plan_merges(connection: Connection) -> None:
    """Make the merges due that whoever wrote many memories was killed before."""
    several = "SELECT scope FROM posting_segments WHERE state = ? GROUP BY scope HAVING count(*) > 1"
    for (scope,) in rows_of(connection, several, (LIVE,)):
        if _is_to_merge(connection, scope):
            connection.execute("UPDATE posting_scopes SET due = 1 WHERE scope = ?", (scope,))


def _is_to_merge(connection: Connection, scope: str) -> bool:
    """Tell whether a scope has segments to merge, or some that do not fit together and are made anew then."""
    try:
        return bool(segments.to_merge(live_segments(connection, scope), 1))
    except BrokenSeal:
        return True


def _text(placed: Placed) -> Text:
    return Text(placed.number, placed.entry.tokens, placed.entry.letters, placed.entry.marks)


def _there(places: Integers) -> tuple[Integers, Integers]:
    here = (places != NOWHERE).nonzero()[0]
    return here, places[here]


def _moment(shelves: Sequence[Shelf]) -> tuple[tuple[str, int], ...]:
    return tuple((shelf.scope, shelf.changed) for shelf in shelves)


def _added_up(
    scores: Scores, terms: Sequence[str], ids: Sequence[MemoryId], placed: Sequence[Standing], table: Floats
) -> Signal:
    # Row by row from the first term to the last: the order in which the trail adds them up.
    values = folded(table, len(ids))
    return _signal(scores, terms, ids, values, _covered(scores, placed, table), table.T)


def _covered(scores: Scores, placed: Sequence[Standing], table: Floats) -> Floats:
    covered = np.zeros(table.shape[1])
    for number, here, places in placed:
        covered[here] = scores.covered(number, places, table[:, here])
    return covered


def _left_over(scores: Scores, terms: Sequence[str], ids: Sequence[MemoryId], before: Scored) -> Signal:
    """Return what a question without some words says: who asks it wants the scores, and hardly ever the rest."""
    rows = before.rows_of(scores)
    values = folded(rows, len(ids))

    def covered() -> list[float]:
        table = np.array(rows).reshape(len(rows), len(ids))
        return _shares(scores, terms, _covered(scores, before.placed, table))

    terms_of = TermTable(lambda: scores.keys, ids, Written(rows))
    return Signal("keyword", Column(ids, values.tolist, values), Column(ids, covered), terms_of)


def _shares(scores: Scores, terms: Sequence[str], covered: Floats) -> list[float]:
    """Return what is covered as a share of the most that can be."""
    shares: list[float] = (covered / (scores.bound(terms) or 1.0)).tolist()
    return shares


def _signal(
    scores: Scores,
    terms: Sequence[str],
    ids: Sequence[MemoryId],
    values: Floats,
    covered: Floats,
    added: Addends | Floats,
) -> Signal:
    return Signal(
        "keyword",
        Column(ids, values.tolist(), values),
        Column(ids, _shares(scores, terms, covered)),
        TermTable(scores.keys, ids, added),
    )
