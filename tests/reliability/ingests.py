"""Kill ingests: to every reader, at any moment, a file is wholly as it was or wholly as it is.

Every section of a file names the file, its version and how many sections that version has, so that a reader can tell a
whole file from a mixture, however sections were cut into memories.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections import Counter, defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import whyrank

from .kills import assert_sound
from .victims import FORKS, SECONDS, Gone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from multiprocessing.connection import Connection
    from pathlib import Path

    from whyrank.types.memory import Memory

FILES = 12
SECTIONS = (1, 8, 200)  # of a file: with all of them changed, an ingest is several transactions
WORDS = 30  # of a section, which is about a memory
CHANGED, DELETED = (0.3, 1.0), 0.05  # shares of the files before every ingest
EXAMINED = 0.1  # share of the stores found that are looked through for damage, which takes longer than all else
LOOKED_AT = 3  # files that are searched for after every kill
MARK = re.compile(r"\bf(\d+)v(\d+)p(\d+)of(\d+)\b")
EVERYTHING = 1_000_000
PAUSE_S = 0.01  # between two looks of a reader, so that it leaves the ingest some of the machine

Versions = dict[int, int]  # by the number of the file; none of a file that is not there


def opened(folder: Path) -> whyrank.Engine:
    return whyrank.open(
        folder / "memory.db", workspace=folder, embedding="none", chunk_tokens=64, chunk_overlap=0, calibration="manual"
    )


def content(file: int, version: int) -> str:
    count = SECTIONS[(file + version) % len(SECTIONS)]
    parts = (
        f"# Part {part} of f{file}v{version}\n\nf{file}v{version}p{part}of{count} {' '.join(['filler'] * WORDS)}"
        for part in range(count)
    )
    return "\n\n".join(parts) + "\n"


def planned(before: Versions, version: int, chance: random.Random) -> Versions:
    """Return which versions shall lie there next: some files are written anew, some removed."""
    after, share = dict(before), chance.choice(CHANGED)
    for file in range(FILES):
        drawn = chance.random()
        if drawn < DELETED and len(after) > 1 and file in after:
            del after[file]
        elif drawn < share or file not in after:
            after[file] = version
    return after


def change(folder: Path, before: Versions, version: int, chance: random.Random) -> Versions:
    """Write some files anew and remove some; return the versions that lie there."""
    after = planned(before, version, chance)
    for file in range(FILES):
        place = folder / "notes" / f"n{file}.md"
        if file not in after:
            place.unlink(missing_ok=True)
        elif after[file] == version:
            place.write_text(content(file, version), encoding="utf-8")
    return after


def whole_versions(memories: Iterable[Memory]) -> Versions:
    """Return which version of each file memories hold; they must hold all of one and nothing else."""
    marks: dict[int, set[tuple[int, ...]]] = defaultdict(set)
    seen = Counter[tuple[str, ...]]()
    for memory in memories:
        assert memory.source is not None
        found = MARK.findall(memory.text)
        seen.update(found)
        for mark in found:
            file, version, part, count = map(int, mark)
            assert memory.source.path == f"notes/n{file}.md"
            marks[file].add((version, count, part))
    assert all(count == 1 for count in seen.values()), "a section is there twice"
    for file, held in marks.items():
        version, count, _ = min(held)
        assert held == {(version, count, part) for part in range(count)}, f"file {file} is mixed: {sorted(held)[:20]}"
    return {file: min(held)[0] for file, held in marks.items()}


# -- processes ------------------------------------------------------------------------------------------------


def _ingest(orders: Connection, folder: Path) -> None:
    with opened(folder) as engine:
        orders.send("ready")
        orders.recv()
        engine.ingest(folder / "notes")
        orders.send("done")
        orders.recv()


def _read(orders: Connection, folder: Path) -> None:
    """Read until told to stop; report how many reads there were, and the first that saw a mixture."""
    reads, chance = 0, random.Random(1)
    with opened(folder) as engine:
        orders.send("ready")
        while not orders.poll():
            try:
                whole_versions(engine.list(limit=EVERYTHING))
                path = f"notes/n{chance.randrange(FILES)}.md"
                answer = engine.search("filler", path=path, limit=50)
                found = {mark[1] for hit in answer for mark in MARK.findall(hit.memory.text)}
                assert len(found) <= 1, f"a search saw versions {found} of {path}"
            except Exception as error:  # whatever it is, a reader must not see it
                orders.send((reads, repr(error)))
                return
            reads += 1
            time.sleep(PAUSE_S)
    orders.send((reads, ""))


@contextmanager
def reader(folder: Path, counts: Counter[str]) -> Iterator[None]:
    """Let a process read all the time; it must never see a mixture."""
    ours, theirs = FORKS.Pipe()
    process = FORKS.Process(target=_read, args=(theirs, folder), daemon=True)
    process.start()
    theirs.close()
    try:
        assert ours.recv() == "ready"
        yield
        if not ours.poll():
            ours.send("stop")
        reads, problem = ours.recv()
        assert not problem, problem
        counts["reads"] += reads
    finally:
        process.kill()
        process.join(SECONDS)
        ours.close()


def _killed(folder: Path, delay: float) -> bool:
    """Ingest in a process that is killed after so many seconds; tell whether it acknowledged before."""
    ours, theirs = FORKS.Pipe()
    process = FORKS.Process(target=_ingest, args=(theirs, folder), daemon=True)
    process.start()
    theirs.close()
    try:
        assert ours.recv() == "ready"
        timer = threading.Timer(delay, process.kill)
        ours.send("go")
        timer.start()
        try:
            return bool(_heard(ours) == "done")
        except Gone:
            return False
        finally:
            timer.join()
    finally:
        process.kill()
        process.join(SECONDS)
        ours.close()


def _heard(connection: Connection) -> Any:
    try:
        return connection.recv()
    except (EOFError, ConnectionError) as error:
        raise Gone from error


# -- rounds ---------------------------------------------------------------------------------------------------


def kill_ingests(folder: Path, seed: int, count: int) -> Counter[str]:
    """Kill so many ingests of changing files, and read the store after each."""
    chance, counts = random.Random(seed), Counter[str]()
    (folder / "notes").mkdir()
    on_disk = change(folder, {}, 0, chance)
    began = time.monotonic()
    with opened(folder) as engine:
        engine.ingest(folder / "notes")
    whole, stored = time.monotonic() - began, dict(on_disk)
    for version in range(1, count + 1):
        on_disk = change(folder, on_disk, version, chance)
        is_acknowledged = _killed(folder, chance.uniform(0, 1.2 * whole))
        found = compared(folder, stored, on_disk, is_acknowledged, chance)
        is_between = found != stored and found != on_disk
        counts.update(kills=1, acknowledged=is_acknowledged, between_transactions=is_between)
        stored = found
    with opened(folder) as engine:
        engine.ingest(folder / "notes")
        assert whole_versions(engine.list(limit=EVERYTHING)) == on_disk
    return counts


def compared(folder: Path, before: Versions, after: Versions, is_done: bool, chance: random.Random) -> Versions:
    """Read a store whose ingest is dead: every file is wholly as it was before or after, and after if it was done."""
    with opened(folder) as engine:
        found = whole_versions(engine.list(limit=EVERYTHING))
        for file in range(FILES):
            allowed = [after.get(file)] if is_done else [before.get(file), after.get(file)]
            assert found.get(file) in allowed, f"lost: file {file} is in version {found.get(file)}, not in {allowed}"
        for file in chance.sample(sorted(found), min(LOOKED_AT, len(found))):
            _check_searchable(engine, file, found[file])
    if chance.random() < EXAMINED:
        assert_sound(folder / "memory.db")
    return found


def _check_searchable(engine: whyrank.Engine, file: int, version: int) -> None:
    count = SECTIONS[(file + version) % len(SECTIONS)]
    answer = engine.search(f"f{file}v{version}p0of{count}", limit=3)
    assert any(f"f{file}v{version}p0of{count}" in hit.memory.text for hit in answer), (file, version, answer.notices)
