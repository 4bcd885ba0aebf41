"""The SQLite store: everything in one file, every change in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from ...errors import StoreError
from ...ports import Changes, Entry, FileRecord, StoreStatus, Vector
from ...types import Join, Memory, MemoryId, NameProbe, Run, Scope, Signal, Statistics, Where
from ..pools import best
from .connection import LIBRARY, Connection, Database, Row
from .filters import clause_for, in_scopes
from .indexes import DEFAULT, prepare_index
from .keyword import KeywordIndex, View
from .lives import lives_of, mark_superseded, refuse_foreign_ids
from .names import NameIndex
from .rows import CONTENT_KEY, INSERT, SELECT, to_memory, to_row
from .schema import prepare
from .vectors import VectorIndex

_IDS_PER_STATEMENT = 500


class SqliteStore:
    """Memories, keyword index, names, vectors and manifest in one SQLite file."""

    def __init__(self, path: Path, keyword: str = DEFAULT) -> None:
        self._database = Database(path)
        self._names = NameIndex()
        self._vectors = VectorIndex()
        try:
            self._keyword = self._prepare(path, keyword)
        except BaseException:
            self._database.close()
            raise

    def _prepare(self, path: Path, keyword: str) -> KeywordIndex:
        if self._database.read_only and not path.exists():
            raise StoreError(f"{path} does not exist and cannot be made here", "check the permissions of the folder")
        prepare(self._database)
        return prepare_index(self._database, keyword)

    def reading(self) -> AbstractContextManager[None]:
        """Hold one consistent view for all reads inside the block."""
        return self._database.reading()

    # -- writing ---------------------------------------------------------------------------------------------

    def write(self, changes: Changes) -> None:
        """Apply changes in one transaction; return only when they are durable."""
        entries = {entry.memory.id: entry for entry in changes.put}
        with self._database.writing() as connection:
            refuse_foreign_ids(connection, entries.values())
            gone = {*changes.remove, *_chunks_below(connection, changes.replace_files)} - entries.keys()
            lives = lives_of(connection, entries, gone, changes.renamed)
            orphans = self._remove(connection, [*gone, *entries])
            for entry in entries.values():
                self._insert(connection, entry)
            if changes.vectors:
                self._vectors.put(connection, changes.space, changes.vectors)
            mark_superseded(connection, {**lives, **changes.superseded})
            self._write_manifest(connection, changes)
            _drop_orphans(connection, orphans)
            connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")

    def _insert(self, connection: Connection, entry: Entry) -> None:
        row = connection.execute(INSERT, to_row(entry)).lastrowid
        assert row is not None
        self._keyword.put(connection, row, entry)
        self._names.put(connection, row, entry.names)

    def _remove(self, connection: Connection, ids: Sequence[MemoryId]) -> list[str]:
        """Take memories out of every table; return the hashes of the texts they embedded."""
        rows = self._rows(connection, ids)
        hashes = [
            connection.execute("DELETE FROM memories WHERE row = ? RETURNING embed_hash", (row,)).fetchone()[0]
            for row in rows
        ]
        self._keyword.remove(connection, rows)
        return hashes

    def _write_manifest(self, connection: Connection, changes: Changes) -> None:
        connection.executemany(
            "DELETE FROM files WHERE scope = ? AND path = ?",
            ((str(scope), path) for scope, path in changes.forget_files),
        )
        connection.executemany(
            "INSERT INTO files (scope, path, size, mtime_ns, content_hash) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET size = excluded.size, mtime_ns = excluded.mtime_ns, "
            "content_hash = excluded.content_hash",
            ((str(file.scope), file.path, file.size, file.mtime_ns, file.content_hash) for file in changes.files),
        )

    # -- reading ---------------------------------------------------------------------------------------------

    def get(self, ids: Iterable[MemoryId], scopes: frozenset[Scope]) -> dict[MemoryId, Memory]:
        """Return those of these memories that the scopes may see."""
        wall = in_scopes(scopes)
        found: dict[MemoryId, Memory] = {}
        for part in _portions(list(ids)):
            for row in self._read(
                f"SELECT {SELECT} FROM memories AS m WHERE m.id IN ({_marks(part)}) AND {wall.sql}",
                (*part, *wall.parameters),
            ):
                memory = to_memory(row)
                found[memory.id] = memory
        return found

    def browse(self, where: Where, limit: int, offset: int = 0) -> list[Memory]:
        """Return memories in the order of their content keys."""
        clause = clause_for(where)
        rows = self._read(
            f"SELECT {SELECT} FROM memories AS m WHERE {clause.sql} ORDER BY {CONTENT_KEY} LIMIT ? OFFSET ?",
            (*clause.parameters, limit, offset),
        )
        return [to_memory(row) for row in rows]

    def keyword(self, terms: Sequence[str], where: Where, limit: int | None, join: Join = "or") -> Run:
        """Return the best memories by word score, up to `limit` distinct sources."""
        if not terms:
            return Run("keyword")
        with self._view() as view:
            return Run("keyword", best(self._keyword.run(view, terms, where, join, limit), limit))

    def nearest(self, vector: Vector, space: str, where: Where, limit: int | None) -> Run:
        """Return the nearest memories by cosine, up to `limit` distinct sources."""
        with self._view() as view:
            scored, notices = self._vectors.select(*view, space, vector, where, limit)
        return Run("vector", best(scored, limit), tuple(notices))

    def named(self, probe: NameProbe, where: Where, limit: int) -> Run:
        """Propose memories whose names are related to the query."""
        with self._view() as view:
            scored = self._names.select(*view, probe, clause_for(where))
        return Run("name", best(scored, limit))

    def score(
        self, ids: Sequence[MemoryId], terms: Sequence[str], vector: Vector | None, space: str, where: Where
    ) -> list[Signal]:
        """Score the given candidates by every signal, listed by its run or not."""
        with self._view() as view:
            rows = self._rows(view.connection, ids)
            signals: list[Signal] = []
            if terms:
                signals.append(self._keyword.score(view, rows, terms, where.scopes))
            if vector is not None:
                signals.append(Signal("vector", self._vectors.score(*view, space, vector, rows)))
            return signals

    def statistics(self, terms: Iterable[str], scopes: frozenset[Scope]) -> Statistics:
        """Return the term statistics of what the scopes may see."""
        with self._view() as view:
            return self._keyword.statistics(view, terms, scopes)

    @contextmanager
    def _view(self) -> Iterator[View]:
        with self.reading():
            connection = self._database.reader()
            generation = connection.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()[0]
            yield View(connection, int(generation))

    def spaces(self) -> dict[str, int]:
        """Count the vectors of each embedding space."""
        rows = self._read("SELECT space, count(*) FROM vectors GROUP BY space ORDER BY space")
        return dict(rows)

    def known_vectors(self, hashes: Iterable[str], space: str) -> set[str]:
        """Return those of these embedded texts that already have a vector in the space."""
        found: set[str] = set()
        for part in _portions(sorted(set(hashes))):
            rows = self._read(f"SELECT hash FROM vectors WHERE space = ? AND hash IN ({_marks(part)})", (space, *part))
            found |= {row[0] for row in rows}
        return found

    def without_vector(self, space: str, limit: int) -> list[tuple[str, str]]:
        """Return up to `limit` (hash, text) pairs that still need a vector in the space."""
        rows = self._read(
            "SELECT DISTINCT m.embed_hash, m.embed_text FROM memories AS m WHERE NOT EXISTS "
            "(SELECT 1 FROM vectors AS v WHERE v.space = ? AND v.hash = m.embed_hash) ORDER BY m.row LIMIT ?",
            (space, limit),
        )
        return [(text_hash, text) for text_hash, text in rows]

    def manifest(self, scope: Scope) -> dict[str, FileRecord]:
        """Return the files ingested into a scope, by path."""
        rows = self._read("SELECT path, size, mtime_ns, content_hash FROM files WHERE scope = ?", (str(scope),))
        return {row[0]: FileRecord(row[0], scope, row[1], row[2], row[3]) for row in rows}

    def drop_damaged_vectors(self, space: str) -> int:
        """Delete vectors that fail their checksum, so that they are made again; return how many."""
        with self.reading():
            damaged = self._vectors.damaged(self._database.reader(), space)
        if damaged:
            with self._database.writing() as connection:
                connection.executemany(
                    "DELETE FROM vectors WHERE space = ? AND hash = ?", ((space, h) for h in damaged)
                )
                connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
        return len(damaged)

    def chunks_of(self, scope: Scope, path: str) -> dict[MemoryId, str]:
        """Return the chunks of one file: id and hash of what was embedded."""
        rows = self._read(
            "SELECT id, embed_hash FROM memories WHERE scope = ? AND path = ? AND kind = 'chunk'", (str(scope), path)
        )
        return dict(rows)

    def status(self, space: str) -> StoreStatus:
        """Count what the store holds."""
        with self.reading():
            count = self._count
            return StoreStatus(
                location=str(self._database.path),
                schema=count("PRAGMA user_version"),
                keyword_index=self._keyword.name,
                memories=count("SELECT count(*) FROM memories"),
                files=count("SELECT count(*) FROM files"),
                scopes={
                    row[0]: row[1]
                    for row in self._read("SELECT scope, count(*) FROM memories GROUP BY scope ORDER BY scope")
                },
                spaces=self.spaces(),
                without_vector=count(
                    "SELECT count(*) FROM memories AS m WHERE NOT EXISTS "
                    "(SELECT 1 FROM vectors AS v WHERE v.space = ? AND v.hash = m.embed_hash)",
                    space,
                )
                if space
                else 0,
                bytes=count("PRAGMA page_count") * count("PRAGMA page_size"),
                engine=LIBRARY,
            )

    def close(self) -> None:
        """Release the store."""
        self._database.close()

    # -- helpers ---------------------------------------------------------------------------------------------

    def _read(self, query: str, parameters: Sequence[object] = ()) -> list[Row]:
        with self.reading():
            return self._database.reader().execute(query, tuple(parameters)).fetchall()

    def _count(self, query: str, *parameters: object) -> int:
        value = self._read(query, parameters)[0][0]
        assert isinstance(value, int)
        return value

    def _rows(self, connection: Connection, ids: Iterable[MemoryId]) -> dict[int, MemoryId]:
        rows: dict[int, MemoryId] = {}
        for part in _portions(list(ids)):
            rows.update(
                connection.execute(f"SELECT row, id FROM memories WHERE id IN ({_marks(part)})", part).fetchall()
            )
        return rows


def _chunks_below(connection: Connection, files: Iterable[tuple[Scope, str]]) -> list[MemoryId]:
    return [
        identity
        for scope, path in files
        for (identity,) in connection.execute(
            "SELECT id FROM memories WHERE scope = ? AND path = ? AND kind = 'chunk'", (str(scope), path)
        )
    ]


def _drop_orphans(connection: Connection, hashes: Iterable[str]) -> None:
    """Delete vectors whose text is gone: the last memory with a text takes its vectors along."""
    connection.executemany(
        "DELETE FROM vectors WHERE hash = ? AND NOT EXISTS (SELECT 1 FROM memories WHERE embed_hash = vectors.hash)",
        ((text_hash,) for text_hash in set(hashes)),
    )


def _portions(values: list[str]) -> Iterable[list[str]]:
    return (values[i : i + _IDS_PER_STATEMENT] for i in range(0, len(values), _IDS_PER_STATEMENT))


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
