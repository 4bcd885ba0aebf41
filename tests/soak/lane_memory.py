"""Ask a store fresh questions without end: the memory of the process reaches a plateau."""

from __future__ import annotations

import json
import os
import random
import string
import subprocess
import sys
from pathlib import Path

from tests.hostile import fill, open_store
from whyrank.analysis.normalize import most_shared_bytes

from .lanes import Counts, Lane

MEMORIES = 500
QUESTIONS = 10_000  # of a round, in a process of its own
CACHE_MEGABYTES = 8  # the fewest there may be, so that caches are full soon
GROWTH_BYTES = 16 * 1024 * 1024  # over the second half of a round, which leaves 73 MB of lists without a bound
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4_096
STATM = Path("/proc/self/statm")


def ask_fresh(folder: Path, seed: int, questions: int) -> Counts:
    """Ask fresh questions in a new process, whose memory nothing else has grown and freed before."""
    program = [sys.executable, "-m", "tests.soak.lane_memory", folder, seed, questions]
    ended = subprocess.run([*map(str, program)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    counted: Counts = json.loads(ended.stdout)
    return counted


def ask_here(folder: Path, seed: int, questions: int) -> Counts:
    chance, grown = random.Random(seed), 0
    fill(folder, MEMORIES)
    with open_store(folder, cache_megabytes=CACHE_MEGABYTES) as engine:
        for number in range(questions):
            if number == questions // 2:
                grown = -_resident_bytes()
            engine.search(" ".join("".join(chance.choices(string.ascii_lowercase, k=8)) for _ in range(6)))
        grown += _resident_bytes()
        caches = dict(engine.status().caches)
    shared = caches.pop("analyzer")
    assert shared <= most_shared_bytes()
    assert sum(caches.values()) <= CACHE_MEGABYTES * 1024 * 1024, caches
    assert grown < GROWTH_BYTES, f"{grown:,} bytes more after {questions // 2:,} questions; caches: {caches}"
    return {
        "fresh_questions": questions,
        "worst_growth_bytes": grown,
        "worst_cache_bytes": sum(caches.values()),
        "worst_list_bytes": caches["lists"],
    }


def _resident_bytes() -> int:
    return int(STATM.read_text(encoding="utf-8").split()[1]) * PAGE_BYTES if STATM.exists() else 0


LANE = Lane(
    "memory",
    "memory reaches a plateau under ever new questions",
    lambda seed, folder: ask_fresh(folder / "store", seed, QUESTIONS),
    {"fresh_questions": 120_000},
    seconds=600.0,
)

if __name__ == "__main__":
    print(json.dumps(ask_here(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
