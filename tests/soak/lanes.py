"""Soak lanes: rounds that try to break a promise for a given time, resumable, with published counts.

A lane is a module `tests/soak/lane_NAME.py` that defines `LANE`. Its `play` makes one round from a seed and raises
where the promise is broken. `python -m tests.soak [NAME…]` runs lanes one after the other.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import whyrank

STATE = Path(os.environ.get("SOAK_STATE", "out/soak"))
SECONDS = 600.0  # a lane without a time of its own and without SOAK_SECONDS
WORST = "worst_"  # counts of this beginning keep the largest value of all rounds; all others are added up
MAX_ERROR = 4_000  # characters kept of a traceback

Counts = Mapping[str, float]
Play = Callable[[int, Path], Counts]


class Lane(NamedTuple):
    """One promise, how a round tries to break it, and how many tries its proof asks for."""

    name: str
    promise: str
    play: Play  # (seed, empty folder) -> what the round counted; raises where the promise is broken
    goal: Counts  # such as {"kills": 1_000}
    seconds: float = SECONDS


@dataclass
class Record:
    """What a lane has counted over all its runs, as it is kept in its JSON file."""

    rounds: int = 0
    seconds: float = 0.0
    counts: dict[str, float] = field(default_factory=dict)
    failures: list[dict[str, Any]] = field(default_factory=list)

    @property
    def seed(self) -> int:
        """Return the seed of the next round: every round of every run has its own."""
        return self.rounds + len(self.failures)

    def add(self, counts: Counts) -> None:
        """Count one more round."""
        self.rounds += 1
        for name, value in counts.items():
            before = self.counts.get(name, 0)
            self.counts[name] = max(before, value) if name.startswith(WORST) else before + value


def load(lane: Lane, state: Path = STATE) -> Record:
    """Read what a lane has counted before, if it ever ran."""
    file = state / f"{lane.name}.json"
    if not file.exists():
        return Record()
    kept = json.loads(file.read_text(encoding="utf-8"))
    return Record(kept["rounds"], kept["seconds"], kept["counts"], kept["failures"])


def save(lane: Lane, record: Record, state: Path = STATE) -> None:
    """Write the counts aside and move them into place, so that a killed soak leaves the last whole ones."""
    state.mkdir(parents=True, exist_ok=True)
    published = {
        "lane": lane.name,
        "promise": lane.promise,
        "goal": dict(lane.goal),
        "rounds": record.rounds,
        "seconds": round(record.seconds, 1),
        "counts": record.counts,
        "failures": record.failures,
        "whyrank": whyrank.__version__,
        "updated": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    aside = state / f"{lane.name}.json.new"
    aside.write_text(json.dumps(published, indent=2) + "\n", encoding="utf-8")
    aside.replace(state / f"{lane.name}.json")


def run(lane: Lane, seconds: float, state: Path = STATE, seed: int | None = None) -> Record:
    """Play rounds, at least one, until the time is over or one fails; with a seed, that round alone, uncounted."""
    record = load(lane, state)
    if seed is not None:
        _play(lane, seed, state)
        return record
    deadline = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        try:
            counted = _play(lane, record.seed, state)
        except Exception:  # whatever it is, the promise was not kept: it is published with its seed
            error = traceback.format_exc()[-MAX_ERROR:]
            record.failures.append({"seed": record.seed, "error": error})
            print(error, flush=True)
            break
        else:
            record.add(counted)
        finally:
            record.seconds += time.monotonic() - began
            save(lane, record, state)
        if time.monotonic() >= deadline:
            break
    return record


def _play(lane: Lane, seed: int, state: Path) -> Counts:
    """Play one round in a folder of its own, which is kept beside the counts if the round fails."""
    folder = Path(tempfile.mkdtemp(prefix=f"whyrank-soak-{lane.name}-"))
    try:
        return lane.play(seed, folder)
    except BaseException:
        kept = state / f"{lane.name}-{seed}"
        shutil.rmtree(kept, ignore_errors=True)
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(folder, kept, symlinks=True, ignore_dangling_symlinks=True)
        print(f"{lane.name}: round {seed} failed; its files are in {kept}", flush=True)
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def lanes() -> dict[str, Lane]:
    """Return every lane there is, by name."""
    package = importlib.import_module("tests.soak")
    modules = sorted(one.name for one in pkgutil.iter_modules(package.__path__) if one.name.startswith("lane_"))
    found: Iterable[Lane] = (importlib.import_module(f"tests.soak.{name}").LANE for name in modules)
    return {lane.name: lane for lane in found}


def table(records: Iterable[tuple[Lane, Record]]) -> str:
    """Return the counts of lanes beside what their proofs ask for, as a table of Markdown."""
    lines = ["| lane | rounds | counted | goal | failures |", "|---|---|---|---|---|"]
    for lane, record in records:
        goal = _listed(lane.goal)
        lines.append(
            f"| {lane.name} | {record.rounds:,} | {_listed(record.counts)} | {goal} | {len(record.failures)} |"
        )
    return "\n".join(lines)


def _listed(counts: Counts) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value:,.6g}" for name, value in counts.items())
