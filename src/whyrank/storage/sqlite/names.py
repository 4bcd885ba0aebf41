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
from .database import Connection, Key, Row, portions, rows_at, rows_of
from .doc_values import NOWHERE
from .rows import COMPARED_KEY, legible_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from ...types.query import Where
    from ...types.trail import NameProbe
    from ..backend import Asked
    from .doc_values import ScopeDocValues
    from .top_k import View

UNOWNED_NAMES = "NOT EXISTS (SELECT 1 FROM memories AS m WHERE m.scope = n.scope AND m.number = n.number)"
_LAST_CHARACTER = "\U0010ffff"
# True of a scope whose names differ from its stored counts; scopes of older stores have no counts.
MISCOUNTED = (
    "SELECT 1 FROM scopes AS s WHERE s.scope = ?1 AND (s.names <> (SELECT count(*) FROM names WHERE scope = ?1) "
    "OR s.name_words <> (SELECT count(*) FROM name_words WHERE scope = ?1))"
)
_LOST = Notice(
    UNREADABLE, "names that may match are missing from the file; `whyrank doctor --repair` rebuilds the names"
)

Named = tuple[str, int, "Sequence[Name]"]  # a scope, a number, and the names of the memory there
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
    """Cached keys of one scope: those of all memories below a number, which renumbering gives to others."""

    epoch: int
    end: int
    keys: _Keys

    @property
    def nbytes(self) -> int:
        """Return the approximate memory of the keys, in bytes."""
        return _KEY_BYTES * len(self.keys.keys) + int(self.keys.lengths.sum())


class NameIndex:
    """Index of memories by their names, with a cache of keys for typos."""

    def __init__(self, max_bytes: int = NAME_BYTES) -> None:
        self._known: ByteBoundedCache[str, _Known] = ByteBoundedCache(max_bytes, lambda _, known: known.nbytes)
        self._whole: set[tuple[str, int]] = set()  # with the epochs of the scopes
        self._turn = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Return the approximate memory of the keys of all scopes, in bytes."""
        return self._known.nbytes

    def put(self, connection: Connection, named: Sequence[Named]) -> list[Counted]:
        """Index the names of memories, given with scope and number; return the rows each scope gains."""
        names, words = [*_rows_of_names(named)], [*_rows_of_words(named)]
        connection.executemany("INSERT INTO names VALUES (?, ?, ?, ?, ?, ?, ?, ?)", names)
        connection.executemany("INSERT INTO name_words VALUES (?, ?, ?)", words)
        by_scope, by_word = Counter(row[0] for row in names), Counter(row[0] for row in words)
        return [(scope, by_scope[scope], by_word[scope]) for scope in by_scope]

    def remove(self, connection: Connection, scope: str, number: int) -> Counted:
        """Delete the names of a memory and their words; if the names are damaged, all words of the scope are scanned.

        Return the change of the scope's counts: zero or negative.
        """
        key, at = (scope, number), "WHERE scope = ? AND number = ?"
        names = [words for (words,) in rows_of(connection, f"SELECT words FROM names {at}", key)]
        if all(isinstance(words, str) for words in names):
            gone = connection.executemany(
                "DELETE FROM name_words WHERE scope = ? AND word = ? AND number = ?",
                {(scope, word, number) for words in names for word in words.split()},
            )
        else:
            gone = connection.execute(f"DELETE FROM name_words {at}", key)
        words_gone = max(0, gone.rowcount)  # of no statement at all it is below zero
        return scope, -connection.execute(f"DELETE FROM names {at}", key).rowcount, -words_gone

    def scrub(self, connection: Connection) -> None:
        """Delete the names and words that belong to no memory."""
        for table in ("names", "name_words"):
            orphans = connection.execute(f"DELETE FROM {table} AS n WHERE {UNOWNED_NAMES} RETURNING scope").fetchall()
            connection.executemany(
                f"UPDATE scopes SET {table} = {table} - ? WHERE scope = ?",
                [(count, scope) for (scope,), count in Counter(orphans).items()],
            )

    def select(self, view: View, probe: NameProbe, where: Where) -> Proposed:
        """Return the memories that pass a filter and whose names are related to the query.

        The score only orders the proposals. Damaged names are skipped.
        """
        connection, is_whole = view.connection, True
        keys: list[Key] = []
        damaged = 0
        for shelf in view.shelves(where.scopes):
            scope, found = shelf.scope, set[object]()
            if (scope, shelf.epoch) not in self._whole and connection.execute(MISCOUNTED, (scope,)).fetchall():
                is_whole = False
            elif len(self._whole) < _SCOPES_KEPT:
                self._whole.add((scope, shelf.epoch))
            asked_for = [probe.key, *windows_by_key(probe.windows)]
            if probe.typos:
                asked_for += sorted(self._misspelt(connection, shelf, probe.key))
            for asked in _named_asked(scope, asked_for, probe):
                found.update(chain.from_iterable(connection.execute(*asked)))
            prefixed = [{*chain.from_iterable(connection.execute(*asked))} for asked in _prefixes_asked(scope, probe)]
            found |= set.intersection(*prefixed) if prefixed else set()
            numbers = [number for number in found if isinstance(number, int)]
            damaged += len(found) - len(numbers)
            keys += [(scope, number) for number in sorted(numbers)]
        scored: list[Scored] = []
        for group, tie, stored in _named(view, keys, where) if keys else ():
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

    def asked(self, shelves: Sequence[ScopeDocValues], probe: NameProbe) -> Iterator[Asked]:
        """Yield the statements that propose memories; those for a misspelt key take another trip."""
        for shelf in shelves:
            if (shelf.scope, shelf.epoch) not in self._whole:
                yield MISCOUNTED, (shelf.scope,)
            if not probe.typos:
                yield from _named_asked(shelf.scope, [probe.key, *windows_by_key(probe.windows)], probe)
            yield from _prefixes_asked(shelf.scope, probe)

    def _misspelt(self, connection: Connection, shelf: ScopeDocValues, key: str) -> set[str]:
        from rapidfuzz import process  # most questions hold no word that is misspelt

        allowed = edits_allowed(key)
        if not allowed:
            return set()
        known = self._all_keys(connection, shelf)
        # An edit adds or removes one letter, or does both: keys that differ in more letters are farther away.
        near = (np.abs(known.lengths - len(key)) <= allowed) & (
            np.bitwise_count(known.letters ^ _letters([key])[0]) <= 2 * allowed
        )
        candidates = [known.keys[i] for i in np.flatnonzero(near).tolist()]
        found = process.extract(key, candidates, scorer=edit_distance(), score_cutoff=allowed, limit=None)
        return {other for other, _, _ in found}

    def _all_keys(self, connection: Connection, shelf: ScopeDocValues) -> _Keys:
        """Return the keys of a scope; only new ones are read, and keys of deleted names find nothing."""
        with self._turn:
            known = self._known.get(shelf.scope)
            if known is None or known.epoch != shelf.epoch or known.end > len(shelf):
                known = _Known(shelf.epoch, 0, _measured(()))
            if known.end < len(shelf):
                new = "SELECT key FROM names WHERE scope = ? AND number >= ?"
                read = _measured(connection.execute(new, (shelf.scope, known.end)))
                known = _Known(shelf.epoch, len(shelf), known.keys.and_also(read))
                self._known.put(shelf.scope, known)
            return known.keys


def _rows_of_names(named: Sequence[Named]) -> Iterator[Row]:
    for names, alike in groupby(named, itemgetter(2)):  # the chunks of a file have the same names
        columns = [
            (name.text, name.key, " ".join(name.words), words_key(name.words), name.specificity) for name in names
        ]
        for scope, number, _ in alike:
            for place, name in enumerate(columns):
                yield scope, number, place, *name


def _rows_of_words(named: Sequence[Named]) -> Iterator[Row]:
    for names, alike in groupby(named, itemgetter(2)):
        words = {word for name in names if is_known_in_part(name) for word in name.words}
        for scope, number, _ in alike:
            for word in words:
                yield scope, word, number


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
            f"SELECT number FROM names WHERE scope = ? AND key IN ({marks}) "
            "UNION ALL SELECT number FROM names WHERE scope = ? AND sorted_words = ?"
        )
        yield statement, (scope, *part, scope, words)


def _prefixes_asked(scope: str, probe: NameProbe) -> Iterator[Asked]:
    """Yield the statements that find names by the beginnings of their words; none for a long query."""
    statement = "SELECT number FROM name_words WHERE scope = ? AND word >= ? AND word < ?"
    for word in probe.words if len(probe.words) <= PARTIAL_WORDS else ():
        yield statement, (scope, word, word + _LAST_CHARACTER)


def _named(view: View, keys: Sequence[Key], where: Where) -> Iterable[tuple[str, tuple[str, int, str, str], list[Row]]]:
    """Yield the visible memories among these with their names as stored."""
    connection, shelves = view.connection, view.shelves(where.scopes)
    passing = np.zeros(len(keys), np.bool_)
    for places, mask in zip(view.catalogue.locate(shelves, keys), view.allowed(shelves, where), strict=True):
        here = places != NOWHERE
        passing |= here if mask is None else here & mask[places]
    wanted = [keys[i] for i in np.flatnonzero(passing).tolist()]
    names: dict[Key, list[Row]] = {}
    for scope, number, *name in rows_at(
        connection, "SELECT scope, number, text, key, words, specificity FROM names", wanted
    ):
        names.setdefault((scope, number), []).append(tuple(name))
    stated = f"SELECT m.scope, m.number, m.grouping, {COMPARED_KEY} FROM memories AS m"
    for scope, number, group, *tie in rows_at(connection, stated, wanted):
        yield group, legible_key(tie), names.get((scope, number), [])
