"""What the command refuses; each error has a code for `--json` and an exit status."""

from __future__ import annotations

from typing import ClassVar


class ConformanceError(Exception):
    """A message and, where there is one, what to do about it."""

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


class UsageError(ConformanceError):
    """An option, an engine's name or a path that cannot be used."""

    code, exit_status = "config", 2


class NotInstalled(ConformanceError):
    """None of the engines asked for is installed."""

    code, exit_status = "missing-extra", 11


class BadReport(ConformanceError):
    """A file that is no report of this suite."""

    code, exit_status = "bad-dataset", 13
