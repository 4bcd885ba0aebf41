"""Kill a process at the n-th thing our code does: by forks of one that has all imports done, so many are tried."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from tests.processes import started

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# Calls and returns count, also those of C functions such as `execute`, in files whose names hold one of some words.
_HARNESS = """
import json, os, signal, sys

{action}

events = 0

def done(at, words, arguments):
    def watch(frame, event, argument):
        global events
        if any(word in frame.f_code.co_filename for word in words):
            events += 1
            if events == at:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.setprofile(watch)
    act(*arguments)
    sys.setprofile(None)
    os.write(1, f"{{events}}\\n".encode())

for line in sys.stdin:
    asked = json.loads(line)
    if not asked[0]:
        done(*asked)  # in this process, so that all imports are done before the first fork
        events = 0
        continue
    child = os.fork()
    if not child:
        done(*asked)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status:
        os.write(1, b"killed\\n" if os.WIFSIGNALED(status) else b"failed\\n")
"""


class Killer:
    """A process that does something again and again, and dies of it at a given moment."""

    def __init__(self, process: subprocess.Popen[str], words: tuple[str, ...]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in: IO[str] = process.stdin
        self._out: IO[str] = process.stdout
        self._words = words

    def events(self, arguments: Callable[[], Sequence[object]]) -> int:
        """Let it be done to its end; return how many moments there are to be killed in.

        It is done twice, each time with new arguments: the first time fills what is kept for later ones.
        """
        return [int(self._done(0, arguments())) for _ in range(2)][-1]

    def killed(self, at: int, *arguments: object) -> bool:
        """Kill it at a moment; tell whether it came so far."""
        said = self._done(at, arguments)
        assert said != "failed"
        return said == "killed"

    def _done(self, at: int, arguments: Sequence[object]) -> str:
        self._in.write(json.dumps([at, self._words, [*map(str, arguments)]]) + "\n")
        self._in.flush()
        return self._out.readline().strip()


@contextmanager
def killer(action: str, *words: str) -> Iterator[Killer]:
    """Start one for an action, Python that defines `act(…)`; moments are counted in files whose names hold a word."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with started([sys.executable, "-c", _HARNESS.format(action=action)], **pipes) as process:
        yield Killer(process, words)
