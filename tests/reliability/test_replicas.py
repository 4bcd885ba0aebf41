"""Replicas of a PostgreSQL server: what they may answer, and what happens when they lag, stall or are gone."""

from __future__ import annotations

import os
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from whyrank.errors import ConfigError, StoreUnavailable
from whyrank.storage.postgres import replicas
from whyrank.storage.postgres.pool import Address, Host

from .. import postgres, tcp_proxy
from . import writers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from whyrank.engine.engine import Engine
    from whyrank.types.results import Results

SECONDS = 20.0  # for what takes a moment
BOUND = 1.0  # of staleness, in these tests
FACTS = ("Suzy drinks green tea", "Robin drinks black tea", "the kettle is green")
QUESTION = "who drinks green tea?"


class Pair:
    """A primary with a replica, and the address of a store of their own."""

    def __init__(self, primary: postgres.Server, replica: postgres.Server) -> None:
        self.primary, self.replica = primary, replica
        self._stores = 0

    def address(self, parameters: str = f"max_staleness={BOUND}") -> str:
        """Return the address of the present store, read from the replica too."""
        return f"{self.plain}&replicas=127.0.0.1:{self.replica.port}&{parameters}"

    @property
    def plain(self) -> str:
        """Return the address of the present store without the replica."""
        return f"{self.primary.address}?schema=r{self._stores}"

    def new_store(self) -> None:
        """Make a store with some facts, which the replica has."""
        self._stores += 1
        with closing(writers.opened(self.plain)) as engine:
            for text in FACTS:
                engine.add(text)
        self.wait()

    def wait(self) -> None:
        """Wait until the replica has replayed all that the primary has."""
        [(position,)] = postgres.ask(self.primary.address, "SELECT pg_current_wal_lsn()")
        until(lambda: postgres.ask(self.replica.address, f"SELECT pg_last_wal_replay_lsn() >= '{position}'")[0][0])


@pytest.fixture(scope="module")
def servers() -> Iterator[Pair]:
    """Start a primary and a streaming replica of it."""
    primary = postgres.make_server()
    try:
        replica = postgres.make_replica(primary)
        try:
            yield Pair(primary, replica)
        finally:
            postgres.remove(replica)
    finally:
        postgres.remove(primary)


@pytest.fixture
def pair(servers: Pair) -> Pair:
    """Return both servers with a store of its own."""
    servers.new_store()
    return servers


def until(is_so: Callable[[], Any]) -> None:
    deadline = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def described(engine: Engine) -> Any:
    """Return what `status` shows of the only replica."""
    [one] = engine.status().server["replicas"]
    return one


def answered(engine: Engine) -> int:
    """Return how many searches the replica has answered."""
    count: int = described(engine)["answered"]
    return count


def codes(results: Results) -> set[str]:
    return {notice.code for notice in results.notices if notice.code.startswith(("replica", "primary"))}


def texts(results: Results) -> list[str]:
    return [hit.memory.text for hit in results.hits]


@contextmanager
def paused(server: postgres.Server) -> Iterator[None]:
    """Pause the replay of a replica."""
    postgres.ask(server.address, "SELECT pg_wal_replay_pause()")
    until(lambda: postgres.ask(server.address, "SELECT pg_get_wal_replay_pause_state() = 'paused'")[0][0])
    try:
        yield
    finally:
        postgres.ask(server.address, "SELECT pg_wal_replay_resume()")


@contextmanager
def stopped(server: postgres.Server) -> Iterator[None]:
    """Stop all processes of a server without ending them."""
    head = int((server.folder / "data" / "postmaster.pid").read_text(encoding="ascii").split()[0])
    listed = Path(f"/proc/{head}/task/{head}/children").read_text(encoding="ascii")
    processes = [head, *map(int, listed.split())]
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


def test_a_search_is_answered_by_the_replica_as_the_primary_answers_it(pair: Pair) -> None:
    with closing(writers.opened(pair.plain)) as engine:
        there = engine.search(QUESTION)
    with closing(writers.opened(pair.address())) as engine:
        here = engine.search(QUESTION)
        assert answered(engine) == 1
    assert [(hit.id, hit.key, hit.explain()) for hit in here.hits] == [
        (hit.id, hit.key, hit.explain()) for hit in there.hits
    ]
    assert (here.verdict, here.notices) == (there.verdict, there.notices)


def test_explanations_and_pools_come_from_the_replica_and_lists_from_the_primary(pair: Pair) -> None:
    with closing(writers.opened(pair.address())) as engine:
        found = engine.search(QUESTION)
        engine.why(QUESTION, found.hits[0].id)
        engine.pool(QUESTION)
        assert answered(engine) == 3
        assert len(engine.list()) == 3
        assert answered(engine) == 3


def test_a_search_on_a_replica_waits_no_more_often(pair: Pair) -> None:
    trips = []
    for address in (pair.plain, pair.address("max_staleness=60")):
        with closing(writers.opened(address)) as engine:
            backend: Any = engine._store
            traffic = backend._backend.database.traffic
            engine.search(QUESTION)
            for question in (QUESTION, "is the kettle black?", QUESTION):
                before = traffic.trips
                engine.search(question)
                trips.append(traffic.trips - before)
    assert trips[:3] == trips[3:]


def test_writes_of_a_process_are_read_by_it_at_once(pair: Pair) -> None:
    with closing(writers.opened(pair.address("max_staleness=60"))) as engine:
        for number in range(30):
            kept = engine.add(f"the lamp number {number} is lit")
            assert kept.id in {hit.id for hit in engine.search(f"lamp number {number}").hits}
        with paused(pair.replica):
            before = answered(engine)
            kept = engine.add("Suzy drinks white tea")
            found = engine.search("white tea")
            assert found.hits[0].id == kept.id
            assert codes(found) == set()  # the bound of staleness is kept
            assert answered(engine) == before
        pair.wait()
        until(lambda: engine.search("white tea").hits and answered(engine) > before)


def test_a_commit_whose_answer_is_lost_is_read_by_its_process_at_once(pair: Pair) -> None:
    with tcp_proxy.proxy(pair.primary.port) as between:
        through = pair.address("max_staleness=60").replace(f":{pair.primary.port}/", f":{between.port}/")
        with closing(writers.opened(through)) as engine, paused(pair.replica):
            between.fatal = b"COMMIT\0"
            kept = engine.add("Suzy drinks white tea")
            assert between.lost == 1
            assert engine.search("white tea").hits[0].id == kept.id


def test_a_new_store_is_searched_before_its_replica_has_its_tables(pair: Pair) -> None:
    with paused(pair.replica), closing(writers.opened(pair.address().replace("schema=", "schema=fresh"))) as engine:
        engine.add("Suzy drinks white tea")
        found = engine.search("white tea")
        assert (texts(found), codes(found)) == (["Suzy drinks white tea"], set())


def test_an_idle_replica_of_an_idle_primary_is_not_behind(pair: Pair) -> None:
    with closing(writers.opened(pair.address())) as engine:
        engine.search(QUESTION)
        time.sleep(2.5 * BOUND)
        engine.search(QUESTION)  # no mark is recent enough: the primary answers, and a thread gets one
        until(lambda: codes(engine.search(QUESTION)) == set() and answered(engine) > 2)


def test_a_replica_that_is_too_far_behind_is_passed_over_with_a_notice(pair: Pair) -> None:
    with closing(writers.opened(pair.address())) as engine, closing(writers.opened(pair.plain)) as other:
        engine.search(QUESTION)
        with paused(pair.replica):
            other.add("Suzy drinks coffee")
            began = time.monotonic()
            until(lambda: "Suzy drinks coffee" in texts(engine.search("coffee")))
            assert time.monotonic() < began + 2 * BOUND
            until(lambda: codes(engine.search("coffee")) == {replicas.BEHIND})
            told = next(one.message for one in engine.search("coffee").notices if one.code == replicas.BEHIND)
            seconds = re.search(rf"127.0.0.1:{pair.replica.port} is more than (\S+) s behind, so the primary", told)
            assert seconds is not None
            assert BOUND / 2 <= float(seconds[1]) <= BOUND
            assert described(engine)["state"] == replicas.BEHIND
            assert described(engine)["behind_bytes"] > 0
        before = answered(engine)
        until(lambda: codes(engine.search("coffee")) == set() and answered(engine) > before)


def test_a_replica_that_is_stopped_delays_a_search_once_and_is_used_again(pair: Pair) -> None:
    with closing(writers.opened(pair.address("max_staleness=60"))) as engine:
        engine.search(QUESTION)
        with stopped(pair.replica):
            began = time.monotonic()
            found = engine.search(QUESTION)
            assert time.monotonic() < began + replicas.BEGIN_SECONDS + 1.5
            assert (texts(found)[0], codes(found)) == (FACTS[0], {replicas.AWAY})
            began = time.monotonic()
            for _ in range(10):
                assert codes(engine.search(QUESTION)) == {replicas.AWAY}
            assert time.monotonic() < began + 1.0
        until(lambda: codes(engine.search(QUESTION)) == set())
        before = answered(engine)
        engine.search(QUESTION)
        assert answered(engine) > before


def test_a_replica_that_was_killed_is_passed_over_and_used_again_when_it_is_back(pair: Pair) -> None:
    with closing(writers.opened(pair.address())) as engine:
        engine.search(QUESTION)
        pair.replica.stop("immediate")
        try:
            found = engine.search(QUESTION)
            assert (texts(found)[0], codes(found)) == (FACTS[0], {replicas.AWAY})
            told = next(one.message for one in found.notices if one.code == replicas.AWAY)
            assert "start it, or take it out of replicas= in the address" in told
            assert described(engine)["state"] == replicas.AWAY
        finally:
            pair.replica.start()
        until(lambda: codes(engine.search(QUESTION)) == set())
        before = answered(engine)
        engine.search(QUESTION)
        assert answered(engine) > before


def test_a_replica_that_fails_in_the_middle_of_a_search_has_it_made_again(pair: Pair) -> None:
    with closing(writers.opened(pair.address("max_staleness=60"))) as engine:
        store: Any = engine._store
        resolve = store.resolve

        def lose(*given: Any, **more: Any) -> Any:
            store.resolve = resolve
            ended = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'whyrank'"
            postgres.ask(pair.replica.address, ended)
            return resolve(*given, **more)

        store.resolve = lose
        found = engine.search("what is green?")
        assert set(texts(found)) >= {FACTS[0], FACTS[2]}
        assert codes(found) == {replicas.AWAY}


def test_a_replica_that_falls_silent_in_the_middle_of_a_search_has_it_made_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "SILENCE_SECONDS", 1.0)
    with closing(writers.opened(pair.address("max_staleness=60"))) as engine, ExitStack() as stack:
        store: Any = engine._store
        resolve = store.resolve

        def stall(*given: Any, **more: Any) -> Any:
            store.resolve = resolve
            stack.enter_context(stopped(pair.replica))
            return resolve(*given, **more)

        store.resolve = stall
        began = time.monotonic()
        found = engine.search("what is green?")
        assert time.monotonic() < began + 1.0 + 1.5
        assert set(texts(found)) >= {FACTS[0], FACTS[2]}
        assert codes(found) == {replicas.AWAY}


def test_a_search_of_several_threads_finds_what_each_has_just_written(pair: Pair) -> None:
    with closing(writers.opened(pair.address("max_staleness=60"))) as engine, ThreadPoolExecutor(4) as threads:

        def write_and_search(name: int) -> bool:
            for number in range(30):
                kept = engine.add(f"lamp{name}x{number} is lit", scope=f"user:{name}").id
                if engine.search(f"lamp{name}x{number}", scope=f"user:{name}").hits[0].id != kept:
                    return False
            return True

        assert all(threads.map(write_and_search, range(4)))
        assert answered(engine) > 0


def test_the_statements_are_those_of_the_oldest_version_and_need_no_privilege() -> None:
    if not postgres.has_oldest():
        pytest.skip(postgres.NO_OLDEST)
    server = postgres.server(postgres.OLDEST)
    postgres.ask(server.address, "CREATE ROLE without_privileges LOGIN")
    address = server.address_of("without_privileges")
    [(position, system)] = postgres.ask(address, replicas.MARK)
    assert position > 0
    assert postgres.ask(address, replicas.IDENTITY) == [(False, system)]
    assert postgres.ask(address, replicas.REPLAYED) == [(False, None)]
    assert postgres.ask(address, replicas.LAG) == []


def test_a_host_that_accepts_writes_is_refused_unless_it_is_the_primary(pair: Pair) -> None:
    other = postgres.make_server()
    try:
        itself = f"{pair.plain}&replicas=127.0.0.1:{pair.primary.port}"
        with closing(writers.opened(itself)) as engine:
            assert codes(engine.search(QUESTION)) == set()
        with closing(writers.opened(f"{pair.plain}&replicas=127.0.0.1:{other.port}")) as engine:
            found = engine.search(QUESTION)
            assert (texts(found)[0], codes(found)) == (FACTS[0], {replicas.REFUSED})
            told = next(one.message for one in found.notices if one.code == replicas.REFUSED)
            assert f"127.0.0.1:{other.port} is no replica of this primary: its system identifier is" in told
    finally:
        postgres.remove(other)


def test_a_primary_that_is_stopped_delays_a_search_once(pair: Pair) -> None:
    with closing(writers.opened(pair.address())) as engine:
        engine.search(QUESTION)
        with stopped(pair.primary):
            time.sleep(1.5 * BOUND)  # so that the primary is asked
            began = time.monotonic()
            found = engine.search(QUESTION)
            assert time.monotonic() < began + replicas.CONNECT_SECONDS + 1.5
            assert (texts(found)[0], codes(found)) == (FACTS[0], {replicas.ALONE})


def test_searches_go_on_without_the_primary_and_writes_fail_with_their_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whyrank.storage.postgres.database.WRITE_AGAIN_SECONDS", 1.0)
    primary = postgres.make_server()
    try:
        replica = postgres.make_replica(primary)
        try:
            alone = Pair(primary, replica)
            alone.new_store()
            with closing(writers.opened(alone.address())) as engine:
                engine.search(QUESTION)
                primary.stop("immediate")
                until(lambda: codes(engine.search(QUESTION)) == {replicas.ALONE})
                time.sleep(2 * BOUND)
                began = time.monotonic()
                for _ in range(5):
                    found = engine.search(QUESTION)
                    assert (texts(found)[0], codes(found)) == (FACTS[0], {replicas.ALONE})
                assert time.monotonic() < began + 1.0
                told = next(one.message for one in found.notices if one.code == replicas.ALONE)
                assert "cannot be reached, so the replica 127.0.0.1:" in told
                with pytest.raises(StoreUnavailable) as raised:
                    engine.add("Suzy drinks coffee")
                assert raised.value.hint == "start the server, or check the address"
                primary.start()
                until(lambda: codes(engine.search(QUESTION)) == set())
                assert engine.add("Suzy drinks coffee").id
        finally:
            postgres.remove(replica)
    finally:
        postgres.remove(primary)


# -- addresses --------------------------------------------------------------------------------------------------------


def test_replicas_are_read_from_the_address() -> None:
    address = Address.parse("postgresql://one/db?replicas=two,[::1]:5433,three:6000&max_staleness=0.5")
    assert address.replicas == (Host("two", "5432"), Host("::1", "5433"), Host("three", "6000"))
    assert address.max_staleness == 0.5
    given = address.of_replica(address.replicas[1]).parameters()
    assert (given["host"], given["port"], given["target_session_attrs"]) == ("::1", "5433", "any")
    assert str(address.replicas[1]) == "[::1]:5433"


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("replicas=", "names no hosts"),
        ("replicas=two:x", "'two:x' is not HOST or HOST:PORT"),
        ("replicas=two,,three", "'' is not HOST or HOST:PORT"),
        ("replicas=two:70000", "is not HOST or HOST:PORT"),
        ("replicas=two&max_staleness=0", "max_staleness=0 is no number of seconds"),
        ("replicas=two&max_staleness=nan", "max_staleness=nan is no number of seconds"),
        ("max_staleness=5", "max_staleness is given without replicas"),
    ],
)
def test_wrong_replicas_are_an_error(written: str, told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Address.parse(f"postgresql://one/db?{written}")
    assert told in raised.value.message
    assert raised.value.hint
