"""The SQLite store: everything in one file, every change in one transaction."""

from __future__ import annotations

import json
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from glob import escape
from itertools import islice
from pathlib import Path
from typing import TypeVar

from ...caches import shared_bytes
from ...columns import Listed, MemoryId, with_gaps
from ...errors import StoreError, StoreFull
from ...hits import ContentKey, Fetched
from ...kernel import COMPILED, Kernel
from ...matches import NameProbe
from ...ports import Arrival, Changes, Vector
from ...types import ONCE, Former, Join, Memory, Notice, Repeats, Run, Scope, Signal, Statistics, Where
from ..pools import best
from ..samples import spread
from . import arrivals, past, purging, readers, restating
from .catalogue import Catalogue, lost_notice
from .connection import Connection, tighten, translated
from .database import Database
from .disk import BALLAST_MEGABYTES, Ballast
from .filters import Clause, clause_for
from .indexes import DEFAULT, INDEXES, IndexName, answering, prepare_index
from .keyword import Found, KeywordIndex, View
from .listing import Listing
from .masks import Masks
from .names import NameIndex
from .notes import RESTORED, Notes
from .past import take_keys
from .recent import Placed, Places, RecentMemories, StoredMemories
from .schema import prepare
from .vectors import VectorIndex
from .writing import Writing, read_anew

_T = TypeVar("_T")
_MEMORIES_PER_TIDYING = 128
_INDEXES_KEPT = 4
STORE_FOLDER = ".whyrank"  # of a workspace, made by us
_BALLAST_SECONDS = 60.0  # between two looks at how large it should be
_PURGE_AGAIN_SECONDS = 1.0  # between two tries to finish a purge
_MEGABYTE = 1024 * 1024
CACHE_MEGABYTES = 320
_STEPS_PER_LOOK = 20_000  # of SQLite's virtual machine, a millisecond or less
# Parts of a hundred of the cache. Vectors are read in thousands, pages of postings a few at a time.
_SHARES = {"vectors": 45, "index": 36, "memories": 10, "records": 5, "names": 3, "masks": 1}


class SqliteStore(Listing):
    """Memories, keyword index, names, vectors and manifest in one SQLite file."""

    def __init__(
        self,
        path: Path,
        keyword: str = DEFAULT,
        cache_megabytes: int = CACHE_MEGABYTES,
        kernel: Kernel | None = COMPILED,
        ballast_megabytes: int = BALLAST_MEGABYTES,
    ) -> None:
        self._kernel = kernel
        self._database = Database(path)
        self._ballast = Ballast(self._database.file, ballast_megabytes * _MEGABYTE)
        self._ballast_kept = 0.0  # when it was looked after last
        share = {name: cache_megabytes * _MEGABYTE * part // 100 for name, part in _SHARES.items()}
        self._names = NameIndex(share["names"])
        self._index_bytes = share["index"]
        self._vectors = VectorIndex(share["vectors"], kernel)
        self._masks = Masks(share["masks"])
        self._recent = RecentMemories(kernel, share["memories"])
        self._notes = Notes()
        self._indexes: dict[IndexName, KeywordIndex] = {}
        self._local = threading.local()
        self._read_by: tuple[tuple[int, frozenset[Scope]], Mapping[int, int]] | None = None
        self._is_untidy = False
        self._purge_again = math.inf  # when a purge that could not be finished is tried again
        self._catalogue = Catalogue(
            lambda connection, row: self._index(connection).stored_tokens(connection, row), share["records"]
        )
        try:
            self._with_ballast(lambda: self._prepare(path, keyword))
            self._tighten()
            self._keep_ballast()
        except BaseException:
            self._database.close()
            raise

    def _tighten(self) -> None:
        """Let only the owner read files that an earlier whyrank has made for everybody."""
        if not self._database.read_only:
            file = self._database.file
            beside = file.parent.glob(f"{escape(file.name)}[-.]*")
            for one in (file, *(other for other in beside if other.suffix != ".pins")):
                tighten(one, 0o600)
            if file.parent.name == STORE_FOLDER:
                tighten(file.parent, 0o700)

    def _prepare(self, path: Path, keyword: str) -> None:
        if self._database.read_only and not path.exists():
            raise StoreError(f"{path} does not exist and cannot be made here", "check the permissions of the folder")
        with translated(path):
            prepare(self._database)
            prepare_index(self._database, keyword)
        if self._database.read_only:
            return
        with self._database.connection() as connection:
            is_purge_due, is_waiting = purging.is_due(connection), arrivals.is_waiting(connection)
        if is_waiting:
            self._index_waiting()
        if is_purge_due:
            # What cannot be done now (a full disk, a reader) keeps nobody from searching; the next opening tries again.
            self._finish_purge()

    def _index_waiting(self) -> None:
        """Index the facts and texts that an earlier version left to whoever comes next."""
        with self._database.writing() as connection:
            read_anew(connection, partial(self._writing, connection), restating.waiting(connection))
            restating.clear(connection)
            arrived = arrivals.waiting(connection)
            self._writing(connection).take_in(arrived)
            arrivals.clear(connection)

    # -- writing ---------------------------------------------------------------------------------------------

    def write(self, changes: Changes) -> None:
        """Apply changes in one transaction; return only when they are durable."""
        if changes.put or changes.vectors:
            self._write(changes)
            self._keep_ballast()
        else:
            self._with_ballast(lambda: self._write(changes))
        self._tidy_after(len(changes.put))

    def _write(self, changes: Changes) -> None:
        with self._database.writing() as connection:
            writing = self._writing(connection)
            writing.apply(changes)
            self._is_untidy = self._is_untidy or writing.keyword.is_due(connection)

    def _tidy_after(self, written: int) -> None:
        """Do a little of what is due; what was written is durable, and whoever comes next does the rest."""
        if self._is_untidy:
            with suppress(StoreError):
                self._tidy(written)
        if time.monotonic() > self._purge_again:
            self._finish_purge()

    def _with_ballast(self, run: Callable[[], _T]) -> _T:
        """Run what must not fail for want of room: opening, or freeing space; a full disk takes the ballast."""
        try:
            return run()
        except StoreFull:
            if not self._ballast.release():
                raise
            self._ballast_kept = 0.0  # it is made again soon
            return run()

    def _keep_ballast(self) -> None:
        """Look after the ballast, now and then."""
        now = time.monotonic()
        if now > self._ballast_kept + _BALLAST_SECONDS and not self._database.read_only:
            self._ballast_kept = now
            self._ballast.keep()

    def _writing(self, connection: Connection) -> Writing:
        broken = self._catalogue.broken()
        return Writing(connection, self._index(connection), self._names, self._vectors).mend(broken)

    def take_in(self, arrival: Arrival) -> bool:
        """Store one new fact; return only when it is durable. False, and nothing is stored, if it is known."""
        with self._database.writing() as connection:
            if not arrivals.is_new(connection, arrival):
                return False
            writing = self._writing(connection)
            writing.take_in([arrivals.arrived(arrival)])
            if arrival.key is not None:
                take_keys(connection, {(arrival.memory.scope, arrival.key[0]): arrival.key[1]})
            self._is_untidy = self._is_untidy or writing.keyword.is_due(connection)
        self._keep_ballast()
        self._tidy_after(0)
        return True

    def _tidy(self, written: int) -> None:
        """Keep house after a write, off every reader's path and in proportion to what was written."""
        for _ in range(1 + written // _MEMORIES_PER_TIDYING):
            with self._database.writing() as connection:
                self._is_untidy = self._index(connection).tidy(connection)
            if not self._is_untidy:
                return

    def settle(self, scopes: Iterable[Scope]) -> None:
        """Keep house after many writes to these scopes, so that searches need not pay for them."""
        with self._database.writing() as connection:
            index = self._index(connection)
            for scope in scopes:
                index.settle(connection, str(scope))
            self._is_untidy = index.is_due(connection)
        while self._is_untidy:
            self._tidy(0)
        self._keep_ballast()

    @contextmanager
    def aborting(self, moment: float) -> Iterator[None]:
        """Abort statements of this thread inside the block once a moment has passed."""
        connection = self._database.reader()
        connection.set_progress_handler(lambda: time.monotonic() >= moment, _STEPS_PER_LOOK)
        try:
            with translated(self._database.path):
                yield
        finally:
            connection.set_progress_handler(None, 0)

    def _cache_bytes(self) -> dict[str, int]:
        """Return how much memory each cache holds; that of the analyzer is shared by all stores of the process."""
        indexes = Counter[str]()
        for index in [*self._indexes.values()]:
            indexes.update(index.cache_bytes())
        return {
            "vectors": self._vectors.nbytes,
            **indexes,
            "records": self._catalogue.nbytes,
            "memories": self._recent.nbytes,
            "names": self._names.nbytes,
            "masks": self._masks.nbytes,
            "analyzer": shared_bytes(),
        }

    def _index(self, connection: Connection) -> KeywordIndex:
        """Return the index of the moment a connection sees: another process may have switched it."""
        name = answering(connection)
        known = self._indexes.get(name)
        if known is None:
            if len(self._indexes) >= _INDEXES_KEPT:
                self._indexes.clear()
            known = self._indexes[name] = INDEXES[name[0]](self._index_bytes, self._kernel)
        return known

    # -- reading ---------------------------------------------------------------------------------------------

    def get(self, ids: Iterable[MemoryId], scopes: frozenset[Scope]) -> dict[MemoryId, Memory]:
        """Return those of these memories that the scopes may see."""
        visible = {str(scope) for scope in scopes}
        with self.view() as view:
            inside = self._recent.places(*view[:2], list(ids)).inside(visible)
            memories = self._recent.memories(*view[:2], inside.rows)
            pairs = zip(inside.ids, inside.rows, strict=True)
            return {identity: memories[row] for identity, row in pairs if row in memories}

    def held(self, ids: Iterable[MemoryId], scopes: frozenset[Scope]) -> StoredMemories:
        """Return the same as they are stored, each made when somebody looks at it."""
        visible = {str(scope) for scope in scopes}
        with self.view() as view:
            places, since = self._recent.places(*view[:2], list(ids)), self._restored(view)
        read, fetch = partial(self._read_again, since, visible), partial(self._fetch, since)
        return StoredMemories(places.inside(visible), read, fetch, partial(self._keys, since))

    def _restored(self, view: View) -> str | None:
        """Return the generation of the last restore: row numbers from before it are those of other memories."""
        return self._notes.value(view.connection, view.generation, RESTORED)

    def _fetch(self, since: str | None, rows: Sequence[int]) -> dict[int, Fetched]:
        with self.view() as view:
            return self._recent.fetched(*view[:2], rows if self._restored(view) == since else ())

    def _keys(self, since: str | None, rows: Sequence[int]) -> dict[int, ContentKey]:
        with self.view() as view:
            return self._recent.content_keys(*view[:2], rows if self._restored(view) == since else ())

    def _read_again(self, since: str | None, visible: set[str], identity: MemoryId, row: int) -> Memory | None:
        """Return a memory as it stands now; None if it was forgotten since, or is another's by now."""
        with self.view() as view:
            found = self._recent.fetched(*view[:2], [row]).get(row) if self._restored(view) == since else None
            if found is None:  # the same memory may have been stored again
                rows = self._recent.places(*view[:2], [identity]).inside(visible).rows
                found = next(iter(self._recent.fetched(*view[:2], rows).values()), None)
        return None if found is None else found.read()

    def history(self, ids: Sequence[MemoryId], scopes: frozenset[Scope]) -> dict[MemoryId, list[Former]]:
        """Return what those of these memories were before that were changed and may be seen."""
        with self.reading():
            return past.history_of(self._database.reader(), list(self.held(ids, scopes)))

    def sample(self, where: Where, count: int) -> list[Memory]:
        """Return up to `count` memories from all over; the same memories in any store give the same choice."""
        with self.reading():
            clause = self._clause(where)
            ids = self._read(f"SELECT m.id FROM memories AS m WHERE {clause.sql}", clause.parameters)
            chosen = spread((row[0] for row in ids), count)
            found = self.get(chosen, where.scopes)
        return [found[identity] for identity in chosen]

    def keyword(
        self, terms: Sequence[str], where: Where, limit: int | None, join: Join = "or", repeats: Repeats = ONCE
    ) -> Run:
        """Return the best memories by word score, up to `limit` distinct sources."""
        with self.view() as view:
            if not terms:
                return Run("keyword", (), self._left_out(view, where))
            return self._run(view, "keyword", view.keyword.run(view, terms, where, join, limit, repeats), where)

    def beginning(self, beginning: str, scopes: frozenset[Scope]) -> Mapping[str, int]:
        """Return the terms of what the scopes may see that begin so as typed, and how many memories hold each."""
        with self.view() as view:
            return view.keyword.beginning(view, beginning, scopes)

    def spelled(self, plain: Collection[str], scopes: frozenset[Scope]) -> Mapping[str, tuple[str, ...]]:
        """Return terms of what the scopes may see, or saw, that are these without accents."""
        with self.view() as view:
            return view.keyword.spelled(view, plain, scopes)

    def readers(self, scopes: frozenset[Scope]) -> Mapping[int, int]:
        """Count what the scopes may see by the reader that made its words."""
        with self.view() as view:
            asked, last = (view.generation, scopes), self._read_by
            if last is None or last[0] != asked:
                text = self._notes.value(view.connection, view.generation, readers.KEY)
                counts = readers.counts(view.shelves(scopes), readers.stretches_in(text))
                last = self._read_by = (asked, counts)
            return last[1]

    def read_before(self, reader: int, limit: int) -> list[Memory]:
        """Return up to `limit` memories, of whatever scope, whose words an earlier reader made."""
        with self.reading():
            return list(islice(readers.read_before(self._database.reader(), reader), limit))

    def passing(self, ids: Iterable[MemoryId], where: Where) -> set[MemoryId]:
        """Return those of these memories that may answer, by every filter."""
        with self.reading():
            clause = self._clause(where)
            rows = self._read(
                f"SELECT m.id FROM memories AS m WHERE m.id IN (SELECT value FROM json_each(?)) AND {clause.sql}",
                (json.dumps(list(ids)), *clause.parameters),
            )
            return {row[0] for row in rows}

    def nearest(self, vector: Vector, space: str, where: Where, limit: int | None) -> Run:
        """Return the nearest memories by cosine, up to `limit` distinct sources."""
        with self.view() as view:
            return self._run(view, "vector", self._vectors.select(view, space, vector, where, limit), where)

    def _run(self, view: View, name: str, found: Found, where: Where) -> Run:
        rows, scores, ids, scopes, origins = found.rows
        if not all(ids):
            nameless = self._recent.memories(
                *view[:2], [row for row, known in zip(rows, ids, strict=True) if not known]
            )
            ids = [known or nameless[row].id for row, known in zip(rows, ids, strict=True)]
        self._recent.learn(view.generation, Places(ids, rows, scopes, origins))
        return Run(name, Listed(ids, scores), (*found.notices, *self._left_out(view, where)))

    def _left_out(self, view: View, where: Where) -> tuple[Notice, ...]:
        """Say what a run could not see, because it cannot be read any more."""
        lost = arrivals.left_out(view.connection, where.scopes) if self._database.has_lost else ()
        gone = sum(shelf.lost for shelf in view.shelves(where.scopes))
        return (*lost, *((lost_notice(gone),) if gone else ()), *view.unlisted(where))

    def named(self, probe: NameProbe, where: Where, limit: int) -> Run:
        """Propose memories whose names are related to the query."""
        with self.view() as view:
            self._names.follow(self._restored(view))
            found, damage = self._names.select(view.connection, probe, where, view.rows_matching(where))
            return Run("name", best(found, limit) if found else (), (*damage, *self._left_out(view, where)))

    def score(
        self,
        ids: Collection[MemoryId],
        terms: Sequence[str],
        vector: Vector | None,
        space: str,
        where: Where,
        repeats: Repeats = ONCE,
    ) -> list[Signal]:
        """Score the given candidates by every signal, listed by its run or not."""
        with self.view() as view:
            places = ids if isinstance(ids, Placed) else self._recent.places(*view[:2], list(ids))
            signals: list[Signal] = []
            if terms:
                signals.append(view.keyword.score(view, places.ids, places.rows, terms, where.scopes, repeats))
            if vector is not None:
                cosines = self._vectors.score(view, space, vector, places.rows, where)
                signals.append(Signal("vector", with_gaps(places.ids, cosines)))
            return signals

    def last_positions(self, sessions: Collection[tuple[Scope, str]]) -> dict[tuple[Scope, str], int]:
        """Return the position of the last turn of each of these sessions."""
        with self.view() as view:
            shelves = {shelf.scope: shelf for shelf in view.shelves(frozenset(scope for scope, _ in sessions))}
            ends = {key: shelves[str(key[0])].last_position(key[1]) for key in sessions if str(key[0]) in shelves}
        return {key: end for key, end in ends.items() if end is not None}

    def vectors(self, ids: Sequence[MemoryId], space: str, scopes: frozenset[Scope]) -> dict[MemoryId, Vector]:
        """Return the unit vectors `nearest` compares, of those of these memories that have one and may be seen."""
        with self.view() as view:
            places = self._recent.places(*view[:2], ids)
            rows = dict(zip(places.rows, places.ids, strict=True))
            return self._vectors.vectors(view, space, rows, scopes)

    def statistics(self, terms: Iterable[str], scopes: frozenset[Scope]) -> Statistics:
        """Return the term statistics of what the scopes may see."""
        with self.view() as view:
            return view.keyword.statistics(view, terms, scopes)

    def view(self) -> AbstractContextManager[View]:
        """Hold one moment of the file, with what is kept in memory of it."""
        connection = self._database.reader()
        return self._held_view(connection) if connection.in_transaction else self._viewing(connection)

    @contextmanager
    def _viewing(self, connection: Connection) -> Iterator[View]:
        with self.reading(), self._held_view(connection) as view:
            yield view

    def _held_view(self, connection: Connection) -> nullcontext[View]:
        """Return the view of the moment at hand; a search asks for it a dozen times."""
        generation = self._database.generation()
        held: nullcontext[View] | None = getattr(self._local, "view", None)
        if held is None or held.enter_result[:2] != (connection, generation):
            index = self._index(connection)
            held = self._local.view = nullcontext(View(connection, generation, index, self._catalogue, self._masks))
        return held

    def drop_damaged_vectors(self, space: str) -> int:
        """Delete vectors that fail their checksum, so that they are made again; return how many."""
        with self.reading():
            damaged = self._vectors.damaged(self._database.reader(), space)
        if damaged:
            with self._database.writing() as connection:
                self._writing(connection).drop_vectors(space, damaged)
        return len(damaged)

    def purge(self) -> tuple[str, ...]:
        """Leave no byte of what was removed in the file or its log; say what may still hold some."""
        self._purge_again = time.monotonic() + _PURGE_AGAIN_SECONDS
        remains = self._with_ballast(lambda: purging.purge(self._database, self._scrub))
        with self._database.connection() as connection:
            if not purging.is_due(connection):
                self._purge_again = math.inf
        return remains

    def _finish_purge(self) -> None:
        """Try again what a reader or a full disk kept a purge from; who comes to write does not fail for it."""
        with suppress(StoreError):
            self.purge()

    def _scrub(self, connection: Connection, scope: str) -> bool:
        """Take what is left of removed memories of a scope out of what is derived; tell whether more may be left."""
        if self._index(connection).scrub(connection, scope):
            return True
        for space, firsts in self._vectors.stale_signs(connection, scope).items():
            self._vectors.close(connection, space, {scope: firsts})
        if self._names.has_orphans(connection):
            self._names.scrub(connection)
        return False

    def close(self) -> None:
        """Release the store."""
        self._database.close()

    # -- helpers ---------------------------------------------------------------------------------------------

    def _clause(self, where: Where) -> Clause:
        if where.matching is None:
            return clause_for(where)
        with self.view() as view:
            return view.clause(where)
