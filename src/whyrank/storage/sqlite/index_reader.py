"""Index reader: all reads of a search in one snapshot of the file, with the store's caches."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from ...analysis.tokenizer import marks_but_of
from ...protocols import Fetched
from ...types.query import ONCE, Join, Repeats, Where
from ...types.results import Candidates, Listed, Run, Signal, with_gaps
from ..bm25 import best
from . import metadata, pending
from .database import META_VALUE, foresee, meta_value, portions, rows_of
from .doc_values import HOLDS_ANY, SCOPE_ROW, count_readers, lost_notice
from .rows import code

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from ...protocols import Hint, Request, Vector
    from ...types.memory import Former, Memory, MemoryId, Notice, Scope
    from ...types.trail import NameProbe
    from .database import Asked, Connection, Key
    from .names import NameIndex
    from .rows import RowCache
    from .top_k import KeywordRun, View
    from .vectors.index import VectorIndex

Abort = Callable[["Connection", float], AbstractContextManager[None]]
FetchLate = Callable[[Iterable["MemoryId"], frozenset["Scope"]], Fetched]  # of the store, in a snapshot of its own


class Caches(NamedTuple):
    """Caches of a store that its readers share; each knows by itself what a write has made stale."""

    rows: RowCache
    vectors: VectorIndex
    names: NameIndex


def foreseen_by(hint: Hint) -> Iterator[Asked]:
    """Yield the statements that every search of some scopes begins with."""
    yield metadata.INDEX_IN, ()
    for key in (*map(metadata.dimensions_key, hint.spaces), *map(metadata.note_key, hint.notes)):
        yield META_VALUE, (key,)
    for scope in sorted(map(str, hint.scopes)):
        yield SCOPE_ROW, (scope,)
        yield HOLDS_ANY, (scope,)  # asked of a scope without a row


Place = tuple["Key", int]  # key, and a number for the source
_RUNS_KEPT = 16  # a search with expansions has some ten before it asks for the places of its candidates


class Places(NamedTuple):
    """Locations of memories: their keys, and the codes of their sources."""

    ids: Sequence[MemoryId]
    keys: Sequence[Key]
    origins: Sequence[int]


class IndexReader:
    """Reads of one thread in one snapshot; what a question asks twice is counted once."""

    def __init__(self, abort: Abort, view: View, caches: Caches, has_lost: bool, fetch_late: FetchLate) -> None:
        self.view = view
        self._abort = abort
        self._fetch_late = fetch_late
        self._rows, self._vectors, self._names = caches
        self._has_lost = has_lost
        self._moment = (view.connection, view.generation)
        self._languages: dict[frozenset[Scope], Mapping[str, int]] = {}
        self._readers: dict[frozenset[Scope], Mapping[int, int]] = {}
        self._meta: Callable[[str], str | None] = cache(partial(meta_value, view.connection))
        self._unread: tuple[Where, tuple[Notice, ...]] | None = None  # of the last filter
        self._runs: deque[Places] = deque(maxlen=_RUNS_KEPT)  # since the last candidates
        self._candidates = Places((), (), ())  # of the last search
        self._places: dict[MemoryId, Place] = {}  # of what its runs listed, and of these
        # What is asked of terms alone, the keyword index answers.
        self.statistics = partial(view.keyword.statistics, view)
        self.beginning = partial(view.keyword.beginning, view)
        self.spelled = partial(view.keyword.spelled, view)

    def foresee(self, request: Request) -> None:
        """Read what the runs of a search need, in one round trip to a server."""
        foresee(self.view.connection, self._asked(request))

    def _asked(self, request: Request) -> Iterator[Asked]:
        analysis, scopes = request.resolution.analysis, request.resolution.query.where.scopes
        if "keyword" in request.plan.runs and analysis.asked:
            yield from self.view.keyword.asked(self.view, analysis.asked, scopes)
        if request.vector is not None:
            yield from self._vectors.asked(self.view.shelves(scopes), request.space)
        if "name" in request.plan.runs and analysis.probe.key:
            yield from self._names.asked(self.view.shelves(scopes), analysis.probe)

    def aborting(self, moment: float) -> AbstractContextManager[None]:
        """Abort statements inside the block after a deadline."""
        return self._abort(self.view.connection, moment)

    # -- counts and notes ------------------------------------------------------------------------------------

    def languages(self, scopes: frozenset[Scope]) -> Mapping[str, int]:
        """Count the visible memories by detected language; those without one are not counted."""
        known = self._languages.get(scopes)
        if known is None:
            marks = marks_but_of("")
            counts = self.view.keyword.count_marks(self.view, list(marks), scopes)
            known = self._languages[scopes] = {marks[mark]: count for mark, count in counts.items() if count}
        return known

    def readers(self, scopes: frozenset[Scope]) -> Mapping[int, int]:
        """Count the visible memories by analyzer version."""
        known = self._readers.get(scopes)
        if known is None:
            known = self._readers[scopes] = count_readers(self.view.shelves(scopes))
        return known

    def dimensions(self, space: str) -> int | None:
        """Return the number of dimensions of the space, if it ever held a vector."""
        value = self._meta(metadata.dimensions_key(space))
        return int(value) if isinstance(value, str) and value.isascii() and value.isdecimal() else None

    def note(self, name: str) -> str | None:
        """Return the note under a name, if there is one."""
        return self._meta(metadata.note_key(name))

    # -- runs and scores -------------------------------------------------------------------------------------

    def keyword(
        self, terms: Sequence[str], where: Where, limit: int | None, join: Join = "or", repeats: Repeats = ONCE
    ) -> Run:
        """Return the best memories by word score, up to `limit` distinct sources."""
        if not terms:
            return Run("keyword", (), self._find_unread(where))
        return self._list_run("keyword", self.view.keyword.run(self.view, terms, where, join, limit, repeats), where)

    def nearest(self, vector: Vector, space: str, where: Where, limit: int | None) -> Run:
        """Return the nearest memories by cosine, up to `limit` distinct sources."""
        return self._list_run("vector", self._vectors.select(self.view, space, vector, where, limit), where)

    def _list_run(self, name: str, found: KeywordRun, where: Where) -> Run:
        numbers, scores, ids, scopes, origins = found.rows
        keys = [*zip(scopes, numbers, strict=True)]
        if not all(ids):
            unknown = [key for key, known in zip(keys, ids, strict=True) if not known]
            nameless = self._rows.memories(*self._moment, unknown)
            ids = [known or nameless[key].id for key, known in zip(keys, ids, strict=True)]
        self._runs.append(Places(ids, keys, origins))
        return Run(name, Listed(ids, scores), (*found.notices, *self._find_unread(where)))

    def _find_unread(self, where: Where) -> tuple[Notice, ...]:
        """Return notices on the memories that a run could not read, the same for all runs of a search."""
        if self._unread is not None and self._unread[0] is where:
            return self._unread[1]
        lost = pending.left_out(self.view.connection, where.scopes) if self._has_lost else ()
        gone = sum([shelf.lost for shelf in self.view.shelves(where.scopes)])
        damaged = self.view.unlisted(where) if where.expression is not None or where.tags else ()
        self._unread = where, (*lost, *((lost_notice(gone),) if gone else ()), *damaged)
        return self._unread[1]

    def named(self, probe: NameProbe, where: Where, limit: int) -> Run:
        """Return memories whose names are related to the query."""
        if self.view.is_remote:
            foresee(self.view.connection, self._names.asked(self.view.shelves(where.scopes), probe))
        found, damage = self._names.select(self.view, probe, where)
        return Run("name", best(found, limit) if found else (), (*damage, *self._find_unread(where)))

    def score(
        self,
        ids: Collection[MemoryId],
        terms: Sequence[str],
        vector: Vector | None,
        space: str,
        where: Where,
        repeats: Repeats = ONCE,
    ) -> list[Signal]:
        """Score the given candidates by every signal, whether its run has listed them or not."""
        places = self._locate(ids)
        signals: list[Signal] = []
        if terms:
            signals.append(self.view.keyword.score(self.view, places.ids, places.keys, terms, where.scopes, repeats))
        if vector is not None:
            cosines = self._vectors.score(self.view, space, vector, places.keys, where)
            signals.append(Signal("vector", with_gaps(places.ids, cosines)))
        return signals

    def passing(self, ids: Iterable[MemoryId], where: Where) -> set[MemoryId]:
        """Return those of these memories that pass every filter."""
        clause = self.view.clause(where)
        statement = f"SELECT m.id FROM memories AS m WHERE m.id IN (SELECT value FROM json_each(?)) AND {clause.sql}"
        rows = rows_of(self.view.connection, statement, (json.dumps(list(ids)), *clause.parameters))
        return {row[0] for row in rows}

    # -- candidates and memories -----------------------------------------------------------------------------

    def _locate(self, ids: Iterable[MemoryId], scopes: frozenset[Scope] | None = None) -> Places:
        """Return the places of those ids that exist, in these scopes if some are given."""
        wanted, known = [*ids], self._places
        if scopes is None and wanted == self._candidates.ids:  # asked several times by a search
            return self._candidates
        missing = [identity for identity in wanted if identity not in known]
        if missing:
            known = {**known, **self._read_places(missing)}
            wanted = [identity for identity in wanted if identity in known]
        found = [known[identity] for identity in wanted]
        if scopes is not None:
            visible = {str(scope) for scope in scopes}
            if not visible.issuperset([scope for (scope, _), _ in found]):
                wanted = [identity for identity in wanted if known[identity][0][0] in visible]
                found = [known[identity] for identity in wanted]
        return Places(wanted, *zip(*found, strict=True)) if found else Places((), (), ())

    def _read_places(self, ids: Sequence[MemoryId]) -> dict[MemoryId, Place]:
        """Read the places of those ids that exist from the file."""
        places: dict[MemoryId, Place] = {}
        for part, marks in portions(ids):
            query = f"SELECT id, scope, number, grouping FROM memories WHERE id IN ({marks})"
            for identity, scope, number, grouping in rows_of(self.view.connection, query, part):
                places[identity] = (scope, number), code(grouping if isinstance(grouping, str) else "")
        return places

    def get(self, ids: Iterable[MemoryId], scopes: frozenset[Scope]) -> dict[MemoryId, Memory]:
        """Return those of these memories that are visible to the scopes."""
        places = self._locate(ids, scopes)
        memories = self._rows.memories(*self._moment, places.keys)
        pairs = zip(places.ids, places.keys, strict=True)
        return {identity: memories[key] for identity, key in pairs if key in memories}

    def fetch(self, ids: Iterable[MemoryId], scopes: frozenset[Scope]) -> Fetched:
        """Return those of these memories that are visible, as far as they can be read."""
        places = self._locate(ids, scopes)
        found = self._rows.fetched(*self._moment, places.keys)
        read = {identity: found[key] for identity, key in zip(places.ids, places.keys, strict=True) if key in found}
        return Fetched(
            {identity: one.memory for identity, one in read.items()},
            frozenset([identity for identity, one in read.items() if one.is_mended]),
            frozenset([identity for identity, one in read.items() if one.is_altered]),
        )

    def held(self, ids: Iterable[MemoryId], scopes: frozenset[Scope]) -> Candidates:
        """Return the visible ones of these memories as candidates; a memory is read on access."""

        def read(identity: MemoryId) -> Memory | None:
            return self._fetch_late([identity], scopes).memories.get(identity)

        wanted = [*ids]
        places: dict[MemoryId, Place] = {}
        for run in self._runs:
            places.update(zip(run.ids, zip(run.keys, run.origins, strict=True), strict=True))
        self._runs.clear()
        unlisted = [identity for identity in wanted if identity not in places]
        if unlisted:
            places.update(self._read_places(unlisted))
        self._places = places
        found, keys, origins = self._candidates = self._locate(wanted, scopes)
        ties = self._rows.content_keys(*self._moment, keys)
        content_keys = [tie or ("", 0, "", identity) for tie, identity in zip(ties, found, strict=True)]
        visible = {str(scope): scope for scope in scopes}
        return Candidates.unread(found, [visible[owner] for owner, _ in keys], origins, content_keys, read)

    def vectors(self, ids: Sequence[MemoryId], space: str, scopes: frozenset[Scope]) -> dict[MemoryId, Vector]:
        """Return the unit vectors that `nearest` compares, of these memories where they exist and are visible."""
        places = self._locate(ids)
        return self._vectors.vectors(self.view, space, places.ids, places.keys, scopes)

    def in_other_languages(
        self, ids: Collection[MemoryId], language: str, scopes: frozenset[Scope]
    ) -> dict[MemoryId, str]:
        """Return those of these memories that are visible and in another language, each with its language."""
        marks = marks_but_of(language)
        places = self._locate(ids)
        found = self.view.keyword.find_marks(self.view, places.keys, list(marks), scopes)
        pairs = zip(places.ids, places.keys, strict=True) if found else ()
        return {identity: marks[found[key]] for identity, key in pairs if key in found}

    def history(self, ids: Sequence[MemoryId], scopes: frozenset[Scope]) -> dict[MemoryId, list[Former]]:
        """Return the former versions of those of these memories that have some and are visible."""
        return metadata.history_of(self.view.connection, list(self.held(ids, scopes)))

    def last_positions(self, sessions: Collection[tuple[Scope, str]]) -> dict[tuple[Scope, str], int]:
        """Return the position of the last turn of each of these sessions."""
        shelves = {shelf.scope: shelf for shelf in self.view.shelves(frozenset(scope for scope, _ in sessions))}
        ends = {key: shelves[str(key[0])].last_position(key[1]) for key in sessions if str(key[0]) in shelves}
        return {key: end for key, end in ends.items() if end is not None}
