"""The keyword index on SQLite's own FTS5, over tokens we analysed ourselves.

FTS5 finds and pre-selects; the word score is computed exactly afterwards, with the statistics of the scope.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from ...types import Join
from ..lexical import padded
from ..pools import Scored, cut
from .connection import Connection, version
from .filters import Clause
from .rows import CONTENT_KEY

# FTS5 selects by its own bm25(), whose idf is that of the whole file; twice the pool leaves room for the exact order.
SELECTION_MARGIN = 2

# The `ascii` tokenizer keeps everything beyond ASCII; these are the ASCII signs our own tokens may hold.
_TOKEN_SIGNS = "_-./:@+#\\''"
_SECURE_DELETE_SINCE = (3, 42, 0)


class Fts5Index:
    """Keyword index on an FTS5 table of its own (no external content that could drift)."""

    name = "fts5"

    def exists(self, connection: Connection) -> bool:
        """Tell whether its table is there."""
        return connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'words'").fetchone() is not None

    def create(self, connection: Connection) -> None:
        """Make the table."""
        connection.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5("
            f"tokens, tokenize=\"ascii tokenchars '{_TOKEN_SIGNS}'\")"
        )
        if version >= _SECURE_DELETE_SINCE:
            connection.execute("INSERT INTO words (words, rank) VALUES ('secure-delete', 1)")

    def put(self, connection: Connection, row: int, tokens: Sequence[str]) -> None:
        """Index the tokens of a memory."""
        connection.execute("INSERT INTO words (rowid, tokens) VALUES (?, ?)", (row, padded(tokens)))

    def remove(self, connection: Connection, rows: Iterable[int]) -> None:
        """Take memories out."""
        connection.executemany("DELETE FROM words WHERE rowid = ?", ((row,) for row in rows))

    def select(
        self, connection: Connection, terms: Sequence[str], where: Clause, join: Join, limit: int | None
    ) -> dict[int, Scored]:
        """Return the rows worth scoring, best first by FTS5's own measure."""
        # bm25() is negative, the best match the most so: this minus is where its sign is turned, once.
        cursor = connection.execute(
            f"SELECT -bm25(words) AS score, m.row, m.grouping, {CONTENT_KEY} "
            "FROM words JOIN memories AS m ON m.row = words.rowid "
            f"WHERE words MATCH ? AND {where.sql} ORDER BY score DESC, {CONTENT_KEY}",
            (match_expression(terms, join), *where.parameters),
        )
        rows: dict[str, int] = {}

        def scored() -> Iterable[Scored]:
            for score, row, group, *tie in cursor:
                rows[tie[-1]] = row
                yield Scored(score, tuple(tie), group)

        pool = None if limit is None else limit * SELECTION_MARGIN
        return {rows[found.id]: found for found in cut(scored(), pool)}

    def tokens(self, connection: Connection, rows: Iterable[int]) -> dict[int, str]:
        """Return the padded tokens of rows."""
        found: dict[int, str] = dict(
            connection.execute(
                "SELECT rowid, tokens FROM words WHERE rowid IN (SELECT value FROM json_each(?))",
                (json.dumps(list(rows)),),
            )
        )
        return found

    def frequency(self, connection: Connection, term: str, scopes: Clause) -> int:
        """Count the memories of these scopes that hold a term."""
        count: int = connection.execute(
            "SELECT count(*) FROM words JOIN memories AS m ON m.row = words.rowid "
            f"WHERE words MATCH ? AND {scopes.sql}",
            (match_expression([term], "or"), *scopes.parameters),
        ).fetchone()[0]
        return count


def match_expression(terms: Sequence[str], join: Join) -> str:
    """Write terms as an FTS5 query in which nothing is an operator: every token or phrase in quotes."""
    quoted = ('"' + term.replace('"', '""') + '"' for term in terms)
    return (" OR " if join == "or" else " AND ").join(quoted)
