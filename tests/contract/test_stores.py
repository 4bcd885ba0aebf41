"""The one contract suite, run on every store there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from whyrank.storage.postgres.backend import REMAINS
from whyrank.storage.sqlite.postings.kernel import NUMPY
from whyrank.storage.store import PostgresStore, SqliteStore
from whyrank.testing.memory_store import MemoryStore
from whyrank.testing.store_contract import MatchingContract

from .. import postgres

if TYPE_CHECKING:
    from pathlib import Path

    from whyrank.protocols import Store


class TestMemoryStore(MatchingContract):
    def open_store(self, folder: Path) -> Store:
        return MemoryStore()


class TestSqliteStoreWithPostings(MatchingContract):
    def open_store(self, folder: Path) -> Store:
        folder.mkdir(parents=True, exist_ok=True)
        return SqliteStore(folder / "memory.db", "postings")


class TestSqliteStoreWithoutKernel(MatchingContract):
    def open_store(self, folder: Path) -> Store:
        folder.mkdir(parents=True, exist_ok=True)
        return SqliteStore(folder / "memory.db", "postings", kernel=NUMPY)


class TestSqliteStoreWithFts5(MatchingContract):
    def open_store(self, folder: Path) -> Store:
        folder.mkdir(parents=True, exist_ok=True)
        return SqliteStore(folder / "memory.db", "fts5")


class TestPostgresStore(MatchingContract):
    purge_remains = (REMAINS,)

    def open_store(self, folder: Path) -> Store:
        return PostgresStore(postgres.new_store())


@pytest.mark.skipif(not postgres.has_oldest(), reason=postgres.NO_OLDEST)
class TestOldestPostgresStore(MatchingContract):
    purge_remains = (REMAINS,)

    def open_store(self, folder: Path) -> Store:
        return PostgresStore(postgres.new_store(postgres.OLDEST))
