"""Work that an open engine does beside its searches: one thread, small steps, over when the engine is closed."""

from __future__ import annotations

import threading
from collections.abc import Callable

Tick = Callable[[int, int, str], None]

PAUSE_S = 0.01  # after each step, so that those who search or write come first
_JOIN_S = 10.0  # a step in a slow model may take a while


class Stopped(Exception):
    """The work was told to stop, and goes on where it was another time."""


class Background:
    """At most one piece of work at a time; what it failed with is kept until somebody asks."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self.error: Exception | None = None

    @property
    def is_running(self) -> bool:
        """Tell whether there is work under way."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, work: Callable[[Tick], object]) -> None:
        """Begin a piece of work in place of the one before; it tells its steps, and is stopped between them."""
        self.close()
        self._stop.clear()
        self.error = None
        self._thread = threading.Thread(target=self._run, args=(work,), name="whyrank-background", daemon=True)
        self._thread.start()

    def pause(self, seconds: float) -> None:
        """Sleep inside the work; stop it if it was told to."""
        if self._stop.wait(seconds):
            raise Stopped

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the work; tell whether it has ended."""
        if self._thread is not None:
            self._thread.join(timeout_s)
        return not self.is_running

    def close(self) -> None:
        """Stop the work after its present step."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_JOIN_S)

    def _run(self, work: Callable[[Tick], object]) -> None:
        try:
            work(lambda done, total, label: self.pause(PAUSE_S))
        except Stopped:
            return
        except Exception as error:  # a thread has nobody to raise to
            self.error = error
