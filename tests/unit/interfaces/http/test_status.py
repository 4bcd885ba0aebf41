"""What a server tells of its store: to each caller of what it sees."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from whyrank.engine.open import open_engine
from whyrank.interfaces.engine_pool import Access, PooledEngine
from whyrank.interfaces.http.handlers import told_status

if TYPE_CHECKING:
    from collections.abc import Iterator

OLD = Path(__file__).parents[3] / "golden/readers/reader3.db"


@pytest.fixture
def pooled(tmp_path: Path) -> Iterator[PooledEngine]:
    shutil.copy(OLD, tmp_path / "memory.db")
    made = PooledEngine(tmp_path / "memory.db", lambda path: open_engine(path, workspace=tmp_path))
    yield made
    made.close()


@pytest.mark.parametrize(
    ("scopes", "is_multi_scope", "old"),
    [((), False, 4), (("user:42",), False, 6), (("user:7",), False, 4), ((), True, 6)],
)
def test_old_words_are_counted_for_who_sees_them(
    pooled: PooledEngine, scopes: tuple[str, ...], is_multi_scope: bool, old: int
) -> None:
    # Four memories are everybody's, two are of user:42.
    told = told_status(Access(pooled, scopes, is_multi_scope), {}, "1")
    assert told["old_words"] == old
    assert [notice["code"] for notice in told["notices"]] == ["old-words", "earlier-vectors"]
    assert f"{old} of these" in told["notices"][0]["message"]
    pooled.writing().maintenance.reindex()
    assert told_status(Access(pooled, scopes, is_multi_scope), {}, "1")["old_words"] == 0
