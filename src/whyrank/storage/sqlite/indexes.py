"""Keyword indexes: the one on posting lists, others by name, and the conversion between them."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...analysis.dates import is_mark
from ...analysis.names import typed_beginning
from ...analysis.normalize import BY
from ...errors import StoreDamaged
from ...formatting import counted, which
from ...types.memory import Entry, MemoryId, Notice, Scope
from ...types.query import ONCE, Join, Repeats, Statistics, Where, as_asked, is_several
from ...types.results import Column, Signal
from ...types.trail import TermTable
from ..bm25 import DATES, FIELDS, GRAMS, WORDS, Field, wanted_terms
from .database import SAVE, ChecksumError, Connection, foresee, rows_of, run_script
from .doc_values import NOWHERE, Flags, Integers, ScopeDocValues
from .fts5 import Fts5Index
from .metadata import INDEX_TO_COME, IndexName, index_in
from .postings import segments
from .postings.format import LIVE, TABLE_NAMES, TABLES, TOKENS_AT, Text, live_segments, tokens_in
from .postings.kernel import NUMPY, Kernel
from .postings.reader import PageCache, PostingLists, open_segments
from .postings.scorer import CollectionStatistics, Scores, add_rows, named_speaker, weigh_terms
from .rows import SELECT, to_memory
from .top_k import KeywordIndex, KeywordRun, NumberedMemory, View, best_rows, combine_masks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from .database import Asked, Database, Key
    from .postings.reader import Postings

CACHE_BYTES = 120 * 1024 * 1024  # of lists and pages; the pages of two hundred thousand notes fit
_LIST_SHARE = 3 / 8  # of the cache, for recently read lists; their pages take the rest
_SCOPES_KEPT = 256  # whose lists and statistics are kept
MANY_TOKENS = 128  # more than a query has: they are counted page by page, and their lists are not cached
_READ_INSTEAD = "for this search the texts were read instead"
_ASTRAY = "pages of the keyword index belong to no segment"


class Opened(NamedTuple):
    """Doc values, collection statistics and posting lists of some scopes in one snapshot."""

    shelves: Sequence[ScopeDocValues]
    collection: CollectionStatistics
    lists: Sequence[PostingLists]


class PostingsIndex:
    """Keyword index on posting lists of our own."""

    name = "postings"

    def __init__(
        self, cache_bytes: int = CACHE_BYTES, fields: Sequence[Field] = FIELDS, kernel: Kernel = NUMPY
    ) -> None:
        self._fields = fields
        self._kernel = kernel
        self._list_bytes = int(cache_bytes * _LIST_SHARE)
        self._pages = PageCache(cache_bytes - self._list_bytes)
        self._known: OrderedDict[str, PostingLists] = OrderedDict()
        self._collections: dict[tuple[str, ...], CollectionStatistics] = {}
        self._last: tuple[tuple[object, ...], Scores] | None = None
        self._opened: Opened | None = None
        self._signal: tuple[Scores, Sequence[Key], Signal] | None = None
        self._begun: tuple[tuple[object, ...], dict[str, int]] | None = None
        self._turn = threading.Lock()
        self._is_planned = False

    def only(self, fields: Sequence[Field]) -> PostingsIndex:
        """Return an index over some fields only, which shares the page cache of this one."""
        narrow = PostingsIndex(0, fields, self._kernel)
        narrow._list_bytes = self._list_bytes
        narrow._pages = self._pages
        return narrow

    def cache_bytes(self) -> Mapping[str, int]:
        """Return the memory of each cache, in bytes."""
        return {"lists": sum(lists.nbytes for lists in [*self._known.values()]), **self._pages.cache_bytes()}

    def exists(self, connection: Connection) -> bool:
        """Return whether its tables exist."""
        return connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'posting_pages'").fetchone() is not None

    def create(self, connection: Connection) -> None:
        """Create its tables."""
        run_script(connection, TABLES)

    def stored_tokens(self, connection: Connection, scope: str, number: int) -> list[str]:
        """Return the tokens of a memory."""
        stored = connection.execute(TOKENS_AT, (scope, number)).fetchone()
        return tokens_in(connection, scope, number, stored[0] if stored else None)

    def drop(self, connection: Connection) -> None:
        """Drop its tables."""
        for table in TABLE_NAMES:
            connection.execute(f"DROP TABLE {table}")

    def put(self, connection: Connection, placed: Sequence[NumberedMemory]) -> None:
        """Index memories."""
        segments.put(connection, ((str(one.entry.memory.scope), _text(one)) for one in placed))

    def remove(self, connection: Connection, scope: str, number: int) -> None:
        """Remove a memory."""
        segments.remove(connection, scope, number)

    def close(self, connection: Connection, numbers: Mapping[str, int], newest: Sequence[NumberedMemory] = ()) -> None:
        """Flush the scopes that have enough fresh memories."""
        texts: dict[str, list[Text]] = {}
        for one in newest:
            texts.setdefault(str(one.entry.memory.scope), []).append(_text(one))
        for scope, count in numbers.items():
            segments.flush(connection, scope, count, texts.get(scope, ()))

    renumber = staticmethod(segments.renumber)
    compact = staticmethod(segments.compact)
    abandon_merge = staticmethod(segments.abandon_merge)
    scrub = staticmethod(segments.scrub)

    def is_due(self, connection: Connection) -> bool:
        """Return whether a rebuild, merge or listing is due; the first call plans those left by others."""
        if not self._is_planned:
            segments.plan_listing(connection)
            _plan_merges(connection)
            self._is_planned = True
        return bool(self._pages.broken or self._pages.inconsistent) or segments.is_due(connection)

    def tidy(self, connection: Connection) -> bool:
        """Rebuild a damaged segment, or run one step of a merge."""
        broken, inconsistent = self._pages.broken, self._pages.inconsistent
        if inconsistent:
            segments.made_sound(connection, inconsistent.pop())
            return True
        if broken:
            (scope, _), segment = broken.popitem()
            if segment in segments.made_sound(connection, scope).segments:
                segments.rewrite(connection, scope, [segment])
            return True
        return segments.merge_step(connection)

    def holders(self, view: View, shelf: ScopeDocValues, term: str) -> Integers:
        """Return the places of a scope whose own texts hold a term, or which have a mark."""
        field = DATES if is_mark(term) else WORDS
        [lists] = self._open_lists(view.connection, [shelf])
        [postings] = lists.read_postings(view.connection, field, [term])
        return postings.joined.places

    def beginning(self, view: View, beginning: str, scopes: frozenset[Scope]) -> Mapping[str, int]:
        """Return the visible terms with a prefix, as typed, and their document frequencies."""
        _, collection, lists = self._open(view, scopes)
        asked, last = (collection.moment, beginning), self._begun
        if last is not None and last[0] == asked:
            return last[1]
        accented = [table for scope in lists for table in scope.accented(view.connection)]
        written = {word for scope in lists for word in scope.beginning(view.connection, beginning)}
        words = sorted(written.union(*(typed_beginning(table, beginning) for table in accented)))
        held = np.zeros(len(words), np.int64)
        for scope in lists if words else ():
            held += scope.counts(view.connection, words)
        counts = {word: count for word, count in zip(words, held.tolist(), strict=True) if count}
        self._begun = asked, counts
        return counts

    def spelled(self, view: View, plain: Collection[str], scopes: frozenset[Scope]) -> Mapping[str, tuple[str, ...]]:
        """Return the terms that equal these without accents; they may include those of removed memories."""
        tables = [table for scope in self._open(view, scopes).lists for table in scope.accented(view.connection)]
        known = [(word, table[word]) for table in tables for word in plain if word in table]
        found: dict[str, set[str]] = {}
        for word, tokens in known:
            found.setdefault(word, set()).update(tokens)
        return {word: tuple(sorted(tokens)) for word, tokens in found.items()}

    def run(
        self, view: View, terms: Sequence[str], where: Where, join: Join, limit: int | None, repeats: Repeats = ONCE
    ) -> KeywordRun:
        """Return the best rows by lexical score, filtered before they are cut."""
        scores, (shelves, _, lists) = self._score_query(view, where.scopes, terms, repeats)
        allowed = view.allowed(shelves, where)
        if join == "and":
            allowed = [
                combine_masks(mask, held)
                for mask, held in zip(allowed, self._with_all(view, lists, shelves, terms), strict=True)
            ]
        is_filtered = any(mask is not None for mask in allowed)
        # Cached without a filter: a search precedes `why`, and an entity lookup precedes a search.
        rows = scores.unfiltered.get(limit) if not is_filtered else None
        if rows is None:
            rows = best_rows(view.connection, self._kernel, shelves, scores.sum_terms, allowed, limit)
            if not is_filtered:
                scores.unfiltered[limit] = rows
        is_sound = not (self._pages.broken or self._pages.strays or any(shelf.broken for shelf in shelves))
        is_sound = is_sound and all(scope.stored.is_consistent for scope in lists)
        return KeywordRun(rows, () if is_sound else self._find_damage(shelves))

    def _with_all(
        self, view: View, lists: Sequence[PostingLists], shelves: Sequence[ScopeDocValues], terms: Sequence[str]
    ) -> list[Flags]:
        """Return the masks of places that hold every word of the query themselves."""
        held = []
        words = [term for term in terms if not is_mark(term)]
        for shelf, scope in zip(shelves, lists, strict=True):
            count = np.zeros(len(shelf), np.int64)
            for postings in scope.read_postings(view.connection, WORDS, words):
                count[postings.joined.places] += 1
            held.append(count == len(words))
        return held

    def score(
        self,
        view: View,
        ids: Sequence[MemoryId],
        keys: Sequence[Key],
        terms: Sequence[str],
        scopes: frozenset[Scope],
        repeats: Repeats = ONCE,
    ) -> Signal:
        """Score the given memories, with the contribution of each term."""
        scores, (shelves, *_) = self._score_query(view, scopes, terms, repeats)
        last = self._signal
        if last is not None and last[0] is scores and last[1] == keys:  # asked again, as by `why`
            return last[2]
        table, covered = np.zeros((len(scores.keys), len(keys))), np.zeros(len(keys))
        for number, places in enumerate(view.catalogue.locate(shelves, keys)):
            here = (places != NOWHERE).nonzero()[0]
            if len(here):
                table[:, here], covered[here] = scores.contributions(number, places[here])
        # Row by row from the first term to the last: the order in which the trail adds them up.
        values = add_rows(table, len(keys))
        shares = covered / (scores.bound(terms) or 1.0)
        words, coverage = Column(ids, values.tolist(), values), Column(ids, shares.tolist())
        count = scores.collection.count
        signal = Signal("keyword", words, coverage, TermTable(scores.keys, ids, table.T), memories=count)
        self._signal = scores, keys, signal
        return signal

    def find_marks(
        self, view: View, keys: Sequence[Key], marks: Sequence[str], scopes: frozenset[Scope]
    ) -> Mapping[Key, str]:
        """Return the mark of each memory that has one of these and is visible."""
        shelves, _, opened = self._open(view, scopes)
        lists = [scope.read_postings(view.connection, DATES, marks) for scope in opened]
        if not any(postings.size for found in lists for postings in found):
            return {}  # as in a store of one language
        by_key: dict[Key, str] = {}
        for places, found in zip(view.catalogue.locate(shelves, keys), lists, strict=True):
            for mark, postings in zip(marks, found, strict=True):
                held = np.isin(places, postings.joined.places).nonzero()[0].tolist() if postings.size else ()
                by_key |= dict.fromkeys((keys[i] for i in held), mark)
        return by_key

    def count_marks(self, view: View, marks: Sequence[str], scopes: frozenset[Scope]) -> Mapping[str, int]:
        """Count the visible memories by mark."""
        lists = self._open(view, scopes).lists
        sizes = ([found.size for found in scope.read_postings(view.connection, DATES, marks)] for scope in lists)
        return dict(zip(marks, map(sum, zip(*sizes, strict=True)), strict=False))

    def statistics(self, view: View, terms: Iterable[str], scopes: frozenset[Scope]) -> Statistics:
        """Return the term statistics of the visible memories."""
        _, collection, lists = self._open(view, scopes)
        words = [*dict.fromkeys(terms)]
        together = "".join(words) if len(words) > MANY_TOKENS else " "
        is_many = not (" " in together or is_several(together))
        frequency = dict.fromkeys(words, 0)
        if view.is_remote and not is_many:
            foresee(view.connection, self._pages_asked(lists, [(WORDS, words)]))
        for scope in lists:
            if is_many:
                counts = scope.counts(view.connection, words).tolist()
            else:
                counts = [found.size for found in scope.read_postings(view.connection, WORDS, words)]
            for word, count in zip(words, counts, strict=True):
                frequency[word] += count
        return Statistics(collection.count, collection.texts(WORDS, "own").average, frequency)

    def _score_query(
        self, view: View, scopes: frozenset[Scope], terms: Sequence[str], repeats: Repeats
    ) -> tuple[Scores, Opened]:
        """Return the scores of a query, cached: a search needs them twice; terms of the last query are reused."""
        opened, last = self._open(view, scopes), self._last
        shelves, collection, lists = opened
        question = (collection.moment, tuple(terms), tuple(sorted(repeats.items())))
        if last is not None and last[0] == question:
            return last[1], opened
        wanted, speakers = self._wanted(collection, terms)
        postings: dict[tuple[Field, str], list[Postings]] = {}
        for field, read in _with_exact((*wanted, (DATES, speakers))):
            for scope in lists if read else ():
                for term, found in zip(read, scope.read_postings(view.connection, field, read), strict=True):
                    postings.setdefault((field, term), []).append(found)
        known = dict(last[1].weighed) if last is not None and last[1].collection is collection else {}
        # Words may count several times; pairs, letters and dates never do.
        names = (
            (field, term, repeats.get(term, 1) if field is WORDS else 1) for field, some in wanted for term in some
        )
        weighed = weigh_terms(collection, names, postings, known, self._kernel)
        speaker = named_speaker(speakers, postings) if speakers else None
        scores = Scores(collection, weighed, speaker, kernel=self._kernel)
        self._last = question, scores
        if len(self._known) > 1:
            self._evict_scopes(len(shelves))
        return scores, opened

    def _wanted(
        self, collection: CollectionStatistics, terms: Sequence[str]
    ) -> tuple[list[tuple[Field, Sequence[str]]], list[str]]:
        """Return the terms of a query in each field, and those that name a speaker."""
        fields = [field for field in self._fields if field is not GRAMS or collection.has_letters]
        speakers = [term for term in terms if term.startswith(BY)] if collection.has_turns else []
        return [*wanted_terms(terms, fields)], speakers

    def asked(self, view: View, terms: Sequence[str], scopes: frozenset[Scope]) -> Iterator[Asked]:
        """Yield the statements that read the lists of a query which are not cached."""
        _, collection, lists = self._open(view, scopes)
        wanted, speakers = self._wanted(collection, terms)
        return self._pages_asked(lists, _with_exact((*wanted, (DATES, speakers))))

    def _pages_asked(
        self, lists: Sequence[PostingLists], wanted: Iterable[tuple[Field, Sequence[str]]]
    ) -> Iterator[Asked]:
        return (asked for field, terms in wanted for scope in lists for asked in scope.pages_asked(field, terms))

    def _open(self, view: View, scopes: frozenset[Scope]) -> Opened:
        """Open the statistics and posting lists of some scopes; a search asks for the same ones several times."""
        shelves, last = view.shelves(scopes), self._opened
        if last is None or last.shelves is not shelves:
            last = Opened(shelves, self._open_collection(shelves), self._open_lists(view.connection, shelves))
            self._opened = last
        return last

    def _open_collection(self, shelves: Sequence[ScopeDocValues]) -> CollectionStatistics:
        """Return the collection statistics of some scopes, computed once per change."""
        moment = tuple([(shelf.scope, shelf.changed) for shelf in shelves])
        scopes = tuple([shelf.scope for shelf in shelves])
        with self._turn:
            known = self._collections.get(scopes)
            if known is None or known.moment != moment:
                if len(self._collections) >= _SCOPES_KEPT:
                    self._collections.clear()
                # An entry of an earlier generation would keep arrays alive that have no other owner.
                current = dict(moment)
                for others, other in [*self._collections.items()]:
                    if any(current.get(scope, changed) != changed for scope, changed in other.moment):
                        del self._collections[others]
                known = self._collections[scopes] = CollectionStatistics(shelves, moment)
            return known

    def _open_lists(self, connection: Connection, shelves: Sequence[ScopeDocValues]) -> list[PostingLists]:
        with self._turn:
            known = {shelf.scope: own.stored for shelf in shelves if (own := self._known.get(shelf.scope)) is not None}
            changed = [
                (shelf, stored)
                for shelf in shelves
                if (stored := known.get(shelf.scope)) is None or stored.changed != shelf.changed
            ]
            for (shelf, _), stored in zip(changed, open_segments(connection, changed), strict=True):
                self._known[shelf.scope] = PostingLists(shelf, stored, self._pages, self._kernel, self._list_bytes)
                if not stored.is_consistent:
                    self._pages.inconsistent.add(shelf.scope)
            for shelf in shelves:
                self._known.move_to_end(shelf.scope)
            lists = [self._known[shelf.scope] for shelf in shelves]
        if len(self._known) > 1:
            self._evict_scopes(len(shelves))
        return lists

    def _evict_scopes(self, used: int) -> None:
        """Evict the lists of least recently used scopes; if that is not enough, clear those in use."""
        with self._turn:
            kept = sum(lists.nbytes for lists in self._known.values())
            while len(self._known) > max(1, used) and (len(self._known) > _SCOPES_KEPT or kept > self._list_bytes):
                kept -= self._known.popitem(last=False)[1].nbytes
            if kept > self._list_bytes:
                for lists in self._known.values():
                    lists.clear()

    def _find_damage(self, shelves: Sequence[ScopeDocValues]) -> list[Notice]:
        known = [self._known.get(shelf.scope) for shelf in shelves]
        stored = [lists.stored for lists in known if lists is not None]  # another thread may have evicted some
        living = {(segment.scope, segment.segment) for one in stored for segment in one.segments}
        broken = sum(len(shelf.broken) for shelf in shelves) + sum(segment in living for segment in self._pages.broken)
        broken += sum(not one.is_consistent for one in stored)
        if broken:
            blocks = f"{counted(broken, 'block')} of the keyword index {which(broken, 'is', 'are')} damaged or missing"
            return [Notice("index-damaged", f"{blocks}; {_READ_INSTEAD}, and the next write to this store repairs it")]
        if not self._pages.strays.isdisjoint(scope for scope, _ in living):
            return [Notice("index-damaged", f"{_ASTRAY}; {_READ_INSTEAD}, and `whyrank doctor --repair` repairs it")]
        return []


def _with_exact(wanted: Iterable[tuple[Field, Sequence[str]]]) -> Iterator[tuple[Field, list[str]]]:
    """Yield the terms to read in each field: those asked for, and these without their other spellings."""
    for field, some in wanted:
        exact = [as_asked(term) for term in some if is_several(term)]
        yield field, [*dict.fromkeys((*some, *filter(None, exact)))]


def _plan_merges(connection: Connection) -> None:
    """Schedule the merges that a killed bulk writer has left."""
    several = "SELECT scope FROM posting_segments WHERE state = ? GROUP BY scope HAVING count(*) > 1"
    for (scope,) in rows_of(connection, several, (LIVE,)):
        if _is_to_merge(connection, scope):
            connection.execute("UPDATE posting_scopes SET due = 1 WHERE scope = ?", (scope,))


def _is_to_merge(connection: Connection, scope: str) -> bool:
    """Return whether a scope has segments to merge, or inconsistent ones to rebuild."""
    try:
        return bool(segments.to_merge(live_segments(connection, scope), 1))
    except ChecksumError:
        return True


def _text(placed: NumberedMemory) -> Text:
    return Text(placed.number, placed.entry.tokens, placed.entry.letters, placed.entry.marks)


# Factories; they take the size of the caches in bytes and the kernel to search with.
INDEXES: dict[str, Callable[[int, Kernel], KeywordIndex]] = {
    "postings": lambda cache_bytes, kernel: PostingsIndex(cache_bytes, kernel=kernel),
    "fts5": lambda *_: Fts5Index(),  # SQLite has a cache of its own
}
DEFAULT = "postings"
ROWS_PER_STEP = 500  # moved in one transaction; a kill loses no more than that
_MOVED = "keyword-moved"  # key of `meta` with the last number that was moved of each scope
_ENDS = "SELECT scope, max(number) FROM memories WHERE typeof(number) = 'integer' GROUP BY scope ORDER BY scope"
_TO_MOVE = (
    f"SELECT m.number, m.letters, m.dates, {SELECT} FROM memories AS m WHERE m.scope = ? AND m.number > ? "
    "AND typeof(m.number) = 'integer' ORDER BY m.number LIMIT ?"
)


def prepare_index(database: Database, name: str) -> str:
    """Make the given index, and fill it if the file has another one; return the name of the live one."""
    with database.connection() as connection:
        current = _meta(connection, "keyword")
    if current is not None and current not in INDEXES:
        raise _index_unknown()
    if current == name or (current is not None and database.read_only):
        # A read-only store keeps the index it has.
        return current
    if not database.read_only:
        _begin(database, name)
        while _step(database, name):
            pass
    return name


def answering(connection: Connection) -> IndexName:
    """Return the live index of an opened store; raise StoreDamaged without a known one."""
    named = index_in(connection)
    if named is None or named[0] not in INDEXES:
        raise _index_unknown()
    return named


def _index_unknown() -> StoreDamaged:
    return StoreDamaged("the store does not say which keyword index it has", SAVE)


def index_to_come(connection: Connection) -> KeywordIndex | None:
    """Return the index that is being built, if there is one."""
    name = _meta(connection, INDEX_TO_COME)
    return uncached_index(name) if name is not None else None


def _begin(database: Database, name: str) -> None:
    """Create the new index, empty; drop an unfinished one of another name."""
    with database.writing() as connection:
        current, to_come = _meta(connection, "keyword"), _meta(connection, INDEX_TO_COME)
        if current is None:
            if any(uncached_index(known).exists(connection) for known in INDEXES):
                raise _index_unknown()
            uncached_index(name).create(connection)
            _set(connection, "keyword", name)
        elif name not in (current, to_come):
            if to_come is not None:
                uncached_index(to_come).drop(connection)
            uncached_index(name).create(connection)
            _set(connection, INDEX_TO_COME, name)
            _set(connection, _MOVED, "{}")


def _step(database: Database, name: str) -> bool:
    """Move some memories from the live index to the new one; return whether there are more."""
    with database.writing() as connection:
        current = _meta(connection, "keyword")
        if current is None or current == name:
            return False
        old, new = uncached_index(current), uncached_index(name)
        # Meanwhile memories are stored in every scope, each behind the others of its scope.
        moved: dict[str, int] = json.loads(_meta(connection, _MOVED) or "{}")
        ends = connection.execute(_ENDS).fetchall()
        scope, after = next(
            ((scope, moved.get(scope, -1)) for scope, end in ends if moved.get(scope, -1) < end), ("", -1)
        )
        rows = connection.execute(_TO_MOVE, (scope, after, ROWS_PER_STEP)).fetchall()
        placed: list[NumberedMemory] = []
        for number, letters, dates, *columns in rows:
            memory, tokens = to_memory(tuple(columns)), tuple(old.stored_tokens(connection, scope, number))
            entry = Entry(memory, tokens, (), "", "", bool(letters), tuple(dates.split()))
            placed.append(NumberedMemory(number, entry))
        if placed:
            new.put(connection, placed)
            new.close(connection, {scope: placed[-1].number + 1})
            _set(connection, _MOVED, json.dumps({**moved, scope: placed[-1].number}))
            return True
        old.drop(connection)
        _set(connection, "keyword", name)
        connection.execute("DELETE FROM meta WHERE key IN (?, ?)", (INDEX_TO_COME, _MOVED))
        connection.execute("UPDATE meta SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT) WHERE key = 'generation'")
        # Numbers of segments restart with their table: caches of an index must not outlive it.
        _set(connection, "keyword-since", _meta(connection, "generation") or "0")
        return False


def uncached_index(name: str) -> KeywordIndex:
    """Return an index without caches, to write with."""
    return INDEXES[name](0, NUMPY)


def _meta(connection: Connection, key: str) -> str | None:
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return found[0] if found else None


def _set(connection: Connection, key: str, value: str) -> None:
    connection.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", (key, value))
