"""One index, two databases: a life lived in SQLite and in PostgreSQL comes to the same answers."""

from __future__ import annotations

import json
import math
import random
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pytest

from whyrank.config.load import load
from whyrank.engine.engine import Engine
from whyrank.storage.store import PostgresStore, SqliteStore
from whyrank.testing.fakes import WordDirections

from .. import postgres
from . import walls

if TYPE_CHECKING:
    from pathlib import Path

    from whyrank.protocols import Store

LIVES = 6
WRITES = 25
REOPENED_EVERY = 8  # writes: by another process, as far as the store can tell
CLOSE_ENOUGH = 1e-6  # of scores


class Twins:
    """The same store in both databases, under one clock."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.now = float(walls.NOW)
        self._folder, self._address = folder, postgres.new_store()
        self._stack = stack
        self._config = load({"calibration": "manual", "dedup.near": "report"}, workspace=folder, environment={})
        self.reopen()

    def reopen(self) -> None:
        """Open both again; what was open stays so, as another process's store."""
        self.engines = [
            self._stack.enter_context(closing(self._opened(store)))
            for store in (SqliteStore(self._folder / "memory.db"), PostgresStore(self._address))
        ]

    def _opened(self, store: Store) -> Engine:
        return Engine(store, WordDirections(), self._config, clock=lambda: self.now)

    def both(self, deed: walls.Deed) -> None:
        """Do or ask the same in both; what is told must be equal, scores within a millionth."""
        here, there = (walls.told(engine, deed) for engine in self.engines)
        assert differences(plain(here), plain(there)) == [], deed


def plain(told: object) -> Any:
    """Return what was told as plain data."""
    return json.loads(json.dumps(told, default=str))


def differences(one: Any, other: Any, place: str = "") -> list[str]:
    """Return the places where two answers differ, numbers by more than a millionth; texts repeat the numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = (one.keys() | other.keys()) - {"told"}
        return [
            found for name in sorted(names) for found in differences(one.get(name), other.get(name), f"{place}.{name}")
        ]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [
            found
            for number, pair in enumerate(zip(one, other, strict=True))
            for found in differences(*pair, f"{place}[{number}]")
        ]
    if isinstance(one, float) and isinstance(other, float):
        return (
            [] if math.isclose(one, other, rel_tol=CLOSE_ENOUGH, abs_tol=CLOSE_ENOUGH) else [f"{place}: {one} {other}"]
        )
    return [] if one == other else [f"{place}: {one!r} {other!r}"]


@pytest.mark.parametrize("seed", range(LIVES))
def test_a_life_in_two_databases_comes_to_the_same_answers(tmp_path: Path, seed: int) -> None:
    chance, texts = random.Random(seed), list[str]()
    asked = walls.ASKED[seed % len(walls.ASKED)]
    with ExitStack() as stack:
        twins = Twins(tmp_path, stack)
        for number in range(WRITES):
            scope = chance.choice(walls.SCOPES)
            ids = [one.id for one in twins.engines[0].list(limit=1_000, scope=scope, include_superseded=True)]
            verbs = walls.ADDED if number < walls.FIRST else (*walls.ADDED, *walls.BY_ID, *walls.BY_ID)
            twins.both(walls.drawn(chance, scope, [*ids, "m_nobody"], texts, verbs))
            twins.now += chance.choice((0.0, 60.0, float(walls.DAY)))
            if number % REOPENED_EVERY == REOPENED_EVERY - 1:
                twins.reopen()
        known = [one.id for one in twins.engines[0].list(limit=1_000, scope=list(walls.SCOPES))]
        asks = [one for one in walls.questions(chance, asked, known, texts) if one.verb not in ("status", "near")]
        for question in asks:
            twins.both(question)
        assert len(asks) > 20


def test_a_large_store_is_flushed_and_merged_alike(tmp_path: Path) -> None:
    with ExitStack() as stack:
        twins, chance = Twins(tmp_path, stack), random.Random(7)
        documents = [walls._document(chance, f"d{place}.md", "user:ann") for place in range(300)]
        for start in range(0, 300, 100):
            twins.both(walls.Deed("user:ann", "documents", (documents[start : start + 100],)))
        for text in ("green tea", "what is E47?", "kettle on the boat", '"blue boat"', "remnd me"):
            for recipe in ("default", "rrf", "keyword", "vector"):
                options = {"scope": ["user:ann"], "recipe": recipe, "limit": 50}
                twins.both(walls.Deed("", "search", (text,), options))
