"""`python -m whyrank` and the `whyrank` command: an interrupt ends it with one line at any time."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time

TYPE_CHECKING = False  # few imports: an interrupt before the handler is set prints Python's traceback
if TYPE_CHECKING:
    from typing import NoReturn

_INTERRUPTED = 130  # shell convention: 128 + signal number
_PATIENCE_SECONDS = 2.0  # for cleanup after an interrupt; a second Ctrl-C must not cut it short
_AGAIN_SECONDS = 0.2  # until a finalizer that swallowed the interrupt has ended

_STAYING = ("serve", "mcp")  # verbs that run until they are stopped
# New objects before a garbage collection: more than a short command allocates. Python's default of a few hundred costs
# some hundredths of its time, and finds nothing.
_MANY_OBJECTS = 200_000


class _Interrupt:
    """SIGINT handler: raises KeyboardInterrupt as Python does, and records it in case it is swallowed."""

    was_heard = False
    _until = 0.0

    def __call__(self, number: int, frame: object) -> None:
        """Raise KeyboardInterrupt; while cleanup is running, ignore repeated signals for a while."""
        if time.monotonic() < self._until:
            return
        self.was_heard = True
        self._until = time.monotonic() + _PATIENCE_SECONDS
        raise KeyboardInterrupt

    def lost(self, unraisable: sys.UnraisableHookArgs) -> None:
        """Send SIGINT again if the exception was unraisable, as in a finalizer."""
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


_interrupt = _Interrupt()  # created at import time, where the least code can be interrupted


def main() -> None:
    """Run the command line."""
    try:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else SIGINT is ignored on purpose
            signal.signal(signal.SIGINT, _interrupt)
            sys.unraisablehook = _interrupt.lost
        travel_light(sys.argv[1:2])
        from .interfaces.cli.main import main as run

        status = run()
    except KeyboardInterrupt:
        _leave("interrupted")
    except Exception:
        # An interrupted import may fail with an exception of its own.
        if not _interrupt.was_heard:
            raise
        _leave("interrupted")
    if status == _INTERRUPTED:
        _leave("")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command is done, and its status stands
    gc.freeze()  # objects die with the process: a final collection costs a sixth of a search
    sys.exit(status)


def travel_light(verb: list[str]) -> None:
    """Reduce garbage collection and BLAS threads for commands that run briefly."""
    if verb and verb[0] in _STAYING:
        return
    gc.set_threshold(_MANY_OBJECTS)
    if "OMP_NUM_THREADS" not in os.environ:  # the user's own number of threads wins
        # OpenBLAS starts a thread per core, each of which spins for work; whyrank has none for them.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _leave(said: str) -> NoReturn:
    """Exit at once: cleanup is done, and a thread that waits for an interrupted import waits forever."""
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
