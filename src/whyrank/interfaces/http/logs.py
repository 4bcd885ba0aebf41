"""What a server says while it runs: one line for each request, to standard error, and never what was asked."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

from ..characters import printable

_SHOWN_BYTES = 200  # of a path


class Log:
    """Writes a line for each request: method, path without its question, status, time, id."""

    def __init__(self, *, as_json: bool, out: TextIO | None = None) -> None:
        self._as_json = as_json
        self._out = out

    def request(self, method: str, path: bytes, status: int, seconds: float, identity: str) -> None:
        """Say how a request ended."""
        shown = printable("".join(path[:_SHOWN_BYTES].decode("ascii", errors="backslashreplace").split()))
        told = {"method": method, "path": shown, "status": status, "ms": round(seconds * 1000, 1)}
        if self._as_json:
            self._say(json.dumps({**_stamped("info"), "event": "request", **told, "request_id": identity}))
        else:
            self._say(f"whyrank: {method} {shown} {status} {told['ms']} ms {identity}")

    def _say(self, line: str) -> None:
        out = self._out or sys.stderr
        try:
            out.write(f"{line}\n")
            out.flush()
        except (OSError, ValueError):
            return  # nobody reads it, which must keep nobody from being answered


class _AsJson(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {**_stamped(record.levelname.lower()), "event": "log", "logger": record.name}
        told["message"] = record.getMessage()
        if record.exc_info:
            told["trace"] = self.formatException(record.exc_info)
        return json.dumps(told)


def log_to_stderr(*, as_json: bool) -> None:
    """Send what libraries and failures say to standard error, in the same form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_AsJson() if as_json else logging.Formatter("whyrank: %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


def _stamped(level: str) -> dict[str, str]:
    return {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": level}
