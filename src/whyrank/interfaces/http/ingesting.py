"""Files that are put in from outside: only those of the workspace, with news of how far it is."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

from ...errors import ConfigError
from ...ingest.filling import Progress
from .bodies import Refused

_NEWS_SECONDS = 0.1  # between two pieces of news
_HEARTBEAT_SECONDS = 10.0  # after which one who waits hears that we are still there


def inside(workspace: Path, names: Sequence[str]) -> list[Path]:
    """Return paths of the workspace; whatever leads out of it, or to what is hidden in it, is refused."""
    root = workspace.resolve()
    paths = []
    for name in names:
        path = Path(os.path.normpath(workspace / name))
        try:
            is_inside = path.is_relative_to(workspace) and path.resolve().is_relative_to(root)
        except (OSError, ValueError, RuntimeError):
            is_inside = False
        if not is_inside or ".." in Path(name).parts:
            raise Refused(403, "outside", f"{name[:100]!r} is not in the workspace", "name paths below the workspace")
        ways = (*path.relative_to(workspace).parts, *path.resolve().relative_to(root).parts)
        if any(part.startswith(".") for part in ways):
            raise Refused(403, "outside", f"{name[:100]!r} is hidden", "name paths that do not begin with a dot")
        paths.append(path)
    if not paths:
        raise ConfigError("no path was named", "name files or folders of the workspace")
    return paths


def until(leaving: threading.Event, tell: Progress) -> Progress:
    """Return progress that is told, and that stops the work between two files when the server is to end."""

    def tick(done: int, total: int, what: str) -> None:
        if leaving.is_set():
            # Files are stored many at a time: of those just read some may not be.
            hint = "ask again: what is stored is not read again"
            raise Refused(503, "stopping", "the server ends; the files that are stored stay", hint)
        tell(done, total, what)

    return tick


class News:
    """What a thread tells of its work, passed on to whoever listens; not more often than is worth hearing."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue = asyncio.Queue[dict[str, Any] | None]()
        self._last = 0.0

    def tell(self, done: int, total: int, what: str) -> None:
        """Tell how far the work is, from its thread."""
        now = time.monotonic()
        if now - self._last >= _NEWS_SECONDS or done >= total:
            self._last = now
            self._loop.call_soon_threadsafe(self._queue.put_nowait, {"done": done, "total": total, "what": what})

    async def events(
        self, task: asyncio.Future[bytes], failed: Callable[[BaseException], bytes]
    ) -> AsyncIterator[bytes]:
        """Yield server-sent events: progress, then the report or the error; the work does not depend on who listens."""
        task.add_done_callback(lambda _: self._queue.put_nowait(None))
        while True:
            try:
                news = await asyncio.wait_for(self._queue.get(), _HEARTBEAT_SECONDS)
            except TimeoutError:
                yield b": still at it\n\n"
                continue
            if news is None:
                break
            yield event("progress", json.dumps(news).encode())
        error = task.exception()
        yield event("report", task.result()) if error is None else event("error", failed(error))


def event(name: str, data: bytes) -> bytes:
    """Return one server-sent event."""
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"
