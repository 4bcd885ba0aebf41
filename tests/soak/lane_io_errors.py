"""Let writes to a store fail, one after the other: a clear error, nothing acknowledged is lost, reads go on.

A schedule lets every third write fail, alone or with all behind it, for want of room or by an error of the disk. The
twelve there are let every write fail in all of these ways.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import whyrank
from whyrank.errors import WhyrankError

from .lanes import Counts, Lane

if TYPE_CHECKING:
    from collections.abc import Callable

STEP = 3  # from one write that fails to the next
WAYS = tuple((error, once) for once in (0, 1) for error in (errno.ENOSPC, errno.EIO))
SCHEDULES = STEP * len(WAYS)
SECRET = "xyzzyplugh drinks quinoa lemonade"
SHIM = Path(__file__).with_name("failing_writes.c")


def make_store(path: Path) -> dict[str, str]:
    """Store what every round begins with; return its ids by text."""
    with opened(path) as engine:
        texts = [f"parcel {number} waits at gate {number * 7}" for number in range(80)]
        return {text: engine.add(text).id for text in [*texts, SECRET, "tea at noon", "milk at night", "gone soon"]}


def opened(path: Path) -> whyrank.Engine:
    return whyrank.open(path, workspace=path.parent, embedding="none", calibration="manual")


def see_advice(error: WhyrankError) -> None:
    """See that an error says what to do."""
    assert error.hint, error


def work(path: Path, ids: dict[str, str], done: Path) -> None:
    """Change a store in every way, whatever fails; write down what was acknowledged."""
    with done.open("a", encoding="utf-8") as told:

        def acknowledge(step: str) -> None:
            print(step, file=told, flush=True)

        try:
            engine = opened(path)
        except WhyrankError as error:
            see_advice(error)
            return
        steps: dict[str, Callable[[], object]] = {
            "add": lambda: engine.add("crate of lemons"),
            "update": lambda: engine.update(ids["tea at noon"], text="tea at five"),
            "supersede": lambda: engine.add("milk at dawn", supersedes=ids["milk at night"]),
            "forget": lambda: engine.forget(ids["gone soon"]),
            "purge": lambda: engine.forget(ids[SECRET], purge=True),
            "ingest": lambda: engine.ingest(path.parent / "note.md"),
        }
        for step, run in steps.items():
            try:
                run()
                acknowledge(step)
            except WhyrankError as error:
                see_advice(error)
            found = engine.search("parcel 7 gate 49").hits  # reading goes on
            assert found[0].id == ids["parcel 7 waits at gate 49"]
        try:
            engine.close()
        except WhyrankError as error:
            see_advice(error)


def check(path: Path, ids: dict[str, str], done: set[str]) -> None:
    """See that what was acknowledged is there, and what was not is there wholly or not at all."""
    with opened(path) as engine:
        listed = {one.id: one.text for one in engine.list(limit=1_000, include_superseded=True)}
        texts = [*listed.values()]
        for number in range(80):
            text = f"parcel {number} waits at gate {number * 7}"
            assert listed[ids[text]] == text
        changed = listed[ids["tea at noon"]]
        assert changed in {"tea at five"} | (set() if "update" in done else {"tea at noon"})
        assert texts.count("crate of lemons") == 1 or "add" not in done
        assert texts.count("milk at dawn") == 1 or "supersede" not in done
        assert ids["gone soon"] not in listed or "forget" not in done
        assert ids[SECRET] not in listed or "purge" not in done
        assert any("quince" in text for text in texts) or "ingest" not in done
        assert engine.search(changed)[0].id == ids["tea at noon"]
        assert engine.add("one more").text == "one more"
    if ids[SECRET] not in listed:  # whoever opened the store has finished the purge
        raw = b"".join(file.read_bytes() for file in path.parent.glob("memory.db*"))
        assert b"xyzzyplugh" not in raw
    assert whyrank.doctor(path, workspace=path.parent, embedding="none").is_sound


def failures(schedule: int, writes: int) -> list[tuple[int, int, int]]:
    """Return which writes fail, how, and whether alone."""
    first, shift = 1 + schedule % STEP, schedule // STEP
    return [(number, *WAYS[(number + shift) % len(WAYS)]) for number in range(first, writes + 1, STEP)]


def run_all(folder: Path, schedule: int) -> None:
    """Let each write fail in a process of its own, which begins with the same store."""
    shim = ctypes.CDLL(None)
    base = folder / "base"
    base.mkdir()
    ids = make_store(base / "memory.db")
    (base / "note.md").write_text("# Quince\n\nA quince is hard.\n", encoding="utf-8")
    warm = folder / "warm"
    shutil.copytree(base, warm)
    work(warm / "memory.db", ids, warm / "done")  # so that modules are not imported in every round
    check(warm / "memory.db", ids, set())
    rounds = [(0, 0, 0)]
    total, at = 0, 0
    while at < len(rounds):
        place = folder / "round"
        shutil.copytree(base, place)
        child = os.fork()
        if not child:
            try:
                shim.arm(*rounds[at])
                work(place / "memory.db", ids, place / "done")
                (place / "writes").write_text(str(shim.writes_seen()), encoding="utf-8")
                os._exit(0)
            except BaseException as error:
                (folder / "failed").write_text(f"{rounds[at]}: {error!r}", encoding="utf-8")
                os._exit(1)
        status = os.waitpid(child, 0)[1]
        assert status == 0, (rounds[at], status, (folder / "failed").read_text(encoding="utf-8"))
        done = {*(place / "done").read_text(encoding="utf-8").split()} if (place / "done").exists() else set()
        if not at:
            assert done == {"add", "update", "supersede", "forget", "purge", "ingest"}
            total = int((place / "writes").read_text(encoding="utf-8"))
            rounds += failures(schedule, total)
        check(place / "memory.db", ids, done)
        shutil.rmtree(place)
        at += 1
    print(json.dumps({"worst_writes": total, "failed_writes": len(rounds) - 1, "schedules": 1}))


def compiler() -> str | None:
    """Return what compiles the shim, if writes can be made to fail here."""
    return (shutil.which("gcc") or shutil.which("cc")) if Path("/proc/self/fd").exists() else None


def fail_writes(folder: Path, schedule: int) -> Counts:
    """Play a schedule in a process of its own, into which the shim is loaded."""
    command = compiler()
    assert command is not None, "there is no C compiler to make writes fail, or no /proc"
    shim = folder / "failing_writes.so"
    subprocess.run([command, "-shared", "-fPIC", "-O1", str(SHIM), "-o", str(shim), "-ldl"], check=True)
    environment = {**os.environ, "LD_PRELOAD": str(shim), "OPENBLAS_NUM_THREADS": "1"}
    memory = Path("/dev/shm")  # where no round waits for a disk
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else folder) as place:
        program = [sys.executable, "-m", "tests.soak.lane_io_errors", place, str(schedule)]
        ended = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    counted: Counts = json.loads(ended.stdout)
    return counted


LANE = Lane(
    "io-errors",
    "a write that fails: a clear error, nothing acknowledged is lost, reads go on",
    lambda seed, folder: fail_writes(folder, seed % SCHEDULES),
    {"schedules": SCHEDULES},
    seconds=900.0,
)

if __name__ == "__main__":
    run_all(Path(sys.argv[1]), int(sys.argv[2]))
