"""How often a store in PostgreSQL waits for its server, counted, not timed."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from whyrank.config.load import load
from whyrank.engine.engine import Engine
from whyrank.errors import StoreError
from whyrank.storage.postgres.backend import PostgresBackend
from whyrank.storage.postgres.connection import LEAST_COPIED
from whyrank.storage.sqlite.postings.kernel import KERNEL
from whyrank.storage.store import IndexedStore
from whyrank.testing.fakes import WordDirections

from ... import postgres

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

KNOWN_QUESTION, NEW_QUESTION, COLD_SCOPE, NEW_FACT = 2, 3, 6, 3
WITH_TIME_LIMIT = 2
CACHE_MEGABYTES = 64
VERBS = ("whistles", "leaks", "shines", "cools", "rusts")


class Counted:
    """An engine on a schema of its own, and the round trips of a call."""

    def __init__(self, folder: Path, address: str) -> None:
        backend = PostgresBackend(address)
        self._traffic = backend.database.traffic
        config = load({"calibration": "manual", "dedup.near": "keep"}, workspace=folder, environment={})
        self.engine = Engine(IndexedStore(backend, "postings", CACHE_MEGABYTES, KERNEL), WordDirections(), config)

    def trips(self, call: Callable[[], Any]) -> int:
        """Return how often a call waited for the server."""
        before = self._traffic.trips
        call()
        return self._traffic.trips - before


def test_many_rows_are_stored_as_they_were_given_and_a_refused_one_takes_all_back() -> None:
    backend = PostgresBackend(postgres.new_store())
    backend.prepare("postings")
    texts = [
        "tab\t",
        "line\n",
        "back\\slash",
        "\\N",
        "",
        "naïve ☕",
        *(f"key {number}" for number in range(LEAST_COPIED)),
    ]
    insert = "INSERT INTO history (scope, memory, changed, was) VALUES (?, ?, ?, ?)"
    rows = [("global", text, number / 3, text[::-1]) for number, text in enumerate(texts)]
    with backend.writing() as connection:
        connection.executemany(insert, rows)
        last = connection.execute("SELECT max(entry) FROM history").fetchone()[0]
    with pytest.raises(StoreError, match="changed"):
        _replace(backend, insert, [*rows, ("global", "refused", None, "the moment of its change is missing")])
    with backend.writing() as connection:
        read = connection.execute("SELECT scope, memory, changed, was FROM history ORDER BY entry").fetchall()
        assert connection.execute("SELECT max(entry) FROM history").fetchone()[0] == last
    backend.close()
    assert read == rows


def _replace(backend: PostgresBackend, insert: str, rows: list[Any]) -> None:
    with backend.writing() as connection:
        connection.execute("DELETE FROM history")
        connection.executemany(insert, rows)


@pytest.fixture
def address(tmp_path: Path) -> str:
    """Return the address of a store that holds some facts in two scopes."""
    address = postgres.new_store()
    with closing(Counted(tmp_path, address).engine) as engine:
        for number in range(20):
            engine.add(f"the kettle number {number} stands on shelf {number % 5}", scope="user:ann")
            engine.add(f"the boat number {number} is {'blue' if number % 2 else 'green'}", scope="user:bob")
    return address


@pytest.fixture
def counted(tmp_path: Path, address: str) -> Iterator[Counted]:
    """Open the store as another process does, and ask one scope once."""
    made = Counted(tmp_path, address)
    with closing(made.engine):
        made.engine.search("where is the kettle?", scope="user:ann")
        yield made


def test_a_known_question_waits_twice_for_the_server(counted: Counted) -> None:
    # once for the snapshot with what every search reads, once for the names
    assert counted.trips(lambda: counted.engine.search("where is the kettle?", scope="user:ann")) <= KNOWN_QUESTION


def test_a_new_question_of_known_words_waits_three_times(counted: Counted) -> None:
    assert counted.trips(lambda: counted.engine.search("the number of the shelf", scope="user:ann")) <= NEW_QUESTION


def test_the_first_question_on_a_scope_waits_six_times(counted: Counted) -> None:
    # the snapshot; the scope; its fresh texts; the runs; the order of ties; the memories that are shown
    assert counted.trips(lambda: counted.engine.search("the green boat", scope="user:bob")) <= COLD_SCOPE


def test_a_new_fact_waits_three_times(counted: Counted) -> None:
    engine = counted.engine
    engine.add("the first fact of this process finds out about the spaces", scope="user:ann")
    # The checks; the records beside the fact; the rest with the commit. Where embedding took long, as on a busy
    # machine, the next fact is looked up before it is embedded: that is why several are added.
    assert min(counted.trips(partial(engine.add, f"the kettle {verb}", scope="user:ann")) for verb in VERBS) == NEW_FACT


def test_a_search_waits_no_more_often_after_a_fact_of_another_scope(counted: Counted) -> None:
    counted.engine.add("the boat leaks", scope="user:bob")
    # the caches of rows are read anew
    assert counted.trips(lambda: counted.engine.search("where is the kettle?", scope="user:ann")) <= NEW_QUESTION + 1


def test_a_time_limit_waits_no_more_often(counted: Counted) -> None:
    # The limit is set, and taken back, with the statements that it bounds.
    counted.engine.search("where is the kettle?", scope="user:ann", timeout_ms=60_000)
    asked = partial(counted.engine.search, "where is the kettle?", scope="user:ann", timeout_ms=60_000)
    assert counted.trips(asked) <= WITH_TIME_LIMIT
