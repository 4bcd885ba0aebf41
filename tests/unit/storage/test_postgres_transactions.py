"""Transactions of a store in PostgreSQL: what a failure leaves behind, and what is told of it."""

from __future__ import annotations

import os
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import whyrank
from whyrank.errors import StoreDamaged, StoreError, StoreTimeout, StoreUnavailable
from whyrank.protocols import Arrival
from whyrank.storage.postgres.backend import PostgresBackend
from whyrank.storage.postgres.database import PostgresDatabase
from whyrank.storage.postgres.pool import Address
from whyrank.storage.postgres.schema import NEWEST
from whyrank.storage.sqlite.database import MOMENT
from whyrank.storage.store import PostgresStore, SqliteStore
from whyrank.types.memory import Memory, Scope

from ... import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from whyrank.protocols import Store
    from whyrank.storage.postgres.connection import Connection

ANN = Scope("user", "ann")
WRITE = "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"


@pytest.fixture
def address() -> str:
    """Return the address of an empty store."""
    made = postgres.new_store()
    PostgresStore(made).close()
    return made


@pytest.fixture
def database(address: str) -> Iterator[PostgresDatabase]:
    """Open the database of the store."""
    with closing(PostgresDatabase(Address.parse(address), MOMENT)) as made:
        yield made


def put(database: PostgresDatabase, value: str) -> None:
    with database.writing() as connection:
        connection.execute(WRITE, ("a key", value))


def read(database: PostgresDatabase) -> Any:
    with database.reading() as (connection, *_):
        return connection.execute("SELECT value FROM meta WHERE key = ?", ("a key",)).fetchone()


def read_while_writing(database: PostgresDatabase, number: int, *, fails: bool = False) -> Any:
    with database.writing() as connection:
        if fails:
            connection.execute("SELECT 1 / 0")
        return connection.execute(f"SELECT value, {number} FROM meta WHERE key = ?", ("schema",)).fetchone()


def fail_unnoticed(database: PostgresDatabase) -> None:
    with database.writing() as connection:
        connection.execute(WRITE, ("a key", "not stored"))
        with suppress(psycopg.Error):
            connection.execute("SELECT 1 / 0").fetchone()


def test_a_failed_transaction_leaves_no_broken_connection(database: PostgresDatabase) -> None:
    for times in range(3, 8):  # psycopg prepares a statement that is executed for the sixth time
        for _ in range(times):
            read_while_writing(database, times)
        with pytest.raises(StoreError):
            read_while_writing(database, times, fails=True)
        assert read_while_writing(database, times) == (str(NEWEST), times)


def test_a_statement_that_fails_unnoticed_makes_its_transaction_fail(database: PostgresDatabase) -> None:
    with pytest.raises(StoreError, match="was rolled back"):
        fail_unnoticed(database)
    assert read(database) is None


class CutAfterCommit(PostgresDatabase):
    """Loses its connection when a commit was acknowledged, before the pipeline has ended."""

    def _commit(self, connection: Connection, token: str, backend: int) -> None:
        super()._commit(connection, token, backend)
        postgres.ask(str(self.address.dsn), f"SELECT pg_terminate_backend({backend}, 5000)")


def test_a_commit_that_was_acknowledged_is_not_made_again(address: str) -> None:
    made: list[int] = []
    with closing(CutAfterCommit(Address.parse(address), MOMENT)) as cut:

        def work() -> None:
            made.append(len(made))
            put(cut, str(len(made)))

        cut.attempt(work)
        assert (made, read(cut)) == ([0], ("1",))


def test_a_store_that_does_not_say_its_generation_is_damaged(address: str, database: PostgresDatabase) -> None:
    schema = address.rpartition("=")[2]
    postgres.ask(address, f"UPDATE {schema}.meta SET value = 'x' WHERE key = 'generation'")
    with pytest.raises(StoreDamaged, match="which generation"), database.reading():
        pass


def sleep(connection: Connection, number: int) -> int:
    connection.execute("SELECT pg_sleep(?)", (0.2,)).fetchone()
    return number


def test_a_deadline_bounds_all_statements_together(address: str) -> None:
    with closing(PostgresBackend(address)) as backend, backend.reading() as (connection, *_):
        done: list[int] = []
        with pytest.raises(StoreTimeout), backend.aborting(connection, time.monotonic() + 0.5):
            done.extend(sleep(connection, number) for number in range(10))
        assert 1 <= len(done) <= 3  # each alone stays below the limit of the server
        assert connection.execute("SELECT 1").fetchone() == (1,)  # the snapshot can still be read


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_process_that_is_forked_in_a_snapshot_cannot_read_in_it(database: PostgresDatabase) -> None:
    with database.reading():
        child = os.fork()
        if not child:
            try:
                with database.reading():
                    os._exit(1)
            except StoreUnavailable:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def fact(number: int) -> Arrival:
    return Arrival(Memory(f"m_{number}", f"the kettle number {number}", scope=ANN))


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Open an empty store in either database."""
    made: Store = (
        SqliteStore(tmp_path / "memory.db") if request.param == "sqlite" else PostgresStore(postgres.new_store())
    )
    with closing(made):
        yield made


def generation(store: Any) -> int:
    with store.view() as view:
        return int(view.generation)


def test_a_fact_that_is_known_changes_nothing(store: Store) -> None:
    assert store.take_in(fact(1))
    before = generation(store)
    assert not store.take_in(fact(1))
    assert generation(store) == before


def test_merges_are_made_with_the_write_that_makes_them_due(store: Any) -> None:
    for number in range(128):  # two segments of 64 facts
        assert store.take_in(fact(number))
    with store.view() as view:
        assert view.connection.execute("SELECT due FROM posting_scopes").fetchall() == [(0,)]
        assert view.connection.execute("SELECT count(*) FROM posting_segments").fetchone()[0] == 1


def test_a_search_waits_for_a_connection_no_longer_than_its_time_limit(tmp_path: Path) -> None:
    address = f"{postgres.new_store()}&pool_size=1"
    with whyrank.open(address, workspace=tmp_path, embedding="none", calibration="manual") as engine:
        engine.add("Suzy drinks green tea")
        store: Any = engine._store
        with store._backend.connection():
            began = time.monotonic()
            found = engine.search("green tea", timeout_ms=200)
            assert 0.1 < time.monotonic() - began < 1.0
            assert (found.hits, [notice.code for notice in found.notices]) == ((), ["timeout"])
        assert engine.search("green tea", timeout_ms=60_000).hits
