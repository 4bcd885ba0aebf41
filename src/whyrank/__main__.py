"""`python -m whyrank`, and the `whyrank` command: an interrupt ends it with one line, whenever it comes."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time

TYPE_CHECKING = False  # an interrupt before we listen is told in Python's words: nothing is imported that can wait
if TYPE_CHECKING:
    from typing import NoReturn

_INTERRUPTED = 130  # as shells have it: 128 and the number of the signal
_PATIENCE_SECONDS = 2.0  # for what was begun to be undone; a key that is hit twice must not cut that short
_AGAIN_SECONDS = 0.2  # after which whoever could not hear it has come to an end

_STAYING = ("serve", "mcp")  # verbs that go on until they are stopped
_MEASURING = ("bench",)  # others beside us, who shall find everything as they know it
# New objects before Python looks which of all are of no use any more: more than a short command makes. Looking after
# each few hundred, as Python does, takes some hundredths of its time, and finds nothing.
_MANY_OBJECTS = 200_000


class _Interrupt:
    """Interrupts the command where it is, as Python does, and knows of it when somebody takes it for something else."""

    was_heard = False
    _until = 0.0

    def __call__(self, number: int, frame: object) -> None:
        """Hear Ctrl-C; what is being undone already is left to its end for a while."""
        if time.monotonic() < self._until:
            return
        self.was_heard = True
        self._until = time.monotonic() + _PATIENCE_SECONDS
        raise KeyboardInterrupt

    def lost(self, unraisable: sys.UnraisableHookArgs) -> None:
        """Interrupt again if the first time nobody could hear it, as in code that runs when something is let go."""
        if unraisable.exc_type is not KeyboardInterrupt:
            sys.__unraisablehook__(unraisable)
            return
        import threading

        again = threading.Timer(_AGAIN_SECONDS, self._again)
        again.daemon = True
        again.start()

    def _again(self) -> None:
        self._until = 0.0
        os.kill(os.getpid(), signal.SIGINT)


_interrupt = _Interrupt()  # made here, where the least can be interrupted


def main() -> None:
    """Run the command line."""
    try:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else we are to outlive it
            signal.signal(signal.SIGINT, _interrupt)
            sys.unraisablehook = _interrupt.lost
        travel_light(sys.argv[1:2])
        from .interfaces.cli.main import main as run

        status = run()
    except KeyboardInterrupt:
        _leave("interrupted")
    except Exception:
        # An import that is cut short may fail in words of its own.
        if not _interrupt.was_heard:
            raise
        _leave("interrupted")
    if status == _INTERRUPTED:
        _leave("")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is over, and the status is what was done
    gc.freeze()  # what there is dies with the process: looking through it once more takes a sixth of a search
    sys.exit(status)


def travel_light(verb: list[str]) -> None:
    """Leave out what a command that answers and goes has no use for."""
    if verb and verb[0] in (*_STAYING, *_MEASURING):
        return
    gc.set_threshold(_MANY_OBJECTS)
    if "OMP_NUM_THREADS" not in os.environ:  # whoever says how many threads there shall be is heard
        # numpy's algebra starts a thread for every core, which looks busily for work; whyrank has none for them.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _leave(said: str) -> NoReturn:
    """End at once: all was undone on the way here, and a thread that waits for an import cut short waits for ever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        if said:
            print(said, file=sys.stderr)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    finally:
        os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
