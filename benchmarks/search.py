"""How search grows, beside the usual recipe (FTS5 with OR, numpy cosine, RRF): both take turns query by query.

Run by `make bench`. The corpus is generated from a seed: Zipfian words, English function words at their usual share.
"""

from __future__ import annotations

import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import whyrank
from whyrank.embedding.wordllama import WordLlama
from whyrank.types import Document

SIZES = (1_000, 10_000)
WORDS_PER_NOTE = 60
VOCABULARY = 20_000
QUERIES = 40
_FUNCTION = "the of and to a in is that for it as was with be by on not he his but at are this have from or"
FUNCTION_WORDS = _FUNCTION.split()


def corpus(size: int, chance: random.Random) -> list[str]:
    words = [f"w{chance.randrange(10**6):06d}" for _ in range(VOCABULARY)]
    weights = [1 / (rank + 2.7) for rank in range(VOCABULARY)]
    notes = []
    for _ in range(size):
        content = chance.choices(words, weights, k=WORDS_PER_NOTE * 3 // 5)
        function = chance.choices(FUNCTION_WORDS, k=WORDS_PER_NOTE * 2 // 5)
        note = content + function
        chance.shuffle(note)
        notes.append(" ".join(note))
    return notes


def questions(notes: Sequence[str], chance: random.Random) -> list[str]:
    def ask(note: str) -> str:
        words = note.split()
        start = chance.randrange(len(words) - 9)
        return "what " + " ".join(words[start : start + 9])

    return [ask(chance.choice(notes)) for _ in range(QUERIES)]


def usual_recipe(notes: Sequence[str], embedder: WordLlama) -> Callable[[str], list[int]]:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE notes USING fts5(text, tokenize='porter unicode61')")
    database.executemany("INSERT INTO notes (rowid, text) VALUES (?, ?)", enumerate(notes))
    matrix = embedder.documents(notes)

    def search(query: str) -> list[int]:
        match = " OR ".join(f'"{word}"' for word in query.split())
        rows = database.execute("SELECT rowid FROM notes WHERE notes MATCH ? ORDER BY rank LIMIT 100", (match,))
        words = [row for (row,) in rows]
        near = np.argsort(-(matrix @ embedder.query(query)))[:100].tolist()
        scores: dict[int, float] = {}
        for run in (words, near):
            for rank, row in enumerate(run, 1):
                scores[row] = scores.get(row, 0.0) + 1 / (60 + rank)
        return sorted(scores, key=lambda row: -scores[row])[:10]

    return search


def cpu_milliseconds(call: Callable[[str], object], query: str) -> float:
    start = time.process_time()
    call(query)
    return (time.process_time() - start) * 1000


def measure(size: int, embedder: WordLlama) -> tuple[float, float]:
    """Return the median CPU milliseconds of the usual recipe and of whyrank."""
    chance = random.Random(size)
    notes = corpus(size, chance)
    usual = usual_recipe(notes, embedder)
    times: tuple[list[float], list[float]] = ([], [])
    with (
        tempfile.TemporaryDirectory(prefix="whyrank-bench-") as place,
        whyrank.open(Path(place) / "memory.db", workspace=place) as engine,
    ):
        engine.add_documents(Document(str(i), note) for i, note in enumerate(notes))
        engine.search("warm up")
        for query in questions(notes, chance):
            times[0].append(cpu_milliseconds(usual, query))
            times[1].append(cpu_milliseconds(engine.search, query))
    return statistics.median(times[0]), statistics.median(times[1])


def main() -> None:
    print(f"CPU milliseconds, median of {QUERIES} questions, taking turns")
    print(f"{'notes':>8}{'usual recipe':>14}{'whyrank':>10}{'ratio':>8}")
    for size in SIZES:
        usual, ours = measure(size, WordLlama())
        print(f"{size:>8}{usual:>14.1f}{ours:>10.1f}{usual / ours:>8.2f}")


if __name__ == "__main__":
    main()
