"""The keyword index on SQLite's own FTS5, over tokens we analysed ourselves.

FTS5 finds and pre-selects; the word score is computed exactly afterwards, with the statistics of the scope.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from ...analysis.datewords import is_mark
from ...analysis.spellings import accented_in, by_plain_spelling, typed_beginning
from ...columns import MemoryId
from ...expressions import meant
from ...types import ONCE, Join, Notice, Repeats, Scope, Signal, Statistics, Where
from ..lexical import TermScores, occurrences, padded, term_scores, word_score
from ..pools import Scored, best, cut
from .catalogue import NOWHERE, Integers, Shelf
from .connection import Connection, version
from .counts import ScopeCounts
from .filters import Clause, in_scopes
from .keyword import Found, Placed, View
from .records import code
from .rows import CONTENT_KEY
from .selection import Rows

# FTS5 selects by its own bm25(), whose idf is that of the whole file; twice the pool leaves room for the exact order.
SELECTION_MARGIN = 2

# The `ascii` tokenizer keeps everything beyond ASCII; these are the ASCII signs our own tokens may hold.
_TOKEN_SIGNS = "_-./:@+#\\''"
_SECURE_DELETE_SINCE = (3, 42, 0)

WORDS_ALONE = Notice(
    "fts5",
    'keyword = "fts5" scores words alone (no pairs, letters, dates or surroundings), and what other scopes hold can '
    'change which rows it selects; keyword = "postings" does neither',
)


class Fts5Index:
    """Keyword index on an FTS5 table of its own (no external content that could drift)."""

    name = "fts5"

    def __init__(self) -> None:
        self._counts = ScopeCounts()

    def cache_bytes(self) -> Mapping[str, int]:
        """Return how much memory each of its caches holds."""
        return {"counts": self._counts.nbytes}

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

    def stored_tokens(self, connection: Connection, row: int) -> list[str]:
        """Return the tokens of a memory."""
        stored = connection.execute("SELECT tokens FROM words WHERE rowid = ?", (row,)).fetchone()
        return stored[0].split() if stored else []

    def drop(self, connection: Connection) -> None:
        """Remove the table."""
        connection.execute("DROP TABLE words")

    def put(self, connection: Connection, placed: Sequence[Placed]) -> None:
        """Index the tokens of memories."""
        connection.executemany(
            "INSERT INTO words (rowid, tokens) VALUES (?, ?)", ((one.row, padded(one.entry.tokens)) for one in placed)
        )

    def remove(self, connection: Connection, row: int, scope: str, number: int) -> None:
        """Take a memory out."""
        connection.execute("DELETE FROM words WHERE rowid = ?", (row,))

    def close(self, connection: Connection, numbers: Mapping[str, int], newest: Sequence[Placed] = ()) -> None:
        """FTS5 has written everything already."""

    def renumber(self, connection: Connection, scope: str, moves: Sequence[tuple[int, str, int]], numbers: int) -> None:
        """FTS5 goes by rows."""

    def settle(self, connection: Connection, scope: str) -> None:
        """Leave it to SQLite, which merges as it writes."""

    def is_due(self, connection: Connection) -> bool:
        """FTS5 keeps its own house."""
        return False

    def tidy(self, connection: Connection) -> bool:
        """FTS5 keeps its own house."""
        return False

    def abandon_merge(self, connection: Connection, scope: str) -> None:
        """FTS5 merges inside its own transactions."""

    def scrub(self, connection: Connection, scope: str) -> bool:
        """Merge everything into one segment, without what was removed, unless FTS5 deletes securely by itself."""
        secure = connection.execute("SELECT 1 FROM words_config WHERE k = 'secure-delete' AND v = 1").fetchone()
        if secure is None:
            connection.execute("INSERT INTO words (words) VALUES ('optimize')")
        return False

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

    def holders(self, view: View, shelf: Shelf, term: str) -> Integers:
        """Return the places of a shelf that hold a term; FTS5 finds them, our own tokens decide."""
        if not meant(term):
            return np.zeros(0, np.int64)
        found = view.connection.execute(
            "SELECT m.row, words.tokens FROM words JOIN memories AS m ON m.row = words.rowid "
            "WHERE words MATCH ? AND m.scope = ?",
            (match_expression([term], "or"), shelf.scope),
        )
        places = shelf.places_of(np.array([row for row, tokens in found if occurrences(tokens, term)], np.int64))
        inside: Integers = places[places != NOWHERE]
        return inside

    def beginning(self, view: View, beginning: str, scopes: frozenset[Scope]) -> Mapping[str, int]:
        """Return the terms that begin so as typed, read off the texts FTS5 finds, and how many memories hold each."""
        wall, typed = in_scopes(scopes), typed_beginning(self._accented(view, scopes), beginning)
        found = view.connection.execute(
            "SELECT words.tokens FROM words JOIN memories AS m ON m.row = words.rowid "
            f"WHERE words MATCH ? AND {wall.sql}",
            (" OR ".join([f"{_quoted(beginning)}*", *map(_quoted, sorted(typed))]), *wall.parameters),
        )
        words = (token for (tokens,) in found for token in {*tokens.split()})
        return Counter(token for token in words if token in typed or token.startswith(beginning))

    def spelled(self, view: View, plain: Collection[str], scopes: frozenset[Scope]) -> Mapping[str, tuple[str, ...]]:
        """Return terms of what the scopes may see that are these without accents, read off the texts once."""
        known = self._accented(view, scopes)
        return {word: known[word] for word in plain if word in known}

    def _accented(self, view: View, scopes: frozenset[Scope]) -> Mapping[str, tuple[str, ...]]:
        return self._counts.of(view.generation, scopes).accented(partial(_accented, view.connection, in_scopes(scopes)))

    def run(
        self, view: View, terms: Sequence[str], where: Where, join: Join, limit: int | None, repeats: Repeats = ONCE
    ) -> Found:
        """Return the rows FTS5 selects, with exact scores."""
        terms = [term for term in terms if not is_mark(term) and meant(term)]
        if not terms:
            return Found(Rows(), (WORDS_ALONE,))
        # Its bm25() adds up the phrases of a query one by one, so a term written twice counts twice there, too.
        written = [term for term in terms for _ in range(repeats.get(term, 1))] if repeats else terms
        selected = self.select(view.connection, written, view.clause(where), join, limit)
        scores = self._term_scores(view, selected, terms, where.scopes, repeats)
        # The tokenizer may split what our tokens keep whole; only what truly matches stays.
        exact = (
            Scored(word_score(scores[row]), found.tie, found.group) for row, found in selected.items() if scores[row]
        )
        chosen = best(exact, limit)
        rows = {found.id: (row, code(found.group)) for row, found in selected.items()}
        numbers, origins = zip(*(rows[candidate.id] for candidate in chosen), strict=True) if chosen else ((), ())
        # Whose they are is left to be looked up.
        ids, values = [candidate.id for candidate in chosen], [candidate.score for candidate in chosen]
        return Found(Rows(numbers, values, ids, [""] * len(ids), origins), (WORDS_ALONE,))

    def score(
        self,
        view: View,
        ids: Sequence[MemoryId],
        rows: Sequence[int],
        terms: Sequence[str],
        scopes: frozenset[Scope],
        repeats: Repeats = ONCE,
    ) -> Signal:
        """Score the given memories in their rows, whether a run would list them or not."""
        terms = [term for term in terms if not is_mark(term)]
        owners = dict(zip(rows, ids, strict=True))
        found = self._term_scores(view, rows, terms, scopes, repeats)
        details = {owners[row]: scores for row, scores in found.items()}
        values = {identity: word_score(scores) for identity, scores in details.items()}
        once = found if not repeats else self._term_scores(view, rows, terms, scopes)
        bound = self.statistics(view, terms, scopes).mass(terms)
        coverage = {owners[row]: word_score(scores) / bound if bound else 0.0 for row, scores in once.items()}
        return Signal("keyword", values, coverage, details)

    def statistics(self, view: View, terms: Iterable[str], scopes: frozenset[Scope]) -> Statistics:
        """Return the term statistics of what the scopes may see, counted once per generation."""
        wall = in_scopes(scopes)
        counted = self._counts.of(view.generation, scopes)
        total, length = counted.size(partial(_size, view.connection, wall))
        frequency = {term: counted.frequency(term, partial(_frequency, view.connection, term, wall)) for term in terms}
        return Statistics(total, length / total if total else 0.0, frequency)

    def _term_scores(
        self,
        view: View,
        rows: Iterable[int],
        terms: Sequence[str],
        scopes: frozenset[Scope],
        repeats: Repeats = ONCE,
    ) -> dict[int, TermScores]:
        statistics = self.statistics(view, terms, scopes)
        stored = view.connection.execute(
            "SELECT w.rowid, w.tokens, m.length FROM words AS w JOIN memories AS m ON m.row = w.rowid "
            "WHERE w.rowid IN (SELECT value FROM json_each(?))",
            (json.dumps(list(rows)),),
        )
        return {row: term_scores(tokens, length, terms, statistics, repeats) for row, tokens, length in stored}


def _accented(connection: Connection, wall: Clause) -> Mapping[str, tuple[str, ...]]:
    """Return the tokens with accents, by how they are typed without."""
    texts = connection.execute(
        f"SELECT words.tokens FROM words JOIN memories AS m ON m.row = words.rowid WHERE {wall.sql}", wall.parameters
    )
    return by_plain_spelling(sorted({token for (text,) in texts for token in accented_in(" ".join(text.split()))}))


def _size(connection: Connection, wall: Clause) -> tuple[int, int]:
    total, length = connection.execute(
        f"SELECT count(*), coalesce(sum(m.length), 0) FROM memories AS m WHERE {wall.sql}", wall.parameters
    ).fetchone()
    return total, length


def _frequency(connection: Connection, term: str, wall: Clause) -> int:
    if not meant(term):
        return 0
    count: int = connection.execute(
        f"SELECT count(*) FROM words JOIN memories AS m ON m.row = words.rowid WHERE words MATCH ? AND {wall.sql}",
        (match_expression([term], "or"), *wall.parameters),
    ).fetchone()[0]
    return count


def match_expression(terms: Sequence[str], join: Join) -> str:
    """Write terms as an FTS5 query in which nothing is an operator: every token or phrase in quotes."""
    quoted = ("(" + " OR ".join(map(_quoted, meant(term))) + ")" for term in terms)
    return (" OR " if join == "or" else " AND ").join(quoted)


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'
