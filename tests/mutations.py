"""Seeded damage to a small store that fills every table, and the law it is held to: found or harmless."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import whyrank
from tests.damage import ask, settled
from whyrank.engine import Engine
from whyrank.errors import WhyrankError
from whyrank.storage.sqlite.connection import connect
from whyrank.types import Memory, Notice

WORDS = (
    "tea", "coffee", "ferry", "harbour", "lamp", "plant", "garden", "river", "stone", "bread", "light", "winter",
    "copper", "violin", "ladder", "paper", "window", "señal", "café", "anchor", "basket", "candle", "meadow", "orchid",
)  # fmt: skip
NOW = 1_700_000_000.0
MINE = "user:42"
DAMAGE = frozenset({"facts-damaged", "index-damaged", "vectors-damaged", "damaged-text", "vectors-missing"})


def opened(path: Path) -> Engine:
    """Open a store whose clock stands still."""
    engine = whyrank.open(path, workspace=path.parent, calibration="manual")
    engine._clock = lambda: NOW
    return engine


def make_world(folder: Path) -> Path:
    """Write a store with rows in every table: files, facts of two scopes, turns, a history, keys, notes, vectors."""
    chance = random.Random(7)
    notes = folder / "notes"
    notes.mkdir(parents=True)
    for number in range(80):
        parts = [" ".join(chance.choices(WORDS, k=30)) for _ in range(2)]
        rare = " ".join(f"{chance.choice(WORDS)}{chance.randrange(10**6)}" for _ in range(40))
        text = f"---\ntags: [{WORDS[number % 5]}]\n---\n# Note {number} {WORDS[number % 24]}\n\n{parts[0]}\n\n## Part\n\n{parts[1]} {rare}\n"
        (notes / f"note{number}.md").write_text(text, encoding="utf-8")
    path = folder / "memory.db"
    with opened(path) as memory:
        memory.ingest(notes)
        for number in range(90):
            memory.add(
                f"Robin told {' '.join(chance.choices(WORDS, k=6))} number {number}", scope=MINE, key=f"k{number}"
            )
        first = memory.list(scope=MINE, limit=1)[0]
        memory.update(first.id, scope=MINE, importance=4)
        memory.update(first.id, scope=MINE, text=first.text + " and more")
        memory.add("Robin drinks tea at the harbour now", scope=MINE, supersedes=memory.list(scope=MINE, limit=3)[2].id)
        memory.put(
            [
                Memory(f"turn{position}", said, session="s1", speaker="ann", position=position)
                for position, said in enumerate(("the ferry leaves at nine", "from which harbour", "the copper one"))
            ]
        )
        memory.calibrate()
    settled(path)
    return path


QUESTIONS: tuple[dict[str, Any], ...] = (
    {"query": "the ferry at the harbour", "limit": 8},
    {"query": "copper violin ladder", "scope": MINE, "limit": 20},
    {"query": "note 7 plant", "limit": 5},
    {"query": "nte 7", "limit": 5},
    {"query": '"robin told" AND tea', "syntax": "advanced", "scope": MINE, "limit": 20},
    {"query": "can* OR cafe", "syntax": "advanced", "limit": 5},
    {"query": "winter bread", "tags": ["tea"], "limit": 5},
    {"query": "river stone", "recipe": "vector", "scope": MINE, "limit": 5},
    {"query": "river stone", "recipe": "keyword", "scope": MINE, "limit": 5},
)


class Answer(NamedTuple):
    """What somebody was shown, and the codes of the notices that said the store is damaged."""

    shown: object
    damage: frozenset[str]


def answers(path: Path) -> list[Answer]:
    """Ask a store all questions; an error on purpose is an answer too, and says what is wrong."""
    try:
        with opened(path) as memory:
            return [*(_answer(lambda q=q: _searched(memory, **q)) for q in QUESTIONS), _answer(lambda: _listed(memory))]
    except WhyrankError as error:
        return [_refused(error)] * (len(QUESTIONS) + 1)


def _answer(ask_for: Callable[[], tuple[object, tuple[Notice, ...]]]) -> Answer:
    try:
        shown, notices = ask_for()
    except WhyrankError as error:
        return _refused(error)
    return Answer(shown, frozenset(notice.code for notice in notices) & DAMAGE)


def _refused(error: WhyrankError) -> Answer:
    assert error.hint, error  # what to do about it
    return Answer(type(error).__name__, frozenset({type(error).__name__}))


def _searched(memory: Engine, **asked: Any) -> tuple[object, tuple[Notice, ...]]:
    found = memory.search(**asked)
    shown = [(hit.id, hit.score, hit.memory, hit.explain(), [one.id for one in hit.also]) for hit in found]
    return (shown, found.verdict), found.notices


def _listed(memory: Engine) -> tuple[object, tuple[Notice, ...]]:
    found = memory.list(scope=MINE, limit=500)
    return found, memory.unlisted(found, scope=MINE)
