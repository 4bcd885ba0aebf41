"""The store: index, rows and metadata over one database, every change in one transaction."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial, wraps
from itertools import islice
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from ..analysis.normalize import shared_bytes
from ..errors import StoreError
from ..protocols import NO_HINT, Fetched, FileRecord, Hint, SortingKey, StoreStatus, Written
from ..types.memory import Scope
from ..types.query import Where
from .bm25 import spread
from .query_resolution import resolve
from .retrieval import retrieve
from .sqlite import metadata, pending
from .sqlite.backend import SqliteBackend
from .sqlite.database import Connection, Row, leniently, meta_value, raise_generation, rows_of
from .sqlite.disk import BALLAST_MEGABYTES, MEGABYTE
from .sqlite.doc_values import DocValues
from .sqlite.filters import Masks, clause_for
from .sqlite.history import take_keys
from .sqlite.index_reader import Caches, IndexReader, foreseen_by
from .sqlite.indexes import DEFAULT, INDEXES, answering, index_to_come
from .sqlite.metadata import IndexName
from .sqlite.names import NameIndex
from .sqlite.postings.format import span_asked
from .sqlite.postings.kernel import KERNEL, NUMPY, Kernel
from .sqlite.rows import CONTENT_KEY, SELECT, SORTING_KEYS, RowCache, as_far_as_legible
from .sqlite.top_k import KeywordIndex, View
from .sqlite.vectors.index import VectorIndex
from .sqlite.vectors.table import SIGNS_DUE, damaged_vectors, stale_signs, write_due_signs, write_signs
from .sqlite.writer import Writer, read_anew
from .sqlite.writer import foreseen_by as foreseen_by_arrival
from .transfer import FIRST, Takeover, read_next

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from ..protocols import Arrival, Changes, Question, Request, Resolution, Retrieval, Waiting
    from ..types.memory import Memory, MemoryId, Order
    from ..types.query import Analysis, Plan, Statistics
    from .backend import Backend
    from .transfer import Mode, StoredPart, Taken

_WAITS = "NOT EXISTS (SELECT 1 FROM vectors AS v WHERE v.scope = m.scope AND v.space = ? AND v.number = m.number)"
_SEEN = "scope IN (SELECT value FROM json_each(?))"
_SCOPE = "iif(typeof(scope) = 'text', scope, '?')"  # of a memory; a value that is no text was damaged
_T = TypeVar("_T")
_AFTER_SLASH = chr(ord("/") + 1)
_MEMORIES_PER_TIDYING = 128
_INDEXES_KEPT = 4
_CLAIM_ATTEMPTS = 3  # to lease texts that other workers lease at the same time
_PURGE_AGAIN_SECONDS = 1.0  # between two tries to finish a purge
CACHE_MEGABYTES = 320
# Parts of a hundred of the cache. Vectors are read in thousands, pages of postings a few at a time.
_SHARES = {"vectors": 45, "index": 36, "memories": 10, "records": 5, "names": 3, "masks": 1}


P = ParamSpec("P")


def _in_snapshot(read: Callable[Concatenate[IndexReader, P], _T]) -> Callable[Concatenate[IndexedStore, P], _T]:
    """Return a method of the store that reads one snapshot by a method of its reader."""

    @wraps(read)
    def read_snapshot(self: IndexedStore, /, *args: P.args, **kwargs: P.kwargs) -> _T:
        with self.reader() as reader:
            return read(reader, *args, **kwargs)

    return read_snapshot


def _in_connection(read: Callable[Concatenate[Connection, P], _T]) -> Callable[Concatenate[IndexedStore, P], _T]:
    """Return a method of the store that reads its file by a function of a connection."""

    @wraps(read)
    def read_connection(self: IndexedStore, /, *args: P.args, **kwargs: P.kwargs) -> _T:
        with self.reader() as reader:
            return read(reader.view.connection, *args, **kwargs)

    return read_connection


class _Known(Exception):
    """Rolls a transaction back that stores nothing, as the fact is known."""


class IndexedStore:
    """Memories, keyword index, names, vectors and manifest over one database."""

    def __init__(self, backend: Backend, keyword: str, cache_megabytes: int, kernel: Kernel) -> None:
        self._kernel = kernel
        self._backend = backend
        self._is_remote = not isinstance(backend, SqliteBackend)  # a server takes the statements of a search together
        share = {name: cache_megabytes * MEGABYTE * part // 100 for name, part in _SHARES.items()}
        self._index_bytes = share["index"]
        self._masks = Masks(share["masks"])
        self._caches = Caches(
            RowCache(share["memories"]), VectorIndex(share["vectors"], kernel), NameIndex(share["names"])
        )
        self._indexes: dict[IndexName, KeywordIndex] = {}
        self._local = threading.local()
        self._queues: dict[str, metadata.Queue] = {}
        self._is_untidy = False
        self._purge_again = math.inf  # when a purge that could not be finished is tried again
        self._catalogue = DocValues(
            lambda connection, *key: self._index(connection).stored_tokens(connection, *key),
            share["records"],
            span_asked,
        )
        try:
            backend.attempt(lambda: self._prepare(keyword), frees=True)
            backend.keep()
        except BaseException:
            backend.close()
            raise

    def _prepare(self, keyword: str) -> None:
        self._backend.prepare(keyword)
        if self._backend.read_only:
            return
        with self._backend.reading() as (connection, *_):
            is_purge_due, is_waiting = metadata.scopes_to_purge(connection) is not None, pending.is_waiting(connection)
            are_signs_due = meta_value(connection, SIGNS_DUE) is not None
        if are_signs_due:
            with self._backend.writing() as connection:
                write_due_signs(connection)
        if is_waiting:
            self._index_waiting()
        if is_purge_due:
            # A purge that is blocked (a full disk, a reader) does not block searches; the next opening tries again.
            self._finish_purge()

    def _index_waiting(self) -> None:
        """Index the facts and texts that an earlier version left pending."""
        with self._backend.writing() as connection:
            read_anew(connection, partial(self._writing, connection), pending.waiting_changes(connection))
            pending.clear_changes(connection)
            arrived = pending.waiting_facts(connection)
            self._writing(connection).take_in(arrived)
            pending.clear_facts(connection)

    # -- writing ---------------------------------------------------------------------------------------------

    def write(self, changes: Changes) -> None:
        """Apply changes in one transaction; return only when they are durable."""
        stores = bool(changes.put or changes.vectors)
        self._backend.attempt(lambda: self._write(changes), frees=not stores)
        if stores:
            self._backend.keep()
        self._tidy_after(len(changes.put))

    def _write(self, changes: Changes) -> None:
        with self._backend.writing() as connection:
            writing = self._writing(connection)
            writing.apply(changes)
            self._is_untidy = self._is_untidy or writing.keyword.is_due(connection)
            if self._backend.channel is not None and metadata.leaves_texts(connection, changes):
                self._backend.channel.notify(connection)

    def _tidy_after(self, written: int) -> None:
        """Run a little of the due maintenance; the write is durable, and later writes do the rest."""
        if self._is_untidy:
            with suppress(StoreError):
                self._tidy(written)
        if time.monotonic() > self._purge_again:
            self._finish_purge()

    def _writing(self, connection: Connection) -> Writer:
        broken = self._catalogue.broken()
        return Writer(connection, self._index(connection), self._caches.names, index_to_come(connection)).mend(broken)

    def take_in(self, arrival: Arrival) -> bool:
        """Store one new fact, durable on return; return False, without storing it, if it is known."""
        is_new = self._backend.attempt(lambda: self._take_in(arrival))
        if is_new:
            self._backend.keep()
            self._tidy_after(0)
        return is_new

    def _take_in(self, arrival: Arrival) -> bool:
        arrived = pending.arrived(arrival)
        with suppress(_Known), self._backend.writing(foreseen_by_arrival(arrival, arrived)) as connection:
            if not pending.is_new(connection, arrival):
                raise _Known
            writing = self._writing(connection)
            writing.take_in([arrived])
            if arrival.key is not None:
                take_keys(connection, {(arrival.memory.scope, arrival.key[0]): arrival.key[1]})
            self._is_untidy = self._is_untidy or writing.keyword.is_due(connection)
            if self._backend.channel is not None and arrival.space and arrival.vector is None:
                self._backend.channel.notify(connection)
            return True
        return False

    def _tidy(self, written: int) -> None:
        """Run maintenance after a write, in its own transactions and in proportion to the write."""
        for _ in range(1 + written // _MEMORIES_PER_TIDYING):
            with self._backend.writing() as connection:
                self._is_untidy = self._index(connection).tidy(connection)
            if not self._is_untidy:
                return

    def settle(self, scopes: Iterable[Scope]) -> int:
        """Compact these scopes, run all maintenance that is due, and finish a purge; return the steps it took."""
        names = [str(scope) for scope in scopes]

        def compact(connection: Connection) -> None:
            index = self._index(connection)
            for scope in names:
                index.compact(connection, scope)
            self._is_untidy = index.is_due(connection)

        self._in_transaction(compact)
        steps = 0
        while self._is_untidy:
            self._backend.attempt(lambda: self._tidy(0))
            steps += 1
        with self._backend.reading() as snapshot:
            is_purge_due = metadata.scopes_to_purge(snapshot.connection) is not None
        if is_purge_due:
            self._finish_purge()
        self._backend.keep()
        return steps

    def _in_transaction(self, work: Callable[[Connection], _T]) -> _T:
        """Run work in one transaction, and again where that can help."""

        def run() -> _T:
            with self._backend.writing() as connection:
                return work(connection)

        return self._backend.attempt(run)

    def _cache_bytes(self) -> dict[str, int]:
        """Return the memory of each cache in bytes; the analyzer is shared by all stores of the process."""
        indexes = Counter[str]()
        for index in [*self._indexes.values()]:
            indexes.update(index.cache_bytes())
        return {
            "vectors": self._caches.vectors.nbytes,
            **indexes,
            "records": self._catalogue.nbytes,
            "memories": self._caches.rows.nbytes,
            "names": self._caches.names.nbytes,
            "masks": self._masks.nbytes,
            "analyzer": shared_bytes(),
        }

    def _index(self, connection: Connection) -> KeywordIndex:
        """Return the live index in a connection's snapshot: another process may have switched it."""
        name = answering(connection)
        known = self._indexes.get(name)
        if known is None:
            if len(self._indexes) >= _INDEXES_KEPT:
                self._indexes.clear()
            known = self._indexes[name] = INDEXES[name[0]](self._index_bytes, self._kernel)
        return known

    # -- reading ---------------------------------------------------------------------------------------------

    def reading(self, hint: Hint = NO_HINT) -> AbstractContextManager[object]:
        """Hold one consistent view for all reads of this thread inside the block; with scopes, it is for a search."""
        foreseen = foreseen_by(hint) if self._is_remote else ()
        return self._backend.searching(foreseen, hint.until) if hint.scopes else self._backend.reading(foreseen)

    @contextmanager
    def reader(self) -> Iterator[IndexReader]:
        """Hold a snapshot of the file, and read it through the caches of this store."""
        with self._backend.reading() as (connection, generation, has_lost):
            reader: IndexReader | None = getattr(self._local, "reader", None)
            if reader is None or reader.view[:2] != (connection, generation):
                index = self._index(connection)
                view = View(connection, generation, index, self._catalogue, self._masks, {}, self._is_remote)
                reader = IndexReader(self._backend.aborting, view, self._caches, has_lost, self.fetch)
                self._local.reader = reader
            yield reader

    @contextmanager
    def view(self) -> Iterator[View]:
        """Hold a snapshot of the file, as indexes search it."""
        with self.reader() as reader:
            yield reader.view

    def resolve(
        self,
        question: Question,
        plan: Plan,
        language: str,
        further: Sequence[Analysis] = (),
        spaces: Sequence[str] = (),
        notes: Iterable[str] = (),
    ) -> Resolution:
        """Rewrite a question, and further wordings of it, in the terms of the visible memories."""
        deadline = question.query.deadline
        with self.reader() as reader, nullcontext() if deadline is None else reader.aborting(deadline.abort_at):
            found = resolve(reader, question, plan, language, further, spaces, notes)
            said = self._backend.notices(reader.view.connection) if self._is_remote else ()
            return replace(found, notices=(*found.notices, *said)) if said else found

    def retrieve(self, request: Request) -> Retrieval:
        """Take every run of the plan, then score all their candidates by every signal."""
        with self.reader() as reader:
            if reader.view.is_remote:
                reader.foresee(request)
            return retrieve(reader, request)

    @contextmanager
    def aborting(self, moment: float) -> Iterator[None]:
        """Abort statements of this thread inside the block after a deadline."""
        with self.reader() as reader, reader.aborting(moment):
            yield

    def fetch(self, ids: Iterable[MemoryId], scopes: frozenset[Scope]) -> Fetched:
        """Return those of these memories that are visible, as far as they can be read."""
        with self.reader() as reader:
            return reader.fetch(ids, scopes)

    get = _in_snapshot(IndexReader.get)
    held = _in_snapshot(IndexReader.held)
    languages = _in_snapshot(IndexReader.languages)
    readers = _in_snapshot(IndexReader.readers)
    keyword = _in_snapshot(IndexReader.keyword)
    nearest = _in_snapshot(IndexReader.nearest)
    named = _in_snapshot(IndexReader.named)
    score = _in_snapshot(IndexReader.score)
    passing = _in_snapshot(IndexReader.passing)
    in_other_languages = _in_snapshot(IndexReader.in_other_languages)
    last_positions = _in_snapshot(IndexReader.last_positions)
    vectors = _in_snapshot(IndexReader.vectors)
    history = _in_snapshot(IndexReader.history)
    dimensions = _in_snapshot(IndexReader.dimensions)
    note = _in_snapshot(IndexReader.note)

    def statistics(self, terms: Iterable[str], scopes: frozenset[Scope]) -> Statistics:
        """Return the term statistics of the visible memories."""
        with self.reader() as reader:
            return reader.statistics(terms, scopes)

    def beginning(self, beginning: str, scopes: frozenset[Scope]) -> Mapping[str, int]:
        """Return the visible terms with a prefix, as typed, and their document frequencies."""
        with self.reader() as reader:
            return reader.beginning(beginning, scopes)

    def spelled(self, plain: Collection[str], scopes: frozenset[Scope]) -> Mapping[str, tuple[str, ...]]:
        """Return the terms that equal these without accents; they may include those of removed memories."""
        with self.reader() as reader:
            return reader.spelled(plain, scopes)

    @property
    def location(self) -> str:
        """Return the path or the address of the database."""
        return self._backend.location

    @property
    def is_current(self) -> bool:
        """Return whether the file that was opened is still the one under its name."""
        return self._backend.is_current

    def read_before(self, reader: int, limit: int) -> list[Memory]:
        """Return up to `limit` memories, of any scope, that were indexed by an older analyzer."""
        with self._backend.reading() as snapshot:
            return list(islice(metadata.read_before(snapshot.connection, reader), limit))

    def sample(self, where: Where, count: int) -> list[Memory]:
        """Return a deterministic sample of up to `count` memories; the same memories give the same sample."""
        with self.reader() as reader:
            clause = reader.view.clause(where)
            ids = self._read(f"SELECT m.id FROM memories AS m WHERE {clause.sql}", clause.parameters)
            chosen = spread((row[0] for row in ids), count)
            found = reader.get(chosen, where.scopes)
        return [found[identity] for identity in chosen]

    def drop_damaged_vectors(self, space: str) -> int:
        """Delete vectors that fail their checksum, so that they are embedded again; return their number."""
        with self._backend.reading() as snapshot:
            damaged = damaged_vectors(snapshot.connection, space)
        if damaged:
            with self._backend.writing() as connection:
                damaged = damaged_vectors(connection, space)  # again: numbers may have changed meanwhile
                self._writing(connection).drop_vectors(space, damaged)
        return sum(map(len, damaged.values()))

    def purge(self) -> tuple[str, ...]:
        """Erase all bytes of deleted memories from the file and its log; return messages on what may remain."""
        self._purge_again = time.monotonic() + _PURGE_AGAIN_SECONDS
        remains = self._backend.attempt(lambda: self._backend.purge(self._scrub), frees=True)
        with self._backend.reading() as (connection, *_):
            if metadata.scopes_to_purge(connection) is None:
                self._purge_again = math.inf
        return remains

    def _finish_purge(self) -> None:
        """Retry an unfinished purge; errors are ignored, so that the write at hand does not fail."""
        with suppress(StoreError):
            self.purge()

    def _scrub(self, connection: Connection, scope: str) -> bool:
        """Remove the remains of a scope's deleted memories from derived data; return whether more may be left."""
        if self._index(connection).scrub(connection, scope):
            return True
        for space, firsts in stale_signs(connection, scope).items():
            write_signs(connection, space, {scope: firsts})
        self._caches.names.scrub(connection)
        return False

    def close(self) -> None:
        """Release the store."""
        self._backend.close()

    # -- lists and counts of memories ------------------------------------------------------------------------

    def browse(
        self, where: Where, limit: int, offset: int = 0, order: Order = "place", after: SortingKey | None = None
    ) -> list[Memory]:
        """Return memories by content key, or by date, importance or recalls, in descending order."""
        with self.view() as view:
            clause, key, behind = view.clause(where), SORTING_KEYS[order], ""
            if after is not None:
                behind = f" AND ({key}) > ({', '.join('?' * len(after))})"
            rows = self._read(
                f"SELECT {SELECT} FROM memories AS m WHERE {clause.sql}{behind} ORDER BY {key} LIMIT ? OFFSET ?",
                (*clause.parameters, *(after or ()), limit, offset),
            )
        return [as_far_as_legible(row) for row in rows]

    def each(self, where: Where) -> Iterator[Memory]:
        """Yield memories in the order of their content keys, without loading them all."""
        clause = clause_for(where)
        query = f"SELECT {SELECT} FROM memories AS m WHERE {clause.sql} ORDER BY {CONTENT_KEY}"
        with self._backend.reading() as snapshot, leniently(snapshot.connection) as connection:
            yield from map(as_far_as_legible, connection.execute(query, clause.parameters))

    def status(self, space: str, scopes: frozenset[Scope] | None = None) -> StoreStatus:
        """Count the content of the store, or of some scopes."""
        with self._backend.reading() as snapshot:
            count = self._count
            part, theirs = ("TRUE", ()) if scopes is None else (_SEEN, (metadata.as_json(scopes),))
            held = Counter[str]()
            for scope, number in self._read(f"SELECT {_SCOPE}, count(*) FROM memories WHERE {part} GROUP BY 1", theirs):
                held[scope if isinstance(scope, str) else "?"] += number
            spaces = self.spaces() if scopes is None else self._spaces_of(theirs)
            about = self._backend.describe()
            return StoreStatus(
                location=self._backend.location,
                schema=about.schema,
                keyword_index=self._index(snapshot.connection).name,
                memories=sum(held.values()),
                files=count(f"SELECT count(*) FROM files WHERE {part}", *theirs),
                scopes=dict(sorted(held.items())),
                spaces=dict(sorted(spaces.items())),
                without_vector=count(f"SELECT count(*) FROM memories AS m WHERE {_WAITS} AND {part}", space, *theirs)
                if space
                else 0,
                bytes=about.bytes if scopes is None else None,
                free_bytes=about.free_bytes if scopes is None else None,
                ballast_bytes=about.ballast_bytes if scopes is None else None,
                engine=f"{about.engine}, {'no' if self._kernel is NUMPY else 'a'} compiled kernel",
                caches=self._cache_bytes() if scopes is None else {},
                server=about.server if scopes is None else {},
            )

    # -- metadata --------------------------------------------------------------------------------------------

    with_text = _in_connection(metadata.with_text)
    written = _in_connection(metadata.written_with)
    notes = _in_connection(metadata.notes_with)
    failures = _in_connection(metadata.embedding_failures)
    without_vector = _in_connection(metadata.texts_without_vector)

    def scopes(self, within: Scope | None = None) -> frozenset[Scope]:
        """Return the scopes of all memories, or one and those below it; damaged ones are left out."""
        if within is None:
            rows = self._read("SELECT DISTINCT scope FROM memories")
        else:
            bounds = (str(within), f"{within}/", f"{within}{_AFTER_SLASH}")
            rows = self._read("SELECT scope FROM scopes WHERE scope = ? OR (scope > ? AND scope < ?)", bounds)
        found = set[Scope]()
        for (scope,) in rows:
            with suppress(ValueError, AttributeError, TypeError):  # it was damaged, and `doctor` names its memories
                found.add(Scope.parse(scope))
        return frozenset(one for one in found if within is None or one.is_within(within))

    def keys(self, scope: Scope) -> dict[str, Written]:
        """Return the results of all writes with keys in the scope, by key, without damaged ones."""
        rows = self._read("SELECT key, memory, content FROM write_keys WHERE scope = ?", (str(scope),))
        sound = (row for row in rows if all(isinstance(value, str) for value in row))
        return {key: Written(memory, content) for key, memory, content in sound}

    def spaces(self) -> dict[str, int]:
        """Count the vectors of each embedding space."""
        rows = self._read(
            "SELECT space, count(*) FROM vectors WHERE typeof(space) = 'text' GROUP BY space ORDER BY space"
        )
        return {space: count for space, count in rows if isinstance(space, str)}

    def _spaces_of(self, theirs: tuple[str, ...]) -> dict[str, int]:
        """Count the vectors of each embedding space that belong to memories of some scopes."""
        rows = self._read(
            f"SELECT space, count(*) FROM vectors WHERE {_SEEN} AND typeof(space) = 'text' GROUP BY space", theirs
        )
        return dict(sorted((space, count) for space, count in rows if isinstance(space, str)))

    def known_vectors(self, hashes: Iterable[str], space: str, scope: Scope) -> set[str]:
        """Return those of these embedded texts that already have a vector in the space and scope."""
        with self._backend.reading() as snapshot:
            return metadata.hashes_with_vectors(snapshot.connection, space, str(scope), hashes)

    def claim(self, space: str, limit: int, worker: str, lease_seconds: float, now: float) -> list[Waiting]:
        """Lease up to `limit` texts without a vector that are due and that nobody else embeds."""
        lease = metadata.Lease(worker, now, now + lease_seconds)
        queue = self._queues.setdefault(space, metadata.Queue(space))
        for _ in range(_CLAIM_ATTEMPTS):
            with self._backend.reading() as snapshot:  # a scan that blocks no writer
                found = queue.read(snapshot.connection, snapshot.generation, limit, now)
            leased = self._backend.attempt(partial(self._lease, space, found, lease)) if found else []
            if leased or not found:
                return leased
        return []

    def _lease(self, space: str, found: Sequence[Waiting], lease: metadata.Lease) -> list[Waiting]:
        with self._backend.writing(alone=False) as connection:
            return metadata.take_leases(connection, space, found, lease)

    def release(self, space: str, hashes: Iterable[str], worker: str) -> None:
        """End the leases of a worker on texts that it did not embed."""
        with self._backend.writing(alone=False) as connection:
            metadata.release_leases(connection, space, hashes, worker)

    @contextmanager
    def listening(self, wake: Callable[[], None]) -> Iterator[bool]:
        """Call `wake`, in a thread, whenever a writer leaves texts without a vector; False: nobody tells."""
        if self._backend.channel is None:
            yield False
            return
        with self._backend.channel.listening(wake):
            yield True

    def drop_space(self, space: str) -> int:
        """Delete all vectors of a space in short transactions, then its metadata; return their number."""
        dropped, after = 0, ""

        def drop(connection: Connection) -> tuple[int, str]:
            count, last = metadata.drop_vectors(connection, space, after)
            if not count:
                metadata.forget_space(connection, space)
            return count, last

        while True:
            count, after = self._in_transaction(drop)
            if not count:
                return dropped
            dropped += count

    def manifest(self, scope: Scope) -> dict[str, FileRecord]:
        """Return the files ingested into a scope, by path."""
        rows = self._read("SELECT path, size, mtime_ns, content_hash FROM files WHERE scope = ?", (str(scope),))
        return {row[0]: FileRecord(row[0], scope, row[1], row[2], row[3]) for row in rows}

    def chunks_of(self, scope: Scope, path: str) -> dict[MemoryId, str]:
        """Return the chunks of one file: id and hash of the embedded text."""
        rows = self._read(
            "SELECT id, embed_hash FROM memories WHERE scope = ? AND path = ? AND kind = 'chunk'", (str(scope), path)
        )
        return dict(rows)

    def put_note(self, name: str, text: str) -> None:
        """Replace the note under a name; return only when it is durable."""

        def put(connection: Connection) -> None:
            raise_generation(connection)
            metadata.write_notes(connection, {name: text})

        self._in_transaction(put)

    def swap_note(self, name: str, before: str | None, after: str) -> bool:
        """Replace a note only if its text is still `before` (compare and swap); return whether it was."""

        def swap(connection: Connection) -> bool:
            stands: bool = meta_value(connection, metadata.note_key(name)) == before
            if stands:
                raise_generation(connection)
                metadata.write_notes(connection, {name: after})
            return stands

        return self._in_transaction(swap)

    # -- copies of a store -----------------------------------------------------------------------------------

    def parts(self, scopes: Iterable[Scope], most: int) -> Iterator[StoredPart]:
        """Yield all memories of some scopes, up to `most` at a time, each part in its own snapshot if none is held."""
        left, after = sorted(map(str, scopes)), FIRST
        while left:
            with self.view() as view:
                part, done, after = read_next(view.connection, view.keyword, left, after, most)
                part = part._replace(generation=view.generation)
            left = left[done:]
            if part.memories:
                yield part

    def take_over(self, part: StoredPart, mode: Mode) -> Taken:
        """Store memories of another store as they are there, in one transaction; none begins if nothing is new."""
        with self.view() as view:
            change = Takeover(view.connection, view.keyword, part, mode)
        return change.outcome if change.is_empty else self._backend.attempt(lambda: self._take_over(part, mode))

    def _take_over(self, part: StoredPart, mode: Mode) -> Taken:
        with self._backend.writing() as connection:
            writing = self._writing(connection)
            change = Takeover(connection, writing.keyword, part, mode)
            change.apply(writing)
            self._is_untidy = True
        return change.outcome

    def drop_copied(self, ids: Sequence[MemoryId]) -> None:
        """Delete memories that a copy has stored and its source no longer holds; the others stay as they are."""
        with self._backend.writing() as connection:
            self._writing(connection).take_over((), ids, (), (), {})

    def files(self) -> dict[tuple[Scope, str], FileRecord]:
        """Return the files ingested into any scope, by scope and path; those of damaged scopes are left out."""
        found: dict[tuple[Scope, str], FileRecord] = {}
        for scope, path, *rest in self._read("SELECT scope, path, size, mtime_ns, content_hash FROM files"):
            with suppress(ValueError, AttributeError, TypeError):
                owner = Scope.parse(scope)
                found[owner, path] = FileRecord(path, owner, *rest)
        return found

    def ids(self, scopes: Iterable[Scope] | None = None) -> list[MemoryId]:
        """Return the ids of all memories, or of those of some scopes."""
        where, theirs = ("TRUE", ()) if scopes is None else (_SEEN, (metadata.as_json(scopes),))
        return [row[0] for row in self._read(f"SELECT id FROM memories WHERE {where}", theirs)]

    # -- helpers ---------------------------------------------------------------------------------------------

    def _read(self, query: str, parameters: Sequence[object] = ()) -> list[Row]:
        with self._backend.reading() as snapshot:
            return rows_of(snapshot.connection, query, tuple(parameters))

    def _count(self, query: str, *parameters: object) -> int:
        value = self._read(query, parameters)[0][0]
        assert isinstance(value, int)
        return value


class SqliteStore(IndexedStore):
    """Memories, keyword index, names, vectors and manifest in one SQLite file."""

    def __init__(
        self,
        path: Path,
        keyword: str = DEFAULT,
        cache_megabytes: int = CACHE_MEGABYTES,
        kernel: Kernel = KERNEL,
        ballast_megabytes: int = BALLAST_MEGABYTES,
    ) -> None:
        backend = SqliteBackend(path, ballast_megabytes)
        self._database = backend.database
        super().__init__(backend, keyword, cache_megabytes, kernel)


class PostgresStore(IndexedStore):
    """Memories, keyword index, names, vectors and manifest in one schema of a PostgreSQL database."""

    def __init__(
        self, url: str, keyword: str = DEFAULT, cache_megabytes: int = CACHE_MEGABYTES, kernel: Kernel = KERNEL
    ) -> None:
        from .postgres.backend import PostgresBackend  # psycopg takes a tenth of a second to import

        super().__init__(PostgresBackend(url), keyword, cache_megabytes, kernel)

    @staticmethod
    def is_same(url: str, other: str) -> bool:
        """Return whether two addresses name the same schema of one server, in whatever spelling."""
        return not PostgresStore.tables(url).isdisjoint(PostgresStore.tables(other))

    @staticmethod
    def tables(url: str) -> frozenset[tuple[str, ...]]:
        """Return host, port, database and schema for each host of an address; other names are not looked up."""
        from .postgres.pool import Address

        return Address.parse(url).tables()

    @staticmethod
    def exists(url: str) -> bool:
        """Return whether the schema of an address holds a store."""
        from .postgres.backend import is_store

        return is_store(url)
