"""Workers in processes of their own, on both databases, with an embedder behind HTTP that counts what it is asked."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

import whyrank
from whyrank.analysis.document import content_hash
from whyrank.storage.store import PostgresStore
from whyrank.types.memory import Memory

from .. import postgres, processes
from ..faulty_server import FaultyServer
from .conftest import COMMAND, SECONDS

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator, Sequence

LEASE = 2.0  # seconds
LOG = "worker.log"


class Counting(FaultyServer):
    """Remembers the texts it gave vectors for; the first `meeting` requests wait for each other."""

    def __init__(self, plan: Sequence[Any] = (), *, meeting: int = 1, **options: Any) -> None:
        super().__init__(plan, **options)
        self.answered: list[str] = []
        self.reached = threading.Event()
        self.open = threading.Event()
        self.open.set()
        self._met = threading.Barrier(meeting)
        self._calls = meeting

    def __enter__(self) -> Counting:
        super().__enter__()
        return self

    def embeddings(self, texts: Sequence[str]) -> list[list[float]]:
        self.reached.set()
        assert self.open.wait(SECONDS)
        with self._lock:
            self._calls -= 1
            meets = self._calls >= 0
        if meets:
            self._met.wait(SECONDS)
        self.answered += texts
        return super().embeddings(texts)


def settings(server: FaultyServer) -> dict[str, Any]:
    """Return settings that leave embedding to workers; a calibration would embed questions, too."""
    served = {"embedding": "openai", "embedder_url": server.url, "embedder_model": "fake"}
    return {**served, "embedder_when": "worker", "calibration": "manual"}


@contextmanager
def working(store: str, folder: Path, server: FaultyServer, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Start a worker, which writes lines of JSON into a file."""
    told = {f"WHYRANK_{key.upper()}": value for key, value in settings(server).items()}
    command: list[str | Path] = [COMMAND, "worker", "--store", store, "--json", "--lease", str(LEASE), *options]
    with (
        (folder / LOG).open("a") as log,
        processes.started(command, env={**os.environ, **told}, cwd=folder, stdout=log) as process,
    ):
        yield process


def lines(folder: Path) -> list[Any]:
    return [json.loads(line) for line in (folder / LOG).read_text(encoding="utf-8").splitlines()]


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def catches(process: subprocess.Popen[str], number: signal.Signals) -> bool:
    """Return whether a process has a handler for a signal; only Linux shows that."""
    status = Path(f"/proc/{process.pid}/status")
    if not status.exists():
        return False
    [caught] = [line.split()[1] for line in status.read_text(encoding="ascii").splitlines() if line[:7] == "SigCgt:"]
    return bool(int(caught, 16) >> number - 1 & 1)


def filled(store: str, folder: Path, server: FaultyServer, count: int) -> whyrank.Engine:
    """Return an engine on a store with so many memories that wait for a vector."""
    engine = whyrank.open(store, workspace=folder, **settings(server))
    engine.facts.import_memories([Memory(f"m_{number}", f"parcel {number} waits") for number in range(count)])
    return engine


def leases(store: str) -> dict[str, int]:
    """Return the processes of the workers that have leases, by the hash of the text."""
    query = "SELECT hash, error FROM {}embedding_failures WHERE attempts = 0"
    if store.startswith("postgresql:"):
        rows = postgres.ask(store, query.format(f"{store.partition('schema=')[2]}."))
    else:
        with closing(sqlite3.connect(store)) as connection:
            rows = connection.execute(query.format("")).fetchall()
    return {text_hash: int(name.split(":")[1]) for text_hash, name in rows}


@pytest.mark.parametrize(("database", "count"), [("postgres", 400), ("sqlite", 150)])
def test_two_workers_embed_each_text_once_though_one_is_killed(database: str, count: int, tmp_path: Path) -> None:
    store = postgres.new_store() if database == "postgres" else str(tmp_path / "memory.db")
    with (
        Counting(["ok", "ok", "hang"], meeting=2) as server,
        filled(store, tmp_path, server, count) as engine,
        working(store, tmp_path, server, "--poll", "0.3") as one,
        working(store, tmp_path, server, "--poll", "0.3") as two,
    ):
        # Both have a batch at the same time, of which the server sees to it; then one of them gets no answer.
        until(lambda: len(server.requests) >= 3)
        hanging = leases(store)[content_hash(server.requests[2].body["input"][0])]
        victim = {process.pid: process for process in (one, two)}[hanging]
        victim.kill()
        until(lambda: engine.status().without_vector == 0)
        assert sorted(server.answered) == sorted(f"parcel {number} waits" for number in range(count))
        assert leases(store) == {}


def test_workers_that_claim_at_the_same_time_never_get_the_same_text(tmp_path: Path) -> None:
    address, claimed = postgres.new_store(), dict[str, list[str]]()
    with Counting() as server, filled(address, tmp_path, server, 300):
        start = threading.Barrier(3)

        def claim_all(name: str) -> None:
            with closing(PostgresStore(address)) as store:
                claimed[name] = []
                start.wait(SECONDS)
                for _ in range(300):
                    claimed[name] += [one.hash for one in store.claim("space", 5, name, 60.0, 1.0)]

        threads = [threading.Thread(target=claim_all, args=(str(number),)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
    taken = [text_hash for hashes in claimed.values() for text_hash in hashes]
    assert len(taken) == len(set(taken)) == 300


def test_a_new_text_wakes_a_worker_on_postgres(tmp_path: Path) -> None:
    store = postgres.new_store()
    name = f"worker of {store.partition('schema=')[2]}"
    # It listens, and has asked for nothing since half a second.
    sleeps = (
        "SELECT coalesce(bool_or(query LIKE 'LISTEN %') AND count(*) > 1 AND bool_and(state = 'idle' AND "
        "state_change < clock_timestamp() - interval '0.5s'), false) FROM pg_stat_activity "
        f"WHERE application_name = '{name}'"
    )
    with (
        Counting() as server,
        filled(store, tmp_path, server, 1) as engine,
        working(f"{store}&application_name={quote(name)}", tmp_path, server, "--poll", str(10 * SECONDS)),
    ):
        until(lambda: engine.status().without_vector == 0)
        for text in ("a fact that is quickly stored", "another"):
            until(lambda: postgres.ask(store, sleeps) == [(True,)])
            engine.add(text)
            until(lambda: engine.status().without_vector == 0)  # it would sleep ten times as long


def test_a_signal_ends_a_worker_after_its_batch(tmp_path: Path) -> None:
    store = str(tmp_path / "memory.db")
    with Counting() as server, filled(store, tmp_path, server, 100) as engine:
        server.open.clear()
        with working(store, tmp_path, server) as process:
            assert server.reached.wait(SECONDS)
            assert catches(process, signal.SIGTERM) or not sys.platform.startswith("linux")
            process.terminate()
            until(lambda: not catches(process, signal.SIGTERM))  # its handler has run
            server.open.set()
            assert process.wait(SECONDS) == 0
            *_, last = lines(tmp_path)
        assert (last["chore"], last["embedded"], engine.status().without_vector) == ("end", 64, 36)
        assert leases(store) == {}


def test_once_does_what_is_due_and_ends(tmp_path: Path) -> None:
    store = str(tmp_path / "memory.db")
    with Counting() as server, filled(store, tmp_path, server, 70) as engine:
        engine.add("the kettle is on", expires=time.time() - 1)
        with working(store, tmp_path, server, "--once") as process:
            assert process.wait(SECONDS) == 0
            told = lines(tmp_path)
        assert [(line["chore"], line["count"]) for line in told[:-1]] == [("embed", 64), ("embed", 7), ("prune", 1)]
        assert (told[-1]["embedded"], told[-1]["pruned"], told[-1]["waiting"]) == (71, 1, 0)
        assert engine.status().memories == 70


def test_a_worker_without_its_embedder_does_the_rest_and_says_what_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = str(tmp_path / "memory.db")
    with Counting(["503"] * 99) as server, filled(store, tmp_path, server, 5) as engine:
        engine.add("the kettle is on", expires=time.time() - 1)
        monkeypatch.setenv("WHYRANK_EMBEDDER_TIMEOUT_S", "0.1")
        with working(store, tmp_path, server, "--once") as process:
            assert process.wait(SECONDS) == 17
            failed, pruned, last = lines(tmp_path)
        assert failed["chore"] == "embed"
        assert "503" in failed["error"]
        assert failed["next_try"]
        assert (pruned["chore"], pruned["count"], last["waiting"]) == ("prune", 1, 5)
        assert leases(store) == {}
