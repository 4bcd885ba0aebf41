"""What is measured, and where: the time of calls that take turns, memory, and the machine."""

from __future__ import annotations

import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

Item = TypeVar("Item")
SLOW_MILLISECONDS = 1_000.0
TURNS_OF_THE_SLOW = 8
# What a thread on another core takes is known to the clock when its next tick comes, every 4 ms or so.
LOOK_SECONDS, STILL_SHARE = 0.01, 0.05  # threads are still that work for less than this share between two looks
PATIENCE_SECONDS = 0.25  # some never are
# Libraries read these when they are loaded. With more threads, wall time would tell how busy the other cores are.
_THREADS = (
    "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS",
)  # fmt: skip
_STATUS = Path("/proc/self/status")


class Span(NamedTuple):
    """Milliseconds one call took: of the processor, all threads of the process together, and on the wall."""

    cpu: float
    wall: float


Spans = Mapping[int, Span]  # by the number of the turn


def timed(call: Callable[[], Item]) -> tuple[Span, Item]:
    """Run a call and return what it cost with what it returned."""
    wall, cpu = time.perf_counter(), time.process_time()
    answer = call()
    return Span((time.process_time() - cpu) * 1000, (time.perf_counter() - wall) * 1000), answer


def shuffled(items: Sequence[Item], turn: int) -> list[Item]:
    """Return the order of a turn, the same in every contest: everybody follows everybody at some time.

    Whoever always came after one that does the same work would find its code and pages in the processor's caches.
    """
    return random.Random(turn).sample(items, len(items))


def seconds_of_others() -> float:
    """Return the seconds of the processor that other threads of the process have taken."""
    return time.process_time() - time.thread_time()


def be_still(taken: Callable[[], float] = seconds_of_others) -> None:
    """Wait until no other thread works, as some do long after they stored something: it would count for the next."""
    before, last_look = taken(), time.perf_counter() + PATIENCE_SECONDS
    while time.perf_counter() < last_look:
        time.sleep(LOOK_SECONDS)
        now = taken()
        if now - before < STILL_SHARE * LOOK_SECONDS:
            return
        before = now


def take_turns(
    calls: Mapping[str, Callable[[int], Item]],
    turns: int,
    heard: Callable[[str, int, Item], None] = lambda name, turn, answer: None,
    before: Callable[[], None] = lambda: None,
) -> dict[str, dict[int, Span]]:
    """Let everybody answer every question once, in another order each time; whoever is slow gets fewer turns.

    Before each of them something may be done that does not count.
    """
    spans: dict[str, dict[int, Span]] = {name: {} for name in calls}
    for turn in range(turns):
        for name in shuffled(list(calls), turn):
            if is_spent(spans[name]):
                continue
            call = calls[name]
            before()
            spans[name][turn], answer = timed(lambda call=call, turn=turn: call(turn))  # type: ignore[misc]
            heard(name, turn, answer)
    return spans


def is_spent(spans: Spans) -> bool:
    """Tell whether a slow contestant has had its turns."""
    slow = any(span.wall > SLOW_MILLISECONDS for span in spans.values())
    return slow and len(spans) >= TURNS_OF_THE_SLOW


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lies, between two of them where it falls between."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


class Ratio(NamedTuple):
    """How many times what the other took: above 1 the other is faster."""

    cpu: float
    wall: float


def ratio(spans: Spans, other: Spans) -> Ratio | None:
    """Divide the medians of the turns both had; None if they never met."""
    met = spans.keys() & other.keys()
    if not met:
        return None
    mine, theirs = ([spans[turn] for turn in met], [other[turn] for turn in met])
    return Ratio(
        statistics.median(span.cpu for span in mine) / statistics.median(span.cpu for span in theirs),
        statistics.median(span.wall for span in mine) / statistics.median(span.wall for span in theirs),
    )


def peak_megabytes() -> float | None:
    """Return the largest resident size so far, or None where the system does not tell."""
    # What `resource` tells is inherited from the parent on Linux, so the process's own record is asked first.
    if _STATUS.exists():
        lines = _STATUS.read_text(encoding="ascii", errors="replace").splitlines()
        return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), None)
    return None


def disk_megabytes(folder: Path) -> float:
    """Return the size of all files below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def limit_threads() -> None:
    """Hold numpy and its like to one thread, here and in processes started from here; call before it is loaded."""
    if "numpy" not in sys.modules:
        os.environ.update(dict.fromkeys(_THREADS, "1"))


def one_thread() -> bool:
    """Tell whether the limit was set in time."""
    return all(os.environ.get(name) == "1" for name in _THREADS)


def described() -> dict[str, Any]:
    """Describe the machine and what the contest rests on."""
    import numpy as np

    from whyrank import __version__
    from whyrank.storage.sqlite.database import LIBRARY

    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "sqlite": LIBRARY.removeprefix("SQLite "),
        "whyrank": __version__,
        "one_thread": one_thread(),
    }


def _cpu() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or sys.platform
