"""Processes beside a test: whatever becomes of the test, none outlives it, and none keeps it waiting for ever."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

SECONDS = 60.0  # for a process to do what it was told to


@contextmanager
def started(command: Sequence[str | Path], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Start a process; leaving a test by a failure would otherwise wait for its end."""
    with subprocess.Popen([str(part) for part in command], text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def serving(command: Sequence[str | Path], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Start a server, and tell it to end afterwards, which it does in time."""
    with started(command, **options) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(SECONDS)
