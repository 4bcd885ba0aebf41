"""What a SQLite store holds, listed and counted: also facts that wait to be indexed, where that cannot be done now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...kernel import Kernel
from ...ports import SortingKey, StoreStatus
from ...types import Memory, Order, Scope, Where
from .bookkeeping import SEEN, Bookkeeping
from .connection import LIBRARY, Connection, leniently
from .disk import Ballast, free_bytes
from .filters import Clause, clause_for
from .keyword import KeywordIndex
from .queue import as_json
from .rows import CONTENT_KEY, SELECT, SORTING_KEYS, as_far_as_legible

_WAITS = "NOT EXISTS (SELECT 1 FROM vectors AS v WHERE v.space = ? AND v.hash = m.embed_hash)"
_SCOPE = "iif(typeof(scope) = 'text', scope, '?')"  # of a memory; what is none was damaged


class Listing(Bookkeeping):
    """Lists and counts."""

    _kernel: Kernel | None
    _ballast: Ballast

    def _cache_bytes(self) -> dict[str, int]:
        raise NotImplementedError

    def _clause(self, where: Where) -> Clause:
        raise NotImplementedError

    def _index(self, connection: Connection) -> KeywordIndex:
        raise NotImplementedError

    def browse(
        self, where: Where, limit: int, offset: int = 0, order: Order = "place", after: SortingKey | None = None
    ) -> list[Memory]:
        """Return memories in the order of their content keys, or the latest, weightiest, most recalled first."""
        with self.reading():
            clause, key, behind = self._clause(where), SORTING_KEYS[order], ""
            if after is not None:
                behind = f" AND ({key}) > ({', '.join('?' * len(after))})"
            rows = self._read(
                f"SELECT {SELECT} FROM memories AS m WHERE {clause.sql}{behind} ORDER BY {key} LIMIT ? OFFSET ?",
                (*clause.parameters, *(after or ()), limit, offset),
            )
        return [as_far_as_legible(row) for row in rows]

    def each(self, where: Where) -> Iterator[Memory]:
        """Yield memories in the order of their content keys, without holding them all."""
        clause = clause_for(where)
        query = f"SELECT {SELECT} FROM memories AS m WHERE {clause.sql} ORDER BY {CONTENT_KEY}"
        with self.reading(), leniently(self._database.reader()) as connection:
            yield from map(as_far_as_legible, connection.execute(query, clause.parameters))

    def status(self, space: str, scopes: frozenset[Scope] | None = None) -> StoreStatus:
        """Count what the store holds, or what of it these scopes see."""
        with self.reading():
            count = self._count
            part, theirs = ("TRUE", ()) if scopes is None else (SEEN, (as_json(scopes),))
            held = Counter[str]()
            for scope, number in self._read(f"SELECT {_SCOPE}, count(*) FROM memories WHERE {part} GROUP BY 1", theirs):
                held[scope if isinstance(scope, str) else "?"] += number
            spaces = self.spaces() if scopes is None else self._spaces_of(theirs)
            return StoreStatus(
                location=str(self._database.path),
                schema=count("PRAGMA user_version"),
                keyword_index=self._index(self._database.reader()).name,
                memories=sum(held.values()),
                files=count(f"SELECT count(*) FROM files WHERE {part}", *theirs),
                scopes=dict(sorted(held.items())),
                spaces=dict(sorted(spaces.items())),
                without_vector=count(f"SELECT count(*) FROM memories AS m WHERE {_WAITS} AND {part}", space, *theirs)
                if space
                else 0,
                bytes=count("PRAGMA page_count") * count("PRAGMA page_size") if scopes is None else None,
                free_bytes=free_bytes(self._database.file) if scopes is None else None,
                ballast_bytes=self._ballast.size if scopes is None else None,
                engine=f"{LIBRARY}, {'a' if self._kernel is not None else 'no'} compiled kernel",
                caches=self._cache_bytes() if scopes is None else {},
            )

    def _count(self, query: str, *parameters: object) -> int:
        value = self._read(query, parameters)[0][0]
        assert isinstance(value, int)
        return value
