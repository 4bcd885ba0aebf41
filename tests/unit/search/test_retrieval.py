"""What retrieval makes of a store that breaks its word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import whyrank
from whyrank.analysis.document import entry_for
from whyrank.protocols import Changes
from whyrank.ranking.recipes import recipe_named
from whyrank.search.searcher import Searcher
from whyrank.storage.store import SqliteStore
from whyrank.testing.memory_store import MemoryStore
from whyrank.testing.store_contract import NOW, fact
from whyrank.types.memory import Scope
from whyrank.types.query import ONCE, Join, Query, Repeats, Where
from whyrank.types.results import Candidate, Run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import pytest

    from whyrank.protocols import Fetched
    from whyrank.types.memory import MemoryId


class Leaky(MemoryStore):
    """A store whose keyword run proposes what the caller may not see."""

    def keyword(
        self, terms: Sequence[str], where: Where, limit: int | None, join: Join = "or", repeats: Repeats = ONCE
    ) -> Run:
        run = super().keyword(terms, where, limit, join, repeats)
        return Run("keyword", (Candidate("secret", 9.0), *run.candidates))


def test_a_foreign_candidate_is_removed_unlisted_and_reported_without_content() -> None:
    store = Leaky()
    mine, theirs = fact("mine", "tea pot"), fact("secret", "their tea", scope=Scope("user", "other"))
    store.write(Changes(put=[entry_for(memory, "en") for memory in (mine, theirs)]))
    results = Searcher(store, None, "en").search(Query("tea", Where(now=NOW)), recipe_named("default"))
    assert [hit.id for hit in (*results.hits, *results.dropped)] == ["mine"]
    [notice] = [notice for notice in results.notices if notice.code == "scope-defect"]
    assert "their" not in notice.message


def test_what_is_forgotten_while_a_search_runs_is_still_in_its_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as reader,
        whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as writer,
    ):
        forgotten = writer.add("the green tea pot")
        fetch = SqliteStore.fetch

        def forget_first(store: SqliteStore, ids: Iterable[MemoryId], scopes: frozenset[Scope]) -> Fetched:
            writer.forget(forgotten.id)
            return fetch(store, ids, scopes)

        monkeypatch.setattr(SqliteStore, "fetch", forget_first)
        assert [hit.memory.text for hit in reader.search("tea")] == ["the green tea pot"]
        monkeypatch.undo()
        assert not reader.search("tea").hits
