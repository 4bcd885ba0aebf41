"""Writers and readers at once, in processes of their own: no error, nobody locked out, nothing lost.

Waits are measured and published; they are asserted nowhere, as they are the machine's as much as the store's.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import whyrank

from .victims import FORKS, SECONDS

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from pathlib import Path

WRITERS, READERS = 4, 8
PAUSE_S = 0.01  # between two writes of one writer, as agents pause for longer
IDLE_SHARE = 0.25  # of the time of a run: before it the same readers read while nobody writes
WORDS = ("crate", "quay", "harbour", "rope", "mast", "anchor", "tide", "lamp", "chart", "signal")
FILLED = 2_000  # memories before anybody writes


class Seen(NamedTuple):
    """What one process did and how long it waited, and every error it met."""

    kind: str
    idle: list[float]
    seconds: list[float]
    errors: list[str]
    notices: Counter[str]
    texts: list[str]


def opened(folder: Path) -> whyrank.Engine:
    return whyrank.open(folder / "memory.db", workspace=folder, embedding="none", calibration="manual")


def _write(told: Connection, folder: Path, number: int, seconds: float) -> None:
    seen, chance = Seen("write", [], [], [], Counter(), []), random.Random(number)
    with opened(folder) as engine:
        told.send("ready")
        told.recv()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            text = f"{chance.choice(WORDS)} w{number}n{len(seen.texts)}x {chance.choice(WORDS)}"
            began = time.monotonic()
            try:
                engine.add(text)
                seen.texts.append(text)
            except Exception as error:  # whatever it is, it is counted
                seen.errors.append(repr(error))
            seen.seconds.append(time.monotonic() - began)
            time.sleep(PAUSE_S)
    told.send(seen)


def _read(told: Connection, folder: Path, number: int, seconds: float) -> None:
    seen, chance = Seen("read", [], [], [], Counter(), []), random.Random(number)
    with opened(folder) as engine:
        engine.search("crate")
        told.send("ready")
        told.recv()
        busy = time.monotonic() + IDLE_SHARE * seconds
        end = busy + seconds
        while time.monotonic() < end:
            began = time.monotonic()
            try:
                answer = engine.search(" ".join(chance.choices(WORDS, k=3)), limit=5)
                seen.notices.update(notice.code for notice in answer.notices)
                if not answer.hits:
                    seen.errors.append("no answer")
            except Exception as error:
                seen.errors.append(repr(error))
            (seen.idle if began < busy else seen.seconds).append(time.monotonic() - began)
            time.sleep(PAUSE_S)
    told.send(seen)


def fill(folder: Path) -> None:
    """Make a store of some thousand short memories."""
    chance = random.Random(0)
    with opened(folder) as engine:
        engine.add_documents(
            whyrank.Document(f"d{number}", " ".join(chance.choices(WORDS, k=12))) for number in range(FILLED)
        )


def share(times: list[float], part: float) -> float:
    """Return the time that so large a part of all times does not exceed."""
    return sorted(times)[min(len(times) - 1, int(part * len(times)))] if times else 0.0


def run(folder: Path, seconds: float) -> tuple[dict[str, float], list[str], Counter[str]]:
    """Let readers run alone, then with writers; return what is published, every error, and all notices."""
    fill(folder)
    running = []
    for number in range(WRITERS + READERS):
        ours, theirs = FORKS.Pipe()
        target = _write if number < WRITERS else _read
        process = FORKS.Process(target=target, args=(theirs, folder, number, seconds), daemon=True)
        process.start()
        theirs.close()
        running.append((process, ours))
    try:
        for _, told in running:
            assert told.recv() == "ready"
        for _, told in running[WRITERS:]:
            told.send("go")
        time.sleep(IDLE_SHARE * seconds)
        for _, told in running[:WRITERS]:
            told.send("go")
        seen = [told.recv() for _, told in running]
    finally:
        for process, told in running:
            process.kill()
            process.join(SECONDS)
            told.close()
    writes = [one for one in seen if one.kind == "write"]
    reads = [one for one in seen if one.kind == "read"]
    errors = [error for one in seen for error in one.errors]
    notices = sum((one.notices for one in seen), Counter[str]())
    with opened(folder) as engine:
        kept = {memory.text for memory in engine.list(limit=1_000_000, kind="fact")}
        for one in writes:
            errors += [f"lost {text}" for text in one.texts if text not in kept]
            found = [hit.memory.text for hit in engine.search(one.texts[-1].split()[1], limit=3)]
            errors += [] if one.texts[-1] in found else [f"not found: {one.texts[-1]}"]
    write_times, read_times = ([time for one in some for time in one.seconds] for some in (writes, reads))
    idle = share([time for one in reads for time in one.idle], 0.99)
    counts = {
        "load_seconds": seconds, "writes": len(write_times), "reads": len(read_times), "errors": len(errors),
        "not_indexed_yet": notices["not-indexed-yet"],
        "worst_write_ms": 1000 * max(write_times), "worst_write_p99_ms": 1000 * share(write_times, 0.99),
        "worst_read_p99_ms": 1000 * share(read_times, 0.99), "worst_idle_read_p99_ms": 1000 * idle,
        "worst_read_p99_to_idle": share(read_times, 0.99) / idle,
    }  # fmt: skip
    return counts, errors, notices
