"""What `whyrank serve` bears: clients that stay connected and search as fast as they are answered.

`python -m benchmarks.load` makes 10,000 memories, starts a server and asks it from one process with eight connections;
it prints requests a second, percentiles of the time to an answer, and how much memory the server took before and after.
With `--requests 100000` it is the soak: memory may not grow by more than 5 %.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import whyrank
from whyrank.types.memory import Document

from .doors import TOKEN, word

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMORIES, WORDS, QUESTIONS, SEED = 10_000, 40, 500, 1
# Before anything is measured every worker has met every question: caches fill up to `cache.megabytes`, as they shall.
WARM = 4_000
MOST_GROWTH = 0.05


class Asked(NamedTuple):
    """How it went: seconds each answer took, what was not answered well, and how long all of it took."""

    seconds: list[float]
    errors: int
    whole_s: float


class Client(asyncio.Protocol):
    """One connection that asks the next question as soon as the last one is answered."""

    def __init__(self, questions: Iterator[bytes], times: list[float], done: asyncio.Future[None]) -> None:
        self.questions, self.times, self.done = questions, times, done
        self.errors, self.held, self.began = 0, b"", 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        question = next(self.questions, None)
        if question is None:
            self.transport.close()
            self.done.set_result(None)
            return
        self.began = time.perf_counter()
        self.transport.write(question)

    def data_received(self, data: bytes) -> None:
        self.held += data
        head, found, body = self.held.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(body) < length:
            return
        self.times.append(time.perf_counter() - self.began)
        self.errors += not (head.startswith(b"HTTP/1.1 200") and b'"verdict"' in body[:4000])
        self.held = b""
        self.ask()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.errors += 1
            self.done.set_result(None)


async def asked(port: int, questions: Iterator[bytes], clients: int) -> Asked:
    loop = asyncio.get_running_loop()
    times: list[float] = []
    began, ends, protocols = time.perf_counter(), [], []
    for _ in range(clients):
        done: asyncio.Future[None] = loop.create_future()
        _, protocol = await loop.create_connection(partial(Client, questions, times, done), "127.0.0.1", port)
        ends.append(done)
        protocols.append(protocol)
    await asyncio.gather(*ends)
    return Asked(times, sum(protocol.errors for protocol in protocols), time.perf_counter() - began)


def requests(count: int, chance: random.Random, vocabulary: list[str]) -> Iterator[bytes]:
    made = []
    for _ in range(min(count, QUESTIONS)):
        body = json.dumps({"query": " ".join(chance.choices(vocabulary, k=5))}).encode()
        head = f"POST /v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
        made.append(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    for place in range(count):
        yield made[place % len(made)]


@contextmanager
def serving(store: Path, workers: int) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [sys.executable, "-m", "whyrank", "serve", "--port", "0", "--json", "--workers", str(workers)]
    environment = {**os.environ, "WHYRANK_TOKEN": TOKEN}
    with subprocess.Popen(
        [*command, "--store", str(store)],
        cwd=store.parent, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            yield process, int(json.loads(process.stdout.readline())["url"].rpartition(":")[2])
        finally:
            process.terminate()


def resident_megabytes(process: int) -> float:
    """Return the memory of a process and of those it started."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()
    own = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]
    return int(own) * os.sysconf("SC_PAGE_SIZE") / 1e6 + sum(resident_megabytes(int(child)) for child in children)


def filled(store: Path, vocabulary: list[str], chance: random.Random) -> None:
    with whyrank.open(store, workspace=store.parent) as memory:
        memory.add_documents(
            Document(f"note-{number}", " ".join(chance.choices(vocabulary, k=WORDS))) for number in range(MEMORIES)
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=5_000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2)
    asked_for = parser.parse_args()
    chance = random.Random(SEED)
    vocabulary = sorted({word(chance) for _ in range(4_000)})
    with tempfile.TemporaryDirectory(prefix="whyrank-load-") as folder:
        store = Path(folder) / "memory.db"
        filled(store, vocabulary, chance)
        with serving(store, asked_for.workers) as (process, port):
            questions = requests(WARM + asked_for.requests, chance, vocabulary)
            warm = asyncio.run(asked(port, islice(questions, WARM), asked_for.clients))
            before = resident_megabytes(process.pid)
            done = asyncio.run(asked(port, questions, asked_for.clients))
            after = resident_megabytes(process.pid)
    times = sorted(done.seconds)
    shares = {
        name: 1000 * times[int(len(times) * share)] for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
    }
    print(f"{MEMORIES:,} memories, {asked_for.clients} clients, {asked_for.workers} workers, {len(times):,} requests")
    print(f"{len(times) / done.whole_s:.0f} requests/s, {done.errors + warm.errors} errors,", end=" ")
    print(", ".join(f"{name} {value:.1f} ms" for name, value in shares.items()))
    growth = after / before - 1
    print(f"memory {before:.0f} MB, afterwards {after:.0f} MB ({growth:+.1%})")
    return int(growth > MOST_GROWTH or done.errors + warm.errors > 0)


if __name__ == "__main__":
    sys.exit(main())
