"""What is done in a process of its own: building, and a first search from cold. Prints one line of JSON.

`python -m benchmarks.speed.child build NAME CORPUS FOLDER` and `… cold NAME CORPUS FOLDER`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whyrank.errors import WhyrankError

from .measurement import disk_megabytes, peak_megabytes, timed
from .peers import OURS, Peer, peer_named

if TYPE_CHECKING:
    from .corpus import Written

LIMIT = 50
_ROOT = Path(__file__).parents[2]  # where `benchmarks` is found
SEARCHES = 20  # after which caches are as large as they get


class Failed(WhyrankError):
    """A contestant could not do its task; the message says why."""


def in_a_process(task: str, name: str, corpus: Path, folder: Path, patience: float) -> dict[str, Any]:
    """Do a task in a new process, for at most some seconds; raise `Failed` with the reason."""
    command = [sys.executable, "-m", __name__, task, name, str(corpus), str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=patience, check=False, cwd=_ROOT)
    except subprocess.TimeoutExpired:
        raise Failed(f"{task} was not done in {patience:g} s") from None
    if done.returncode:
        said = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
        raise Failed(f"{task} failed: {said}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def contestant_named(name: str) -> Peer:
    """Return whyrank or one of its peers."""
    if name == OURS:
        from .ours import Ours

        return Ours()
    return peer_named(name)


def _loaded(name: str) -> Peer:
    peer = contestant_named(name)
    for module in peer.modules:
        import_module(module)
    return peer


def build(name: str, corpus: Written, folder: Path) -> dict[str, Any]:
    """Build an index and say what it took."""
    folder.mkdir(parents=True)
    peer = _loaded(name)
    span, _ = timed(lambda: peer.build(corpus, folder))
    return {
        "cpu_s": span.cpu / 1000,
        "wall_s": span.wall / 1000,
        "peak_mb": peak_megabytes(),
        "disk_mb": disk_megabytes(folder),
    }


def cold(name: str, corpus: Written, folder: Path) -> dict[str, Any]:
    """Open an index and search, as a process that has just been started does."""
    vectors, questions = corpus.question_vectors, corpus.questions
    before, begun = peak_megabytes(), time.perf_counter()
    peer = _loaded(name)
    start = time.perf_counter()
    peer.open(folder)
    opened = time.perf_counter()
    ask(peer, questions[0].text, vectors[0])
    first = time.perf_counter()
    for question, vector in zip(questions[:SEARCHES], vectors, strict=False):
        ask(peer, question.text, vector)
    peak = peak_megabytes()
    peer.close()
    grown = peak - before if peak is not None and before is not None else None
    return {
        "import_ms": (start - begun) * 1000,
        "open_ms": (opened - start) * 1000,
        "first_search_ms": (first - opened) * 1000,
        "peak_mb": peak,
        "grown_mb": grown,
    }


def ask(peer: Peer, question: str, vector: Any) -> None:
    """Ask a contestant what it is best at."""
    if "search" in peer.offers:
        peer.search(question, vector, LIMIT)
    elif "keyword" in peer.offers:
        peer.keyword(question, LIMIT)
    elif "nearest" in peer.offers:
        peer.nearest(vector, LIMIT)


def main(task: str, name: str, corpus: str, folder: str) -> None:
    """Do one task and print what it took."""
    from .corpus import Written

    tasks = {"build": build, "cold": cold}
    print("\n" + json.dumps(tasks[task](name, Written(Path(corpus)), Path(folder))))


if __name__ == "__main__":
    main(*sys.argv[1:])
