"""What whole commands cost from cold on ten thousand notes: CPU of the process and wall, medians and worst of turns.

    python -m benchmarks.startup [--rounds 15] [--notes 10000] [--words 60 200]

The notes are made up (`benchmarks.speed.corpus`) and embedded with the embedded default, through the library, once. CPU
is user and system time of the process with all its threads, as the system counts it when the process ends. The package
is byte-compiled before, as `pip install` does it, and no variable says how many threads there shall be. The status is 1
if a search takes more than its limit. Run by `make bench`.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import whyrank
from whyrank.types.memory import Document

from .speed.corpus import Corpus, Question

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LIMIT_MS = 600  # of CPU, from cold, for the median of a search
ROUNDS = 15
BARE = "python -c pass"
NOT_FOR_CHILDREN = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PYTHONDONTWRITEBYTECODE")
PYTHON = sys.executable
WHYRANK = (PYTHON, "-m", "whyrank")

Command = tuple[str, ...]


class Spent(NamedTuple):
    """Milliseconds one command took."""

    cpu: float
    wall: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--words", type=int, nargs="+", default=[200])
    asked = parser.parse_args()
    compileall.compile_dir(Path(whyrank.__file__).parent, quiet=2)
    slowest = [measured(Corpus(asked.notes, words), asked.rounds) for words in asked.words]
    raise SystemExit(max(slowest) > LIMIT_MS)


def measured(corpus: Corpus, rounds: int) -> float:
    """Measure all commands on one corpus, print them, and return the slowest median of a search."""
    with tempfile.TemporaryDirectory(prefix="whyrank-bench-") as place:
        store, grown = Path(place) / "memory.db", Path(place) / "grown.db"
        question, first = built(corpus, store)
        shutil.copyfile(store, grown)
        turn = Path(place) / "turn.json"
        turn.write_text(json.dumps({"hook_event_name": "UserPromptSubmit", "prompt": question.text}), encoding="utf-8")
        spent = turns(commands(question, first, store), grown, rounds, turn)
    print(
        f"\n{corpus.size:,} notes of {corpus.words} words; {rounds} rounds; milliseconds of a whole process, from cold"
    )
    print(f"{'':36}{'CPU':>8}{'worst':>8}{'wall':>8}{'worst':>8}{'× bare':>9}")
    bare = statistics.median(one.cpu for one in spent[BARE])
    for name, taken in spent.items():
        cpu, wall = [one.cpu for one in taken], [one.wall for one in taken]
        figures = (statistics.median(cpu), max(cpu), statistics.median(wall), max(wall))
        print(f"{name:36}" + "".join(f"{figure:8.0f}" for figure in figures) + f"{figures[0] / bare:9.1f}")
    slowest = max(statistics.median(one.cpu for one in taken) for name, taken in spent.items() if "search" in name)
    print(f"the slowest search takes {slowest:.0f} ms of CPU; the limit is {LIMIT_MS} ms")
    return slowest


def built(corpus: Corpus, store: Path) -> tuple[Question, str]:
    """Store the notes as documents; return a question about one, and what answers it first."""
    (wanted,) = corpus.asked(1)
    with whyrank.open(store, workspace=store.parent) as memory:
        start = 0
        for notes, vectors in corpus.batches():
            memory.add_documents(Document(f"{start + place}", note) for place, note in enumerate(notes))
            if start <= wanted < start + len(notes):
                about, near = notes[wanted - start], vectors[wanted - start : wanted - start + 1]
            start += len(notes)
        (question,), _ = corpus.questions([(wanted, about)], near)
        return question, memory.search(question.text)[0].id


def commands(question: Question, first: str, store: Path) -> Mapping[str, Command]:
    """Return what is typed, by what it is called in the table."""
    at = ("--store", str(store), "--workspace", str(store.parent))
    return {
        BARE: (PYTHON, "-c", "pass"),
        "import whyrank": (PYTHON, "-c", "import whyrank"),
        "import numpy": (PYTHON, "-c", "import numpy"),
        "whyrank --help": (*WHYRANK, "--help"),
        "whyrank search, a question": (*WHYRANK, "search", question.text, *at),
        "whyrank search, without an embedder": (*WHYRANK, "search", question.text, "--embedding", "none", *at),
        "whyrank search, a name": (*WHYRANK, "search", question.name, *at),
        "whyrank why": (*WHYRANK, "why", question.text, first, *at),
        "whyrank hook claude-code, a turn": (*WHYRANK, "hook", "claude-code", *at),
        "whyrank hook, without an embedder": (*WHYRANK, "hook", "claude-code", "--embedding", "none", *at),
    }


def turns(told: Mapping[str, Command], grown: Path, rounds: int, given: Path) -> Mapping[str, list[Spent]]:
    """Let the commands take turns, in another order each time; facts are added to a copy that nobody searches."""
    environment = {name: value for name, value in os.environ.items() if name not in NOT_FOR_CHILDREN}
    environment["WHYRANK_RECALL_TIMEOUT_MS"] = "60000"  # on a busy machine a hook would fall silent, and seem fast
    spent: dict[str, list[Spent]] = {name: [] for name in (*told, "whyrank add")}
    for turn in range(-1, rounds):  # the first finds nothing in the system's caches, and does not count
        fact = (*WHYRANK, "add", f"the {turn + 1}th fact is about tea", "--store", str(grown))
        known = {**told, "whyrank add": (*fact, "--workspace", str(grown.parent))}
        for name in random.Random(turn).sample(list(known), len(known)):
            taken = run(known[name], environment, given)
            if turn >= 0:
                spent[name].append(taken)
    return spent


def run(command: Sequence[str], environment: Mapping[str, str], given: Path) -> Spent:
    """Run a command to its end; hooks read a turn from standard input, which others leave alone."""
    with given.open("rb") as stdin:
        start = time.perf_counter()
        with subprocess.Popen(
            command, env=environment, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return Spent((used.ru_utime + used.ru_stime) * 1000, wall * 1000)


if __name__ == "__main__":
    main()
