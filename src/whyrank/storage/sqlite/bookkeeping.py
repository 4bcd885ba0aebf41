"""What a store keeps beside its memories: files, notes, keys of writes, and which texts have vectors in which space."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

from ...columns import MemoryId
from ...ports import Failure, FileRecord, Waiting, Written
from ...types import Memory, Scope
from . import past, queue
from .connection import Row, rows_of
from .database import Database
from .notes import Notes, raise_generation, write_notes

SEEN = "scope IN (SELECT value FROM json_each(?))"
_HASHES_PER_STATEMENT = 500


class Bookkeeping:
    """The books of a SQLite store."""

    _database: Database
    _notes: Notes

    def reading(self) -> AbstractContextManager[None]:
        """Hold one consistent view for all reads inside the block."""
        return self._database.reading()

    @property
    def is_current(self) -> bool:
        """Tell whether the file that was opened is still the one under its name."""
        return self._database.is_current

    def with_text(self, text: str, scope: Scope) -> list[Memory]:
        """Return the facts of one scope that say the same: case and white space aside."""
        with self.reading():
            return past.with_text(self._database.reader(), text, scope)

    def written(self, scope: Scope, key: str) -> Written | None:
        """Return what a write with a key came to, if there was one in the scope."""
        with self.reading():
            return past.written_with(self._database.reader(), scope, key)

    def keys(self, scope: Scope) -> dict[str, Written]:
        """Return what all writes with keys in the scope came to, by key; those that were damaged are left out."""
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
        """Count the vectors of each embedding space that belong to what some scopes see."""
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
        """Return up to `limit` texts behind a place that need a vector; those to be tried later than `due` are not."""
        with self.reading():
            return queue.waiting(self._database.reader(), space, limit, after, due)

    def failures(self, space: str, scopes: frozenset[Scope] | None = None) -> list[Failure]:
        """Return what of these scopes could not be embedded in a space and why, the provider's own failure first."""
        with self.reading():
            return queue.failures(self._database.reader(), space, scopes)

    def dimensions(self, space: str) -> int | None:
        """Return how many numbers a vector of the space has, if it ever held one."""
        with self.reading():
            generation = self._database.generation()
            value = self._notes.value(self._database.reader(), generation, queue.dimensions_key(space))
        return int(value) if isinstance(value, str) and value.isascii() and value.isdecimal() else None

    def drop_space(self, space: str) -> int:
        """Delete all vectors of a space in short transactions, then all that is known of it; return how many."""
        dropped, after = 0, 0
        while True:
            with self._database.writing() as connection:
                count, after = queue.drop_some(connection, space, after)
                if not count:
                    queue.forget_space(connection, space)
                    return dropped
            dropped += count

    def manifest(self, scope: Scope) -> dict[str, FileRecord]:
        """Return the files ingested into a scope, by path."""
        rows = self._read("SELECT path, size, mtime_ns, content_hash FROM files WHERE scope = ?", (str(scope),))
        return {row[0]: FileRecord(row[0], scope, row[1], row[2], row[3]) for row in rows}

    def chunks_of(self, scope: Scope, path: str) -> dict[MemoryId, str]:
        """Return the chunks of one file: id and hash of what was embedded."""
        rows = self._read(
            "SELECT id, embed_hash FROM memories WHERE scope = ? AND path = ? AND kind = 'chunk'", (str(scope), path)
        )
        return dict(rows)

    def note(self, name: str) -> str | None:
        """Return the text kept under a name, if there is one."""
        with self.reading():
            return self._notes.get(self._database.reader(), self._database.generation(), name)

    def notes(self, prefix: str = "") -> dict[str, str]:
        """Return all texts that are kept under names that begin so, by name."""
        with self.reading():
            return self._notes.all(self._database.reader(), prefix)

    def put_note(self, name: str, text: str) -> None:
        """Keep a text under a name, in place of the one before; return only when it is durable."""
        with self._database.writing() as connection:
            raise_generation(connection)
            write_notes(connection, {name: text})

    def swap_note(self, name: str, before: str | None, after: str) -> bool:
        """Keep a text in place of another only if that one still stands there; tell whether it did."""
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
