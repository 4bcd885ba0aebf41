"""What people build on SQLite: FTS5 with numpy, sqlite-vec, and a bare insert as the floor of what durable costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from whyrank.storage.sqlite.database import Connection, connect

from .corpus import DIMENSION, FUNCTION_WORDS, OPENERS, SPARE_NOTES, Written
from .peers import Ability, Key, Peer, fused

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from whyrank.protocols import Vector

_POOL = 50
_STOP_WORDS = frozenset({*FUNCTION_WORDS, *OPENERS})


def _durable(folder: Path) -> Connection:
    """Open a database that keeps what it acknowledged even when the power fails, as whyrank's own does."""
    connection = connect(folder / "notes.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    return connection


class _Sqlite(Peer):
    """One open database."""

    needs: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    _database: Connection

    def open(self, folder: Path) -> None:
        """Open the database."""
        self._database = _durable(folder)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _rows(self, query: str, *parameters: object) -> list[Any]:
        return self._database.execute(query, parameters).fetchall()


class _Fts5(_Sqlite):
    """FTS5 over an external table, ranked by its bm25."""

    def build(self, corpus: Written, folder: Path) -> None:
        """Index the words, and merge the index into one piece."""
        database = _durable(folder)
        database.execute("CREATE TABLE notes (number INTEGER PRIMARY KEY, text TEXT NOT NULL, vector BLOB)")
        database.execute(
            "CREATE VIRTUAL TABLE words USING "
            "fts5(text, content='notes', content_rowid='number', tokenize='porter unicode61')"
        )
        database.execute("BEGIN")
        database.executemany("INSERT INTO notes (number, text) VALUES (?, ?)", enumerate(corpus.notes()))
        database.execute("INSERT INTO words (words) VALUES ('rebuild')")
        database.execute("INSERT INTO words (words) VALUES ('optimize')")
        database.execute("COMMIT")
        database.close()

    def keyword(self, question: str, limit: int) -> list[int]:
        """Return the notes with any of the words, by bm25."""
        match = " OR ".join(f'"{word}"' for word in self._words(question))
        rows = self._rows("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?", match, limit)
        return [number for (number,) in rows]

    def _words(self, question: str) -> Sequence[str]:
        return question.split()


class UsualRecipe(_Fts5):
    """FTS5 for the words, one matrix product for the vectors, reciprocal rank fusion over the best 50 of each."""

    name = "fts5+numpy"
    offers: frozenset[Ability] = frozenset({"keyword", "nearest", "search", "add"})

    def build(self, corpus: Written, folder: Path) -> None:
        """Index the words and write the matrix beside them."""
        super().build(corpus, folder)
        np.save(folder / "vectors.npy", corpus.vectors)

    def open(self, folder: Path) -> None:
        """Open the database and read the matrix, with room for what will be added."""
        super().open(folder)
        rows = np.load(folder / "vectors.npy", mmap_mode="r")
        self._count = len(rows)
        self._matrix = np.zeros((self._count + SPARE_NOTES, DIMENSION), dtype=np.float32)
        self._matrix[: self._count] = rows

    def nearest(self, vector: Vector, limit: int) -> list[int]:
        """Return the notes with the largest products."""
        scores = self._matrix[: self._count] @ vector
        best = np.argpartition(-scores, min(limit, len(scores) - 1))[:limit]
        numbers: list[int] = best[np.argsort(-scores[best], kind="stable")].tolist()
        return numbers

    def search(self, question: str, vector: Vector, limit: int) -> list[int]:
        """Fuse both lists and read the texts."""
        numbers = fused([self.keyword(question, _POOL), self.nearest(vector, _POOL)], limit)
        marks = ", ".join("?" * len(numbers))
        self._rows(f"SELECT number, text FROM notes WHERE number IN ({marks})", *numbers)
        return numbers

    def add(self, number: int, text: str, vector: Vector) -> None:
        """Store text, words and vector in one transaction."""
        self._database.execute("BEGIN IMMEDIATE")
        self._rows("INSERT INTO notes (number, text, vector) VALUES (?, ?, ?)", number, text, vector.tobytes())
        self._rows("INSERT INTO words (rowid, text) VALUES (?, ?)", number, text)
        self._database.execute("COMMIT")
        self._matrix[self._count] = vector
        self._count += 1


class WithoutStopWords(_Fts5):
    """The same words, but the function words are left out of the question."""

    name = "fts5 without stop words"
    offers: frozenset[Ability] = frozenset({"keyword"})

    def _words(self, question: str) -> Sequence[str]:
        words = question.split()
        return [word for word in words if word not in _STOP_WORDS] or words


class BareInsert(_Sqlite):
    """One row and one commit: nobody who keeps a promise on SQLite can be faster."""

    name = "sqlite insert"
    offers: frozenset[Ability] = frozenset({"add"})

    def build(self, corpus: Written, folder: Path) -> None:
        """Make an empty table."""
        database = _durable(folder)
        database.execute("CREATE TABLE notes (number INTEGER PRIMARY KEY, text TEXT NOT NULL, vector BLOB)")
        database.close()

    def add(self, number: int, text: str, vector: Vector) -> None:
        """Insert the row."""
        self._database.execute("BEGIN IMMEDIATE")
        self._rows("INSERT INTO notes VALUES (?, ?, ?)", number, text, vector.tobytes())
        self._database.execute("COMMIT")


class SqliteVec(_Sqlite):
    """The extension sqlite-vec: an exact scan inside SQLite."""

    name = "sqlite-vec"
    needs = ("sqlite-vec",)
    modules = ("sqlite_vec",)
    offers: frozenset[Ability] = frozenset({"nearest", "add"})

    def build(self, corpus: Written, folder: Path) -> None:
        """Fill a virtual table with the vectors."""
        self.open(folder)
        self._rows(f"CREATE VIRTUAL TABLE vectors USING vec0(vector float[{DIMENSION}] distance_metric=cosine)")
        self._database.execute("BEGIN")
        self._database.executemany(
            "INSERT INTO vectors (rowid, vector) VALUES (?, ?)",
            ((number, row.tobytes()) for number, row in enumerate(corpus.vectors)),
        )
        self._database.execute("COMMIT")
        self.close()

    def open(self, folder: Path) -> None:
        """Open the database and load the extension."""
        import sqlite_vec

        super().open(folder)
        if not hasattr(self._database, "enable_load_extension"):
            raise ImportError("this Python's SQLite cannot load extensions; pysqlite3 can")
        self._database.enable_load_extension(True)
        sqlite_vec.load(self._database)
        self._database.enable_load_extension(False)

    def nearest(self, vector: Vector, limit: int) -> Sequence[Key]:
        """Scan all vectors."""
        query = "SELECT rowid FROM vectors WHERE vector MATCH ? AND k = ? ORDER BY distance"
        return [number for (number,) in self._rows(query, vector.tobytes(), limit)]

    def add(self, number: int, text: str, vector: Vector) -> None:
        """Insert the vector."""
        self._database.execute("BEGIN IMMEDIATE")
        self._rows("INSERT INTO vectors (rowid, vector) VALUES (?, ?)", number, vector.tobytes())
        self._database.execute("COMMIT")
