"""Back a store up and restore it, again and again, while other processes write to it and read it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

import whyrank
from tests.processes import started

from .lanes import Counts, Lane

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BACKUPS = 20  # of a round
RESTORED_EVERY = 5  # backups: then the first backup goes into the very store that is written to, which is small again
PAUSE = 0.003  # of a writer after each fact, so that a look at all of them takes a moment

# The clock is that of the machine, the same in all processes.
WRITE = """
import sys, time, whyrank
with whyrank.open(sys.argv[1], workspace=sys.argv[2], embedding="none", calibration="manual") as engine:
    for number in range(10_000_000):
        begun = time.monotonic()
        memory = engine.add(f"{sys.argv[3]} stored sentence number {number}")
        print(begun, memory.id, flush=True)
        time.sleep(float(sys.argv[4]))
"""
READ = """
import sys, whyrank
with whyrank.open(sys.argv[1], workspace=sys.argv[2], embedding="none", calibration="manual") as engine:
    while True:
        hits = engine.search("which sentence was stored")
        assert all("stored sentence" in hit.memory.text for hit in hits), [hit.memory.text for hit in hits]
        print(len(hits), flush=True)
"""


class Acknowledged(NamedTuple):
    """A fact that a writer was told is kept, and when it began to store it."""

    begun: float
    id: str


@contextmanager
def load(store: Path) -> Iterator[tuple[list[Acknowledged], list[int]]]:
    """Let two processes write and one read; collect what they are told."""
    kept: list[Acknowledged] = []
    answers: list[int] = []

    def collect(process: subprocess.Popen[str], writes: bool) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if not line.endswith("\n"):
                return  # cut short by the kill, so never acknowledged
            if writes:
                begun, identity = line.split()
                kept.append(Acknowledged(float(begun), identity))
            else:
                answers.append(int(line))

    with ExitStack() as stack:
        commands = [[WRITE, store, store.parent, name, PAUSE] for name in ("Ada", "Bo")] + [[READ, store, store.parent]]
        for command in commands:
            words = [sys.executable, "-c", *map(str, command)]
            process = stack.enter_context(started(words, stdout=subprocess.PIPE))
            thread = threading.Thread(target=collect, args=(process, command[0] is WRITE))
            thread.start()
            stack.callback(thread.join)  # before its pipe is closed
            stack.callback(process.kill)
        yield kept, answers


def waited(kept: list[Acknowledged], since: float) -> None:
    """Wait until something was acknowledged that was begun after a moment."""
    deadline = time.monotonic() + 60
    while not any(one.begun > since for one in kept[-50:]):
        assert time.monotonic() < deadline, "the writers are stuck"
        time.sleep(0.01)


def back_up(folder: Path, backups: int) -> Counts:
    """Restore each backup: it holds all that was acknowledged before it was begun."""
    store, first, target, other = (folder / f"{name}.db" for name in ("memory", "first", "backup", "other"))
    since, counted = 0.0, Counter[str]()
    with load(store) as (kept, answers):
        waited(kept, since)
        with whyrank.open(store, workspace=folder, embedding="none", calibration="manual") as engine:
            for done in range(1, backups + 1):
                waited(kept, time.monotonic())
                before = [one.id for one in list(kept) if one.begun > since]
                made = engine.backup(target if done > 1 else first)
                if done == 1:
                    shutil.copy(first, target)
                assert whyrank.restore(target, other, keep=False).memories == made.memories
                with whyrank.open(other, workspace=folder, embedding="none", calibration="manual") as copy:
                    held = {memory.id for memory in copy.list(limit=made.memories + 1)}
                    assert len(held) == made.memories
                    assert not {*before} - held
                    counted["compared_facts"] += len(before)
                    last = copy.get(before[-1])
                    assert last.text in [hit.memory.text for hit in copy.search(last.text, limit=3)]
                counted["backups"] += 1
                if done % RESTORED_EVERY == 0:
                    counted["restored_into_the_live_store"] += 1
                    whyrank.restore(first, store, keep=False)
                    since = time.monotonic()
                    waited(kept, since)
        assert whyrank.doctor(store, embedding="none", deep=True).is_sound
    assert answers
    return counted


LANE = Lane(
    "backups",
    "a backup made under load restores with all that was acknowledged before it",
    lambda seed, folder: back_up(folder, BACKUPS),
    {"backups": 500},
    seconds=1_800.0,
)
