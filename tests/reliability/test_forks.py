"""A process that forks with an open engine loses nothing that was acknowledged, and nobody hangs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections import defaultdict
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import whyrank

from .forks import CHILDREN, WRITES

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent.parent
SECONDS = 45.0  # for a program; SQLite and the lock in front of it give up after thirty
HUNG_S = 15.0  # for a child that stores a few facts, on a busy machine
REQUESTS = 40
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

Said = dict[str, list[str]]


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start a program in a session of its own, of which nothing is left afterwards."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-m", "tests.reliability.forks", *arguments]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen(command, cwd=ROOT, text=True, start_new_session=True, **pipes)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout):
            stream.close()


def heard(lines: str) -> Said:
    found: Said = defaultdict(list)
    for line in lines.splitlines():
        kind, _, text = line.partition("\t")
        found[kind].append(text)
    return found


def run(*arguments: str) -> Said:
    """Run a program to its end; a process that hangs keeps its output open, and is noticed by the time it takes."""
    with started(*arguments) as process:
        out, _ = process.communicate(timeout=SECONDS)
    found = heard(out)
    assert found["error"] == []
    return found


def assert_kept(store: Path, texts: list[str]) -> None:
    with whyrank.open(store, workspace=store.parent, embedding="none") as engine:
        kept = {memory.text for memory in engine.list(limit=100_000)}
        assert sorted(set(texts) - kept) == []
        for text in texts:
            assert engine.search(text.split()[1], limit=1)[0].memory.text == text


@pytest.mark.parametrize("how", ["closes", "leaves", "is killed", "goes on"])
def test_a_child_with_its_own_engine_loses_nothing_when_its_parent_ends_first(tmp_path: Path, how: str) -> None:
    store = tmp_path / "memory.db"
    found = run("parent ends first", str(store), "own", how)
    stages = 5 if how == "goes on" else 3  # before, early and late; parent and after
    assert found["refused"] == []
    assert len(found["acknowledged"]) == stages * WRITES
    assert_kept(store, found["acknowledged"])


@pytest.mark.parametrize("how", ["closes", "leaves", "is killed", "goes on"])
def test_a_child_that_uses_its_parents_engine_is_refused_or_loses_nothing(tmp_path: Path, how: str) -> None:
    store = tmp_path / "memory.db"
    found = run("parent ends first", str(store), "inherited", how)
    stages = 5 if how == "goes on" else 3
    assert len(found["acknowledged"]) + len(found["refused"]) == stages * WRITES
    assert_kept(store, found["acknowledged"])


def test_a_child_forked_while_a_thread_writes_does_not_hang(tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    found = run("while a thread writes", str(store))
    assert found["refused"] == []
    assert len(found["acknowledged"]) >= (CHILDREN + 2) * WRITES
    assert max(map(float, found["seconds"])) < HUNG_S
    assert_kept(store, found["acknowledged"])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_of_processes_loses_nothing(tmp_path: Path, method: str) -> None:
    store = tmp_path / "memory.db"
    found = run("pooled", str(store), method)
    assert found["refused"] == []
    assert len(found["acknowledged"]) == (3 * CHILDREN + 1) * WRITES
    assert_kept(store, found["acknowledged"])


@pytest.mark.parametrize("how", ["closes", "exits", "goes on"])
@pytest.mark.parametrize("whose", ["own", "inherited"])
def test_workers_of_a_prefork_server_lose_nothing(tmp_path: Path, whose: str, how: str) -> None:
    store, stored, refused = tmp_path / "memory.db", list[str](), list[str]()
    with started("preforked", str(store), whose, how) as process:
        assert process.stdout is not None
        found = heard("".join(process.stdout.readline() for _ in range(WRITES + 2)))
        [port], stored = map(int, found["port"]), [*found["acknowledged"]]
        for number in range(REQUESTS):
            text = f"Crate request{number}x waits on the quay"
            with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
                connection.sendall(text.encode() + b"\n")
                answer = connection.makefile().readline()
            (stored if answer == "stored\n" else refused).append(text)
        if how == "exits":  # then the workers are left behind, and end as they do when a machine goes down
            os.killpg(process.pid, signal.SIGTERM)
        out, _ = process.communicate(timeout=SECONDS)
        found = heard(out)
    assert found["error"] == []
    assert not refused or whose == "inherited"
    assert_kept(store, [*stored, *found["acknowledged"]])
