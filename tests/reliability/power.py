"""Cut the power: what a disk may hold at any moment of a recorded run holds what was acknowledged before.

A run is recorded call by call. At a moment, of each file everything up to its last sync is on the disk; of what was
written since, any part may be: nothing, everything, some first calls, some calls of any place, or single sectors of
them. Names are on the disk from the sync of their folder on; those changed since are there up to some change.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

from . import ingests
from .kills import State, assert_sound, compared, script
from .victims import done_by, opened

SECTOR = 512  # bytes that a disk writes whole or not at all
HEAD = struct.Struct("<cHqI")
MODES = ("lost", "kept", "first", "reordered", "torn")
ACKNOWLEDGED = "acknowledged"  # the file whose writes are acknowledgements
VERBS = ("add", "add", "update", "supersede", "forget", "switch")
OPS = 150  # of a run: more than a log of 1,000 pages, so that it is copied into the file meanwhile
INGESTS = 12  # of a run
SESSIONS = 6  # of a run at most; at the end of each the log is copied and removed
LOOKED_AT = 12  # texts of the latest operations that are searched for in every state


class Call(NamedTuple):
    """One recorded call: (w)rite, (s)ync, (t)runcate, (u)nlink or (r)ename."""

    kind: str
    name: str
    offset: int
    data: bytes


@dataclass
class File:
    """One file: what is on the disk for good, and the calls since its last sync."""

    kept: bytes = b""
    pending: list[Call] = field(default_factory=list)


@dataclass
class Disk:
    """A folder as its disk has it: names for good, and names as programs see them."""

    names: dict[str, File] = field(default_factory=dict)
    kept_names: dict[str, File] = field(default_factory=dict)
    changes: list[dict[str, File]] = field(default_factory=list)  # names after each change since the folder's sync

    def take(self, call: Call) -> None:
        """Do one call."""
        if call.kind == "s" and call.name == ".":
            self.kept_names, self.changes = dict(self.names), []
        elif call.kind == "s":
            file = self.names[call.name]
            file.kept, file.pending = written(file.kept, file.pending), []
        elif call.kind == "u":
            del self.names[call.name]
            self.changes.append(dict(self.names))
        elif call.kind == "r":
            self.names[call.data.decode()] = self.names.pop(call.name)
            self.changes.append(dict(self.names))
        else:
            if call.name not in self.names:
                self.names[call.name] = File()
                self.changes.append(dict(self.names))
            self.names[call.name].pending.append(call)

    def after_power_loss(self, mode: str, chance: random.Random) -> dict[str, bytes]:
        """Return files as they may be found."""
        seen = {"lost": 0, "kept": len(self.changes)}.get(mode, chance.randint(0, len(self.changes)))
        names = [self.kept_names, *self.changes][seen]
        return {name: written(file.kept, _surviving(file.pending, mode, chance)) for name, file in names.items()}


def _surviving(pending: Sequence[Call], mode: str, chance: random.Random) -> Iterable[Call]:
    if mode == "lost":
        return ()
    if mode == "kept":
        return pending
    if mode == "first":
        return pending[: chance.randint(0, len(pending))]
    share = chance.random()
    some = [call for call in pending if chance.random() < share]
    if mode == "reordered":
        return some
    return [part for call in some for part in _sectors(call) if call.kind != "w" or chance.random() < 0.7]


def _sectors(call: Call) -> Iterator[Call]:
    """Yield a write cut where sectors end."""
    if call.kind != "w":
        yield call
        return
    start = 0
    while start < len(call.data):
        size = SECTOR - (call.offset + start) % SECTOR
        yield call._replace(offset=call.offset + start, data=call.data[start : start + size])
        start += size


def written(content: bytes, calls: Iterable[Call]) -> bytes:
    """Return the content of a file after these calls."""
    made = bytearray(content)
    for call in calls:
        end = call.offset + len(call.data)
        if call.kind == "t":
            del made[call.offset :]
        if len(made) < end:
            made.extend(bytes(end - len(made)))
        made[call.offset : end] = call.data
    return bytes(made)


# -- recording ------------------------------------------------------------------------------------------------


@cache
def library() -> Path | None:
    """Compile the recorder; None where there is no compiler, or no way to load it before others."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    made = Path(mkdtemp(prefix="whyrank-recorder-")) / "recorder.so"
    source = Path(__file__).with_name("recorder.c")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", made, source, "-ldl", "-lpthread"], check=True)
    return made


def record(folder: Path, program: str, seed: int, is_lying: bool = False, is_early: bool = False) -> list[Call]:
    """Run a program that writes and acknowledges; return all it did to the files beside its store."""
    recorder, log = library(), folder.with_name(f"{folder.name}.log")
    assert recorder is not None
    folder.mkdir()
    environment = {**os.environ, "RECORDED_FOLDER": str(folder), "RECORDED_LOG": str(log)}
    environment |= {"LD_PRELOAD": str(recorder), **({"RECORDED_WITHOUT_SYNCS": "1"} if is_lying else {})}
    command = [sys.executable, "-m", "tests.reliability.power", program, str(folder), str(seed), str(int(is_early))]
    root = Path(__file__).parent.parent.parent
    subprocess.run(command, env=environment, cwd=root, check=True, timeout=120)
    calls = [call for call in read_calls(log.read_bytes()) if not call.name.endswith("-shm") and "/" not in call.name]
    assert {"memory.db", "memory.db-wal", ACKNOWLEDGED} <= {call.name for call in calls}
    return calls


def read_calls(log: bytes) -> Iterator[Call]:
    """Read what the recorder wrote."""
    place = 0
    while place < len(log):
        kind, letters, offset, size = HEAD.unpack_from(log, place)
        place += HEAD.size
        name = log[place : place + letters].decode().removesuffix(" (deleted)")
        yield Call(kind.decode(), name, offset, log[place + letters : place + letters + size])
        place += letters + size


class Acknowledgements:
    """A file that gets a byte for everything that was done; a planted fault writes it before."""

    def __init__(self, folder: Path, is_early: bool) -> None:
        self._file = os.open(folder / ACKNOWLEDGED, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._is_early = is_early

    @contextmanager
    def one(self) -> Iterator[None]:
        if self._is_early:
            os.write(self._file, b".")
        yield
        if not self._is_early:
            os.write(self._file, b".")


def sessions(count: int, chance: random.Random) -> Iterator[int]:
    """Share some operations out to sessions."""
    number = chance.randint(2, SESSIONS)
    ends = sorted(chance.sample(range(1, count), number - 1))
    return (end - start for start, end in pairwise([0, *ends, count]))


def write_facts(folder: Path, seed: int, acknowledgements: Acknowledgements) -> None:
    """Add, change, replace and forget facts and switch models, in several sessions."""
    ids, ops = dict[str, str](), script(VERBS, seed)
    for count in sessions(OPS, random.Random(seed)):
        with opened(folder / "memory.db") as engine:
            for op in islice(ops, count):
                with acknowledgements.one():
                    ids[op.text] = done_by(engine, op, ids.get(op.old, ""))


def write_files(folder: Path, seed: int, acknowledgements: Acknowledgements) -> None:
    """Ingest files that change, in several sessions."""
    chance, number, there = random.Random(seed), 0, ingests.Versions()
    (folder / "notes").mkdir()
    for count in sessions(INGESTS, random.Random(seed)):
        with ingests.opened(folder) as engine:
            for _ in range(count):
                there, number = ingests.change(folder, there, number, chance), number + 1
                with acknowledgements.one():
                    engine.ingest(folder / "notes")


PROGRAMS = {"facts": write_facts, "files": write_files}


# -- states ---------------------------------------------------------------------------------------------------


Judge = Callable[[Path, int], object]  # of the folder of a store found, and how much was acknowledged


def judge_facts(seed: int) -> Judge:
    """Return what tells whether a store holds the acknowledged facts."""
    done = list(islice(script(VERBS, seed), OPS))

    def judge(folder: Path, acknowledged: int) -> None:
        begun = done[: acknowledged + 1]
        compared(folder / "memory.db", State(), begun, acknowledged, begun[-LOOKED_AT:])
        assert_sound(folder / "memory.db")

    return judge


def judge_files(seed: int) -> Judge:
    """Return what tells whether a store holds every file wholly as the last ingest, or the one under way, read it."""
    chance, states = random.Random(seed), [ingests.Versions()]
    for version in range(INGESTS):
        states.append(ingests.planned(states[-1], version, chance))

    def judge(folder: Path, acknowledged: int) -> None:
        before, after = states[acknowledged], states[min(acknowledged + 1, INGESTS)]
        ingests.compared(folder, before, after, False, chance)

    return judge


JUDGES = {"facts": judge_facts, "files": judge_files}


def cut(folder: Path, program: str, seed: int, count: int, **faults: bool) -> Counter[str]:
    """Record a run, cut its power so many times, and look at each store found."""
    calls = record(folder / program, program, seed, **faults)
    return check(calls, JUDGES[program](seed), count, random.Random(seed), folder)


def check(calls: Sequence[Call], judge: Judge, count: int, chance: random.Random, folder: Path) -> Counter[str]:
    """Cut the power at so many moments, half of them right after an acknowledgement."""
    after = [place + 1 for place, call in enumerate(calls) if call.name == ACKNOWLEDGED]
    moments = [chance.choice(after) if chance.random() < 0.5 else chance.randint(1, len(calls)) for _ in range(count)]
    disk, place, acknowledged, counts = Disk(), 0, 0, Counter[str]()
    for number, moment in enumerate(sorted(moments)):
        for call in calls[place:moment]:
            if call.name == ACKNOWLEDGED:
                acknowledged += 1
            else:
                disk.take(call)
        place, mode = moment, MODES[number % len(MODES)]
        state = folder / f"state-{number}"
        state.mkdir()
        for name, content in disk.after_power_loss(mode, chance).items():
            (state / name).write_bytes(content)
        try:
            if acknowledged or (state / "memory.db").exists():
                judge(state, acknowledged)
        except Exception as error:
            raise AssertionError(f"after call {moment} of {len(calls)}, {mode}: {error}") from error
        counts.update({"states": 1, mode: 1})
        shutil.rmtree(state)
    return counts


if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]), Acknowledgements(Path(sys.argv[2]), sys.argv[4] == "1"))
