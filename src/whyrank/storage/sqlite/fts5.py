"""Keyword index on SQLite's own FTS5, over tokens of our own analyzer.

FTS5 matches and preselects; the word score is computed exactly afterwards, with the statistics of the scope.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ...analysis.dates import is_mark
from ...analysis.names import accented_in, by_plain_spelling, typed_beginning
from ...analysis.normalize import ByteBoundedCache
from ...types.memory import Notice, Scope
from ...types.query import ONCE, Join, Repeats, Statistics, Where, meant
from ...types.results import Signal
from ..bm25 import Scored, TermScores, best, cut, occurrences, padded, term_scores, word_score
from .database import Connection, rows_at, version
from .doc_values import NOWHERE, Integers, ScopeDocValues
from .filters import MARKED, Clause, in_scopes
from .rows import CONTENT_KEY, code
from .top_k import KeywordRun, NumberedMemory, Rows, View

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from ...types.memory import MemoryId
    from .database import Asked, Key

_ROW = "(SELECT row FROM memories WHERE scope = ? AND number = ?)"  # the key of a memory's words
# Counts the memories without words, and the words without a memory.
UNPAIRED = (
    "SELECT (SELECT count(*) FROM memories WHERE row NOT IN (SELECT rowid FROM words)) + "
    "(SELECT count(*) FROM words WHERE rowid NOT IN (SELECT row FROM memories))"
)
_SCOPES_KEPT = 64
_TERM_BYTES = 256 * 1024  # of the frequencies of one set of scopes, some five hundred terms
_INTEGER_BYTES = 32


@dataclass
class Counts:
    """Cached counts of one set of scopes at one generation."""

    generation: int
    _size: tuple[int, int] | None = None
    _accented: Mapping[str, tuple[str, ...]] | None = None
    _frequencies: ByteBoundedCache[str, int] = field(
        default_factory=lambda: ByteBoundedCache(_TERM_BYTES, lambda term, _: len(term) + _INTEGER_BYTES)
    )

    @property
    def nbytes(self) -> int:
        """Return the approximate memory of the counts, in bytes."""
        return self._frequencies.nbytes + sum(map(len, self._accented or ()))

    def size(self, count: Callable[[], tuple[int, int]]) -> tuple[int, int]:
        """Return the number of memories and of their tokens."""
        size = self._size or count()
        self._size = size
        return size

    def accented(self, read: Callable[[], Mapping[str, tuple[str, ...]]]) -> Mapping[str, tuple[str, ...]]:
        """Return the tokens with accents, by their spelling without."""
        found = read() if self._accented is None else self._accented
        self._accented = found
        return found

    def frequency(self, term: str, count: Callable[[], int]) -> int:
        """Return the document frequency of a term."""
        known = self._frequencies.get(term)
        if known is None:
            known = count()
            self._frequencies.put(term, known)
        return known


class ScopeCounts:
    """Counts by set of scopes; a new generation discards them."""

    def __init__(self) -> None:
        self._counts: dict[frozenset[Scope], Counts] = {}
        self._turn = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Return the approximate memory of the counts of all scopes, in bytes."""
        return sum(counts.nbytes for counts in [*self._counts.values()])

    def of(self, generation: int, scopes: frozenset[Scope]) -> Counts:
        """Return the counts of these scopes at a generation, empty if it is a new one."""
        with self._turn:
            counts = self._counts.get(scopes)
            if counts is None or counts.generation != generation:
                if len(self._counts) >= _SCOPES_KEPT:
                    self._counts.clear()
                counts = self._counts[scopes] = Counts(generation)
            return counts


# FTS5 selects by its own bm25(), whose idf is that of the whole file; twice the pool leaves a margin for exact scores.
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
        """Return the memory of each cache, in bytes."""
        return {"counts": self._counts.nbytes}

    def exists(self, connection: Connection) -> bool:
        """Return whether the table exists."""
        return connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'words'").fetchone() is not None

    def create(self, connection: Connection) -> None:
        """Create the table."""
        connection.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5("
            f"tokens, tokenize=\"ascii tokenchars '{_TOKEN_SIGNS}'\")"
        )
        if version >= _SECURE_DELETE_SINCE:
            connection.execute("INSERT INTO words (words, rank) VALUES ('secure-delete', 1)")

    def stored_tokens(self, connection: Connection, scope: str, number: int) -> list[str]:
        """Return the tokens of a memory."""
        stored = connection.execute(f"SELECT tokens FROM words WHERE rowid = {_ROW}", (scope, number)).fetchone()
        return stored[0].split() if stored else []

    def drop(self, connection: Connection) -> None:
        """Drop the table."""
        connection.execute("DROP TABLE words")

    def put(self, connection: Connection, placed: Sequence[NumberedMemory]) -> None:
        """Index the tokens of memories."""
        connection.executemany(
            f"INSERT INTO words (rowid, tokens) VALUES ({_ROW}, ?)",
            ((str(one.entry.memory.scope), one.number, padded(one.entry.tokens)) for one in placed),
        )

    def remove(self, connection: Connection, scope: str, number: int) -> None:
        """Delete the tokens of a memory, while its row is still there."""
        connection.execute(f"DELETE FROM words WHERE rowid = {_ROW}", (scope, number))

    def close(self, connection: Connection, numbers: Mapping[str, int], newest: Sequence[NumberedMemory] = ()) -> None:
        """Do nothing: FTS5 has written everything already."""

    def renumber(self, connection: Connection, scope: str, moves: Sequence[tuple[int, str, int]], numbers: int) -> None:
        """Do nothing: FTS5 is keyed by rows."""

    def compact(self, connection: Connection, scope: str) -> None:
        """Do nothing: FTS5 merges as it writes."""

    def is_due(self, connection: Connection) -> bool:
        """Return False: FTS5 merges by itself."""
        return False

    def tidy(self, connection: Connection) -> bool:
        """Return False: FTS5 merges by itself."""
        return False

    def abandon_merge(self, connection: Connection, scope: str) -> None:
        """Do nothing: FTS5 merges inside its own transactions."""

    def scrub(self, connection: Connection, scope: str) -> bool:
        """Merge everything into one segment without deleted rows, unless FTS5 deletes securely by itself."""
        secure = connection.execute("SELECT 1 FROM words_config WHERE k = 'secure-delete' AND v = 1").fetchone()
        if secure is None:
            connection.execute("INSERT INTO words (words) VALUES ('optimize')")
        return False

    def select(
        self, connection: Connection, terms: Sequence[str], where: Clause, join: Join, limit: int | None
    ) -> dict[Key, Scored]:
        """Return the memories worth scoring, best first by FTS5's own measure."""
        # bm25() is negative, the best match the lowest: this minus is the only place where its sign is reversed.
        cursor = connection.execute(
            f"SELECT -bm25(words) AS score, m.scope, m.number, m.grouping, {CONTENT_KEY} "
            "FROM words JOIN memories AS m ON m.row = words.rowid "
            f"WHERE words MATCH ? AND {where.sql} ORDER BY score DESC, {CONTENT_KEY}",
            (match_expression(terms, join), *where.parameters),
        )
        keys: dict[str, Key] = {}

        def scored() -> Iterable[Scored]:
            for score, scope, number, group, *tie in cursor:
                keys[tie[-1]] = scope, number
                yield Scored(score, tuple(tie), group)

        pool = None if limit is None else limit * SELECTION_MARGIN
        return {keys[found.id]: found for found in cut(scored(), pool)}

    def holders(self, view: View, shelf: ScopeDocValues, term: str) -> Integers:
        """Return the places of a scope that hold a term; FTS5 preselects, our own tokens decide."""
        if not meant(term):
            return np.zeros(0, np.int64)
        if is_mark(term):
            sql = f"SELECT m.number FROM memories AS m WHERE m.scope = ? AND {MARKED.format('?')}"
            numbers = [number for (number,) in view.connection.execute(sql, (shelf.scope, term))]
        else:
            found = view.connection.execute(
                "SELECT m.number, words.tokens FROM words JOIN memories AS m ON m.row = words.rowid "
                "WHERE words MATCH ? AND m.scope = ?",
                (match_expression([term], "or"), shelf.scope),
            )
            numbers = [number for number, tokens in found if occurrences(tokens, term)]
        places = shelf.places_of(numbers)
        inside: Integers = places[places != NOWHERE]
        return inside

    def beginning(self, view: View, beginning: str, scopes: frozenset[Scope]) -> Mapping[str, int]:
        """Return the visible terms with a prefix, as typed, and their document frequencies, from the texts."""
        wall, typed = in_scopes(scopes), typed_beginning(self._accented(view, scopes), beginning)
        found = view.connection.execute(
            "SELECT words.tokens FROM words JOIN memories AS m ON m.row = words.rowid "
            f"WHERE words MATCH ? AND {wall.sql}",
            (" OR ".join([f"{_quoted(beginning)}*", *map(_quoted, sorted(typed))]), *wall.parameters),
        )
        words = (token for (tokens,) in found for token in {*tokens.split()})
        return Counter(token for token in words if token in typed or token.startswith(beginning))

    def spelled(self, view: View, plain: Collection[str], scopes: frozenset[Scope]) -> Mapping[str, tuple[str, ...]]:
        """Return the visible terms that equal these without accents, from the texts, cached per generation."""
        known = self._accented(view, scopes)
        return {word: known[word] for word in plain if word in known}

    def _accented(self, view: View, scopes: frozenset[Scope]) -> Mapping[str, tuple[str, ...]]:
        return self._counts.of(view.generation, scopes).accented(partial(_accented, view.connection, in_scopes(scopes)))

    def run(
        self, view: View, terms: Sequence[str], where: Where, join: Join, limit: int | None, repeats: Repeats = ONCE
    ) -> KeywordRun:
        """Return the rows FTS5 selects, with exact scores."""
        terms = [term for term in terms if not is_mark(term) and meant(term)]
        if not terms:
            return KeywordRun(Rows(), (WORDS_ALONE,))
        # Its bm25() adds up the phrases of a query one by one, so a term written twice counts twice there, too.
        written = [term for term in terms for _ in range(repeats.get(term, 1))] if repeats else terms
        selected = self.select(view.connection, written, view.clause(where), join, limit)
        scores = self._term_scores(view, selected, terms, where.scopes, repeats)
        # The tokenizer may split tokens that ours keeps whole; only rows with a true match stay.
        exact = (
            Scored(word_score(scores[key]), found.tie, found.group) for key, found in selected.items() if scores[key]
        )
        chosen = best(exact, limit)
        keys = {found.id: key for key, found in selected.items()}
        ids, values = [candidate.id for candidate in chosen], [candidate.score for candidate in chosen]
        scopes, numbers = zip(*map(keys.__getitem__, ids), strict=True) if ids else ((), ())
        origins = [code(selected[keys[identity]].group) for identity in ids]
        return KeywordRun(Rows(numbers, values, ids, scopes, origins), (WORDS_ALONE,))

    def score(
        self,
        view: View,
        ids: Sequence[MemoryId],
        keys: Sequence[Key],
        terms: Sequence[str],
        scopes: frozenset[Scope],
        repeats: Repeats = ONCE,
    ) -> Signal:
        """Score the given memories, with their keys, whether a run would list them or not."""
        terms = [term for term in terms if not is_mark(term)]
        owners = dict(zip(keys, ids, strict=True))
        found = self._term_scores(view, keys, terms, scopes, repeats)
        details = {owners[key]: scores for key, scores in found.items()}
        values = {identity: word_score(scores) for identity, scores in details.items()}
        once = found if not repeats else self._term_scores(view, keys, terms, scopes)
        bound = self.statistics(view, terms, scopes).mass(terms)
        coverage = {owners[key]: word_score(scores) / bound if bound else 0.0 for key, scores in once.items()}
        return Signal("keyword", values, coverage, details)

    def find_marks(
        self, view: View, keys: Sequence[Key], marks: Sequence[str], scopes: frozenset[Scope]
    ) -> Mapping[Key, str]:
        """Return the mark of each memory that has one of these and is visible, from the rows themselves."""
        visible = {str(scope) for scope in scopes}
        rows = rows_at(view.connection, "SELECT scope, number, dates FROM memories", keys)
        return {
            (scope, number): mark
            for scope, number, dates in rows
            for mark in marks
            if scope in visible and isinstance(dates, str) and mark in dates.split()
        }

    def count_marks(self, view: View, marks: Sequence[str], scopes: frozenset[Scope]) -> Mapping[str, int]:
        """Count the visible memories by mark, from the rows themselves."""
        wall = in_scopes(scopes)
        found = view.connection.execute(
            "SELECT mark.value, count(*) FROM memories AS m, json_each(?) AS mark "
            f"WHERE {MARKED.format('mark.value')} AND {wall.sql} GROUP BY mark.value",
            (json.dumps(list(marks)), *wall.parameters),
        )
        return dict(found.fetchall())

    def asked(self, view: View, terms: Sequence[str], scopes: frozenset[Scope]) -> Iterator[Asked]:
        """Yield nothing: this index is in SQLite, where no statement is a round trip."""
        return iter(())

    def statistics(self, view: View, terms: Iterable[str], scopes: frozenset[Scope]) -> Statistics:
        """Return the term statistics of the visible memories, counted once per generation."""
        wall = in_scopes(scopes)
        counted = self._counts.of(view.generation, scopes)
        total, length = counted.size(partial(_size, view.connection, wall))
        frequency = {term: counted.frequency(term, partial(_frequency, view.connection, term, wall)) for term in terms}
        return Statistics(total, length / total if total else 0.0, frequency)

    def _term_scores(
        self,
        view: View,
        keys: Iterable[Key],
        terms: Sequence[str],
        scopes: frozenset[Scope],
        repeats: Repeats = ONCE,
    ) -> dict[Key, TermScores]:
        statistics = self.statistics(view, terms, scopes)
        stored = rows_at(
            view.connection,
            "SELECT m.scope, m.number, w.tokens, m.length FROM memories AS m JOIN words AS w ON w.rowid = m.row",
            keys,
        )
        return {
            (scope, number): term_scores(tokens, length, terms, statistics, repeats)
            for scope, number, tokens, length in stored
        }


def _accented(connection: Connection, wall: Clause) -> Mapping[str, tuple[str, ...]]:
    """Return the tokens with accents, by their spelling without."""
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
