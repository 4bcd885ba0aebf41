"""Work that an open engine does beside its searches: one thread, small steps, over when the engine is closed."""

from __future__ import annotations

import threading
from collections.abc import Callable

Tick = Callable[[int, int, str], None]

PAUSE_S = 0.01  # after each step, so that those who search or write come first
_JOIN_S = 10.0  # a step in a slow model may take a while


class Stopped(Exception):
    """The work was told to stop, and goes on where it was another time."""


class _Worker(threading.Thread):
    """A thread that is told to stop by an event of its own, so that the next one does not release it."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__(target=work, name="whyrank-background", daemon=True)
        self.stop = threading.Event()


class Background:
    """At most one piece of work at a time; what it failed with is kept until somebody asks."""

    def __init__(self) -> None:
        self._thread: _Worker | None = None
        self.error: Exception | None = None

    @property
    def is_running(self) -> bool:
        """Tell whether there is work under way."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, work: Callable[[Tick], object]) -> None:
        """Begin a piece of work in place of the one before; it tells its steps, and is stopped between them."""
        self.close()
        self.error = None
        self._thread = _Worker(lambda: self._run(work))
        self._thread.start()

    def pause(self, seconds: float) -> None:
        """Sleep inside the work; stop it if it was told to."""
        worker = threading.current_thread()
        if isinstance(worker, _Worker) and worker.stop.wait(seconds):
            raise Stopped

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the work; tell whether it has ended."""
        if self._thread is not None:
            self._thread.join(timeout_s)
        return not self.is_running

    def close(self) -> None:
        """Stop the work after its present step."""
        if self._thread is None:
            return
        self._thread.stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join(_JOIN_S)

    def _run(self, work: Callable[[Tick], object]) -> None:
        try:
            work(lambda done, total, label: self.pause(PAUSE_S))
        except Stopped:
            return
        except Exception as error:  # a thread has nobody to raise to
            self.error = error
