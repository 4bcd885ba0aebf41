"""Many processes that store facts in PostgreSQL at once: `python -m tests.reliability.writers ADDRESS NAME COUNT`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from whyrank.config.load import load
from whyrank.engine.engine import Engine
from whyrank.storage.store import PostgresStore
from whyrank.testing.fakes import WordDirections

from .. import postgres, processes

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT = Path(__file__).parents[2]
_SCOPES = 4  # that share the writers


class Written(NamedTuple):
    """Result of one writer: its longest wait, and the ids that were acknowledged."""

    longest: float
    ids: list[str]


def opened(address: str) -> Engine:
    """Open an engine that needs no model."""
    folder = Path(tempfile.gettempdir())
    config = load({"calibration": "manual"}, workspace=folder, environment={})
    return Engine(PostgresStore(address), WordDirections(), config)


@contextmanager
def writing(address: str, writers: int, count: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Start writers, each of which stores so many facts with keys; they begin together."""
    with ExitStack() as stack:
        command = [sys.executable, "-m", "tests.reliability.writers", address]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        started = [
            stack.enter_context(processes.started([*command, str(name), str(count)], cwd=_ROOT, **pipes))
            for name in range(writers)
        ]
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in started:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        yield started


def results(started: list[subprocess.Popen[str]]) -> list[Written]:
    """Wait for the writers, and return what each has written."""
    return [Written(*json.loads(process.communicate(timeout=processes.SECONDS)[0])) for process in started]


def stored(address: str) -> int:
    """Return how many facts are stored."""
    schema = address.rpartition("=")[2]
    [(count,)] = postgres.ask(address, f"SELECT count(*) FROM {schema}.memories")
    assert isinstance(count, int)
    return count


def main(address: str, name: str, count: str) -> None:
    """Store facts, and print the longest wait and the ids."""
    engine = opened(address)
    print("ready", flush=True)
    sys.stdin.readline()
    longest, ids = 0.0, []
    for number in range(int(count)):
        began = time.monotonic()
        text = f"writer {name} keeps fact number {number}"
        ids.append(engine.add(text, scope=f"user:w{int(name) % _SCOPES}", key=f"{name}-{number}").id)
        longest = max(longest, time.monotonic() - began)
    print(json.dumps([longest, ids]))


if __name__ == "__main__":
    main(*sys.argv[1:])
