"""Metadata of a store (files, notes, write keys, spaces), with lists and counts of its memories."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ...protocols import Failure, FileRecord, SortingKey, StoreStatus, Waiting, Written
from . import embedding_queue, history
from .connection import LIBRARY, Connection, Row, leniently, rows_of
from .disk import Ballast, free_bytes
from .embedding_queue import as_json
from .filters import Clause, clause_for
from .notes import Notes, raise_generation, write_notes
from .postings.loops import NUMPY
from .rows import CONTENT_KEY, SELECT, SORTING_KEYS, as_far_as_legible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from ...types.memory import Memory, MemoryId, Order, Scope
    from ...types.query import Where
    from .database import Database
    from .keyword import KeywordIndex
    from .postings.loops import Kernel

SEEN = "scope IN (SELECT value FROM json_each(?))"
_HASHES_PER_STATEMENT = 500


class Metadata:
    """Metadata of a SQLite store: files, notes, write keys and embedding spaces."""

    _database: Database
    _notes: Notes

    def reading(self) -> AbstractContextManager[None]:
        """Hold one consistent view for all reads inside the block."""
        return self._database.reading()

    @property
    def is_current(self) -> bool:
        """Return whether the file that was opened is still the one under its name."""
        return self._database.is_current

    def with_text(self, text: str, scope: Scope) -> list[Memory]:
        """Return the facts of one scope with the same text, ignoring case and white space."""
        with self.reading():
            return history.with_text(self._database.reader(), text, scope)

    def written(self, scope: Scope, key: str) -> Written | None:
        """Return the result of a write with a key, if there was one in the scope."""
        with self.reading():
            return history.written_with(self._database.reader(), scope, key)

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
        hashes = f"SELECT embed_hash FROM memories WHERE {SEEN}"
        rows = self._read(
            f"SELECT space, count(*) FROM vectors WHERE hash IN ({hashes}) AND typeof(space) = 'text' GROUP BY space",
            theirs,
        )
        return dict(sorted((space, count) for space, count in rows if isinstance(space, str)))

    def known_vectors(self, hashes: Iterable[str], space: str) -> set[str]:
        """Return those of these embedded texts that already have a vector in the space."""
        found: set[str] = set()
        for part in _portions(sorted(set(hashes))):
            rows = self._read(f"SELECT hash FROM vectors WHERE space = ? AND hash IN ({_marks(part)})", (space, *part))
            found |= {row[0] for row in rows}
        return found

    def without_vector(self, space: str, limit: int, after: int = 0, due: float | None = None) -> list[Waiting]:
        """Return up to `limit` texts without a vector after a row, except those with a retry later than `due`."""
        with self.reading():
            return embedding_queue.waiting(self._database.reader(), space, limit, after, due)

    def failures(self, space: str, scopes: frozenset[Scope] | None = None) -> list[Failure]:
        """Return the embedding failures of a space, visible to some scopes; the provider's own comes first."""
        with self.reading():
            return embedding_queue.failures(self._database.reader(), space, scopes)

    def dimensions(self, space: str) -> int | None:
        """Return the number of dimensions of the space, if it ever held a vector."""
        with self.reading():
            generation = self._database.generation()
            value = self._notes.value(self._database.reader(), generation, embedding_queue.dimensions_key(space))
        return int(value) if isinstance(value, str) and value.isascii() and value.isdecimal() else None

    def drop_space(self, space: str) -> int:
        """Delete all vectors of a space in short transactions, then its metadata; return their number."""
        dropped, after = 0, 0
        while True:
            with self._database.writing() as connection:
                count, after = embedding_queue.drop_some(connection, space, after)
                if not count:
                    embedding_queue.forget_space(connection, space)
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

    def note(self, name: str) -> str | None:
        """Return the note under a name, if there is one."""
        with self.reading():
            return self._notes.get(self._database.reader(), self._database.generation(), name)

    def notes(self, prefix: str = "") -> dict[str, str]:
        """Return all notes whose names have a prefix, by name."""
        with self.reading():
            return self._notes.all(self._database.reader(), prefix)

    def put_note(self, name: str, text: str) -> None:
        """Replace the note under a name; return only when it is durable."""
        with self._database.writing() as connection:
            raise_generation(connection)
            write_notes(connection, {name: text})

    def swap_note(self, name: str, before: str | None, after: str) -> bool:
        """Replace a note only if its text is still `before` (compare and swap); return whether it was."""
        with self._database.writing() as connection:
            stands = self._notes.stored(connection, name) == before
            if stands:
                raise_generation(connection)
                write_notes(connection, {name: after})
            return stands

    def _read(self, query: str, parameters: Sequence[object] = ()) -> list[Row]:
        with self.reading():
            return rows_of(self._database.reader(), query, tuple(parameters))

    def _count(self, query: str, *parameters: object) -> int:
        value = self._read(query, parameters)[0][0]
        assert isinstance(value, int)
        return value


def _portions(values: list[str]) -> Iterable[list[str]]:
    return (values[i : i + _HASHES_PER_STATEMENT] for i in range(0, len(values), _HASHES_PER_STATEMENT))


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


_WAITS = "NOT EXISTS (SELECT 1 FROM vectors AS v WHERE v.space = ? AND v.hash = m.embed_hash)"
_SCOPE = "iif(typeof(scope) = 'text', scope, '?')"  # of a memory; a value that is no text was damaged


class MemoryListing(Metadata):
    """Lists and counts of memories, with the status of the store."""

    _kernel: Kernel
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
        """Return memories by content key, or by date, importance or recalls, in descending order."""
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
        """Yield memories in the order of their content keys, without loading them all."""
        clause = clause_for(where)
        query = f"SELECT {SELECT} FROM memories AS m WHERE {clause.sql} ORDER BY {CONTENT_KEY}"
        with self.reading(), leniently(self._database.reader()) as connection:
            yield from map(as_far_as_legible, connection.execute(query, clause.parameters))

    def status(self, space: str, scopes: frozenset[Scope] | None = None) -> StoreStatus:
        """Count the content of the store, or of some scopes."""
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
                engine=f"{LIBRARY}, {'no' if self._kernel is NUMPY else 'a'} compiled kernel",
                caches=self._cache_bytes() if scopes is None else {},
            )

    def _count(self, query: str, *parameters: object) -> int:
        value = self._read(query, parameters)[0][0]
        assert isinstance(value, int)
        return value
