"""Names in the file: equal keys, same words, prefixes and windows by index, typos over the list of keys."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import NamedTuple

from rapidfuzz import process
from rapidfuzz.distance import OSA

from ...analysis.names import PARTIAL_WORDS, edits_allowed, match_name, name_key, proposal_score, words_key
from ...ports import Name
from ...types import NameProbe
from ..pools import Scored
from .connection import Connection
from .filters import Clause
from .rows import CONTENT_KEY

_LAST_CHARACTER = "\U0010ffff"


class _Keys(NamedTuple):
    generation: int
    by_length: dict[int, list[str]]


class NameIndex:
    """Finds memories by what they are called."""

    def __init__(self) -> None:
        self._keys = _Keys(-1, {})
        self._turn = threading.Lock()

    def put(self, connection: Connection, row: int, names: Iterable[Name]) -> None:
        """Index the names of a memory."""
        names = list(names)
        connection.executemany(
            "INSERT INTO names (memory, text, key, words, sorted_words, specificity) VALUES (?, ?, ?, ?, ?, ?)",
            (
                (row, name.text, name.key, " ".join(name.words), words_key(name.words), name.specificity)
                for name in names
            ),
        )
        words = sorted({word for name in names for word in name.words})
        connection.executemany("INSERT INTO name_words (word, memory) VALUES (?, ?)", ((word, row) for word in words))

    def select(self, connection: Connection, generation: int, probe: NameProbe, where: Clause) -> list[Scored]:
        """Return the memories whose names are related to the query; the score only orders the proposals."""
        rows = self._candidates(connection, generation, probe)
        scored: list[Scored] = []
        for group, tie, names in _named(connection, rows, where):
            match = match_name(probe, names)
            if match is not None:
                scored.append(Scored(proposal_score(match), tie, group))
        return scored

    def _candidates(self, connection: Connection, generation: int, probe: NameProbe) -> set[int]:
        keys = {probe.key, *(name_key("".join(window)) for window in probe.windows)}
        if probe.typos:
            keys |= self._misspelt(connection, generation, probe.key)
        rows = _select(connection, "SELECT memory FROM names WHERE key IN ({})", keys - {""})
        rows |= _select(connection, "SELECT memory FROM names WHERE sorted_words IN ({})", {words_key(probe.words)})
        if 0 < len(probe.words) <= PARTIAL_WORDS:
            rows |= _with_all_prefixes(connection, probe.words)
        return rows

    def _misspelt(self, connection: Connection, generation: int, key: str) -> set[str]:
        allowed = edits_allowed(key)
        if not allowed:
            return set()
        lengths = self._all_keys(connection, generation).by_length
        near = [other for size in range(len(key) - allowed, len(key) + allowed + 1) for other in lengths.get(size, ())]
        found = process.extract(key, near, scorer=OSA.distance, score_cutoff=allowed, limit=None)
        return {other for other, _, _ in found}

    def _all_keys(self, connection: Connection, generation: int) -> _Keys:
        with self._turn:
            if self._keys.generation != generation:
                by_length: dict[int, list[str]] = {}
                for (key,) in connection.execute("SELECT DISTINCT key FROM names ORDER BY key"):
                    by_length.setdefault(len(key), []).append(key)
                self._keys = _Keys(generation, by_length)
            return self._keys


def _select(connection: Connection, query: str, values: set[str]) -> set[int]:
    marks = ", ".join("?" * len(values))
    return {row for (row,) in connection.execute(query.format(marks), sorted(values))}


def _with_all_prefixes(connection: Connection, words: tuple[str, ...]) -> set[int]:
    found: set[int] | None = None
    for word in words:
        rows = {
            row
            for (row,) in connection.execute(
                "SELECT memory FROM name_words WHERE word >= ? AND word < ?", (word, word + _LAST_CHARACTER)
            )
        }
        found = rows if found is None else found & rows
    return found or set()


def _named(
    connection: Connection, rows: set[int], where: Clause
) -> Iterable[tuple[str, tuple[str, int, str, str], list[Name]]]:
    """Yield the visible ones of these rows with their names."""
    ordered = sorted(rows)
    for start in range(0, len(ordered), 500):
        part = ordered[start : start + 500]
        marks = ", ".join("?" * len(part))
        visible = connection.execute(
            f"SELECT m.row, m.grouping, {CONTENT_KEY} FROM memories AS m WHERE m.row IN ({marks}) AND {where.sql}",
            (*part, *where.parameters),
        ).fetchall()
        names: dict[int, list[Name]] = {}
        for row, text, key, words, specificity in connection.execute(
            f"SELECT memory, text, key, words, specificity FROM names WHERE memory IN ({marks})", part
        ):
            names.setdefault(row, []).append(Name(text, key, tuple(words.split()), specificity))
        for row, group, *tie in visible:
            yield group, tuple(tie), names.get(row, [])
