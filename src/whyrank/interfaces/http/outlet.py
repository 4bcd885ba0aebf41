"""Lines on their way to whoever reads them: they wait in a thread of their own, and keep nobody waiting."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from typing import Protocol

_WAITING_LINES = 10_000  # for a reader that is slow; then they are counted instead
_SECONDS_TO_LEAVE = 1.0


class Written(Protocol):
    """Something to write to, which may take any time."""

    def write(self, text: str, /) -> object:
        """Write a text."""

    def flush(self) -> object:
        """Send it on its way."""


class Descriptor:
    """A file by its number; nothing is held back that would have to be written before the process can end."""

    def __init__(self, number: int) -> None:
        self._number = number

    def write(self, text: str) -> int:
        """Write a text, however long that takes."""
        left = memoryview(text.encode("utf-8", errors="backslashreplace"))
        while left:
            left = left[os.write(self._number, left) :]
        return len(text)

    def flush(self) -> None:
        """Do nothing: it is written."""


class Outlet:
    """A place to write to that is always ready; a pipe that nobody reads holds up nothing but the lines in it."""

    def __init__(self, out: Written, lost: Callable[[int], str], waiting: int = _WAITING_LINES) -> None:
        self._out = out
        self._told = lost
        self._texts: queue.Queue[str | None] = queue.Queue(waiting)
        self._lost = 0
        self._thread = threading.Thread(target=self._pass_on, name="whyrank-log", daemon=True)
        self._thread.start()

    def write(self, text: str) -> int:
        """Take a text; one for which there is no room is counted as lost."""
        try:
            self._texts.put_nowait(text)
        except queue.Full:
            self._lost += 1
        return len(text)

    def flush(self) -> None:
        """Do nothing: texts are passed on as soon as they can be."""

    def close(self, seconds: float = _SECONDS_TO_LEAVE) -> None:
        """Wait a moment for what is still on its way."""
        try:
            self._texts.put(None, timeout=seconds)
        except queue.Full:
            return
        self._thread.join(seconds)

    def _pass_on(self) -> None:
        while (text := self._texts.get()) is not None:
            lost, self._lost = self._lost, 0
            try:
                self._out.write(f"{self._told(lost)}\n{text}" if lost else text)
                self._out.flush()
            except (OSError, ValueError):
                continue  # it is closed, which must keep nobody from being answered
