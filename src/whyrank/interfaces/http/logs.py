"""What a server says while it runs: one line for each request, to standard error, and never what was asked."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

from ..characters import visible
from .outlet import Written

_SHOWN_BYTES = 200  # of a path


class Log:
    """Writes a line for each request: method, path without its question, status, time, id."""

    def __init__(self, out: Written, *, as_json: bool) -> None:
        self._out = out
        self._as_json = as_json

    def request(self, method: str, path: bytes, status: int, seconds: float, identity: str) -> None:
        """Say how a request ended."""
        shown = visible("".join(path[:_SHOWN_BYTES].decode("ascii", errors="backslashreplace").split()))
        told = {"method": method, "path": shown, "status": status, "ms": round(seconds * 1000, 1)}
        if self._as_json:
            self._say(json.dumps({**_stamped("info"), "event": "request", **told, "request_id": identity}))
        else:
            self._say(f"whyrank: {method} {shown} {status} {told['ms']} ms {identity}")

    def _say(self, line: str) -> None:
        self._out.write(f"{line}\n")


def lost_lines(count: int, *, as_json: bool) -> str:
    """Say how many lines were left out because whoever should read them does not."""
    message = f"{count} lines were not written, because nobody read them"
    return json.dumps({**_stamped("warning"), "event": "log", "message": message}) if as_json else f"whyrank: {message}"


class _AsJson(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {**_stamped(record.levelname.lower()), "event": "log", "logger": record.name}
        told["message"] = record.getMessage()
        if record.exc_info:
            told["trace"] = self.formatException(record.exc_info)
        return json.dumps(told)


def log_to(out: Written, *, as_json: bool) -> None:
    """Send what libraries and failures say the same way, in the same form."""
    handler = logging.StreamHandler(out)
    handler.setFormatter(_AsJson() if as_json else logging.Formatter("whyrank: %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


def _stamped(level: str) -> dict[str, str]:
    return {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": level}
