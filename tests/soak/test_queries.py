"""Hostile queries over a large store, for as long as there is time: none raises, none takes more than two seconds.

`SOAK=1` makes it 20 minutes over 100,000 memories. `SOAK_SECONDS` sets another time, `SOAK_STATE` names a JSON file in
which the count is published and from which the next run goes on, and `SOAK_STORE` a folder that keeps the store.
"""

from __future__ import annotations

import json
import os
import random
import string
import time
from pathlib import Path
from typing import TypedDict

from ..hostile import ask, fill, open_store, queries

IS_SOAK = bool(os.environ.get("SOAK"))
MEMORIES = 100_000 if IS_SOAK else 1_000
SECONDS = float(os.environ.get("SOAK_SECONDS", 1_200 if IS_SOAK else 2))
FRESH_QUESTIONS = 120_000 if IS_SOAK else 300
CPU_SECONDS = 2.0
GROWTH_BYTES = 64 * 1024 * 1024  # of the process over the second half of the fresh questions
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4_096
STATM = Path("/proc/self/statm")


class State(TypedDict):
    """What has been asked so far, in all runs together."""

    queries: int
    memories: int
    slow: list[tuple[int, str, float]]
    worst_seconds: float


def test_hostile_queries_neither_raise_nor_take_long(tmp_path: Path) -> None:
    place, file = _place(tmp_path), Path(os.environ.get("SOAK_STATE", tmp_path / "hostile.json"))
    state = _state(file)
    until, saved = time.monotonic() + SECONDS, time.monotonic()
    with open_store(place) as engine:
        state["memories"] = engine.status().memories
        for number, kind, text in queries(state["queries"]):
            if time.monotonic() > until:
                break
            begin = time.thread_time()
            ask(engine, kind, text)
            spent = time.thread_time() - begin
            state["queries"], state["worst_seconds"] = number + 1, max(state["worst_seconds"], spent)
            if spent > CPU_SECONDS:
                state["slow"].append((number, kind, spent))
            if time.monotonic() > saved + 10:
                saved = time.monotonic()
                _save(file, state)
    _save(file, state)
    print(json.dumps(state))
    assert state["queries"] > 0
    assert state["slow"] == []


def test_memory_reaches_a_plateau_under_fresh_questions(tmp_path: Path) -> None:
    """120,000 fresh questions took 770 MB where a list of no places weighed nothing."""
    chance, until = random.Random(5), time.monotonic() + SECONDS
    held: list[int] = []
    asked = 0
    with open_store(_place(tmp_path)) as engine:
        while asked < FRESH_QUESTIONS and time.monotonic() < until:
            engine.search(" ".join("".join(chance.choices(string.ascii_lowercase, k=8)) for _ in range(6)))
            asked += 1
            if asked % (FRESH_QUESTIONS // 20) == 0:
                held.append(_resident_bytes())
        caches = dict(engine.status().caches)
    print(json.dumps({"fresh_questions": asked, "resident_bytes": held, "caches": caches}))
    assert sum(caches.values()) - caches["analyzer"] <= 320 * 1024 * 1024
    if len(held) >= 2 and IS_SOAK:
        assert held[-1] - held[len(held) // 2] < GROWTH_BYTES


def _place(tmp_path: Path) -> Path:
    place = Path(os.environ.get("SOAK_STORE", tmp_path / "store"))
    if not (place / "memory.db").exists():
        fill(place, MEMORIES)
    return place


def _state(file: Path) -> State:
    if file.exists():
        known: State = json.loads(file.read_text())
        return known
    return {"queries": 0, "memories": 0, "slow": [], "worst_seconds": 0.0}


def _save(file: Path, state: State) -> None:
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps(state))
    beside.replace(file)


def _resident_bytes() -> int:
    return int(STATM.read_text().split()[1]) * PAGE_BYTES if STATM.exists() else 0
