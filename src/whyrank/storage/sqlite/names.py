"""Names in the file: equal keys, same words, prefixes and windows by index, typos by scan."""

from __future__ import annotations

import threading
from collections import Counter
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...analysis.names import (
    PARTIAL_WORDS,
    edit_distance,
    edits_allowed,
    is_known_in_part,
    match_name,
    proposal_score,
    windows_by_key,
    words_key,
)
from ...analysis.normalize import STRING_BYTES, ByteBoundedCache
from ...formatting import counted, which
from ...protocols import UNREADABLE
from ...types.memory import Notice
from ...types.trail import Name
from ..bm25 import Scored
from .database import Connection, Row, portions, rows_of
from .rows import COMPARED_KEY, legible_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from ...types.query import Where
    from ...types.trail import NameProbe
    from ..backend import Asked
    from .top_k import View

_ORPHANS = tuple(f"FROM {table} WHERE memory NOT IN (SELECT row FROM memories)" for table in ("names", "name_words"))
_LAST_CHARACTER = "\U0010ffff"
# True of a scope whose names differ from its stored counts; scopes of older stores have no counts.
MISCOUNTED = (
    "SELECT 1 FROM scopes AS s WHERE s.scope = ?1 AND (s.names <> (SELECT count(*) FROM names WHERE scope = ?1) "
    "OR s.name_words <> (SELECT count(*) FROM name_words WHERE scope = ?1))"
)
_LOST = Notice(
    UNREADABLE, "names that may match are missing from the file; `whyrank doctor --repair` rebuilds the names"
)

Counted = tuple[str, int, int]  # a scope, and the number of names and words of names it gains
_SCOPES_KEPT = 4_096  # that are known to hold all their names
NAME_BYTES = 10 * 1024 * 1024  # of keys in memory; those of seventy thousand names
_KEY_BYTES = STRING_BYTES + 8 + 2 * 8  # a key, its place in a list, its length and its letters


class Proposed(NamedTuple):
    """Memories whose names are related to a query, and notices on names that cannot be read."""

    scored: list[Scored]
    notices: tuple[Notice, ...] = ()


class _Keys(NamedTuple):
    """The keys of one scope's names, with their lengths and a bit for each letter they hold."""

    keys: list[str]
    lengths: NDArray[np.int64]
    letters: NDArray[np.uint64]

    def and_also(self, other: _Keys) -> _Keys:
        """Return these keys and others."""
        lengths, letters = np.append(self.lengths, other.lengths), np.append(self.letters, other.letters)
        return _Keys(self.keys + other.keys, lengths, letters)


class _Known(NamedTuple):
    """Cached keys of one scope: those of all memories up to a row."""

    last: int
    keys: _Keys

    @property
    def nbytes(self) -> int:
        """Return the approximate memory of the keys, in bytes."""
        return _KEY_BYTES * len(self.keys.keys) + int(self.keys.lengths.sum())


class NameIndex:
    """Index of memories by their names, with a cache of keys for typos."""

    def __init__(self, max_bytes: int = NAME_BYTES) -> None:
        self._known: ByteBoundedCache[str, _Known] = ByteBoundedCache(max_bytes, lambda _, known: known.nbytes)
        self._whole: set[str] = set()
        self._restored: str | None = None  # generation of the restore that the cache follows
        self._turn = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Return the approximate memory of the keys of all scopes, in bytes."""
        return self._known.nbytes

    def put(self, connection: Connection, named: Sequence[tuple[int, str, Sequence[Name]]]) -> list[Counted]:
        """Index the names of memories, given with row and scope; return the rows each scope gains."""
        names, words = [*_rows_of_names(named)], [*_rows_of_words(named)]
        connection.executemany("INSERT INTO names VALUES (?, ?, ?, ?, ?, ?, ?, ?)", names)
        connection.executemany("INSERT INTO name_words VALUES (?, ?, ?)", words)
        by_scope, by_word = Counter(row[2] for row in names), Counter(row[0] for row in words)
        return [(scope, by_scope[scope], by_word[scope]) for scope in by_scope]

    def remove(self, connection: Connection, row: int, scope: str) -> Counted:
        """Delete the names of a memory and their words; if the names are damaged, all words are scanned.

        Return the change of the scope's counts: zero or negative.
        """
        names = [words for (words,) in rows_of(connection, "SELECT words FROM names WHERE memory = ?", (row,))]
        if all(isinstance(words, str) for words in names):
            gone = connection.executemany(
                "DELETE FROM name_words WHERE scope = ? AND word = ? AND memory = ?",
                {(scope, word, row) for words in names for word in words.split()},
            )
        else:
            gone = connection.execute("DELETE FROM name_words WHERE memory = ?", (row,))
        words_gone = max(0, gone.rowcount)  # of no statement at all it is below zero
        return scope, -connection.execute("DELETE FROM names WHERE memory = ?", (row,)).rowcount, -words_gone

    def scrub(self, connection: Connection) -> None:
        """Delete the names and words that belong to no memory."""
        for table, orphans in zip(("names", "name_words"), _ORPHANS, strict=True):
            gone = Counter(scope for (scope,) in connection.execute(f"DELETE {orphans} RETURNING scope").fetchall())
            connection.executemany(
                f"UPDATE scopes SET {table} = {table} - ? WHERE scope = ?",
                [(count, scope) for scope, count in gone.items()],
            )

    def select(self, view: View, probe: NameProbe, where: Where, restored: str | None) -> Proposed:
        """Return the memories that pass a filter and whose names are related to the query.

        The score only orders the proposals. Damaged names are skipped. After a restore, of which the generation is
        given, rows belong to other memories.
        """
        if restored != self._restored:
            with self._turn:
                self._known.clear()
                self._whole.clear()
                self._restored = restored
        connection, found, is_whole = view.connection, set[int](), True
        for scope in sorted(map(str, where.scopes)):
            if scope not in self._whole and connection.execute(MISCOUNTED, (scope,)).fetchall():
                is_whole = False
            elif len(self._whole) < _SCOPES_KEPT:
                self._whole.add(scope)
            keys = [probe.key, *windows_by_key(probe.windows)]
            if probe.typos:
                keys += sorted(self._misspelt(connection, scope, probe.key))
            for asked in _named_asked(scope, keys, probe):
                found.update(chain.from_iterable(connection.execute(*asked)))
            prefixed = [{*chain.from_iterable(connection.execute(*asked))} for asked in _prefixes_asked(scope, probe)]
            found |= set.intersection(*prefixed) if prefixed else set()
        rows = {row for row in found if isinstance(row, int)}
        damaged = len(found) - len(rows)
        scored: list[Scored] = []
        for group, tie, stored in _named(view, sorted(rows), where) if rows else ():
            sound = [name for name in stored if tuple(map(type, name)) == (str, str, str, int)]
            names = [Name(text, key, tuple(words.split()), bonus) for text, key, words, bonus in sound]
            damaged += len(stored) - len(names)
            match = match_name(probe, names)
            if match is not None:
                scored.append(Scored(proposal_score(match), tie, group))
        notices = () if is_whole else (_LOST,)
        if damaged:
            told = f"{counted(damaged, 'name')} that may match {which(damaged, 'was', 'were')} damaged"
            told = f"{told} and cannot be read; `whyrank doctor --repair` rebuilds the names"
            notices = (Notice(UNREADABLE, told), *notices)
        return Proposed(scored, notices)

    def asked(self, scopes: Sequence[str], probe: NameProbe) -> Iterator[Asked]:
        """Yield the statements that propose memories; those for a misspelt key take another trip."""
        for scope in scopes:
            if scope not in self._whole:
                yield MISCOUNTED, (scope,)
            if not probe.typos:
                yield from _named_asked(scope, [probe.key, *windows_by_key(probe.windows)], probe)
            yield from _prefixes_asked(scope, probe)

    def _misspelt(self, connection: Connection, scope: str, key: str) -> set[str]:
        from rapidfuzz import process  # most questions hold no word that is misspelt

        allowed = edits_allowed(key)
        if not allowed:
            return set()
        known = self._all_keys(connection, scope)
        # An edit adds or removes one letter, or does both: keys that differ in more letters are farther away.
        near = (np.abs(known.lengths - len(key)) <= allowed) & (
            np.bitwise_count(known.letters ^ _letters([key])[0]) <= 2 * allowed
        )
        candidates = [known.keys[i] for i in np.flatnonzero(near).tolist()]
        found = process.extract(key, candidates, scorer=edit_distance(), score_cutoff=allowed, limit=None)
        return {other for other, _, _ in found}

    def _all_keys(self, connection: Connection, scope: str) -> _Keys:
        """Return the keys of a scope; only new ones are read, and keys of deleted names find nothing."""
        with self._turn:
            before, keys = known = self._known.get(scope) or _Known(0, _measured(()))
            # Damaged values may sort after all rows.
            named = connection.execute(
                "SELECT memory FROM names WHERE memory <= (SELECT max(row) FROM memories) ORDER BY memory DESC LIMIT 1"
            ).fetchone()
            last = named[0] if named else 0
            if last - before > len(keys.keys):  # more than are known, and most may be of other scopes
                keys = _measured(connection.execute("SELECT key FROM names WHERE scope = ?", (scope,)))
            elif last > before:
                # The sign keeps SQLite from the index by scope, which would scan all of the scope.
                new = "SELECT key FROM names WHERE memory > ? AND +scope = ?"
                keys = keys.and_also(_measured(connection.execute(new, (before, scope))))
            if keys is not known.keys or last > before:
                self._known.put(scope, _Known(max(before, last), keys))
            return keys


def _rows_of_names(named: Sequence[tuple[int, str, Sequence[Name]]]) -> Iterator[Row]:
    for names, alike in groupby(named, itemgetter(2)):  # the chunks of a file have the same names
        columns = [
            (name.text, name.key, " ".join(name.words), words_key(name.words), name.specificity) for name in names
        ]
        for row, scope, _ in alike:
            for place, name in enumerate(columns):
                yield row, place, scope, *name


def _rows_of_words(named: Sequence[tuple[int, str, Sequence[Name]]]) -> Iterator[Row]:
    for names, alike in groupby(named, itemgetter(2)):
        words = {word for name in names if is_known_in_part(name) for word in name.words}
        for row, scope, _ in alike:
            for word in words:
                yield scope, word, row


def _measured(rows: Iterable[tuple[object]]) -> _Keys:
    keys = [key for (key,) in rows if isinstance(key, str) and key]
    return _Keys(keys, np.array([len(key) for key in keys], np.int64), _letters(keys))


def _letters(keys: Sequence[str]) -> NDArray[np.uint64]:
    """Return a bit for each letter (modulo 64) that a key holds; keys are never empty."""
    points = np.frombuffer("".join(keys).encode("utf-32-le"), "<u4")
    starts = np.cumsum([0, *(len(key) for key in keys[:-1])])
    if not keys:
        return np.zeros(0, np.uint64)
    letters: NDArray[np.uint64] = np.bitwise_or.reduceat(np.uint64(1) << (points % 64).astype(np.uint64), starts)
    return letters


def _named_asked(scope: str, keys: Sequence[str], probe: NameProbe) -> Iterator[Asked]:
    """Yield the statements that find names by their keys, or of the same words in any order."""
    words = words_key(probe.words)
    for part, marks in portions(keys):  # no name has an empty key, and a repeated key is found once
        statement = (
            f"SELECT memory FROM names WHERE scope = ? AND key IN ({marks}) "
            "UNION ALL SELECT memory FROM names WHERE scope = ? AND sorted_words = ?"
        )
        yield statement, (scope, *part, scope, words)


def _prefixes_asked(scope: str, probe: NameProbe) -> Iterator[Asked]:
    """Yield the statements that find names by the beginnings of their words; none for a long query."""
    statement = "SELECT memory FROM name_words WHERE scope = ? AND word >= ? AND word < ?"
    for word in probe.words if len(probe.words) <= PARTIAL_WORDS else ():
        yield statement, (scope, word, word + _LAST_CHARACTER)


def _named(view: View, rows: Sequence[int], where: Where) -> Iterable[tuple[str, tuple[str, int, str, str], list[Row]]]:
    """Yield the visible rows among these with their names as stored."""
    connection, shelves, numbers = view.connection, view.shelves(where.scopes), np.array(rows, np.int64)
    passing = np.zeros(len(rows), np.bool_)
    for shelf, mask in zip(shelves, view.allowed(shelves, where), strict=True):
        places = shelf.places_of(numbers)
        here = places >= 0  # else the row is of another scope
        passing |= here if mask is None else here & mask[places]
    for part, marks in portions(numbers[passing].tolist()):
        statement = f"SELECT m.row, m.grouping, {COMPARED_KEY} FROM memories AS m WHERE m.row IN ({marks})"
        visible = rows_of(connection, statement, part)
        names: dict[int, list[Row]] = {}
        for row, *name in rows_of(
            connection, f"SELECT memory, text, key, words, specificity FROM names WHERE memory IN ({marks})", part
        ):
            names.setdefault(row, []).append(tuple(name))
        for row, group, *tie in visible:
            yield group, legible_key(tie), names.get(row, [])
