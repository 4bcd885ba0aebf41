"""Failure 1: the sign of FTS5's bm25() is mishandled, so that every hit scores 1.0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whyrank.storage.sqlite.filters import clause_for
from whyrank.storage.sqlite.fts5 import Fts5Index
from whyrank.storage.store import SqliteStore
from whyrank.testing.store_contract import StoreContract, fact
from whyrank.types.query import Where

if TYPE_CHECKING:
    from pathlib import Path

    from tests.regressions.conftest import OpenEngine


def test_a_better_match_scores_higher_and_not_the_same(open_engine: OpenEngine) -> None:
    engine = open_engine(
        "green tea, green tea, green tea", "one green tea among many other words here", embedding="none"
    )
    first, second = engine.search("green tea").hits
    assert first.score > second.score > 0


def test_the_index_itself_speaks_of_higher_is_better(tmp_path: Path) -> None:
    many = [fact(f"m_{i}", "coffee") for i in range(8)]
    store = StoreContract()
    real = SqliteStore(tmp_path / "memory.db", "fts5")
    store.put(
        real, [fact("m_a", "tea tea"), fact("m_b", "tea and a great many other words that make it longer"), *many]
    )
    with real.reading():
        selected = Fts5Index().select(real._database.reader(), ["tea"], clause_for(Where(now=1e6)), "or", 10)
    scores = {found.id: found.score for found in selected.values()}
    assert scores["m_a"] > scores["m_b"] > 0
    real.close()
