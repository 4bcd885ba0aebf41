"""Deadlines of searches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

SERVER_TIMEOUT_MS = 10_000  # of a search over HTTP or MCP, if nothing else is set: clients give up at 30 s or so
GRACE = 2  # times the limit: then a statement that is still running is aborted
MAX_TIMEOUT_MS = 3_600_000

Made = TypeVar("Made")


@dataclass(frozen=True)
class Deadline:
    """End of the time that a search may take, counted from its start."""

    timeout_ms: int
    start: float = field(default_factory=time.monotonic)

    @property
    def has_passed(self) -> bool:
        """Return whether the deadline has passed."""
        return self.remaining_s <= 0

    @property
    def remaining_s(self) -> float:
        """Return the remaining seconds."""
        return max(0.0, self.start + self.timeout_ms / 1_000 - time.monotonic())

    @property
    def abort_at(self) -> float:
        """Return the moment, by `time.monotonic()`, at which statements are aborted."""
        return self.start + GRACE * self.timeout_ms / 1_000


def call_within(seconds: float | None, work: Callable[[], Made], setting: str) -> Made:
    """Call a function in a thread that is abandoned on timeout: a provider may respect no limit."""
    said: list[Made] = []
    failed: list[Exception] = []

    def attempt() -> None:
        try:
            said.append(work())
        except Exception as error:  # passed to the thread that waits
            failed.append(error)

    working = threading.Thread(target=attempt, name="whyrank-within", daemon=True)
    working.start()
    working.join(seconds)
    if failed:
        raise failed[0]
    if not said:
        raise TimeoutError(f"it took longer than {seconds or 0:g} seconds ({setting})")
    return said[0]
