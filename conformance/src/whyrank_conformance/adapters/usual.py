"""The usual recipe on SQLite, FTS5 and a matrix of vectors: before its faults were named, and after.

Written anew from the formulae that were published with the reports; no engine's code is in it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..adapter import Adapter, Answer, Found, Note, Question, Setup

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from ..adapter import Vector
else:
    try:  # the SQLite that whyrank brings, where it is there
        import pysqlite3.dbapi2 as sqlite3
    except ImportError:
        import sqlite3

_WORD = re.compile(r"[A-Za-z0-9_]+")
_POOL = 4  # candidates of each run for every result
_VECTOR, _TEXT = 0.7, 0.3
_MINIMUM = 0.35
_RANK_CONSTANT = 60
_LIGHT_WORDS = "with weights of 0.7 and 0.3 the first by words alone (0.3/61) comes after the first 81 by vector"


class _Usual(Adapter):
    """FTS5 for the words, one matrix product for the vectors."""

    packages = ("numpy",)
    install = "pip install numpy"

    def open(self, setup: Setup) -> None:
        """Make an empty index."""
        self._embed = setup.embed
        self._database = sqlite3.connect(setup.folder / "notes.db")
        self._database.execute("CREATE VIRTUAL TABLE words USING fts5(id UNINDEXED, text)")
        self._vectors: dict[str, Vector] = {}

    def add(self, notes: Sequence[Note]) -> None:
        """Insert the texts, keep the vectors."""
        self._database.executemany("INSERT INTO words VALUES (?, ?)", [(note.id, note.text) for note in notes])
        vectors = self._embed([note.text for note in notes])
        self._vectors |= {note.id: vector for note, vector in zip(notes, vectors, strict=True)}

    def delete(self, ids: Sequence[str]) -> None:
        """Remove texts and vectors."""
        for id in ids:
            self._database.execute("DELETE FROM words WHERE id = ?", (id,))
            del self._vectors[id]

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _by_words(self, match: str, limit: int) -> list[tuple[str, float]]:
        if not match:
            return []
        query = "SELECT id, bm25(words) FROM words WHERE words MATCH ? ORDER BY bm25(words) LIMIT ?"
        return [(id, rank) for id, rank in self._database.execute(query, (match, limit))]

    def _by_vector(self, text: str, limit: int) -> list[tuple[str, float]]:
        [asked] = self._embed([text])
        ids, rows = list(self._vectors), np.stack(list(self._vectors.values()))
        lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(asked)
        cosines = (rows @ asked) / lengths
        best = np.argsort(-cosines, kind="stable")[:limit]
        return [(ids[i], float(cosines[i])) for i in best]


class Before(_Usual):
    """Words joined by AND, a normaliser that takes every rank for 0, a weighted sum, and a minimum laid on it."""

    name = "fts5+numpy before"
    about = "FTS5 and numpy as the source documents found it: AND, flat word scores, 0.7/0.3, a minimum of 0.35"
    call = "0.7 · cosine + 0.3 · 1/(1 + max(0, bm25)), words joined by AND, at least 0.35"
    promises = frozenset({"words", "vectors", "relevance", "threshold", "abstention"})

    def search(self, question: Question) -> Answer:
        """Add up what each run says, zero where it says nothing."""
        pool = question.limit * _POOL
        match = " AND ".join(f'"{word}"' for word in _WORD.findall(question.text))
        words = {id: 1 / (1 + max(0.0, rank)) for id, rank in self._by_words(match, pool)}
        cosines = dict(self._by_vector(question.text, pool))
        scores = {
            id: _VECTOR * max(0.0, cosines.get(id, 0.0)) + _TEXT * words.get(id, 0.0) for id in (*cosines, *words)
        }
        least = _MINIMUM if question.minimum is None else question.minimum
        ranked = sorted((id for id in scores if scores[id] >= least), key=lambda one: -scores[one])
        return Answer(tuple(Found(id, min(1.0, scores[id])) for id in ranked[: question.limit]))


class After(_Usual):
    """Words joined by OR, reciprocal ranks with weights, divided by the most they can be."""

    name = "fts5+numpy after"
    about = "FTS5 and numpy as the source documents mend it: OR, reciprocal ranks (60), scaled to 0..1"
    call = "0.7/(60 + rank) + 0.3/(60 + rank), divided by 1/61, words joined by OR"
    promises = frozenset({"words", "vectors", "threshold"})
    choices: ClassVar[Mapping[int, str]] = dict.fromkeys((5, 6, 12, 14), _LIGHT_WORDS) | {
        9: "the scale of the threshold was left open"
    }

    def search(self, question: Question) -> Answer:
        """Fuse the ranks."""
        pool = question.limit * _POOL
        match = " OR ".join(_WORD.findall(question.text))
        scores: dict[str, float] = {}
        for weight, run in (
            (_VECTOR, self._by_vector(question.text, pool)),
            (_TEXT, self._by_words(match, pool)),
        ):
            for rank, (id, _) in enumerate(run, 1):
                scores[id] = scores.get(id, 0.0) + weight * (_RANK_CONSTANT + 1) / (_RANK_CONSTANT + rank)
        least = question.minimum or 0.0
        ranked = sorted((id for id in scores if scores[id] >= least), key=lambda one: -scores[one])
        return Answer(tuple(Found(id) for id in ranked[: question.limit]))
